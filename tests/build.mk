# SPDX-License-Identifier: MIT
# Tests: each tests/unit/NAME.c is a cmocka program $(B)/tests/NAME; each tests/fuzz/NAME.c a
# libFuzzer target $(B)/fuzz/NAME; tests/e2e/*.py need no build. tests/run runs the first and the
# last.
#
# A test is linked with libpem.a. The build.mk of a folder whose parts are tried without it names
# the objects as prerequisites of $(B)/tests/NAME, and adds libraries to TEST_LIBS.

UNIT_NAMES := $(filter-out $(if $(and $(HAVE_JSON),$(HAVE_EXPLORE)),,agent_models explore_results explore_model), \
  $(patsubst tests/unit/%.c,%,$(sort $(wildcard tests/unit/*.c))))
FUZZ_NAMES := $(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/*.c)))
UNIT_BIN := $(if $(HAVE_CMOCKA),$(UNIT_NAMES:%=$(B)/tests/%))
UNIT_MISSING := $(if $(HAVE_CMOCKA),,not built: cmocka is missing (libcmocka-dev); \
  make deps installs it)
# Those that run under SAN=thread, which sees one address space.
THREADED := $(filter async_% entry_% ring_% producer_% session_% statistics_% flight_% reader_% \
  stream_% writer_%,$(UNIT_NAMES))
FUZZ_BIN := $(FUZZ_NAMES:%=$(B)/fuzz/%)

# What runs in guests only (tests/guest/suite.py): programs of their own, since a guest has no
# library of ours to find.
GUEST_BIN := $(if $(HAVE_CMOCKA),$(patsubst %.c,$(B)/%,$(wildcard tests/guest/*.c)))
# What a guest with another kind of CPU needs of a build for it (make guest-parts). GUEST_UNITS
# names the unit tests among it. ALL is complete only when it is expanded.
GUEST_PARTS = $(B)/bin/pem $(B)/lib/libpem-libc.so $(B)/lib/libpem-preload.so \
  $(filter $(B)/lib/libpem.% $(B)/lib/pem/%,$(ALL)) \
  $(GUEST_UNITS:%=$(B)/tests/%) $(GUEST_BIN) $(B)/programs/probed

.PHONY: tests check-built check-all-built fuzz fuzz-targets plain kill-test soak folder-fuzz

plain:
	@$(MAKE) --no-print-directory SAN= B=build all

tests: $(UNIT_BIN) $(GUEST_BIN) $(if $(SAN),,$(B)/bench/stepped)

# pem_provider_register by name: stubs find it with dlsym in the program itself.
TEST_LINK = $(B)/lib/libpem.a -rdynamic -Wl,-u,pem_provider_register
TEST_LIBS += $(XML2_LIBS) $(PFM_LIBS) -ldl -lpthread -lm

$(UNIT_BIN): $(B)/tests/%: $(B)/obj/tests/unit/%.o $(B)/lib/libpem.a
	$(call say,LINK,$@)
	$(Q)$(LINK) $(filter %.o,$^) $(TEST_LINK) -lcmocka -Wl,--as-needed $(TEST_LIBS)

# Those of the code generator, with all of it.
$(filter $(B)/tests/codegen_% $(B)/fuzz/codegen_%,$(UNIT_BIN) $(FUZZ_BIN)): \
  $(call objects,$(filter-out codegen/tool/main.c,$(wildcard codegen/*.c codegen/*/*.c)))

$(GUEST_BIN): $(B)/tests/guest/%: $(B)/obj/tests/guest/%.o
	$(call say,LINK,$@)
	$(Q)$(LINK) $< -lcmocka -lpthread

# Needs clang with libFuzzer, and QEMU for 'module'. FUZZ_S: seconds a target; T: targets whose name
# contains it; FUZZ_SEED: module's.
FUZZ_BUILD := B=build/fuzz CC=clang SAN=1 CFLAGS='-O1 -g -fsanitize=fuzzer-no-link'
fuzz: all tests
	$(Q)$(MAKE) --no-print-directory $(FUZZ_BUILD) fuzz-targets
	@T='$(T)' $(if $(FUZZ_S),FUZZ_S='$(FUZZ_S)') $(if $(FUZZ_SEED),FUZZ_SEED='$(FUZZ_SEED)') \
	  tests/fuzz/run

# Use: make fuzz-targets, with the variables of FUZZ_BUILD
fuzz-targets: $(FUZZ_BIN)

$(FUZZ_BIN): $(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(B)/lib/libpem.a
	$(call say,LINK,$@)
	$(Q)$(LINK) -fsanitize=fuzzer $(filter %.o,$^) $(TEST_LINK) -Wl,--as-needed $(TEST_LIBS)

# make check comes here by tools/build.mk. A sanitized build has a plain one beside it: tests/run
# says what for.
check-built: $(if $(filter thread,$(SAN)),$(filter $(THREADED:%=$(B)/tests/%),$(UNIT_BIN)),all tests $(if $(SAN),plain))
	@B='$(B)' T='$(T)' ALSO='$(ALSO)' SAN='$(SAN)' THREADED='$(THREADED)' CC='$(CC)' UNIT_MISSING='$(UNIT_MISSING)' tests/run

# With what takes long; the stress tests for a shorter time than below.
check-all-built: ALSO := all
check-all-built: check-built
	@tests/model/run || [ $$? = 77 ]
	@B='$(B)' tests/stress/kill_either_side.py $(or $(TIMES),100)
	@B='$(B)' SOAK_S=$(or $(SOAK_S),20) tests/stress/soak.py
	@B='$(B)' FUZZ_S=$(or $(FUZZ_S),10) tests/stress/runtime_folder.py

# What takes minutes. TIMES: how often a process is killed; SOAK_S, FUZZ_S: seconds; FUZZ_SEED: of
# the hostile users' choices.
kill-test: all tests
	@B='$(B)' tests/stress/kill_either_side.py $(or $(TIMES),1000)

soak: all tests
	@B='$(B)' $(if $(SOAK_S),SOAK_S='$(SOAK_S)') tests/stress/soak.py

folder-fuzz: all tests
	@B='$(B)' $(if $(FUZZ_S),FUZZ_S='$(FUZZ_S)') $(if $(FUZZ_SEED),FUZZ_SEED='$(FUZZ_SEED)') \
	  tests/stress/runtime_folder.py
