# SPDX-License-Identifier: MIT
# Settings of programs, servers and the kernel: objects that agents are linked with, and
# SETTINGS_LIBS. A way whose library is missing says so when it is used.

SETTINGS_OBJ := $(call objects,$(filter-out %/pipes.c $(if $(HAVE_PQ),,%/postgres.c) \
  $(if $(HAVE_YAML),,%/tree.c),\
  $(wildcard agents/settings/*.c)))
SETTINGS_LIBS := $(XML2_LIBS) $(SQLITE_LIBS) $(JSON_LIBS) $(if $(HAVE_PQ),$(PQ_LIBS)) $(if $(HAVE_YAML),$(YAML_LIBS))
$(SETTINGS_OBJ): private INC_agents = $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Iagents/settings $(XML2_CFLAGS) \
  $(JSON_CFLAGS) $(SQLITE_CFLAGS) $(PQ_CFLAGS) $(YAML_CFLAGS)
$(if $(HAVE_PQ),,$(info not built: settings of PostgreSQL servers (libpq-dev is missing)))
$(if $(HAVE_YAML),,$(info not built: settings in JSON and YAML files (libyaml-dev is missing)))

# Pipes of processes that run. They need shared/processes.c alone.
SETTINGS_PIPES_OBJ := $(call objects,agents/settings/pipes.c)
$(SETTINGS_PIPES_OBJ): private INC_agents = $(SMALL_FRAMES) $(INC_SHARED) -Iagents/settings
$(B)/tests/settings_pipes: $(SETTINGS_PIPES_OBJ) $(call objects,shared/processes.c)
$(B)/obj/tests/unit/settings_pipes.o: private CPPFLAGS += -Iagents

# The tests' way to them.
ifneq ($(and $(HAVE_SQLITE),$(HAVE_JSON)),)
tests: $(B)/programs/settings
$(B)/programs/settings: $(B)/obj/tests/programs/settings.o $(SETTINGS_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) $^ $(SETTINGS_LIBS) -lm
endif
$(B)/fuzz/settings_text: private TEST_LIBS += $(SETTINGS_LIBS)
$(B)/fuzz/settings_text: $(SETTINGS_OBJ)
