# SPDX-License-Identifier: MIT
#
# Two commands for a newcomer: `make demo` and `make check`. `make help` lists the others.
#
# Variables:
#   CC, CPPFLAGS, CFLAGS, LDFLAGS (not of what starts without a C library: tools for Valgrind, BPF)
#   PKG_CONFIG, V=1 (show commands), B (build folder), PREFIX, LIBDIR, DESTDIR
#   SAN=1       address and undefined-behaviour sanitizers, in build/san
#   SAN=thread  data races between threads, in build/tsan
#   T=word      make check: tests whose name contains it
#   CASE=word   make bench: cases whose name contains it
# To build for another machine: CC='COMPILER --sysroot=FOLDER', AR, SYSROOT=FOLDER, PEM_CODEGEN, and
# pkg-config's PKG_CONFIG_LIBDIR and PKG_CONFIG_SYSROOT_DIR in the environment, as
# tests/guest/assemble.py does. Each folder's build.mk says what it builds, tools/libraries.mk what
# this machine has, this file how.

VERSION := 0.2.0
# The day of this version, for pages that pem-codegen makes.
RELEASED := 2026-11-23
CC ?= cc
# Sanitizers see no less of what is optimized less, and the compiler takes a third less.
CFLAGS ?= $(if $(SAN),-O1,-O2) -g
# Warnings that -O1 gives for correct code. clang lacks two of these options.
LESS_SEEN := -Wno-unknown-warning-option -Wno-format-truncation -Wno-maybe-uninitialized
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
  -Werror
ifeq ($(SAN),)
B ?= build
else ifeq ($(SAN),thread)
B ?= build/tsan
SAN_FLAGS := -fsanitize=thread -Wno-tsan -fno-omit-frame-pointer $(LESS_SEEN)
else
B ?= build/san
SAN_FLAGS := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer $(LESS_SEEN)
endif
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE= -fPIC -fvisibility=hidden -ffunction-sections \
  -fdata-sections $(WARNINGS) $(CPPFLAGS) $(CFLAGS) $(SAN_FLAGS) -MMD -MP
LINK = $(CC) $(CFLAGS) $(SAN_FLAGS) $(LDFLAGS) -o $@
OBJCOPY = $(shell $(CC) -print-prog-name=objcopy)

Q := $(if $(V),,@)
# $(call say,WORD,FILE) begins a recipe: tells of it, and makes the folder of what it makes.
say = @$(if $(V),,printf '  %-8s %s\n' $(1) $(2);) mkdir -p $(@D)

# The objects of sources.
objects = $(patsubst %.c,$(B)/obj/%.o,$(1))

.DEFAULT_GOAL := all
.PHONY: all guest-parts deps zoo-deps check check-all truth demo bench install uninstall clean help
.DELETE_ON_ERROR:
# sed, grep and awk read letters and bytes alike for every caller.
$(B)/%: export LC_ALL := C

# Each build.mk adds what it builds, and headers that it generates: every object outside of codegen/
# waits for these (order-only: what a header changes is known to the .d files).
ALL :=
GENERATED :=

