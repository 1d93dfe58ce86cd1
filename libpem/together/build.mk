# SPDX-License-Identifier: MIT
# libpem-preload.so: libpem and the adapter of the C library in one library, for most programs.
# libpem-adapters.so: libpem and all adapters that are preloaded, for whoever wants them all.
# Its constructors run before those of other libraries, whose events are recorded (libc/real.c).
#
# A process that starts maps and links one library, which takes half the time that two take. Either
# goes by libpem's name (DT_SONAME), so what is linked with libpem finds it there.

TOGETHER := $(B)/obj/libpem/together
# In this order: see libpem/libc/build.mk.
ADAPTER_OBJ := $(filter-out $(LIBC_OBJ),$(call objects,$(ELF_SRC) $(MPI_SRC) \
  $(if $(HAVE_SQLITE),libpem/sqlite/sqlite.c))) $(LIBC_OBJ)
WITH_LIBPEM := $(B)/lib/libpem-preload.so $(B)/lib/libpem-adapters.so

ALL += $(WITH_LIBPEM)

# What -flto compiled is no object yet, in which a function could be made local.
LTO_AS_OBJECT := $(if $(findstring -flto,$(CFLAGS)),$(CFLAGS) -flinker-output=nolto-rel)

# libpem as one object. Its hidden functions are its own: it has an open and a mmap (direct.c), and
# so have the adapters.
$(TOGETHER)/libpem.o: $(LIBPEM_OBJ) $(call objects,$(LIBPEM_DIRECT))
	$(call say,LINK,$@)
	$(Q)$(CC) $(LTO_AS_OBJECT) -r -nostdlib -o $@ $(IN_EVENTS) $(filter-out $(IN_EVENTS),$^)
	$(Q)$(OBJCOPY) --localize-hidden $@

# The linker refuses a script with named versions and names without one: what the adapters export is
# marked in the source instead. LIBC_MAP names versions on x86-64 alone. Its oldest one comes first.
$(TOGETHER)/versions.map: $(filter %-x86_64.map,$(LIBC_MAP)) libpem/libpem.map
	@mkdir -p $(@D)
	$(Q)cat $(filter-out libpem/libpem.map,$^) </dev/null >$@
	$(Q)sed '/^local:/,/^\t\*;/d' libpem/libpem.map >>$@

# A program's malloc comes first, for libpem as for all others. Of libpem's own functions there are
# no others.
$(TOGETHER)/preemptible.list: libpem/libc/libpem-libc.map
	@mkdir -p $(@D)
	$(Q){ echo '{'; sed -n '/^global:/,/^local:/{/:$$/!p}' $<; echo '};'; } >$@

# What runs first, as a process starts, lies together.
FIRST := %/elf_names.o %/real.o %/next.o
$(B)/lib/libpem-preload.so: private DEFINED := -Wl,-z,defs
$(B)/lib/libpem-preload.so: $(LIBC_OBJ)
# Functions of MPI are those of the program, or there are none.
$(B)/lib/libpem-adapters.so: $(ADAPTER_OBJ)
$(WITH_LIBPEM): $(TOGETHER)/libpem.o $(TOGETHER)/versions.map $(TOGETHER)/preemptible.list libpem/pages.ld
	$(call say,LINK,$@)
	$(Q)$(LINK) $(DEFINED) -shared -Wl,-soname,libpem.so.1 -Wl,-z,lazy -Wl,-z,initfirst \
	  -Wl,-z,nodelete $(PACKED) \
	  -Wl,--version-script=$(TOGETHER)/versions.map -Wl,--dynamic-list=$(TOGETHER)/preemptible.list \
	  $(filter $(FIRST),$^) $(TOGETHER)/libpem.o \
	  $(filter-out $(FIRST) $(TOGETHER)/libpem.o,$(filter %.o,$^)) -ldl -lpthread
