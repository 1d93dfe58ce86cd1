# SPDX-License-Identifier: MIT
# libpem-sqlite.so: preloaded into programs that use the shared library libsqlite3.

ifneq ($(HAVE_SQLITE),)
CFLAGS_libpem_sqlite_sqlite := -fno-plt $(SQLITE_CFLAGS)
ALL += $(B)/lib/libpem-sqlite.so

$(B)/lib/libpem-sqlite.so: $(call objects,libpem/sqlite/sqlite.c $(ELF_SRC)) $(B)/lib/libpem.so.1 libpem/sqlite/libpem-sqlite.map
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) -Wl,-z,defs $(LINKED) -ldl
else
  $(info not built: libpem-sqlite.so, which shows programs that use SQLite \
    (libsqlite3-dev is missing))
endif
