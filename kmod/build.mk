# SPDX-License-Identifier: MIT
# What runs in the kernel. kmod/bpf/pem.bpf.c becomes one BPF object, which the kernel source
# carries inside itself (libpem/sources/kernel). Needs clang with a BPF target and libbpf's headers:
# without them there is no kernel source, and make says so.

BPF_OBJ := $(B)/obj/kmod/bpf/pem.bpf.o
BPF_MACHINE := $(firstword $(subst -, ,$(MACHINE)))
BPF_ARCH := $(patsubst aarch64%,arm64,$(patsubst x86_64%,x86,$(BPF_MACHINE)))
# <asm/types.h> lies in the multiarch folder, which gcc can print, and not every clang. BTF, which is
# installed, names sources: by their paths in the checkout, wherever it is.
BPF_CFLAGS := -target bpf -mcpu=v3 -ffreestanding -O2 -g -std=gnu11 -Wall -Wextra -Werror \
  -D__TARGET_ARCH_$(BPF_ARCH) -Ispec/abi -I$(B)/gen \
  -ffile-prefix-map=$(B)=build -ffile-prefix-map='$(CURDIR)'=. \
  -idirafter $(SYSROOT)/usr/include/$(BPF_MACHINE)-linux-gnu

ifeq ($(HAVE_CLANG_BPF),)
  $(info kernel source: not built, $(CLANG) with a BPF target is missing (package clang); \
    make deps installs it)
else ifeq ($(HAVE_LIBBPF),)
  $(info kernel source: not built, libbpf 1.0 or newer is needed \
    $(if $(LIBBPF_VERSION),and this system has $(LIBBPF_VERSION): install a newer one,\
    (package libbpf-dev); make deps installs it))
endif

# Half of the object is for debuggers, which never read it. BTF, which the kernel reads, stays.

$(BPF_OBJ): kmod/bpf/pem.bpf.c $(FOUND) | $(GENERATED)
	$(call say,BPF,$<)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@ || { echo 'make: the kernel programs made' \
	  'from spec/os/*.xml do not compile: a structure or member that a spec names must be' \
	  'declared in a kmod/bpf/types_*.h (docs/spec-language.md, Adding a spec to this tree)' \
	  >&2; exit 1; }
	$(if $(LLVM_STRIP),$(Q)$(LLVM_STRIP) -g $@)

# --- the module: make kmod [KDIR=folder of the kernel's headers] [KMOD=folder to build it in] ---
# All that the kernel's build reads is linked into KMOD, since paths with a space are none for it.

KMOD ?= $(abspath $(B))/kmod
KMOD_GEN ?= $(abspath $(B))/gen
KDIR ?= $(firstword $(wildcard /lib/modules/$(shell uname -r)/build) \
  $(shell ls -d /usr/src/linux-headers-*-amd64 /usr/src/linux-headers-*-arm64 2>/dev/null | \
    sort -V | tail -n 1))
