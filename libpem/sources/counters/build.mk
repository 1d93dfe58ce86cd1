# SPDX-License-Identifier: MIT
# source-counters.so: hardware and software counters through perf_event_open, named by libpfm4.

# Callers of samples need elfutils, on machines that unwind.c knows.
UNWIND_HERE := $(and $(HAVE_LIBDW),$(filter x86_64-% aarch64-%,$(MACHINE)))
UNWIND_LIBS := $(if $(UNWIND_HERE),$(LIBDW_LIBS))
UNWIND_SRC := $(addprefix libpem/sources/counters/unwind/, \
  $(if $(UNWIND_HERE),unwind.c stack.c files.c frames.c,none.c))
# Of libpem-names it takes what decodes operands.
COUNTERS_OBJ := $(call objects,$(UNWIND_SRC) $(wildcard libpem/sources/counters/*.c \
  libpem/sources/readings/*.c) libpem/names/operand.c)
ifeq ($(HAVE_LIBDW),)
$(info counters source: no callers of samples, elfutils is missing (libdw-dev))
endif

ifneq ($(HAVE_PFM),)
ALL += $(B)/lib/pem/source-counters.so
else
$(info counters source: not built, libpfm4 is missing (libpfm4-dev); make deps installs it)
endif

$(B)/lib/pem/source-counters.so: $(COUNTERS_OBJ) $(SOURCE_MAP)
	$(call say,LINK,$@)
	$(Q)$(LINK_PLUGIN) $(LINKED) $(PFM_LIBS) $(UNWIND_LIBS) $(CAPSTONE_LIBS) -lpthread -lm

$(B)/tests/counters_ring $(B)/fuzz/counters_ring: $(B)/obj/libpem/sources/counters/ring.o

$(B)/tests/counters_access: $(call objects,$(addprefix libpem/sources/counters/,access.c ring.c))

$(B)/tests/counters_mapped: $(call objects,$(addprefix libpem/sources/counters/,mapped_files.c maps.c))

$(B)/tests/counters_estimate: $(B)/obj/libpem/sources/counters/estimate.o
$(B)/tests/counters_groups: $(B)/obj/libpem/sources/counters/groups.o

# Without frame pointers, also under sanitizers.
UNWIND_TESTS := counters_unwind counters_unwind_hostile
$(foreach name,$(UNWIND_TESTS),$(eval CFLAGS_tests_unit_$(name) := -O2 -fomit-frame-pointer))
$(UNWIND_TESTS:%=$(B)/tests/%): $(call objects,$(UNWIND_SRC) libpem/sources/counters/maps.c)
$(UNWIND_TESTS:%=$(B)/tests/%): private TEST_LIBS += $(UNWIND_LIBS)

# With the sampler itself, whose folder of devices it gives.
$(B)/tests/counters_data: $(COUNTERS_OBJ)
$(B)/tests/counters_data: private TEST_LIBS += $(UNWIND_LIBS) $(CAPSTONE_LIBS) -Wl,--wrap=syscall
