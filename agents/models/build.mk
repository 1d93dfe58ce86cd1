# SPDX-License-Identifier: MIT
# Models that predict values. Objects that agents are linked with, and the libraries that they need.

MODELS_OBJ := $(call objects,$(wildcard agents/models/*.c))
$(MODELS_OBJ): private INC_agents = $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Iagents $(BLAS_CFLAGS)
# Sums over parameters are most of a process's time.
CFLAGS_agents_models_process := -O3
MODELS_LIBS := -llapacke $(BLAS_LIBS) $(NLOPT_LIBS) -lxgboost -lm

$(B)/tests/agent_models: $(MODELS_OBJ) $(call objects,agents/trial/space.c shared/number_map.c)
$(B)/tests/agent_models: private TEST_LIBS += $(MODELS_LIBS)
$(B)/obj/tests/unit/agent_models.o: private CPPFLAGS += -Iagents
