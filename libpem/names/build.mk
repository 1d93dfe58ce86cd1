# SPDX-License-Identifier: MIT
# libpem-names.so.1: names of code, by elfutils. Apart from libpem, which is preloaded and needs no
# other library. Without elfutils objects have no names, and whoever asks is told.

# The kernel source alone has what probing.h adds.
NAMES_SRC := $(filter-out %/instructions.c %/parameters.c,$(wildcard libpem/names/*.c))
ifneq ($(HAVE_LIBDW),)
NAMES_SRC := $(filter-out %/absent.c,$(NAMES_SRC))
else
NAMES_SRC := $(filter-out $(addprefix %/,debug_files.c file.c functions.c object.c scopes.c spans.c symbols.c units.c),$(NAMES_SRC))
$(info names of code in pem report: of the kernel alone (libdw-dev is missing))
endif
NAMES_OBJ := $(call objects,$(NAMES_SRC) shared/number_map.c)
NAMES_MAP := libpem/names/libpem-names.map
LIBPEM_NAMES := $(B)/lib/libpem-names.so
NAMES_PC := $(B)/gen/libpem-names.pc.in
ALL += $(LIBPEM_NAMES) $(B)/lib/libpem-names.a $(NAMES_PC)

$(B)/lib/libpem-names.so.1: $(NAMES_OBJ) $(NAMES_MAP) $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-z,now -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--version-script=$(NAMES_MAP) $(filter %.o,$^) -L$(@D) -lpem $(LIBDW_LIBS) $(CAPSTONE_LIBS) -ldl -lpthread

$(LIBPEM_NAMES): $(B)/lib/libpem-names.so.1
	$(Q)ln -sf $(<F) $@

$(B)/lib/libpem-names.a: $(NAMES_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# What the archive needs is what this build found, not what an installer has.
$(NAMES_PC): libpem/names/libpem-names.pc.in $(FOUND)
	@mkdir -p $(@D)
	$(Q)sed 's|@PRIVATE@|$(strip $(if $(HAVE_LIBDW),libdw) $(if $(HAVE_CAPSTONE),capstone))|' $< >$@

CFLAGS_libpem_names_operand := $(CAPSTONE_CFLAGS)
ifeq ($(HAVE_CAPSTONE),)
$(info pem record --mem: no addresses by a timer, capstone is missing (libcapstone-dev))
endif
$(B)/tests/operand: $(B)/obj/libpem/names/operand.o
$(B)/tests/operand: private TEST_LIBS += $(CAPSTONE_LIBS)

# The kernel's functions by its list, and where code lies: these tests need no elfutils.
$(B)/tests/kernel_names $(B)/tests/names_code: $(NAMES_OBJ)
$(B)/fuzz/kept_names: $(NAMES_OBJ)
$(B)/fuzz/kept_names: private TEST_LIBS += $(LIBDW_LIBS) $(CAPSTONE_LIBS)
$(B)/tests/kernel_names $(B)/tests/names_code: private TEST_LIBS += $(LIBDW_LIBS) $(CAPSTONE_LIBS)
$(B)/tests/names_apart: $(B)/obj/libpem/names/apart.o
ifneq ($(HAVE_LIBDW),)
NAMES_TESTS := $(addprefix $(B)/tests/,names names_spans)
$(NAMES_TESTS): $(NAMES_OBJ) $(call objects,agents/page-size/sites/site.c)
$(NAMES_TESTS): private TEST_LIBS += $(LIBDW_LIBS) $(CAPSTONE_LIBS)
# For the end-to-end tests and the benchmark.
tests: $(B)/programs/name_code $(B)/programs/keep_names
$(B)/programs/name_code $(B)/programs/keep_names: $(B)/programs/%: tests/programs/%.c $(NAMES_OBJ) $(B)/lib/libpem.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_tests) -MF $@.d -o $@ $(filter %.c %.o,$^) $(TEST_LINK) $(LIBDW_LIBS) $(CAPSTONE_LIBS) \
	  -ldl -lpthread
endif
