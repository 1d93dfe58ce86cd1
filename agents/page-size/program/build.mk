# SPDX-License-Identifier: MIT
# pem-page-size, which pem page-size is: the page-size agent's program.

PAGE_PROGRAM_OBJ = $(call objects,$(wildcard $(addprefix agents/page-size/,program/*.c plan/*.c \
  model/*.c calibrate/*.c sites/*.c profile/*.c timer/*.c apply/files.c apply/supply.c)) $(addprefix cli/,actions.c options.c text.c table.c json.c \
  progress.c plugin.c command.c patterns.c counted.c names.c descriptors.c temporary.c version.c page.c) shared/plugin_folders.c shared/processes.c agents/loop/program/outcome.c) $(PAGE_SIZE_PAGE)

ifneq ($(and $(HAVE_AGENTS),$(HAVE_JSON)),)
ALL += $(B)/bin/pem-page-size
ifneq ($(HAVE_LIBDW),)
CFLAGS_agents_page-size_program_names := -DPAGE_HAS_NAMES
endif

# Which input is another one, without a run.
CFLAGS_tests_unit_page_size_drift := -Icli $(JSON_CFLAGS)
$(B)/tests/page_size_drift: $(call objects,agents/page-size/program/drift.c cli/text.c cli/progress.c) \
  $(LIBPEM) $(LIBPEM_AGENT)
$(B)/tests/page_size_drift: private TEST_LIBS += $(LINK_LIBPEM) $(LINK_LIBPEM_AGENT) $(JSON_LIBS)

# Where samples of a run were, without a run.
CFLAGS_tests_unit_page_size_hits := -Icli $(JSON_CFLAGS)
$(B)/tests/page_size_hits: $(call objects,agents/page-size/program/hits.c)
$(B)/tests/page_size_hits: private TEST_LIBS += $(JSON_LIBS)

# What is made for a run, and what came of it, without a run.
CFLAGS_tests_unit_page_size_treatment := -Icli $(JSON_CFLAGS)
$(B)/tests/page_size_treatment: $(call objects,$(wildcard $(addprefix agents/page-size/, \
  program/treatment.c program/quoting.c plan/text.c sites/*.c apply/files.c apply/supply.c)) cli/plugin.c cli/temporary.c shared/plugin_folders.c) \
  $(LIBPEM) $(LIBPEM_AGENT)
$(B)/tests/page_size_treatment: private TEST_LIBS += $(LINK_LIBPEM) $(LINK_LIBPEM_AGENT) $(JSON_LIBS)

$(B)/bin/pem-page-size: $(PAGE_PROGRAM_OBJ) $(LIBPEM) $(LIBPEM_AGENT) $(LIBPEM_NAMES)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(PAGE_PROGRAM_OBJ) $(LINK_LIBPEM) $(LINK_LIBPEM_AGENT) -lpem-names \
	  $(JSON_LIBS) -ldl -lm -lpthread
endif
