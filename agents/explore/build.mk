# SPDX-License-Identifier: MIT
# pem-explore, which pem explore is: the program of the agent that explores settings.

EXPLORE_OBJ := $(call objects,$(wildcard $(addprefix agents/explore/,space/*.c policy/*.c program/*.c)))
$(EXPLORE_OBJ): private INC_agents = $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Iagents/explore -Icli \
  $(JSON_CFLAGS) $(BLAS_CFLAGS)
# Sums over parameters are most of a model's time.
CFLAGS_agents_explore_policy_process := -O3
EXPLORE_CLI := $(call objects,$(addprefix cli/,options.c text.c table.c json.c progress.c version.c plugin.c) \
  shared/number_map.c shared/plugin_folders.c shared/student.c)

ifneq ($(and $(HAVE_AGENTS),$(HAVE_JSON),$(HAVE_EXPLORE)),)
ALL += $(B)/bin/pem-explore
else
$(info pem explore is not built: it needs SQLite, OpenBLAS, LAPACKE, NLopt and XGBoost (libopenblas-dev \
  liblapacke-dev libnlopt-dev libxgboost-dev))
endif

$(B)/bin/pem-explore: $(EXPLORE_OBJ) $(EXPLORE_CLI) $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(EXPLORE_OBJ) $(EXPLORE_CLI) $(LINK_LIBPEM) $(JSON_LIBS) -llapacke $(BLAS_LIBS) $(NLOPT_LIBS) \
	  -lxgboost -ldl -lm

$(B)/tests/explore_search: $(call objects,$(addprefix agents/explore/policy/,search.c history.c) \
  shared/number_map.c shared/student.c)
$(B)/obj/tests/unit/explore_search.o: private CPPFLAGS += -Iagents/explore
