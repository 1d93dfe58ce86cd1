# SPDX-License-Identifier: MIT
# Benchmarks: each bench/NAME.c listed in BENCHES is a program $(B)/bench/NAME.
#   make bench [CASE=NAME]    runs them, writes $(B)/bench/results.jsonl, prints tables

BENCHES := notify

# bench.xml is not part of the catalogue: its header is made here.
$(B)/gen/stubs/bench.h: bench/bench.xml $(B)/bin/pem-codegen
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)$(B)/bin/pem-codegen --backend c -o $(@D) $<
	@touch $@

$(B)/obj/bench/notify.o: $(B)/gen/stubs/bench.h

HAVE_LTTNG := $(shell pkg-config --exists lttng-ust 2>/dev/null && echo 1)
LTTNG_VERSION := $(if $(HAVE_LTTNG),$(shell pkg-config --modversion lttng-ust),none)
# All loops begin alike: their place in a line of code is worth a few hundredths.
BENCH_ALIGN := -falign-functions=64 -falign-loops=64
CFLAGS_bench_notify := $(BENCH_ALIGN) -DLTTNG_VERSION='"$(LTTNG_VERSION)"'
# What its headers generate has no prototypes.
CFLAGS_bench_peer_lttng := $(BENCH_ALIGN) -Wno-missing-prototypes -Wno-shadow -Wno-unused-parameter -Wno-strict-prototypes

BENCH_BIN := $(BENCHES:%=$(B)/bench/%)
ifeq ($(HAVE_LTTNG),1)
BENCH_BIN += $(B)/bench/peer-lttng.so
endif

$(BENCHES:%=$(B)/bench/%): $(B)/bench/%: $(B)/obj/bench/%.o $(call objects,bench/bench.c bench/lttng.c) $(B)/lib/libpem.so
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -o $@ $(filter %.o,$^) -L$(B)/lib -lpem -Wl,-rpath,'$$ORIGIN/../lib' -ldl -lpthread

$(B)/bench/peer-lttng.so: $(B)/obj/bench/peer_lttng.o
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) -shared -o $@ $< $(shell pkg-config --libs lttng-ust) -ldl

bench: $(BENCH_BIN) $(ALL)
	$(if $(filter-out $(BENCHES),$(CASE)),$(error no benchmark '$(CASE)'; there is: $(BENCHES)))
	$(if $(HAVE_LTTNG),,@echo 'LTTng-UST is missing (liblttng-ust-dev, lttng-tools): no peer beside us')
	@rm -f $(B)/bench/results.jsonl
	@for b in $(or $(CASE),$(BENCHES)); do BENCH_OUT=$(B)/bench/results.jsonl $(B)/bench/$$b || exit; done
	@echo 'written to $(B)/bench/results.jsonl'
