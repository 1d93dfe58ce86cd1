# SPDX-License-Identifier: MIT
# libpem-page-size.so: preloaded into programs that run under directives of the page-size agent. It
# needs the C library and nothing else; the unwinder is linked into it.

PAGE_APPLY_DIR := agents/page-size/apply
PAGE_APPLY_MAP := $(PAGE_APPLY_DIR)/libpem-page-size.map
PAGE_APPLY_OBJ := $(call objects,$(wildcard $(PAGE_APPLY_DIR)/*.c) agents/page-size/sites/site.c)

CFLAGS_agents_page-size_apply_front := -O2 -fno-builtin
CFLAGS_agents_page-size_apply_operators := -O2 -fno-builtin

ALL += $(B)/lib/pem/libpem-page-size.so

# Initialized before all others, so that its handlers of fork are the last to run before a fork, and
# the requests of other libraries' constructors are seen. Nothing is left of the names of libgcc.
$(B)/lib/pem/libpem-page-size.so: $(PAGE_APPLY_OBJ) $(PAGE_APPLY_MAP)
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) -static-libgcc -Wl,-z,defs -Wl,-z,initfirst -Wl,-z,nodelete \
	  -Wl,--version-script=$(PAGE_APPLY_MAP) $(filter %.o,$^) -lgcc_eh -ldl -lpthread

$(B)/tests/page_size_extents: $(call objects,$(PAGE_APPLY_DIR)/extents.c)
$(B)/tests/page_size_arena: $(call objects,$(addprefix $(PAGE_APPLY_DIR)/,arena.c runs.c))
$(B)/fuzz/page_size_directives: \
  $(call objects,$(PAGE_APPLY_DIR)/directives.c agents/page-size/sites/site.c)
