# SPDX-License-Identifier: MIT
# The page of pem page-size show --html, put together as that of the HTML exporter is
# (viz-export/page), and carried inside of pem-page-size.

PAGE_SIZE_GEN := $(B)/gen/agents/page-size
ifeq ($(words $(DYGRAPHS)),3)
PAGE_SIZE_PAGE := $(B)/obj/gen/agents/page-size/page.o
else
$(info pem page-size show --html: left out, needs dygraphs (package libjs-dygraphs))
endif

$(PAGE_SIZE_GEN)/page.html: agents/page-size/page/page.html viz-export/page/assemble.awk \
  $(wildcard agents/page-size/page/*.css agents/page-size/page/*.js) $(AGENT_PAGE) $(DYGRAPHS)
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)awk -v own=agents/page-size/page -v library=$(DYGRAPHS_DIR) -v licence=$(DYGRAPHS_LICENCE) \
	  -f viz-export/page/assemble.awk $< > $@

$(PAGE_SIZE_GEN)/page.S: $(PAGE_SIZE_GEN)/page.html agents/page-size/page/build.mk
	$(call embed,page_size_html)

$(B)/obj/gen/agents/page-size/page.o: $(PAGE_SIZE_GEN)/page.S $(PAGE_SIZE_GEN)/page.html
	@mkdir -p $(@D)
	$(Q)$(CC) -c $< -o $@
