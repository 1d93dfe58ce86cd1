# SPDX-License-Identifier: MIT
# Programs that the end-to-end tests run: $(B)/programs/NAME. Their specs become
# $(B)/gen/programs/*.h.
#
# They include generated headers only, and are built without sanitizers, as what is preloaded into
# them is (tests/run); but for those with libpem inside: linked, which is processes.c, and
# fork_in_join. static is processes.c, linked statically.

PROGRAM_SPECS := $(sort $(wildcard tests/programs/*.xml))
PROGRAMS := processes filtered probed join pingpong bare_fork storm asked fork_in_join fork_waits \
  threads types rounds gated idle large_heap page_shapes allocates static allocates_static linked \
  library.so polyglot blocked functions stage streams
PROGRAMS_STAMP := $(B)/gen/programs/.stamp
PROGRAM_CC = $(CC) $(subst $(SAN_FLAGS),,$(ALL_CFLAGS)) $(INC_tests) -MF $@.d -o $@ $<

tests: $(PROGRAMS:%=$(B)/programs/%)

$(PROGRAMS_STAMP): $(PEM_CODEGEN) $(PROGRAM_SPECS) tests/programs/build.mk
	$(call say,GEN,$(@D))
	$(Q)$(PEM_CODEGEN) --backend c -o $(@D) $(PROGRAM_SPECS)
	$(Q)for backend in c++ fortran rust; do \
	  $(PEM_CODEGEN) --backend $$backend -o $(@D) tests/programs/polyglot.xml || exit; done
	@touch $@

$(PROGRAMS:%=$(B)/programs/%): $(PROGRAMS_STAMP) | $(GENERATED)
# Unit tests and fuzz targets raise their events, too.
$(call objects,$(wildcard tests/unit/*.c tests/fuzz/*.c)): | $(PROGRAMS_STAMP)
$(B)/gen/programs/%.h: $(PROGRAMS_STAMP)
	$(with_stamp)

# Parameters of functions have names with debug information, and are registers without it.
$(B)/programs/probed: private ALL_CFLAGS += -g0
$(B)/programs/functions: private ALL_CFLAGS += -g

$(B)/programs/%: tests/programs/%.c
	$(call say,LINK,$@)
	$(Q)$(PROGRAM_CC) -ldl -lpthread

ifneq ($(HAVE_GSTREAMER),)
tests: $(B)/programs/gstreamer
$(B)/programs/gstreamer: tests/programs/gstreamer.c
	$(call say,LINK,$@)
	$(Q)$(PROGRAM_CC) $(GSTREAMER_CFLAGS) $(GSTREAMER_LIBS)
endif

# Queues of oneTBB, also under sanitizers. It takes long to compile, so tests do not.
ifneq ($(and $(HAVE_CXX),$(wildcard $(SYSROOT)/usr/include/oneapi/tbb/concurrent_queue.h)),)
TBB_PROGRAMS := $(addprefix $(B)/programs/,tbb tbb_address tbb_thread)
tests: $(TBB_PROGRAMS)
$(B)/programs/tbb: private TBB_FLAGS := -O2
$(B)/programs/tbb_address: private TBB_FLAGS := -fsanitize=address,undefined
$(B)/programs/tbb_thread: private TBB_FLAGS := -fsanitize=thread -Wno-tsan
$(TBB_PROGRAMS): tests/programs/tbb.cpp | $(GENERATED)
	$(call say,LINK,$@)
	$(Q)$(CXX) -std=c++17 -Wall -Wextra -Werror $(TBB_FLAGS) $(INC_tests) -MMD -MF $@.d -o $@ $< -ltbb -ldl -lpthread
endif

$(B)/programs/static: tests/programs/processes.c
	$(call say,LINK,$@)
	$(Q)$(PROGRAM_CC) -static -fno-PIC -ldl -lpthread

$(B)/programs/allocates_static: tests/programs/allocates.c
	$(call say,LINK,$@)
	$(Q)$(PROGRAM_CC) -static -fno-PIC -lpthread

$(B)/programs/library.so: tests/programs/library.c
	$(call say,LINK,$@)
	$(Q)$(PROGRAM_CC) -shared -ldl

$(B)/programs/linked: tests/programs/processes.c
$(B)/programs/fork_in_join: tests/programs/fork_in_join.c
$(B)/programs/linked $(B)/programs/fork_in_join: $(B)/lib/libpem.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_tests) -MF $@.d -o $@ $(filter %.c,$^) $(TEST_LINK) -ldl \
	  -lpthread

# The same program in other languages; the tests say which compiler is missing.
POLYGLOT := $(if $(HAVE_CXX),cxx) $(if $(HAVE_FORTRAN),fortran) $(if $(HAVE_RUST),rust)
POLYGLOT := $(POLYGLOT:%=$(B)/programs/polyglot_%)

tests: $(POLYGLOT)
$(POLYGLOT) $(B)/gen/programs/polyglot_symbols.o: $(PROGRAMS_STAMP)
$(B)/programs/polyglot_fortran $(B)/gen/programs/libpem_polyglot.rlib: \
  $(B)/gen/programs/polyglot_symbols.o
$(B)/programs/polyglot_rust: $(B)/gen/programs/libpem_polyglot.rlib

$(B)/programs/polyglot_cxx: tests/programs/polyglot.cpp
	$(call say,LINK,$@)
	$(Q)$(call in_cxx,$<,$(B)/gen/programs,polyglot)

$(B)/programs/polyglot_fortran: tests/programs/polyglot.f90
	$(call say,LINK,$@)
	$(Q)$(call in_fortran,$<,$(B)/gen/programs,polyglot)

$(B)/programs/polyglot_rust: tests/programs/polyglot.rs
	$(call say,LINK,$@)
	$(Q)$(call in_rust,$<,$(B)/gen/programs,polyglot)

tests: $(B)/programs/python/polyglot.py $(if $(HAVE_JAVA),$(B)/programs/java/Polyglot.class)

$(B)/programs/python/polyglot.py: tests/programs/polyglot.py tests/programs/polyglot.xml \
  $(PEM_CODEGEN)
	$(call say,GEN,$@)
	$(Q)$(PEM_CODEGEN) --backend python -o $(@D) tests/programs/polyglot.xml && cp $< $@

$(B)/programs/java/Polyglot.class: tests/programs/Polyglot.java tests/programs/polyglot.xml \
  $(PEM_CODEGEN)
	$(call say,JAVAC,$@)
	$(Q)$(call in_java,tests/programs/polyglot.xml,polyglot,$<)

-include $(wildcard $(B)/programs/*.d)
