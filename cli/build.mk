# SPDX-License-Identifier: MIT
# pem, the command. JSON goes through json-c; without it there is no pem, and the libraries are
# built alone.

CLI_SRC := $(wildcard cli/*.c cli/*/*.c)
CLI_SHARED := $(call objects,shared/heap.c shared/intervals.c shared/number_map.c shared/betweens.c shared/spec_files.c shared/plugin_folders.c shared/call_kinds.c shared/cxx_names.c shared/sketch.c shared/tracepoint_format.c shared/student.c shared/processes.c)

# What pem spec import can read depends on the libraries that are there.
CLI_IMPORT_LIBS :=
ifneq ($(HAVE_LIBBPF),)
CFLAGS_cli_spec_import_import += -DPEM_IMPORT_HAS_BPF
CLI_SHARED += $(call objects,shared/kernel_types.c)
CLI_IMPORT_LIBS += $(LIBBPF_LIBS)
else
CLI_SRC := $(filter-out $(addprefix cli/spec_import/,tracepoint.c btf.c print.c),$(CLI_SRC))
$(info pem spec import cannot read tracepoints: libbpf 1.0 or newer is missing (libbpf-dev))
endif
ifneq ($(HAVE_LIBELF),)
CFLAGS_cli_spec_import_import += -DPEM_IMPORT_HAS_ELF
CLI_SHARED += $(call objects,shared/elf_probes.c)
CLI_IMPORT_LIBS += -lelf
else
CLI_SRC := $(filter-out cli/spec_import/usdt.c,$(CLI_SRC))
$(info pem spec import cannot read USDT probes: libelf is missing (libelf-dev))
endif
ifneq ($(HAVE_PFM),)
CFLAGS_cli_spec_import_import += -DPEM_IMPORT_HAS_PFM
else
CLI_SRC := $(filter-out cli/spec_import/pfm.c,$(CLI_SRC))
$(info pem spec import cannot read names of counters: libpfm4 is missing (libpfm4-dev))
endif
# pem top's screen; --once needs none.
CLI_SCREEN := $(addprefix cli/top/,screen.c draw.c keys.c histogram.c)
ifneq ($(SCREEN_NAME),)
CFLAGS_cli_top_top += -DPEM_TOP_HAS_SCREEN
$(call objects,$(CLI_SCREEN)): private ALL_CFLAGS += $(SCREEN_CFLAGS)
else
CLI_SRC := $(filter-out $(CLI_SCREEN),$(CLI_SRC))
$(info pem top has no screen: ncurses is missing (libncurses-dev))
endif
# pem db. What is left out without SQLite is said in libpem/database.
ifneq ($(HAVE_AGENTS),)
CFLAGS_cli_main += -DPEM_HAS_DATABASE
CLI_SHARED += $(call objects,$(DATABASE_SRC))
else
CLI_SRC := $(filter-out cli/db/% cli/agents.c,$(CLI_SRC))
endif
# Names of code. What is left out without libdw is said in libpem/names.
CLI_SHARED += $(call objects,$(filter-out %/operand.c,$(NAMES_SRC)))
CLI_OBJ := $(call objects,$(CLI_SRC))

ifneq ($(HAVE_JSON),)
ALL += $(B)/bin/pem
else
$(warning pem, the command, is not built: json-c is missing (make deps installs it))
endif

# The names that pem-codegen refuses, so that an import need not be mended by hand.
$(B)/gen/keywords.inc: codegen/keywords.c
	@mkdir -p $(@D)
	$(Q)grep -o '"[A-Za-z0-9_]*",' $< > $@

$(B)/obj/cli/spec_import/import.o: $(B)/gen/keywords.inc

# Names of the specs that are built in, which need not be looked for.
$(B)/gen/cli/builtin_specs.h: $(sort $(wildcard spec/*/*.xml))
	@mkdir -p $(@D)
	$(Q){ echo 'static const char *const builtin_specs[] = {'; printf '\t"%s",\n' $(notdir $^); \
	  echo '	NULL,'; echo '};'; } > $@

$(B)/obj/cli/specs.o: $(B)/gen/cli/builtin_specs.h

$(B)/bin/pem: $(CLI_OBJ) $(CLI_SHARED) $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(CLI_OBJ) $(CLI_SHARED) $(LINK_LIBPEM) $(JSON_LIBS) $(if $(HAVE_AGENTS),$(SQLITE_LIBS)) $(LIBDW_LIBS) $(SCREEN_LIBS) $(CLI_IMPORT_LIBS) \
	  -ldl -lm

# What pem prints of a session: tests/unit/log_progress.c.
$(B)/tests/log_progress: $(call objects,cli/progress.c cli/text.c)
# The exit status for an error of libpem: tests/unit/cli_status.c.
$(B)/tests/cli_status: $(call objects,cli/progress.c cli/text.c)
# Where a folder for temporary files is made: tests/unit/cli_temporary.c.
$(B)/tests/cli_temporary: $(call objects,cli/temporary.c)
# Which folders are used and removed: tests/unit/cli_folder.c.
$(B)/tests/cli_folder: $(call objects,cli/folder.c cli/progress.c cli/text.c)
# The values of metrics: tests/unit/cli_metric.c.
$(B)/tests/cli_metric: $(call objects,$(addprefix cli/,metric.c percentiles.c estimate.c json.c progress.c table.c text.c) shared/sketch.c)
$(B)/tests/cli_metric: private TEST_LIBS += $(JSON_LIBS)
# How counters were estimated: tests/unit/cli_estimate.c.
$(B)/tests/cli_estimate: $(call objects,cli/estimate.c cli/json.c cli/progress.c cli/text.c)
$(B)/tests/cli_estimate: private TEST_LIBS += $(JSON_LIBS)
# Quotients of sums: tests/unit/cli_topdown.c.
$(B)/tests/cli_topdown: $(call objects,$(addprefix cli/,metric.c percentiles.c estimate.c json.c progress.c table.c text.c) shared/sketch.c)
$(B)/tests/cli_topdown: private TEST_LIBS += $(JSON_LIBS)
# The arithmetic of comparing: tests/unit/compare_stats.c.
$(B)/tests/compare_stats: $(call objects,cli/compare/stats.c shared/student.c)
# The windows of a trace: tests/unit/compare_series.c.
$(B)/tests/compare_series: $(call objects,$(addprefix cli/compare/,series.c instances.c losses.c derived.c) \
  cli/text.c cli/progress.c shared/sketch.c)
# The metrics of a trace: tests/unit/compare_collect.c.
$(B)/tests/compare_collect: $(call objects,$(addprefix cli/compare/,collect.c series.c instances.c \
  losses.c derived.c) $(addprefix cli/,trace.c text.c progress.c) \
  $(addprefix shared/,intervals.c number_map.c betweens.c sketch.c)) $(NAMES_OBJ)
$(B)/tests/compare_collect: private TEST_LIBS += $(LIBDW_LIBS) $(CAPSTONE_LIBS)
# What comes out of the lab: tests/unit/lab_extract.c, tests/fuzz/lab_extract.c.
$(B)/tests/lab_extract $(B)/fuzz/lab_extract: $(call objects,cli/lab/extract.c)
