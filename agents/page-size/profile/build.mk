# SPDX-License-Identifier: MIT
# The reader of profiles: objects, which the agent and the tests are linked with.

PAGE_PROFILE_OBJ := $(call objects,$(wildcard agents/page-size/profile/*.c) \
  agents/page-size/sites/site.c)
PAGE_PROFILE_TESTS := unit/page_size_profile unit/page_size_damage fuzz/page_profile

$(call objects,$(PAGE_PROFILE_TESTS:%=tests/%.c)): private ALL_CFLAGS += -Iagents/page-size
$(B)/tests/page_size_profile $(B)/tests/page_size_damage $(B)/fuzz/page_profile: $(PAGE_PROFILE_OBJ)
