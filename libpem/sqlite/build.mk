# SPDX-License-Identifier: MIT
# libpem-sqlite.so: preloaded into programs that use the shared library libsqlite3.

ifneq ($(HAVE_SQLITE),)
CFLAGS_libpem_sqlite_sqlite := $(SQLITE_CFLAGS)
ALL += $(B)/lib/libpem-sqlite.so

$(B)/lib/libpem-sqlite.so: $(call objects,libpem/sqlite/sqlite.c $(ELF_SRC)) $(B)/lib/libpem.so.1 libpem/sqlite/libpem-sqlite.map
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) -Wl,-z,defs $(LINKED) -ldl
else
  $(info not built: libpem-sqlite.so, which shows programs that use SQLite \
    (libsqlite3-dev is missing))
endif

# libpem-adapters.so: all adapters that are preloaded, in one library, for whoever wants them all. A
# process that starts maps and links one library, not three.
# In this order: see libpem/libc/build.mk.
ADAPTER_OBJ := $(filter-out $(LIBC_OBJ),$(call objects,$(ELF_SRC) $(MPI_SRC) \
  $(if $(HAVE_SQLITE),libpem/sqlite/sqlite.c))) $(LIBC_OBJ)
# The script of x86-64 names versions alone: what else is exported is marked in the source.
ADAPTER_MAP := $(if $(filter x86_64-%,$(MACHINE)),$(LIBC_MAP),$(B)/gen/libpem-adapters.map)

ALL += $(B)/lib/libpem-adapters.so

$(B)/gen/libpem-adapters.map: $(addprefix libpem/,libc/libpem-libc.map mpi/libpem-mpi.map \
  sqlite/libpem-sqlite.map)
	@mkdir -p $(@D)
	$(Q){ echo '{ global:'; sed -n '/^global:/,/^local:/{/:$$/!p}' $^; echo 'local: *; };'; } >$@

# Functions of MPI are those of the program, or there are none.
$(B)/lib/libpem-adapters.so: $(ADAPTER_OBJ) $(ADAPTER_MAP) $(B)/lib/libpem.so.1
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) -Wl,-z,nodelete -Wl,--version-script=$(ADAPTER_MAP) $(ADAPTER_OBJ) $(B)/lib/libpem.so.1 -ldl -lpthread
