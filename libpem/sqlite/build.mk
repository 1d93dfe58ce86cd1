# SPDX-License-Identifier: MIT
# libpem-sqlite.so: preloaded into programs that use the shared library libsqlite3.

ifeq ($(shell pkg-config --exists sqlite3 2>/dev/null && echo 1),1)
CFLAGS_libpem_sqlite_sqlite := $(shell pkg-config --cflags sqlite3)
ALL += $(B)/lib/libpem-sqlite.so

$(B)/lib/libpem-sqlite.so: $(call objects,libpem/sqlite/sqlite.c $(ELF_SRC)) $(B)/lib/libpem.so.1 libpem/sqlite/libpem-sqlite.map
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -shared -Wl,-soname,libpem-sqlite.so -Wl,-z,defs -Wl,-z,now -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--version-script=libpem/sqlite/libpem-sqlite.map -o $@ $(filter-out %.map,$^) -ldl
else
  $(info not built: libpem-sqlite.so, which shows programs that use SQLite (libsqlite3-dev is missing))
endif
