# SPDX-License-Identifier: MIT
# Parts of the pages that agents write, for a browser: each page names those that it has
# (viz-export/page/assemble.awk).

AGENT_PAGE := $(wildcard agents/page/*.css agents/page/*.js)

# A file as data of a program, from a symbol to the same with _end. Use: $(call embed,SYMBOL)
embed = $(Q){ echo '	.section .rodata'; \
  for end in '' _end; do echo "	.global $1$$end"; done; \
  echo '$1:'; echo '	.incbin "$<"'; echo '$1_end:'; \
  echo '	.section .note.GNU-stack,"",%progbits'; } > $@

# The page of an agent whose parts are in agents/NAME/page, as the object $(B)/obj/gen/agents/NAME/page.o.
# Use: $(eval $(call agent_page,NAME,SYMBOL))
define agent_page
$(B)/gen/agents/$(1)/page.html: agents/$(1)/page/page.html viz-export/page/assemble.awk \
  $(wildcard agents/$(1)/page/*.css agents/$(1)/page/*.js) $(AGENT_PAGE)
	$$(call say,GEN,$$@)
	$$(Q)awk -v own=agents/$(1)/page -f viz-export/page/assemble.awk $$< > $$@

$(B)/gen/agents/$(1)/page.S: $(B)/gen/agents/$(1)/page.html agents/page/build.mk
	$$(call embed,$(2))

$(B)/obj/gen/agents/$(1)/page.o: $(B)/gen/agents/$(1)/page.S
	@mkdir -p $$(@D)
	$$(Q)$$(CC) -c $$< -o $$@
endef
