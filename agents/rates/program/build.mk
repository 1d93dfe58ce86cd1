# SPDX-License-Identifier: MIT
# pem-rates, which pem rates is: the program of the agent that finds service rates of pipelines.

RATES_PROGRAM_OBJ := $(call objects,$(wildcard $(addprefix agents/rates/,observe/*.c program/*.c)))
$(RATES_PROGRAM_OBJ): private INC_agents = $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Iagents -Iagents/rates -Icli \
  -I$(B)/gen $(JSON_CFLAGS)
RATES_CLI := $(call objects,$(addprefix cli/,attach.c command.c counted.c descriptors.c json.c names.c options.c page.c patterns.c \
  plugin.c progress.c run_codegen.c specs.c table.c temporary.c text.c trace.c version.c) \
  $(addprefix shared/,call_kinds.c number_map.c plugin_folders.c processes.c spec_files.c) agents/loop/program/outcome.c)

# The page of pem rates --html, carried inside of the program.
$(eval $(call agent_page,rates,rates_html))
RATES_PROGRAM_OBJ += $(B)/obj/gen/agents/rates/page.o

ifneq ($(and $(HAVE_JSON),$(HAVE_AGENTS)),)
ALL += $(B)/bin/pem-rates
else
$(info pem rates is not built: it needs json-c, SQLite and libelf (libjson-c-dev libsqlite3-dev libelf-dev))
endif

RATES_PROGRAM_ALL := $(MODELS_SERIES_OBJ) $(SETTINGS_PIPES_OBJ) $(RATES_PROGRAM_OBJ) $(RATES_CLI)
$(B)/bin/pem-rates: $(RATES_PROGRAM_ALL) $(LIBPEM) $(LIBPEM_AGENT) $(LIBPEM_NAMES)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(RATES_PROGRAM_ALL) $(LINK_LIBPEM) $(LINK_LIBPEM_AGENT) -lpem-names $(JSON_LIBS) -lm -ldl
