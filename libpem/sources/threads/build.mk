# SPDX-License-Identifier: MIT
# source-threads.so: what threads do as a recording begins and ends, read from /proc. Variables have
# names if libpem-names was built with elfutils.

THREADS_OBJ := $(call objects,$(wildcard libpem/sources/threads/*.c))
ALL += $(B)/lib/pem/source-threads.so

$(B)/lib/pem/source-threads.so: $(THREADS_OBJ) $(SOURCE_MAP) | $(LIBPEM_NAMES)
	$(call say,LINK,$@)
	$(Q)$(LINK_PLUGIN) -Wl,-rpath,'$$ORIGIN/..' $(LINKED) -L$(B)/lib -lpem-names -lpem
