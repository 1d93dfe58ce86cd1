# SPDX-License-Identifier: MIT
#
# Two commands for a newcomer: `make demo` and `make check`. `make help` lists the others.
#
# Variables: CC, CFLAGS, SAN=1 (address and undefined-behaviour sanitizers, in build/san), SAN=thread (data races between
# threads, in build/tsan), B (build folder),
# PREFIX, LIBDIR, DESTDIR, CASE (bench), T (tests whose name contains it), V=1 (show commands).
# To build for another machine: CC='COMPILER --sysroot=FOLDER', AR, SYSROOT=FOLDER, PEM_CODEGEN, and pkg-config's
# PKG_CONFIG_LIBDIR and PKG_CONFIG_SYSROOT_DIR in the environment, as tests/guest/assemble.py does.
# Each folder's build.mk says what it builds; this file says how.

VERSION := 0.2.0
CC ?= cc
CFLAGS ?= -O2 -g
# Other languages, for examples and tests of what is made for them: left out where there is no compiler.
CXXFLAGS ?= -O2 -g
ifeq ($(origin FC),default)
FC := gfortran
endif
FFLAGS ?= -O2 -g
RUSTC ?= rustc
RUSTFLAGS ?= -O
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
B ?= build$(if $(SAN),/$(if $(filter thread,$(SAN)),tsan,san))

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Werror
comma := ,
SAN_FLAGS := $(if $(SAN),$(if $(filter thread,$(SAN)),-fsanitize=thread -Wno-tsan,-fsanitize=address$(comma)undefined -fno-sanitize-recover=all) -fno-omit-frame-pointer)
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE= -fPIC -fvisibility=hidden $(WARNINGS) $(CFLAGS) $(SAN_FLAGS) -MMD -MP

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-8s %s\n' $(1) $(2))

# $(call have,COMMAND): its path, or nothing
have = $(shell command -v $(1) 2>/dev/null)
HAVE_CXX := $(call have,$(CXX))
HAVE_FORTRAN := $(call have,$(FC))
HAVE_RUST := $(call have,$(RUSTC))

# Who may include whom: -I flags per folder.
INC_ABI := -Ispec/abi
INC_PUBLIC := $(INC_ABI) -Ilibpem/include
INC_codegen = $(INC_ABI) $(shell pkg-config --cflags libxml-2.0 2>/dev/null)
INC_libpem = $(INC_PUBLIC) -Ilibpem -I$(B)/gen -DPEM_VERSION='"$(VERSION)"'
INC_kmod = $(INC_ABI) -I$(B)/gen
INC_viz-export = $(INC_PUBLIC) -I$(B)/gen/viz-export
INC_cli = $(INC_PUBLIC) -Icli -I$(B)/gen
INC_examples = $(INC_PUBLIC) -I$(B)/gen
INC_tests = $(INC_PUBLIC) -Ilibpem -Icodegen -I$(B)/gen -I.
INC_bench = $(INC_tests)

folder = $(firstword $(subst /, ,$(1)))
objects = $(patsubst %.c,$(B)/obj/%.o,$(1))

# Here, since prerequisites are expanded when a build.mk is read, and cli/ is read before libpem/.
LIBPEM := $(B)/lib/libpem.so
JDK := $(patsubst %/bin/javac,%,$(realpath $(shell command -v javac 2>/dev/null)))
HAVE_JAVA := $(and $(JDK),$(wildcard $(JDK)/include/jni.h))

.DEFAULT_GOAL := all
.PHONY: all deps zoo-deps check demo bench install clean help
.DELETE_ON_ERROR:
.SECONDARY:

ALL :=
# Order-only prerequisites of every object outside codegen/: generated headers.
GENERATED :=

# Those that may install packages start make again when they have: libraries are probed in the build.mk files.
ifeq ($(filter-out deps zoo-deps demo check help clean,$(or $(MAKECMDGOALS),all)),)
include tools/build.mk
else
include $(sort $(wildcard */build.mk */*/build.mk))
endif

all: $(ALL)

$(B)/obj/codegen/%.o: codegen/%.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_codegen) -c $< -o $@

$(B)/obj/%.o: %.c | $(GENERATED)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_$(call folder,$*)) $(CFLAGS_$(subst /,_,$*)) -c $< -o $@

clean:
	rm -rf build

help:
	@printf '%s\n' \
	  'make deps     find what is missing and install it (root), or print the command that would' \
	  'make          build into build/; needs no network and no root' \
	  'make demo     record a real program and show every layer on one timeline' \
	  'make kmod     compile the kernel module (KDIR=folder of kernel headers)' \
	  'make kmod-install  install it, with its sources for DKMS and a udev rule (DESTDIR=)' \
	  'make check    run every test (SAN=1 or thread: under sanitizers; T=word: only tests named so)' \
	  'make kill-test  kill recorder or program at random 1,000 times (TIMES), and balance every trace' \
	  'make soak     everything at once for ten minutes (SOAK_S=seconds), with bounded memory' \
	  'make zoo      run programs that nobody here wrote, plain and watched: nothing may differ (T=words, ZOO_MODES, ZOO_JSON=file)' \
	  'make zoo-deps install the programs of the zoo (root)' \
	  'make fuzz     feed hostile input to every reader, and to pem.ko in a guest (T=word, FUZZ_S=seconds, FUZZ_SEED=number)' \
	  "make folder-fuzz  hostile users attack root's session through their runtime folders (FUZZ_S, FUZZ_SEED)" \
  'make bench    measure every claim beside its peer (CASE=WORD: some)' \
	  'make install  into PREFIX (/usr/local) under DESTDIR'

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
