# SPDX-License-Identifier: MIT
# Parts of the pages that agents write, for a browser: each page names those that it has
# (viz-export/page/assemble.awk).

AGENT_PAGE := $(wildcard agents/page/*.css agents/page/*.js)

# A file as data of a program, from a symbol to the same with _end. Use: $(call embed,SYMBOL)
embed = $(Q){ echo '	.section .rodata'; \
  for end in '' _end; do echo "	.global $1$$end"; done; \
  echo '$1:'; echo '	.incbin "$<"'; echo '$1_end:'; \
  echo '	.section .note.GNU-stack,"",%progbits'; } > $@
