# SPDX-License-Identifier: MIT
# Benchmarks: each bench/NAME.c listed in BENCHES is a program $(B)/bench/NAME.
# `make bench [CASE=WORD]` runs the cases with this word in their names (all), writes
# $(B)/bench/results.jsonl, and prints tables.

BENCHES := notify coarse handles threads enclosed callback attach record memory apps stub managed codegen code_size kernel \
  kernel_module system_wide system_wide_guest merge report page sampling data_samples symbolize page_size page_size_programs \
  names page_size_machine page_size_loop page_size_hooks read4 simulated insns start \
  drain allocation wakers forks stated streams streams_item streams_queue streams_threads streams_tune \
  $(if $(filter %/pem-explore,$(ALL)),explore explore_pairs explore_taxi explore_systems)
BENCH_C := notify coarse handles threads enclosed stub streams_item
BENCH_PY := $(filter-out $(BENCH_C),$(BENCHES))

# bench.xml is not part of the catalogue: its header is made here, apart from the stubs that
# everybody finds.
$(B)/gen/bench_stubs/bench.h: bench/bench.xml $(PEM_CODEGEN)
	$(call say,GEN,$@)
	$(Q)$(PEM_CODEGEN) --backend c -o $(@D) $<
	@touch $@

BENCH_STUBS := stepped.c notify.c coarse.c threads.c raise.c read4.c stub.c call_back.c attach_first.c \
  drained.c
$(call objects,$(addprefix bench/,$(BENCH_STUBS))): $(B)/gen/bench_stubs/bench.h

# The loops of stub in other languages; C's symbols once, for Fortran and Rust.
STUB_STAMP := $(B)/gen/bench_stubs/.stamp
STUB_OBJ := $(if $(HAVE_CXX),$(B)/obj/bench/stub_cxx.o) \
  $(if $(HAVE_FORTRAN),$(B)/obj/bench/stub_fortran.o) \
  $(if $(HAVE_RUST),$(B)/obj/bench/libstub_rust.a) $(B)/gen/bench_stubs/bench_symbols.o

$(STUB_STAMP): bench/bench.xml $(PEM_CODEGEN)
	$(call say,GEN,$(@D))
	$(Q)for backend in c++ fortran rust; do \
	  $(PEM_CODEGEN) --backend $$backend -o $(@D) $< || exit; done
	@touch $@

$(B)/bench/stub: private BENCH_LIBS := $(if $(HAVE_CXX),-lstdc++)
$(B)/bench/stub: $(STUB_OBJ)
$(STUB_OBJ): $(STUB_STAMP)
$(B)/gen/bench_stubs/libpem_bench.rlib: $(B)/gen/bench_stubs/bench_symbols.o
$(B)/obj/bench/libstub_rust.a: $(B)/gen/bench_stubs/libpem_bench.rlib

$(B)/obj/bench/stub_cxx.o: bench/stub_cxx.cpp
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=c++17 $(CXXFLAGS) $(BENCH_ALIGN) -Wall -Wextra -Werror $(INC_bench) -c $< -o $@

$(B)/obj/bench/stub_fortran.o: bench/stub_fortran.f90
	$(call say,FC,$<)
	$(Q)$(FC) -std=f2008 $(FFLAGS) $(BENCH_ALIGN) -J $(@D) -c $(B)/gen/bench_stubs/bench.f90 \
	  -o $(@D)/bench_fortran.o
	$(Q)$(FC) -std=f2008 $(FFLAGS) $(BENCH_ALIGN) -Wall -Wextra -Werror -J $(@D) -c $< -o $@.tmp
	$(Q)$(LD) -r -o $@ $@.tmp $(@D)/bench_fortran.o

$(B)/obj/bench/libstub_rust.a: bench/stub_rust.rs
	$(call say,RUSTC,$<)
	$(Q)$(RUST) -C panic=abort --crate-type staticlib \
	  --extern pem_bench=$(B)/gen/bench_stubs/libpem_bench.rlib $< -o $@

# All loops begin alike: their place in a line of code is worth a few hundredths.
BENCH_ALIGN := -falign-functions=64 -falign-loops=64
CFLAGS_bench_stub := $(BENCH_ALIGN) $(if $(HAVE_CXX),-DHAVE_CXX) \
  $(if $(HAVE_FORTRAN),-DHAVE_FORTRAN) $(if $(HAVE_RUST),-DHAVE_RUST)