KMOD_SOURCES := $(wildcard kmod/*.c kmod/*.h) kmod/Kbuild kmod/Makefile kmod/declared
KMOD_HEADERS := $(foreach name,events headers emit,'$(KMOD_GEN)/pem_kmod_$(name).h')
# Its own recipes call the kernel's build, W=1 and C=2 (sparse) reach it.
KMOD_MAKE = $(MAKE) --no-print-directory -C $(KMOD) KDIR=$(KDIR)

.PHONY: kmod kmod-kernels kmod-install
kmod: $(GENERATED)
ifeq ($(wildcard $(KDIR)/Makefile),)
	@echo 'kmod: no kernel headers in $(or $(KDIR),/lib/modules or /usr/src): install them' \
	  '(package linux-headers-amd64 or linux-headers-arm64), or name their folder:' \
	  'make kmod KDIR=...' >&2; exit 1
else ifneq ($(words $(KMOD)),1)
	@echo "kmod: the kernel's build takes no folder with a space in its path, and the module would be" \
	  'built in $(KMOD): name another folder: make kmod KMOD=...' >&2; exit 1
else
	@mkdir -p $(KMOD)
	@ln -sf $(KMOD_SOURCES:%='$(CURDIR)/%') $(KMOD_HEADERS) $(KMOD)/
	@ln -sfn '$(CURDIR)/spec/abi' $(KMOD)/abi
	$(call say,KMOD,$(KDIR))
	+$(Q)$(KMOD_MAKE) modules
endif

# For each kernel whose headers are installed or can be fetched (lab/kernels.py).
kmod-kernels: $(GENERATED)
	$(Q)python3 -B -m lab.modules '$(B)'

# The ring and what probes call, in a module that tries them inside the kernel
# (tests/guest/ring_module).
KMOD_RING := $(abspath $(B))/kmod_ring
RING_SOURCES := $(wildcard tests/guest/ring_module/*) $(wildcard kmod/*.h) kmod/record.c
.PHONY: kmod-ring-test
kmod-ring-test:
	@mkdir -p $(KMOD_RING)
	@ln -sf $(abspath $(RING_SOURCES)) $(KMOD_RING)/
	$(call say,KMOD,$(KMOD_RING))
	+$(Q)$(MAKE) --no-print-directory -C $(KDIR) M=$(KMOD_RING) \
	  PEM_INCLUDES='-I$(KMOD_RING) -I$(CURDIR)/spec/abi' modules

# What keeps an emulated x86 machine from dying of its emulator (tests/guest/stale_code).
KMOD_STALE := $(abspath $(B))/kmod_stale
.PHONY: kmod-stale-code
kmod-stale-code:
	@mkdir -p $(KMOD_STALE)
	@ln -sf $(abspath $(wildcard tests/guest/stale_code/*)) $(KMOD_STALE)/
	$(call say,KMOD,$(KMOD_STALE))
	+$(Q)$(MAKE) --no-print-directory -C $(KDIR) M=$(KMOD_STALE) modules

# The module for KDIR's kernel, and its sources for DKMS to build it for others. With DESTDIR, or
# without dkms, it is put among the kernel's modules as it is.
KMOD_SRC := $(DESTDIR)/usr/src/pem-$(VERSION)
UDEV_RULES ?= /usr/lib/udev/rules.d
kmod-install: kmod
	$(INSTALL) -d '$(KMOD_SRC)/abi/pem' '$(DESTDIR)$(UDEV_RULES)'
	$(INSTALL) -m 644 $(KMOD_SOURCES) $(KMOD_HEADERS) '$(KMOD_SRC)'
	$(INSTALL) -m 644 spec/abi/pem/*.h '$(KMOD_SRC)/abi/pem'
	sed 's/@VERSION@/$(VERSION)/' kmod/dkms.conf.in >'$(KMOD_SRC)/dkms.conf'
	chmod 644 '$(KMOD_SRC)/dkms.conf'
	$(INSTALL) -m 644 kmod/pem.rules '$(DESTDIR)$(UDEV_RULES)/60-pem.rules'
	@getent group tracing >/dev/null || \
	  echo 'kmod-install: who may use /dev/pem is in the group tracing, which is missing:' \
	  'groupadd --system tracing' >&2
ifneq ($(if $(DESTDIR),,$(call command,dkms)),)
	dkms install -m pem -v $(VERSION) --force
else
	+umask 022 && $(KMOD_MAKE) modules_install $(if $(DESTDIR),INSTALL_MOD_PATH='$(abspath $(DESTDIR))')
endif

# The probes of a spec of the tests' own, run in user space by tests/unit/kmod_*.c.
$(B)/gen/kmod_probes/pem_kmod_events.h: tests/unit/kmod_probes.xml $(PEM_CODEGEN)
	$(Q)$(PEM_CODEGEN) --backend kmod -o $(@D) $< && touch $@
$(call objects,$(addprefix tests/unit/kmod_,probes.c targets.c rules.c)): \
  $(B)/gen/kmod_probes/pem_kmod_events.h
