# SPDX-License-Identifier: MIT
# The machine that pem lab boots. Not part of all: it fetches a kernel and libraries of another
# architecture, and is built with a compiler for that.

LAB := $(B)/lab/aarch64

.PHONY: lab install-lab

# pem looks beside its libraries, in the build folder as in an installation.
lab: $(PEM_CODEGEN)
	$(Q)lab/build '$(B)' '$(PEM_CODEGEN)'
	$(Q)mkdir -p $(B)/lib/pem && ln -sfn ../../lab $(B)/lib/pem/lab

install-lab: lab
	$(call put,644,$(addprefix $(LAB)/,vmlinuz initramfs.cpio files),$(libdir)/pem/lab/aarch64)
	$(list_kept)
