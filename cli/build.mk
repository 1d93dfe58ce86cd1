# SPDX-License-Identifier: MIT
# pem, the command. JSON goes through json-c; without it there is no pem, and the libraries are built alone.

CLI_SRC := $(wildcard cli/*.c cli/*/*.c)
CLI_SHARED := $(addprefix $(B)/obj/shared/,intervals.o tracepoint_format.o)

# What pem spec import can read depends on the libraries that are there.
CLI_IMPORT_LIBS :=
ifeq ($(shell pkg-config --atleast-version=1.0 libbpf 2>/dev/null && echo yes),yes)
CFLAGS_cli_spec_import_import += -DPEM_IMPORT_HAS_BPF
CLI_SHARED += $(B)/obj/shared/kernel_types.o
CLI_IMPORT_LIBS += $(shell pkg-config --libs libbpf)
else
CLI_SRC := $(filter-out $(addprefix cli/spec_import/,tracepoint.c btf.c print.c),$(CLI_SRC))
$(info pem spec import cannot read tracepoints: libbpf 1.0 or newer is missing (libbpf-dev))
endif
ifeq ($(shell pkg-config --exists libelf 2>/dev/null && echo yes),yes)
CFLAGS_cli_spec_import_import += -DPEM_IMPORT_HAS_ELF
CLI_SHARED += $(B)/obj/shared/elf_probes.o
CLI_IMPORT_LIBS += -lelf
else
CLI_SRC := $(filter-out cli/spec_import/usdt.c,$(CLI_SRC))
$(info pem spec import cannot read USDT probes: libelf is missing (libelf-dev))
endif
ifeq ($(shell echo '\#include <perfmon/pfmlib_perf_event.h>' | $(CC) -E -x c - >/dev/null 2>&1 && echo yes),yes)
CFLAGS_cli_spec_import_import += -DPEM_IMPORT_HAS_PFM
else
CLI_SRC := $(filter-out cli/spec_import/pfm.c,$(CLI_SRC))
$(info pem spec import cannot read names of counters: libpfm4 is missing (libpfm4-dev))
endif
# pem top's screen; --once needs none.
CLI_SCREEN := $(addprefix cli/top/,screen.c draw.c keys.c histogram.c)
CLI_SCREEN_LIB := $(firstword $(foreach l,ncursesw ncurses,$(shell pkg-config --exists $(l) 2>/dev/null && echo $(l))))
ifneq ($(CLI_SCREEN_LIB),)
CFLAGS_cli_top_top += -DPEM_TOP_HAS_SCREEN
CLI_IMPORT_LIBS += $(shell pkg-config --libs $(CLI_SCREEN_LIB))
$(call objects,$(CLI_SCREEN)): ALL_CFLAGS += $(shell pkg-config --cflags $(CLI_SCREEN_LIB))
else
CLI_SRC := $(filter-out $(CLI_SCREEN),$(CLI_SRC))
$(info pem top has no screen: ncurses is missing (libncurses-dev))
endif
CLI_OBJ := $(call objects,$(CLI_SRC))

ifeq ($(shell pkg-config --exists json-c && echo yes),yes)
CLI_CFLAGS := $(shell pkg-config --cflags json-c)
CLI_LIBS := $(shell pkg-config --libs json-c)
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
	$(Q){ echo 'static const char *const builtin_specs[] = {'; printf '\t"%s",\n' $(notdir $^); echo '	NULL,'; echo '};'; } > $@

$(B)/obj/cli/specs.o: $(B)/gen/cli/builtin_specs.h
INC_cli += -I$(B)/gen/cli

$(CLI_OBJ): ALL_CFLAGS += $(CLI_CFLAGS)

# In the build tree and installed alike, libpem lies in ../lib.
$(B)/bin/pem: $(CLI_OBJ) $(CLI_SHARED) $(LIBPEM)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -o $@ $(CLI_OBJ) $(CLI_SHARED) -L$(B)/lib -Wl,-rpath,'$$ORIGIN/../lib' \
	  -lpem $(CLI_LIBS) $(CLI_IMPORT_LIBS) -ldl -lm

# What pem prints of a session: tests/unit/log_progress.c.
TEST_OBJ_log_progress := $(B)/obj/cli/text.o
