# SPDX-License-Identifier: MIT
# source-kernel.so: tracepoint events through BPF and libbpf. kmod/build.mk has found out whether it can be built.

KERNEL_SOURCE_OBJ := $(call objects,$(wildcard libpem/sources/kernel/*.c))
# What libpem has too, and the plugin, which is not linked with it, needs.
KERNEL_SOURCE_SHARED := $(B)/obj/libpem/util.o $(B)/obj/libpem/printable.o
CFLAGS_libpem_sources_kernel_object := -DPEM_BPF_OBJECT='"$(BPF_OBJ)"'

ifneq ($(HAVE_KERNEL_SOURCE),)
ALL += $(B)/lib/pem/source-kernel.so
endif

$(B)/obj/libpem/sources/kernel/object.o: $(BPF_OBJ)

$(B)/lib/pem/source-kernel.so: $(KERNEL_SOURCE_OBJ) $(KERNEL_SOURCE_SHARED) $(SOURCE_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -shared -Wl,-z,defs -Wl,--version-script=$(SOURCE_MAP) \
	  -o $@ $(KERNEL_SOURCE_OBJ) $(KERNEL_SOURCE_SHARED) $(shell pkg-config --libs libbpf) -lelf -lz -lpthread

TEST_OBJ_kernel_drain := $(patsubst %,$(B)/obj/libpem/sources/kernel/%.o,drain table)
TEST_OBJ_kernel_ring := $(TEST_OBJ_kernel_drain)
ifneq ($(HAVE_KERNEL_SOURCE),)
TEST_OBJ_kernel_btf := $(patsubst %,$(B)/obj/libpem/sources/kernel/%.o,btf available prototype table)
TEST_OBJ_kernel_walk := $(patsubst %,$(B)/obj/libpem/sources/kernel/%.o,btf object available prototype table)
TEST_CFLAGS_kernel_btf := -DPEM_TEST_LIBBPF
TEST_CFLAGS_kernel_walk := -DPEM_TEST_LIBBPF
TEST_LIB_kernel_btf := $(shell pkg-config --libs libbpf) -lelf -lz
TEST_LIB_kernel_walk := $(TEST_LIB_kernel_btf)
endif

# What texts and files say of probes: the whole source, for its parts know each other.
ifneq ($(HAVE_KERNEL_SOURCE),)
PROBE_TESTS := probe_text probe_assemble probe_cache probe_descriptors probe_left_behind
$(foreach n,$(PROBE_TESTS),$(eval TEST_OBJ_$(n) := $(KERNEL_SOURCE_OBJ)) \
  $(eval TEST_CFLAGS_$(n) := -DPEM_TEST_LIBBPF) $(eval TEST_LIB_$(n) := $(TEST_LIB_kernel_btf)))
TEST_OBJ_probe_input := $(KERNEL_SOURCE_OBJ)
TEST_LIB_probe_input := $(TEST_LIB_kernel_btf)
endif

# The source again, with other programs: tests/unit/kernel_refused.c.
ifneq ($(HAVE_KERNEL_SOURCE),)
REFUSED := $(B)/obj/kernel_refused
TEST_OBJ_kernel_refused := $(REFUSED)/table.o $(REFUSED)/object.o \
  $(filter-out %/table.o %/object.o,$(KERNEL_SOURCE_OBJ))
TEST_CFLAGS_kernel_refused := -DPEM_TEST_LIBBPF
TEST_LIB_kernel_refused := $(TEST_LIB_kernel_btf)

$(REFUSED)/pem_kernel_events.h: tests/unit/kernel_refused.xml $(PEM_CODEGEN)
	$(Q)$(PEM_CODEGEN) --backend bpf -o $(@D) $<
$(REFUSED)/pem.bpf.o: kmod/bpf/pem.bpf.c $(wildcard kmod/bpf/*.h) $(REFUSED)/pem_kernel_events.h
	$(Q)$(CLANG) $(subst -I$(B)/gen,-I$(REFUSED),$(BPF_CFLAGS)) -c $< -o $@
$(REFUSED)/%.o: libpem/sources/kernel/%.c $(REFUSED)/pem.bpf.o
	$(Q)$(CC) $(ALL_CFLAGS) -I$(REFUSED) $(INC_libpem) -DPEM_BPF_OBJECT='"$(REFUSED)/pem.bpf.o"' -c $< -o $@
endif
