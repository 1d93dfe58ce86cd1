# SPDX-License-Identifier: MIT
# source-counters.so: hardware and software counters through perf_event_open, named by libpfm4.

COUNTERS_OBJ := $(call objects,$(wildcard libpem/sources/counters/*.c))
HAVE_PFM := $(shell echo 'int main(void) { return pfm_initialize(); }' | \
	$(CC) -include perfmon/pfmlib_perf_event.h -x c - -o /dev/null -lpfm 2>/dev/null && echo 1)

ifeq ($(HAVE_PFM),1)
ALL += $(B)/lib/pem/source-counters.so
else
$(info counters source: not built, libpfm4 is missing (libpfm4-dev); make deps installs it)
endif

$(B)/lib/pem/source-counters.so: $(COUNTERS_OBJ) $(SOURCE_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -shared -Wl,-z,defs -Wl,--version-script=$(SOURCE_MAP) -o $@ $(COUNTERS_OBJ) -lpfm -lpthread

TEST_OBJ_counters_ring := $(B)/obj/libpem/sources/counters/ring.o
TEST_LIB_counters_catalogue := $(if $(HAVE_PFM),-lpfm)
