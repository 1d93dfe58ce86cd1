# SPDX-License-Identifier: MIT
# Models that predict values. Objects that agents are linked with, and the libraries that they need.

# Models of series of intervals: they need shared/ alone. scores.c has a sort.
MODELS_SERIES := change service copies pipeline simulate
MODELS_SERIES_OBJ := $(call objects,$(MODELS_SERIES:%=agents/models/%.c) agents/models/scores.c \
  shared/sketch.c shared/student.c)
MODELS_OBJ := $(call objects,$(filter-out $(MODELS_SERIES:%=agents/models/%.c),$(wildcard agents/models/*.c)))
$(MODELS_OBJ) $(filter $(B)/obj/agents/%,$(MODELS_SERIES_OBJ)): private INC_agents = $(SMALL_FRAMES) $(INC_PUBLIC) \
  $(INC_SHARED) -Iagents $(BLAS_CFLAGS)
# Sums over parameters are most of a process's time.
CFLAGS_agents_models_process := -O3
MODELS_LIBS := -llapacke $(BLAS_LIBS) $(NLOPT_LIBS) -lxgboost -lm

$(B)/tests/agent_models: $(MODELS_OBJ) $(call objects,agents/trial/space.c shared/number_map.c shared/student.c)
$(B)/tests/agent_models: private TEST_LIBS += $(MODELS_LIBS)
$(B)/obj/tests/unit/agent_models.o: private CPPFLAGS += -Iagents

MODELS_SERIES_TESTS := change copies heuristic pipeline service
$(MODELS_SERIES_TESTS:%=$(B)/tests/models_%): $(MODELS_SERIES_OBJ)
$(B)/tests/models_heuristic: $(B)/obj/bench/heuristic.o
$(MODELS_SERIES_TESTS:%=$(B)/obj/tests/unit/models_%.o): private CPPFLAGS += -Iagents
