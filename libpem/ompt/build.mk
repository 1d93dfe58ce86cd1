# SPDX-License-Identifier: MIT
# libpem-ompt.so: an OpenMP runtime loads it, as OMP_TOOL_LIBRARIES says.

ifneq ($(HAVE_OMPT),)
# Behind the compiler's own folders: other headers of clang lie there too.
CFLAGS_libpem_ompt_ompt := -idirafter $(dir $(OMPT_HEADER))
ALL += $(B)/lib/libpem-ompt.so

$(B)/lib/libpem-ompt.so: $(B)/obj/libpem/ompt/ompt.o $(B)/lib/libpem.so.1 libpem/ompt/libpem-ompt.map
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) -Wl,-z,defs $(LINKED) -ldl
else
  $(info not built: libpem-ompt.so, which shows OpenMP programs (libomp-dev is missing))
endif
