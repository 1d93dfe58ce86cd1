# SPDX-License-Identifier: MIT
# pem-confined: a program of libpem's, which works in other users' folders. Needs the C library and
# nothing else.

CONFINED_OBJ := $(call objects,$(wildcard libpem/confined/*.c))
ALL += $(B)/lib/pem/pem-confined

# Its system calls are limited to its own, and a sanitizer's runtime makes others.
$(CONFINED_OBJ) $(B)/lib/pem/pem-confined: private SAN_FLAGS :=

$(B)/lib/pem/pem-confined: $(CONFINED_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) -Wl,-z,now $^

# Unit tests are built alone under a sanitizer for threads.
$(B)/tests/async_dirs: | $(B)/lib/pem/pem-confined