# Those that may install packages start make again when they have: only then are libraries found.
ifeq ($(filter-out deps zoo-deps demo check check-all truth uninstall help clean,$(or $(MAKECMDGOALS),all)),)
include tools/build.mk
else
# In an order in which each finds the variables of those that it needs.
include tools/libraries.mk
include shared/build.mk
include codegen/build.mk
include kmod/build.mk
include libpem/build.mk
include $(sort $(wildcard libpem/*/build.mk libpem/sources/*/build.mk))
include $(addsuffix /build.mk,cli viz-export viz-export/page examples)
include agents/page/build.mk
include $(sort $(wildcard agents/page-size/*/build.mk)) $(addsuffix /build.mk,agents/settings agents/trial agents/models agents/explore \
  agents/rates/program)
include $(addsuffix /build.mk,lab tests tests/programs tests/zoo bench tools)
endif

# pem works with a stack of 128 KiB (ulimit -s 128), which its calls share. Frames are larger where
# less is optimized.
SMALL_FRAMES := $(if $(filter -O2,$(CFLAGS)),-Wframe-larger-than=32768)
# In a program the stack may be a signal handler's, or a small thread's. Joining a session, and finding
# all functions as a process starts, takes more once (tests/unit/producer_stack.c).
ADAPTERS_OBJ := $(LIBC_OBJ) $(call objects,libpem/libc/elf_later.c $(MPI_SRC) libpem/sqlite/sqlite.c \
  libpem/jvm/jvm.c libpem/ompt/ompt.c)
FRAMES_ONCE := $(call objects,libpem/libc/elf_names.c) $(IN_EVENTS)
$(filter-out $(FRAMES_ONCE),$(ADAPTERS_OBJ)): private SMALL_FRAMES := \
  $(if $(SMALL_FRAMES),-Wframe-larger-than=1024 -Walloca)
$(FRAMES_ONCE): private SMALL_FRAMES := $(if $(SMALL_FRAMES),-Wframe-larger-than=4608 -Walloca)

# Who may include whom: -I flags per folder.
INC_ABI := -Ispec/abi
INC_PUBLIC := $(INC_ABI) -Ilibpem/include
INC_SHARED := -Ishared
INC_shared := $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED)
INC_codegen := $(INC_ABI) $(INC_SHARED) -Icodegen -I$(B)/gen $(XML2_CFLAGS) \
  -DPEM_RELEASED='"$(RELEASED)"'
INC_libpem = $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Ilibpem -I$(B)/gen -DPEM_VERSION='"$(VERSION)"'
INC_viz-export := $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -I$(B)/gen/viz-export
INC_cli := $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Icli -I$(B)/gen -I$(B)/gen/cli $(JSON_CFLAGS) \
  -DPEM_VERSION='"$(VERSION)"'
INC_agents := $(SMALL_FRAMES) $(INC_PUBLIC) $(INC_SHARED) -Iagents/loop -Iagents/page-size -Icli -I$(B)/gen $(JSON_CFLAGS)
INC_examples := $(INC_PUBLIC) -I$(B)/gen
INC_tests := $(INC_PUBLIC) $(INC_SHARED) -Ilibpem -Icodegen -Iagents/page-size -I$(B)/gen -I. \
  $(XML2_CFLAGS) $(if $(HAVE_KERNEL_SOURCE),-DPEM_TEST_LIBBPF) \
  $(if $(HAVE_LIBELF),-DPEM_TEST_LIBELF) $(if $(HAVE_LIBDW),-DPEM_TEST_LIBDW)
INC_bench := $(INC_tests)

all: $(B)/complete
# The list that make install takes. It is as new as the newest file in it, and newer than all sources.
all_now := $(ALL:$(B)/%=%)
.PHONY: all-otherwise
$(B)/complete: $(ALL) \
  $(if $(CHANGED_SINCE)$(subst $(strip $(file <$(B)/complete)),,$(strip $(all_now))),all-otherwise)
	@printf '%s\n' '$(strip $(all_now))' >$@

guest-parts: $(GUEST_PARTS)

$(B)/obj/codegen/%.o: codegen/%.c $(FOUND)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_codegen) -c $< -o $@

# Needs nothing that is generated: the generator is linked with some of it.
$(B)/obj/shared/%.o: shared/%.c $(FOUND)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_shared) -c $< -o $@

# Flags of its folder, and of the file: CFLAGS_libpem_producer_direct for libpem/producer/direct.c.
$(B)/obj/%.o: %.c $(FOUND) | $(GENERATED)
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_$(firstword $(subst /, ,$*))) $(CFLAGS_$(subst /,_,$*)) -c $< -o $@

# A folder that the caller named is removed only if pem was built there.
clean:
	$(if $(filter file,$(origin B)),,@[ ! -e '$(B)' ] || [ -e '$(B)/found' ] || { \
	  echo "make: pem was not built in $(B): it is not removed" >&2; exit 1; })
	rm -rf '$(B)'

help:
	@printf '%s\n' \
	  'make deps     find what is missing and install it (root), or print the command that would' \
	  'make          build into build/; needs no network and no root' \
	  'make demo     record a real program and show every layer on one timeline' \
	  'make kmod     compile the kernel module (KDIR=folder of kernel headers, KMOD=folder to build in)' \
	  'make kmod-kernels  compile it for each kernel whose headers are installed or can be fetched' \
  'make kmod-install  install it, with its sources for DKMS and a udev rule (DESTDIR=)' \
	  'make lab      make the emulated machine that pem lab boots (fetches a kernel); make install-lab' \
  '              puts it beside an installed pem' \
  'make check    run the tests, in some minutes (T=word: only tests named so;' \
	  '              SAN=1 or thread: under sanitizers)' \
	  'make check-all  run those that take long, too: all guests, models, stress' \
	  'make truth    compare what pem says with strace, perf, heaptrack, Valgrind, schedstat and known truth' \
	  'make kill-test  kill recorder or program at random 1,000 times (TIMES); each trace balances' \
	  'make soak     everything at once for ten minutes (SOAK_S=seconds), with bounded memory' \
	  'make zoo      run programs that nobody here wrote, plain and watched: nothing may differ' \
	  '              (T=words, ZOO_MODES, ZOO_JSON=file)' \
	  'make zoo-deps install the programs of the zoo (root)' \
	  'make fuzz     feed hostile input to every reader, and to pem.ko in a guest' \
	  '              (T=word, FUZZ_S=seconds, FUZZ_SEED=number)' \
	  "make folder-fuzz  hostile users attack root's session through their runtime folders" \
	  '              (FUZZ_S, FUZZ_SEED)' \
	  'make bench    measure every claim beside its peer (CASE=WORD: some)' \
	  'make install  into PREFIX (/usr/local) under DESTDIR; make uninstall removes these files'

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
