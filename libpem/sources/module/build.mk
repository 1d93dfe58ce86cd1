# SPDX-License-Identifier: MIT
# source-module.so: tracepoint events through pem.ko. Needs the C library, and libpfm4 for names of
# counters.

# What it shares with libpem, compiled once: it must not need libpem's private symbols.
MODULE_SHARED := $(call objects,libpem/pool.c libpem/record_bytes.c)
MODULE_SOURCE_OBJ := $(call objects,$(wildcard libpem/sources/module/*.c libpem/sources/*.c))
ifneq ($(HAVE_PFM),)
MODULE_SHARED += $(B)/obj/libpem/sources/counters/encode.o
CFLAGS_libpem_sources_module_sampling += -DPEM_HAVE_PFM
endif

ALL += $(B)/lib/pem/source-module.so

# nodelete: it stays in memory, since a thread of its own may outlive a session (sampling.c).
$(B)/lib/pem/source-module.so: $(MODULE_SOURCE_OBJ) $(MODULE_SHARED) $(SOURCE_MAP)
	$(call say,LINK,$@)
	$(Q)$(LINK_PLUGIN) -Wl,-z,nodelete $(LINKED) $(PFM_LIBS) -lpthread

$(B)/tests/module_drain $(B)/fuzz/module_pool: \
  $(call objects,$(addprefix libpem/sources/,module/drain.c module/pools.c demands.c))
$(B)/tests/module_device: $(B)/obj/libpem/sources/module/device.o
