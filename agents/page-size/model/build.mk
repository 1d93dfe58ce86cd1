# SPDX-License-Identifier: MIT
# The model of the page-size agent: objects, which the agent, the tests and the benchmark are linked
# with. It needs no library but libm.

PAGE_MODEL_OBJ := $(call objects,$(wildcard agents/page-size/model/*.c))

$(addprefix $(B)/tests/,page_size_simulate page_size_model page_size_choice page_size_front page_size_streams): $(PAGE_MODEL_OBJ)

# Unrolled, the loops over ways are up to a quarter quicker. Two links of a list that are stored as
# one vector are slow to be read one by one.
CFLAGS_agents_page-size_model_model := -O3
CFLAGS_agents_page-size_model_recency := -O3 -fno-tree-slp-vectorize
CFLAGS_agents_page-size_model_simulate := -O3
CFLAGS_agents_page-size_model_stacks := -O3