CFLAGS_bench_notify := $(BENCH_ALIGN) -DLTTNG_VERSION='"$(LTTNG_VERSION)"'
CFLAGS_bench_threads := $(CFLAGS_bench_notify)
CFLAGS_bench_enclosed := $(CFLAGS_bench_notify)
CFLAGS_bench_handles := $(BENCH_ALIGN)
CFLAGS_bench_coarse := $(BENCH_ALIGN)
# What its headers generate has no prototypes.
CFLAGS_bench_peer_lttng := $(BENCH_ALIGN) -Wno-missing-prototypes -Wno-shadow \
  -Wno-unused-parameter -Wno-strict-prototypes

# Queues: with counters, without, and those of others. Their place in a line of code is the same.
STREAM_PEERS := $(if $(and $(HAVE_CXX),$(wildcard $(SYSROOT)/usr/include/readerwriterqueue.h),$(wildcard \
  $(SYSROOT)/usr/include/boost/lockfree/spsc_queue.hpp)),$(B)/obj/bench/streams_peers.o)
CFLAGS_bench_streams_item := $(if $(STREAM_PEERS),-DHAVE_QUEUE_PEERS)
CFLAGS_bench_streams_observed := $(BENCH_ALIGN)
CFLAGS_bench_streams_unobserved := $(BENCH_ALIGN)
$(B)/bench/streams_item: private BENCH_LIBS := $(if $(STREAM_PEERS),-lstdc++)
$(B)/bench/streams_item: $(call objects,bench/streams_observed.c bench/streams_unobserved.c) $(STREAM_PEERS)
$(B)/obj/bench/streams_peers.o: bench/streams_peers.cpp
	$(call say,CXX,$<)
	$(Q)$(CXX) -std=c++17 $(CXXFLAGS) $(BENCH_ALIGN) -Wall -Wextra $(INC_bench) -c $< -o $@

$(B)/bench/streams_queue: $(B)/bench/streams_tandem $(B)/bench/streams_watch $(B)/bench/measure.py
$(B)/bench/streams_threads: $(B)/bench/measure.py $(B)/programs/streams \
  $(if $(HAVE_GSTREAMER),$(B)/programs/gstreamer) $(filter %/tbb,$(TBB_PROGRAMS))
$(B)/bench/streams_tandem: $(B)/obj/bench/streams_tandem.o $(B)/obj/bench/heuristic.o
$(B)/bench/streams_watch: $(B)/obj/bench/streams_watch.o $(LIBPEM)
$(B)/bench/streams_tandem $(B)/bench/streams_watch:
	$(call say,LINK,$@)
	$(Q)$(LINK) $(filter %.o,$^) $(if $(filter $(LIBPEM),$^),$(LINK_LIBPEM)) -lm -ldl -lpthread

# managed is stub for Java and Python: it drives programs in them. codegen and code_size drive
# pem-codegen.
$(B)/bench/managed: $(B)/bench/python/stub.py $(if $(HAVE_JAVA),$(B)/bench/java/Stub.class)
$(B)/bench/codegen $(B)/bench/code_size: $(PEM_CODEGEN)
# These record programs from outside.
$(B)/bench/record $(B)/bench/memory: $(B)/bench/raise
$(B)/bench/apps: $(B)/bench/timed $(B)/bench/app_programs.py

$(BENCH_PY:%=$(B)/bench/%): $(B)/bench/%: bench/%.py $(B)/bench/measure.py
	@mkdir -p $(@D)
	$(Q)$(INSTALL) -m 755 $< $@

PAGE_SIZE_PY := $(addprefix $(B)/bench/page_size_,metrics.py runs.py trial.py workloads.py)
$(B)/bench/measure.py $(B)/bench/app_programs.py $(B)/bench/guest_peers.py $(PAGE_SIZE_PY) \
  $(B)/bench/page-size/dictionary.py: $(B)/bench/%: bench/%
	@mkdir -p $(@D)
	$(Q)$(INSTALL) -m 644 $< $@

# Programs as anybody writes them: without libpem, which comes by preloading.
$(B)/bench/raise: $(B)/obj/bench/lttng_peer.o
$(B)/bench/calls: $(B)/obj/bench/bench.o
$(B)/bench/allocation: $(B)/bench/allocate
$(B)/bench/forks: $(B)/bench/forked
$(B)/bench/stated: $(B)/bench/allocate $(B)/bench/calls $(B)/bench/timed
$(B)/bench/raise $(B)/bench/timed $(B)/bench/calls $(B)/bench/allocate $(B)/bench/forked: $(B)/bench/%: $(B)/obj/bench/%.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $(filter %.o,$^) -ldl -lpthread

