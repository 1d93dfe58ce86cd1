# SPDX-License-Identifier: MIT
# Tests: each tests/unit/NAME.c is a cmocka program $(B)/tests/NAME; each tests/fuzz/NAME.c a libFuzzer target
# $(B)/fuzz/NAME; tests/e2e/*.py need no build. tests/run runs the first and the last.
#
# Any build.mk may add to one test: TEST_OBJ_name (objects), TEST_LIB_name (linker flags), TEST_CFLAGS_name.

UNIT_SRC := $(sort $(wildcard tests/unit/*.c))
UNIT_NAMES := $(patsubst tests/unit/%.c,%,$(UNIT_SRC))
FUZZ_NAMES := $(patsubst tests/fuzz/%.c,%,$(sort $(wildcard tests/fuzz/*.c)))
HAVE_CMOCKA := $(shell pkg-config --exists cmocka 2>/dev/null && echo 1)
CODEGEN_PARTS := $(call objects,$(filter-out codegen/tool/main.c,$(wildcard codegen/*.c codegen/*/*.c)))

UNIT_BIN := $(if $(HAVE_CMOCKA),$(UNIT_NAMES:%=$(B)/tests/%))
UNIT_MISSING := $(if $(HAVE_CMOCKA),,not built: cmocka is missing (libcmocka-dev); make deps installs it)

# codegen_*: with the code generator's objects, and libxml2
$(foreach n,$(filter codegen_%,$(UNIT_NAMES) $(FUZZ_NAMES)),\
  $(eval TEST_OBJ_$(n) += $(CODEGEN_PARTS))\
  $(eval TEST_LIB_$(n) += $(shell pkg-config --libs libxml-2.0 2>/dev/null))\
  $(eval TEST_CFLAGS_$(n) += $(shell pkg-config --cflags libxml-2.0 2>/dev/null)))
$(foreach n,$(UNIT_NAMES),$(eval CFLAGS_tests_unit_$(n) += $$(TEST_CFLAGS_$(n))))
$(foreach n,$(FUZZ_NAMES),$(eval CFLAGS_tests_fuzz_$(n) += $$(TEST_CFLAGS_$(n))))

# What runs in guests only (tests/guest/suite.py): programs of their own, since a guest has no library of ours to find.
GUEST_BIN := $(if $(HAVE_CMOCKA),$(patsubst %.c,$(B)/%,$(wildcard tests/guest/*.c)))
# What a guest with another kind of CPU needs of a build for it; GUEST_UNITS names the unit tests among it.
GUEST_PARTS = $(B)/bin/pem $(B)/lib/libpem-libc.so $(filter $(B)/lib/libpem.% $(B)/lib/pem/%,$(ALL)) \
  $(GUEST_UNITS:%=$(B)/tests/%) $(GUEST_BIN) $(B)/programs/probed

.PHONY: guest-parts tests check-built check-all-built fuzz fuzz-targets plain kill-test soak folder-fuzz

plain:
	@$(MAKE) --no-print-directory SAN= B=build all


tests: $(UNIT_BIN) $(GUEST_BIN)

# pem_provider_register by name: stubs find it with dlsym in the program itself.
TEST_LINK = $(B)/lib/libpem.a -rdynamic -Wl,-u,pem_provider_register

.SECONDEXPANSION:
$(UNIT_BIN): $(B)/tests/%: $(B)/obj/tests/unit/%.o $$(TEST_OBJ_$$*) $(B)/lib/libpem.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -o $@ $< $(TEST_OBJ_$*) $(TEST_LINK) -lcmocka $(TEST_LIB_$*) -ldl -lpthread -lm

$(GUEST_BIN): $(B)/tests/guest/%: $(B)/obj/tests/guest/%.o
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -o $@ $< -lcmocka -lpthread

guest-parts: $$(GUEST_PARTS)

# Needs clang with libFuzzer, and QEMU for 'module'. FUZZ_S: seconds a target; T: targets whose name contains it; FUZZ_SEED: module's.
fuzz: all tests
	$(Q)$(MAKE) --no-print-directory B=build/fuzz CC=clang SAN=1 CFLAGS='-O1 -g -fsanitize=fuzzer-no-link' fuzz-targets
	@T='$(T)' $(if $(FUZZ_S),FUZZ_S='$(FUZZ_S)') $(if $(FUZZ_SEED),FUZZ_SEED='$(FUZZ_SEED)') tests/fuzz/run

# Use: make fuzz-targets B=build/fuzz CC=clang SAN=1 CFLAGS='-O1 -g -fsanitize=fuzzer-no-link'
fuzz-targets: $(FUZZ_NAMES:%=$(B)/fuzz/%)

$(FUZZ_NAMES:%=$(B)/fuzz/%): $(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $$(TEST_OBJ_$$*) $(B)/lib/libpem.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -fsanitize=fuzzer -o $@ $< $(TEST_OBJ_$*) $(TEST_LINK) $(TEST_LIB_$*) -ldl -lpthread -lm

# make check comes here by tools/build.mk
# A sanitized build has a plain one beside it: tests/run says what for.
check-built: $(if $(filter thread,$(SAN)),$(UNIT_BIN),all tests $(if $(SAN),plain))
	@B='$(B)' T='$(T)' ALSO='$(ALSO)' SAN='$(SAN)' CC='$(CC)' UNIT_MISSING='$(UNIT_MISSING)' tests/run

# With what takes long; the stress tests for a shorter time than below.
check-all-built: ALSO := all
check-all-built: check-built
	@tests/model/run || [ $$? = 77 ]
	@B='$(B)' tests/stress/kill_either_side.py $(or $(TIMES),100)
	@B='$(B)' SOAK_S=$(or $(SOAK_S),20) tests/stress/soak.py
	@B='$(B)' FUZZ_S=$(or $(FUZZ_S),10) tests/stress/runtime_folder.py

# What takes minutes. TIMES: how often somebody is killed; SOAK_S, FUZZ_S: seconds; FUZZ_SEED: of the hostile users' choices.
kill-test: all tests
	@B='$(B)' tests/stress/kill_either_side.py $(or $(TIMES),1000)

soak: all tests
	@B='$(B)' $(if $(SOAK_S),SOAK_S='$(SOAK_S)') tests/stress/soak.py

folder-fuzz: all tests
	@B='$(B)' $(if $(FUZZ_S),FUZZ_S='$(FUZZ_S)') $(if $(FUZZ_SEED),FUZZ_SEED='$(FUZZ_SEED)') tests/stress/runtime_folder.py
