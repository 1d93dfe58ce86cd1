# SPDX-License-Identifier: MIT
# libpem-names.so.1: names of code, by elfutils. Apart from libpem, which is preloaded and needs no
# other library.

ifneq ($(HAVE_LIBDW),)
NAMES_SRC := $(wildcard libpem/names/*.c)
NAMES_MAP := libpem/names/libpem-names.map
LIBPEM_NAMES := $(B)/lib/libpem-names.so
ALL += $(LIBPEM_NAMES) $(B)/lib/libpem-names.a

$(B)/lib/libpem-names.so.1: $(call objects,$(NAMES_SRC)) $(NAMES_MAP) $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,defs -Wl,-z,now -Wl,-rpath,'$$ORIGIN' \
	  -Wl,--version-script=$(NAMES_MAP) $(filter %.o,$^) -L$(@D) -lpem $(LIBDW_LIBS) -ldl -lpthread

$(LIBPEM_NAMES): $(B)/lib/libpem-names.so.1
	$(Q)ln -sf $(<F) $@

$(B)/lib/libpem-names.a: $(call objects,$(NAMES_SRC))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

NAMES_TESTS := $(addprefix $(B)/tests/,names names_spans)
$(NAMES_TESTS): $(call objects,$(NAMES_SRC) agents/page-size/sites/site.c)
$(NAMES_TESTS): private TEST_LIBS += $(LIBDW_LIBS)
# For the end-to-end tests and the benchmark.
tests: $(B)/programs/name_code
$(B)/programs/name_code: tests/programs/name_code.c $(call objects,$(NAMES_SRC)) $(B)/lib/libpem.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(INC_tests) -MF $@.d -o $@ $(filter %.c %.o,$^) $(TEST_LINK) $(LIBDW_LIBS) \
	  -ldl -lpthread
else
  $(info not built: libpem-names.so and names of code in pem report (libdw-dev is missing))
endif
