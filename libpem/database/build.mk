# SPDX-License-Identifier: MIT
# libpem-agent.so.1, what agents stand on: the CPO database and the loop. Apart from libpem, which is
# preloaded and needs no other library.

HAVE_AGENTS := $(and $(HAVE_SQLITE),$(HAVE_LIBELF))
ifneq ($(HAVE_AGENTS),)
# pem has these inside: with the whole library it would be a program that raises events.
DATABASE_SRC := $(addprefix libpem/database/,fail.c open.c rows.c sql.c sqlite.c tables.c)
AGENT_SRC := $(DATABASE_SRC) $(wildcard agents/loop/*.c)
CFLAGS_libpem_database_sqlite := $(SQLITE_CFLAGS)
AGENT_MAP := libpem/database/libpem-agent.map
LIBPEM_AGENT := $(B)/lib/libpem-agent.so
# Behind LINK_LIBPEM, in the same folder.
LINK_LIBPEM_AGENT := -lpem-agent
ALL += $(LIBPEM_AGENT) $(B)/lib/libpem-agent.a

$(B)/lib/libpem-agent.so.1: $(call objects,$(AGENT_SRC)) $(AGENT_MAP) $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-z,now -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--version-script=$(AGENT_MAP) $(filter %.o,$^) -L$(@D) -lpem $(SQLITE_LIBS) -lelf -lm

$(LIBPEM_AGENT): $(B)/lib/libpem-agent.so.1
	$(Q)ln -sf $(<F) $@

$(B)/lib/libpem-agent.a: $(call objects,$(AGENT_SRC))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

# As a program is: the plugin lies beside the library.
AGENT_TESTS := $(addprefix $(B)/tests/,database agent_judge agent_run agent_evidence)
$(AGENT_TESTS): private TEST_LIBS += $(LINK_LIBPEM) $(LINK_LIBPEM_AGENT)
$(AGENT_TESTS): $(LIBPEM_AGENT)
$(B)/fuzz/database_row: private TEST_LIBS += $(SQLITE_LIBS)
$(B)/fuzz/database_row: $(call objects,$(filter libpem/database/%,$(AGENT_SRC)))
else
  $(info not built: libpem-agent.so, pem db and the agents (libsqlite3-dev or libelf-dev is missing))
endif

ifneq ($(and $(HAVE_AGENTS),$(HAVE_PQ)),)
CFLAGS_libpem_database_postgresql := $(PQ_CFLAGS)
ALL += $(B)/lib/pem/database-postgresql.so

$(B)/lib/pem/database-postgresql.so: $(LIBPEM) libpem/database/driver.map \
  $(call objects,libpem/database/postgresql.c libpem/database/fail.c)
	$(call say,LINK,$@)
	$(Q)$(LINK_PLUGIN) -Wl,--version-script=libpem/database/driver.map -Wl,-rpath,'$$ORIGIN/..' $(filter %.o,$^) -L$(B)/lib -lpem $(PQ_LIBS)
else
  $(info not built: databases on PostgreSQL servers (libpq-dev or libsqlite3-dev is missing))
endif
