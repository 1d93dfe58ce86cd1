# SPDX-License-Identifier: MIT
# source-kernel.so: tracepoint events through BPF and libbpf. kmod/build.mk says so if it is not
# built.

KERNEL_SOURCE_OBJ := $(call objects,$(wildcard libpem/sources/kernel/*.c libpem/sources/kernel/*/*.c \
  libpem/sources/*.c) $(patsubst %,shared/%.c,call_kinds elf_probes kernel_types \
  tracepoint_format))
# Of libpem-names it takes what finds debug information, and reads code.
KERNEL_NAMES_SRC := $(addprefix libpem/names/,$(if $(HAVE_LIBDW),debug_files.c file.c functions.c held.c \
  instructions.c object.c operand.c parameters.c scopes.c segments.c spans.c symbols.c units.c,absent.c))
ifeq ($(HAVE_LIBDW),)
$(info kernel source: parameters of functions are registers, and uprobe: takes no address: elfutils is missing (libdw-dev))
endif
KERNEL_SOURCE_OBJ += $(call objects,$(KERNEL_NAMES_SRC))
# libpem has them too, but the plugin is not linked with it.
KERNEL_SOURCE_SHARED := $(call objects,libpem/util.c libpem/printable.c libpem/sized.c)
KERNEL_SOURCE_LIBS := $(LIBBPF_LIBS) $(LIBDW_LIBS) $(if $(HAVE_LIBDW),$(CAPSTONE_LIBS)) -lelf -lz
CFLAGS_libpem_sources_kernel_base_object := -DPEM_BPF_OBJECT='"$(BPF_OBJ)"'
CFLAGS_libpem_sources_kernel_load := -I$(B)/gen/libpem
$(B)/obj/libpem/sources/kernel/load.o: $(B)/gen/libpem/system_calls.h
kernel_objects = $(call objects,$(addprefix libpem/sources/kernel/,$(1)))

$(B)/obj/libpem/sources/kernel/base/object.o: $(BPF_OBJ)

$(B)/lib/pem/source-kernel.so: $(KERNEL_SOURCE_OBJ) $(KERNEL_SOURCE_SHARED) $(SOURCE_MAP)
	$(call say,LINK,$@)
	$(Q)$(LINK_PLUGIN) $(LINKED) $(KERNEL_SOURCE_LIBS) -ldl -lpthread

$(B)/tests/kernel_drain $(B)/fuzz/kernel_ring: $(call kernel_objects,drain.c base/table.c) \
  $(call objects,libpem/sources/demands.c)

ifneq ($(HAVE_KERNEL_SOURCE),)
ALL += $(B)/lib/pem/source-kernel.so
TEST_LIBS += $(KERNEL_SOURCE_LIBS)

$(B)/tests/kernel_btf: $(call kernel_objects,$(addprefix base/,match.c available.c prototype.c table.c)) \
  $(call objects,shared/kernel_types.c)
$(B)/tests/kernel_walk: $(call kernel_objects,$(addprefix base/,match.c object.c available.c prototype.c \
  table.c)) $(call objects,shared/kernel_types.c)
# What texts and files say of probes: the whole source, for its parts know each other.
$(addprefix $(B)/tests/probe_,text assemble cache damaged descriptors left_behind) \
  $(B)/fuzz/probe_input: $(KERNEL_SOURCE_OBJ)

# The source again, with other programs: tests/unit/kernel_refused.c.
REFUSED := $(B)/obj/kernel_refused
$(B)/tests/kernel_refused: $(REFUSED)/base/table.o $(REFUSED)/base/object.o \
  $(filter-out $(call kernel_objects,base/table.c base/object.c),$(KERNEL_SOURCE_OBJ))

$(REFUSED)/pem_kernel_events.h: tests/unit/kernel_refused.xml $(PEM_CODEGEN)
	$(Q)$(PEM_CODEGEN) --backend bpf -o $(@D) $< && touch $@
$(REFUSED)/pem.bpf.o: kmod/bpf/pem.bpf.c $(wildcard kmod/bpf/*.h) $(REFUSED)/pem_kernel_events.h
	$(Q)$(CLANG) $(subst -I$(B)/gen,-I$(REFUSED),$(BPF_CFLAGS)) -c $< -o $@
$(REFUSED)/base/%.o: libpem/sources/kernel/base/%.c $(REFUSED)/pem.bpf.o
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -I$(REFUSED) $(INC_libpem) -DPEM_BPF_OBJECT='"$(REFUSED)/pem.bpf.o"' \
	  -c $< -o $@
endif