$(B)/bench/symbolize: $(B)/bench/stacked
CFLAGS_bench_stacked := -fno-omit-frame-pointer -fno-optimize-sibling-calls
$(B)/bench/stacked: $(B)/obj/bench/stacked.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $<

# read4 also compiles read4.c for the lab's machine.
$(B)/bench/read4: $(B)/bench/read4_native
$(B)/bench/read4_native: $(B)/obj/bench/read4.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $< -ldl -lpthread

# These two run programs in a guest of this machine's kind; the counter that they read is x86-64's.
ifneq ($(filter x86_64-%,$(MACHINE)),)
$(B)/bench/kernel_module: $(B)/bench/guest_calls $(B)/bench/guest_pem
$(B)/bench/system_wide_guest: $(B)/bench/guest_calls $(B)/bench/calls
endif
$(B)/bench/kernel_module $(B)/bench/system_wide_guest: $(B)/bench/guest_peers.py
$(B)/bench/guest_calls $(B)/bench/guest_pem: $(B)/bench/%: $(B)/obj/bench/%.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $<

$(B)/bench/drain: $(B)/bench/drained
# callback runs call_back and attach attach_first, which are linked with libpem as consumers are.
$(B)/bench/attach: $(B)/bench/attach_first $(B)/bench/raise $(B)/bench/measure.py
$(B)/bench/callback: $(B)/bench/call_back $(B)/bench/measure.py

# Where its code and variables lie is the same under Valgrind.
$(B)/bench/data_samples: $(B)/bench/touched
$(B)/bench/touched: bench/touched.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D) && $(CC) -O2 -no-pie -fno-pie -o $@ $<

$(B)/bench/merge: $(B)/bench/read_trace
$(B)/bench/page: $(B)/bench/read_trace $(B)/bench/measure.py
$(B)/bench/report: $(B)/bench/read_trace $(B)/bench/raise $(B)/bench/measure.py

