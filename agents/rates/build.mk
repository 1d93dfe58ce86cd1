# SPDX-License-Identifier: MIT
# The agent that finds service rates of stages: its rooms that do no I/O.

RATES_OBJ := $(call objects,$(wildcard $(addprefix agents/rates/,estimate/*.c predict/*.c)))
$(RATES_OBJ): private INC_agents = $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Iagents -Iagents/rates
# What they need of other folders.
RATES_SHARED := $(call objects,shared/sketch.c shared/student.c agents/models/change.c)

RATES_TESTS := service change heuristic copies predict
$(RATES_TESTS:%=$(B)/tests/rates_%): $(RATES_OBJ) $(RATES_SHARED)
$(B)/tests/rates_heuristic: $(B)/obj/bench/heuristic.o
$(B)/tests/rates_pipes: $(call objects,agents/rates/apply/pipes.c)
$(patsubst %,$(B)/obj/tests/unit/rates_%.o,$(RATES_TESTS) pipes): private CPPFLAGS += -Iagents -Iagents/rates
