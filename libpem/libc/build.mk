# SPDX-License-Identifier: MIT
# libpem-libc.so: preloaded after libpem.so.1 into unmodified programs.

# Of adapters, too, whose functions are found where they are.
ELF_SRC = libpem/libc/elf_names.c libpem/libc/elf_later.c

# silence.c behind the others: its constructor runs after theirs. So objects.c is last: what it raises
# needs silence.c, and its destructor runs before theirs.
LIBC_OBJ := $(call objects,$(addprefix libpem/libc/,attach.c elf_names.c real.c next.c alloc.c map.c \
  thread.c frames.c wrappers.c stacks.c lock.c file.c stream.c socket.c program.c spawn.c readable.c older.c exec.c rights.c internal.c silence.c objects.c))
# attach.c registers the providers, not each header. As IN_EVENTS of libpem: bound when loaded.
$(LIBC_OBJ): private ALL_CFLAGS += -DPEM_REGISTERS_ITSELF -fno-plt
$(call objects,libpem/libc/elf_later.c): private ALL_CFLAGS += -fno-plt
CFLAGS_libpem_libc_alloc := -fno-builtin
# With it the headers define what these files define.
CFLAGS_libpem_libc_file := -fno-builtin -U_FORTIFY_SOURCE
CFLAGS_libpem_libc_stream := -fno-builtin -U_FORTIFY_SOURCE
CFLAGS_libpem_libc_socket := -U_FORTIFY_SOURCE
# dlopen is passed on by a jump, however CFLAGS have it.
CFLAGS_libpem_libc_program := -fno-builtin -O2 -foptimize-sibling-calls
# So is syscall.
CFLAGS_libpem_libc_rights := -O2 -foptimize-sibling-calls

ALL += $(B)/lib/libpem-libc.so

# The C library of x86-64 has two versions of some functions (older.c).
LIBC_MAP := libpem/libc/libpem-libc$(if $(filter x86_64-%,$(MACHINE)),-x86_64).map

$(B)/lib/libpem-libc.so: $(LIBC_OBJ) $(LIBC_MAP) $(B)/lib/libpem.so.1
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) -Wl,-z,defs -Wl,-z,nodelete -Wl,--version-script=$(LIBC_MAP) \
	  $(LIBC_OBJ) $(B)/lib/libpem.so.1 -ldl -lpthread

$(B)/tests/libc_real $(B)/tests/elf_names: \
  $(call objects,$(addprefix libpem/libc/,elf_names.c real.c next.c))
$(B)/tests/libc_frames: $(call objects,libpem/libc/frames.c)
$(B)/tests/elf_later: $(call objects,$(ELF_SRC))
# libpem is what this one plays.
CFLAGS_tests_unit_libc_rights := $(CFLAGS_libpem_libc_rights)
$(B)/tests/libc_rights: TEST_LINK :=
