# SPDX-License-Identifier: MIT
# pem-explore, which pem explore is: the program of the agent that explores settings.

EXPLORE_OBJ := $(call objects,$(wildcard $(addprefix agents/explore/,policy/*.c program/*.c)))
$(EXPLORE_OBJ): private INC_agents = $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Iagents -Iagents/explore \
  -Icli -I$(B)/gen $(JSON_CFLAGS)
EXPLORE_CLI := $(call objects,$(addprefix cli/,actions.c options.c text.c table.c json.c progress.c version.c plugin.c page.c) \
  shared/number_map.c shared/plugin_folders.c shared/processes.c shared/rank_test.c shared/student.c)

# The page of pem explore show --html, carried inside of the program.
$(eval $(call agent_page,explore,explore_html))

# What init writes for a command.
$(B)/gen/explore_template.h: agents/explore/program/template.xml
	$(text_literal)
$(B)/obj/agents/explore/program/init.o: $(B)/gen/explore_template.h

EXPLORE_OBJ += $(B)/obj/gen/agents/explore/page.o

ifneq ($(and $(HAVE_AGENTS),$(HAVE_JSON),$(HAVE_EXPLORE)),)
# Experiments to begin with, where 'pem explore init' looks for them.
EXPLORE_EXAMPLES := $(patsubst examples/%,$(B)/share/pem/%,$(wildcard examples/explore/*.xml))
$(EXPLORE_EXAMPLES): $(B)/share/pem/%: examples/%
	@mkdir -p $(@D)
	$(Q)cp $< $@
ALL += $(B)/bin/pem-explore $(EXPLORE_EXAMPLES)
else
$(info pem explore is not built: it needs SQLite, OpenBLAS, LAPACKE, NLopt and XGBoost (libopenblas-dev \
  liblapacke-dev libnlopt-dev libxgboost-dev))
endif

EXPLORE_LIBS := $(JSON_LIBS) $(MODELS_LIBS) -ldl
EXPLORE_ALL := $(EXPLORE_OBJ) $(MODELS_OBJ) $(TRIAL_OBJ) $(SETTINGS_OBJ) $(EXPLORE_CLI)
$(B)/bin/pem-explore: $(EXPLORE_ALL) $(LIBPEM) $(LIBPEM_AGENT)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(EXPLORE_ALL) $(LINK_LIBPEM) $(LINK_LIBPEM_AGENT) $(SETTINGS_LIBS) $(EXPLORE_LIBS)

# Spaces and policies alone: for bench/between_trials.c and tests/unit/explore_model.c.
EXPLORE_MODELS := $(MODELS_OBJ) $(call objects,$(wildcard agents/explore/policy/*.c) \
  $(addprefix agents/trial/,table.c space.c figures.c races.c) agents/loop/judge.c) $(EXPLORE_CLI)

$(B)/tests/explore_search: $(call objects,$(addprefix agents/explore/policy/,search.c history.c) \
  $(addprefix agents/models/,rows.c scores.c configurations.c) $(addprefix agents/trial/,races.c figures.c) \
  agents/loop/judge.c $(addprefix shared/,number_map.c rank_test.c student.c))
$(B)/tests/explore_model: $(EXPLORE_MODELS)
$(B)/tests/explore_model: private TEST_LIBS += $(EXPLORE_LIBS)
$(addprefix $(B)/obj/tests/unit/explore_,search.o model.o): private CPPFLAGS += -Iagents -Iagents/explore

# What is told of trials, without any.
CFLAGS_tests_unit_explore_results := -Icli $(JSON_CFLAGS)
$(B)/obj/tests/unit/explore_results.o: private CPPFLAGS += -Iagents -Iagents/explore
$(B)/tests/explore_results: $(EXPLORE_MODELS) $(call objects,agents/explore/program/report.c agents/trial/sentences.c) \
  $(B)/obj/gen/agents/explore/page.o
$(B)/tests/explore_results: private TEST_LIBS += $(JSON_LIBS) $(MODELS_LIBS)
