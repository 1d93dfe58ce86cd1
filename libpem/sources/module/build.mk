# SPDX-License-Identifier: MIT
# source-module.so: tracepoint events through pem.ko. Needs the C library, and libpfm4 for names of counters.

# What it shares with libpem, compiled once: it must not need libpem's private symbols.
MODULE_SHARED := $(patsubst %,$(B)/obj/libpem/%.o,pool record_bytes)
MODULE_SOURCE_OBJ := $(call objects,$(wildcard libpem/sources/module/*.c))
# Names of counters, where libpfm4 is there (HAVE_PFM: ../counters/build.mk).
ifeq ($(HAVE_PFM),1)
MODULE_SHARED += $(B)/obj/libpem/sources/counters/encode.o
CFLAGS_libpem_sources_module_own += -DPEM_HAVE_PFM
endif

ALL += $(B)/lib/pem/source-module.so

# nodelete: it stays in memory, since a thread of its own may outlive a session (own.c).
$(B)/lib/pem/source-module.so: $(MODULE_SOURCE_OBJ) $(MODULE_SHARED) $(SOURCE_MAP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -shared -Wl,-z,defs -Wl,-z,nodelete \
	  -Wl,--version-script=$(SOURCE_MAP) -o $@ $(MODULE_SOURCE_OBJ) $(MODULE_SHARED) $(if $(HAVE_PFM),-lpfm) -lpthread

TEST_OBJ_module_drain := $(patsubst %,$(B)/obj/libpem/sources/module/%.o,drain pools)
TEST_OBJ_module_pool := $(TEST_OBJ_module_drain)
TEST_OBJ_module_device := $(B)/obj/libpem/sources/module/device.o
