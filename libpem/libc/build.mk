# SPDX-License-Identifier: MIT
# libpem-libc.so: preloaded after libpem.so.1 into unmodified programs.

# aside.c last: its constructor runs after the others.
LIBC_OBJ := $(call objects,$(addprefix libpem/libc/,real.c alloc.c map.c thread.c aside.c))
CFLAGS_libpem_libc_alloc := -fno-builtin

ALL += $(B)/lib/libpem-libc.so

$(B)/lib/libpem-libc.so: $(LIBC_OBJ) libpem/libc/libpem-libc.map $(B)/lib/libpem.so.1
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -shared -Wl,-soname,libpem-libc.so -Wl,-z,defs -Wl,-z,now -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--version-script=libpem/libc/libpem-libc.map -o $@ $(LIBC_OBJ) $(B)/lib/libpem.so.1 -ldl -lpthread

TEST_OBJ_libc_real := $(B)/obj/libpem/libc/real.o
