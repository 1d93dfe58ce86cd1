# SPDX-License-Identifier: LGPL-2.1-or-later
# libpem-page-size-hooks.so: linked with programs that are compiled with -fsanitize=thread, in place
# of libtsan, so that the page-size agent can observe them. It needs the C library and nothing else;
# the unwinder is linked into it. A sanitizer's own library has the same functions: none of it here.
#
# libpem-page-size-hooks.a has the functions that compilers call, once more: linked first, they are
# called without the detour by the program's table of functions, which takes longer than they do.

PAGE_HOOKS_DIR := agents/page-size/hooks
PAGE_HOOKS_MAP := $(PAGE_HOOKS_DIR)/libpem-page-size-hooks.map
ifneq ($(and $(filter x86_64-%,$(MACHINE)),$(if $(SAN),,plain)),)
PAGE_HOOKS := $(B)/lib/libpem-page-size-hooks.so
PAGE_HOOKS_OBJ := $(call objects,$(wildcard $(PAGE_HOOKS_DIR)/*.c) \
  $(addprefix agents/page-size/,$(addprefix apply/,arena.c end.c front.c lock.c next.c object.c operators.c \
  runs.c) profile/ranges.c sites/site.c))
PAGE_HOOKS_ARCHIVE := $(B)/lib/libpem-page-size-hooks.a
PAGE_HOOKS_ENTRY := $(addprefix $(B)/obj/hooks-archive/,entry.o atomics.o)
ALL += $(PAGE_HOOKS) $(PAGE_HOOKS_ARCHIVE)

CFLAGS_agents_page-size_hooks_atomics := -mcx16
CFLAGS_agents_page-size_hooks_entry := -O2 -fno-builtin

$(PAGE_HOOKS): $(PAGE_HOOKS_OBJ) $(PAGE_HOOKS_MAP)
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) -static-libgcc -Wl,-z,defs -Wl,-z,nodelete \
	  -Wl,--version-script=$(PAGE_HOOKS_MAP) $(filter %.o,$^) -lgcc_eh -ldl -lpthread

$(PAGE_HOOKS_ENTRY): $(B)/obj/hooks-archive/%.o: $(PAGE_HOOKS_DIR)/%.c
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_agents) -DHOOKS_ARCHIVE -fno-builtin -mcx16 -c $< -o $@

$(PAGE_HOOKS_ARCHIVE): $(PAGE_HOOKS_ENTRY)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
endif
