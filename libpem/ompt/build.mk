# SPDX-License-Identifier: MIT
# libpem-ompt.so: an OpenMP runtime loads it, as OMP_TOOL_LIBRARIES says.

OMPT_HEADER := $(firstword $(shell clang -print-resource-dir 2>/dev/null | sed 's|$$|/include/omp-tools.h|' | xargs -r ls 2>/dev/null) \
  $(wildcard /usr/lib/llvm-*/lib/clang/*/include/omp-tools.h))

ifneq ($(OMPT_HEADER),)
# Behind the compiler's own folders: other headers of clang lie there too.
CFLAGS_libpem_ompt_ompt := -idirafter $(dir $(OMPT_HEADER))
ALL += $(B)/lib/libpem-ompt.so

$(B)/lib/libpem-ompt.so: $(B)/obj/libpem/ompt/ompt.o $(B)/lib/libpem.so.1 libpem/ompt/libpem-ompt.map
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -shared -Wl,-soname,libpem-ompt.so -Wl,-z,defs -Wl,-z,now -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--version-script=libpem/ompt/libpem-ompt.map -o $@ $(filter-out %.map,$^) -ldl
else
  $(info not built: libpem-ompt.so, which shows OpenMP programs (libomp-dev is missing))
endif
