# SPDX-License-Identifier: MIT
# The HTML exporter: the page's parts and the plotting library become one file, which the exporter
# carries inside. The library is the system's (package libjs-dygraphs); without it this one exporter
# is left out.

DYGRAPHS_DIR ?= /usr/share/javascript/dygraphs
DYGRAPHS_LICENCE ?= /usr/share/doc/libjs-dygraphs/copyright
HTML_PARTS := $(wildcard viz-export/page/*.css viz-export/page/*.js)
HTML_GEN := $(B)/gen/viz-export
# Three files, if all are there.
DYGRAPHS := $(wildcard $(DYGRAPHS_DIR)/dygraph.min.js $(DYGRAPHS_DIR)/dygraph.min.css \
  $(DYGRAPHS_LICENCE))

ifeq ($(words $(DYGRAPHS)),3)
ALL += $(B)/lib/pem/export-html.so
$(B)/lib/pem/export-html.so: EXPORTER_LIBS := -lpem-names -lm
$(B)/lib/pem/export-html.so: $(B)/obj/gen/viz-export/page.o \
  $(call objects,$(wildcard viz-export/html*.c) $(addprefix viz-export/,samples.c output.c output_signals.c) \
    $(addprefix shared/,heap.c model_words.c number_map.c betweens.c cxx_names.c sketch.c)) | $(LIBPEM_NAMES)
else
$(info html: left out, needs dygraphs in $(DYGRAPHS_DIR) (package libjs-dygraphs))
endif

# A line '@NAME@' of the template becomes the file NAME, of this folder or the library's; '@data@'
# and '@other@' stay for the exporter. A part that could end its element early is refused.
$(HTML_GEN)/page.html: viz-export/page/page.html $(HTML_PARTS) viz-export/page/assemble.awk \
  $(DYGRAPHS)
	$(call say,GEN,$@)
	$(Q)awk -v own=viz-export/page -v library=$(DYGRAPHS_DIR) -v licence=$(DYGRAPHS_LICENCE) \
	  -f viz-export/page/assemble.awk $< > $@

$(HTML_GEN)/page.S: $(HTML_GEN)/page.html viz-export/page/build.mk
	$(Q){ echo '	.section .rodata'; echo '	.hidden pem_html_page'; echo '	.global pem_html_page'; \
	  echo '	.hidden pem_html_page_end'; echo '	.global pem_html_page_end'; \
	  echo 'pem_html_page:'; echo '	.incbin "$<"'; echo 'pem_html_page_end:'; \
	  echo '	.section .note.GNU-stack,"",%progbits'; } > $@

$(B)/obj/gen/viz-export/page.o: $(HTML_GEN)/page.S $(HTML_GEN)/page.html
	@mkdir -p $(@D)
	$(Q)$(CC) -c $< -o $@
