# SPDX-License-Identifier: MIT
# The agent that finds service rates of stages.

$(B)/tests/rates_pipes: $(call objects,agents/rates/apply/pipes.c shared/processes.c)
$(B)/obj/tests/unit/rates_pipes.o: private CPPFLAGS += -Iagents/rates
