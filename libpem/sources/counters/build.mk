# SPDX-License-Identifier: MIT
# source-counters.so: hardware and software counters through perf_event_open, named by libpfm4.

COUNTERS_OBJ := $(call objects,$(wildcard libpem/sources/counters/*.c))

ifneq ($(HAVE_PFM),)
ALL += $(B)/lib/pem/source-counters.so
else
$(info counters source: not built, libpfm4 is missing (libpfm4-dev); make deps installs it)
endif

$(B)/lib/pem/source-counters.so: $(COUNTERS_OBJ) $(SOURCE_MAP)
	$(call say,LINK,$@)
	$(Q)$(LINK_PLUGIN) $(LINKED) $(PFM_LIBS) -lpthread

$(B)/tests/counters_ring $(B)/fuzz/counters_ring: $(B)/obj/libpem/sources/counters/ring.o
