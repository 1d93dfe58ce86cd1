# SPDX-License-Identifier: MIT
# source-kernel.so: tracepoint events through BPF and libbpf. kmod/build.mk has found out whether it can be built.

KERNEL_SOURCE_OBJ := $(call objects,$(wildcard libpem/sources/kernel/*.c))
CFLAGS_libpem_sources_kernel_object := -DPEM_BPF_OBJECT='"$(BPF_OBJ)"'

ifneq ($(HAVE_KERNEL_SOURCE),)
ALL += $(B)/lib/pem/source-kernel.so
endif

$(B)/obj/libpem/sources/kernel/object.o: $(BPF_OBJ)

$(B)/lib/pem/source-kernel.so: $(KERNEL_SOURCE_OBJ)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -shared -Wl,-z,defs -o $@ $(KERNEL_SOURCE_OBJ) \
	  $(shell pkg-config --libs libbpf) -lelf -lz -lpthread

TEST_OBJ_kernel_drain := $(patsubst %,$(B)/obj/libpem/sources/kernel/%.o,drain table)
TEST_OBJ_kernel_ring := $(TEST_OBJ_kernel_drain)
ifneq ($(HAVE_KERNEL_SOURCE),)
TEST_OBJ_kernel_btf := $(patsubst %,$(B)/obj/libpem/sources/kernel/%.o,btf probe prototype table)
TEST_OBJ_kernel_walk := $(patsubst %,$(B)/obj/libpem/sources/kernel/%.o,btf object probe prototype table)
TEST_CFLAGS_kernel_btf := -DPEM_TEST_LIBBPF
TEST_CFLAGS_kernel_walk := -DPEM_TEST_LIBBPF
TEST_LIB_kernel_btf := $(shell pkg-config --libs libbpf) -lelf -lz
TEST_LIB_kernel_walk := $(TEST_LIB_kernel_btf)
endif