$(B)/bench/page_size_loop: $(B)/programs/page_shapes $(B)/bench/page_size_sampled
$(B)/bench/page_size_sampled: $(B)/obj/bench/page_size_sampled.o \
  $(call objects,$(wildcard agents/page-size/timer/*.c) libpem/names/operand.c)
	$(call say,LINK,$@)
	$(Q)$(LINK) $^ $(CAPSTONE_LIBS) -lpthread

$(B)/bench/names: $(if $(HAVE_LIBDW),$(B)/programs/name_code)
$(B)/bench/page_size: $(B)/bench/page_size_model
$(B)/bench/page_size_model: $(B)/obj/bench/page_size_model.o $(PAGE_MODEL_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) $^ -lm

$(B)/bench/page_size_machine: $(B)/bench/page_size_calibrate
$(B)/bench/page_size_calibrate: $(B)/obj/bench/page_size_calibrate.o $(PAGE_CALIBRATE_OBJ) \
  $(PAGE_MODEL_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) $^ -lm

# Programs as anybody writes them, for the page-size agent: without libpem and without sanitizers.
PAGE_PROGRAMS := $(patsubst bench/page-size/%.c,$(B)/bench/page-size/%,\
  $(wildcard bench/page-size/*.c))
$(PAGE_PROGRAMS): $(B)/bench/page-size/%: bench/page-size/%.c bench/page-size/program.h
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(subst $(SAN_FLAGS),,$(ALL_CFLAGS)) -MF $@.d -o $@ $<

# The same with compiler hooks, for the agent to observe them by.
PAGE_HOOKED := $(if $(PAGE_HOOKS),$(PAGE_PROGRAMS:%=%-hooks))
$(PAGE_HOOKED): $(B)/bench/page-size/%-hooks: bench/page-size/%.c bench/page-size/program.h $(PAGE_HOOKS) \
  $(PAGE_HOOKS_ARCHIVE)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) -fsanitize=thread -MF $@.d -c -o $@.o $<
	$(Q)$(CC) $(CFLAGS) -o $@ $@.o $(PAGE_HOOKS_ARCHIVE) $(PAGE_HOOKS) -Wl,-rpath,'$$ORIGIN/../../lib'
$(B)/bench/page_size_hooks: $(PAGE_PROGRAMS) $(PAGE_HOOKED) $(PAGE_SIZE_PY)
$(B)/bench/page_size_programs: $(PAGE_PROGRAMS) $(B)/bench/page-size/dictionary.py $(PAGE_SIZE_PY)

$(B)/bench/call_back $(B)/bench/attach_first $(B)/bench/read_trace $(B)/bench/drained: \
  $(B)/bench/%: $(B)/obj/bench/%.o $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) $< $(LINK_LIBPEM) -ldl -lpthread

$(B)/bench/system_wide: $(B)/bench/calls $(B)/bench/timed

# kernel runs calls under pem and under kernel_peer, which loads kernel_peer.bpf.o from beside
# itself.
$(B)/bench/kernel: $(B)/bench/calls
ifneq ($(HAVE_KERNEL_SOURCE),)
$(B)/bench/kernel: $(B)/bench/kernel_peer $(B)/bench/kernel_peer.bpf.o
endif

$(B)/bench/kernel_peer: $(B)/obj/bench/kernel_peer.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $< $(LIBBPF_LIBS)

$(B)/bench/kernel_peer.bpf.o: bench/kernel_peer.bpf.c
	$(call say,BPF,$<)
	$(Q)$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(B)/bench/python/stub.py: bench/stub.py bench/bench.xml $(PEM_CODEGEN)
	$(call say,GEN,$@)
	$(Q)$(PEM_CODEGEN) --backend python -o $(@D) bench/bench.xml && cp $< $@

$(B)/bench/java/Stub.class: bench/Stub.java bench/bench.xml $(PEM_CODEGEN)
	$(call say,JAVAC,$@)
	$(Q)$(call in_java,bench/bench.xml,bench,$<)

BENCH_BIN := $(BENCHES:%=$(B)/bench/%)
ifneq ($(HAVE_LTTNG),)
# These load it from beside themselves.
$(B)/bench/notify $(B)/bench/threads $(B)/bench/enclosed $(B)/bench/raise: | $(B)/bench/peer-lttng.so
endif

$(B)/bench/insns: $(B)/bench/stepped
$(B)/bench/stepped $(BENCH_C:%=$(B)/bench/%): $(B)/bench/%: $(B)/obj/bench/%.o \
  $(call objects,$(addprefix bench/,bench.c flight.c lttng.c lttng_peer.c)) $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(filter %.o,$^) $(filter %.a,$^) $(LINK_LIBPEM) $(BENCH_LIBS) -ldl -lpthread

$(B)/bench/peer-lttng.so: $(B)/obj/bench/peer_lttng.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -shared -o $@ $< $(LTTNG_LIBS) -ldl

bench: $(BENCH_BIN) $(ALL)
	$(if $(HAVE_LTTNG),,@echo 'no LTTng-UST peer: liblttng-ust-dev and lttng-tools are missing')
	@rm -f $(B)/bench/results.jsonl $(B)/bench/page-size.jsonl
	@printf 'processor: ' && bench/processor.py
	@for b in $(BENCHES); do $(if $(CASE),BENCH_CASE=$(CASE)) \
	  BENCH_OUT=$(B)/bench/results.jsonl $(B)/bench/$$b || exit; \
	  bench/processor.py $(B)/bench/results.jsonl $(B)/bench/page-size.jsonl >$(B)/bench/processor; done
	@if [ ! -s $(B)/bench/results.jsonl ]; then \
	  echo "no benchmark has '$(CASE)' in its name; there are:"; \
	  for b in $(BENCHES); do BENCH_LIST=1 $(B)/bench/$$b; done | sort -u; exit 1; fi
	@printf 'written to $(B)/bench/results.jsonl, of ' && cat $(B)/bench/processor

$(B)/bench/streams: $(B)/bench/stream_runs
$(B)/bench/stream_runs: $(B)/obj/bench/stream_runs.o $(B)/obj/bench/heuristic.o $(MODELS_SERIES_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) $^ -lm
$(B)/obj/bench/stream_runs.o: private CPPFLAGS += -Iagents

$(B)/bench/explore: $(B)/bench/between_trials $(B)/bin/pem-explore
$(B)/bench/between_trials: $(B)/obj/bench/between_trials.o $(EXPLORE_MODELS) $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(filter %.o,$^) $(LINK_LIBPEM) $(EXPLORE_LIBS)
$(B)/obj/bench/between_trials.o: private CPPFLAGS += -Iagents -Iagents/explore

$(B)/bench/explore_pairs $(B)/bench/explore_systems: $(B)/bin/pem-explore
$(B)/bench/explore_taxi: $(B)/bench/taxi $(B)/bin/pem-explore
$(B)/bench/taxi: $(B)/obj/examples/explore/taxi.o
	$(call say,LINK,$@)
	$(Q)$(LINK) $< $(SQLITE_LIBS) -lpthread
