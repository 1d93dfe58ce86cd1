# SPDX-License-Identifier: MIT
# timer samples of a command: without capstone there are none, and who asks is told.

$(B)/tests/page_size_timer: $(call objects,$(wildcard agents/page-size/timer/*.c) libpem/names/operand.c)
$(B)/tests/page_size_timer: private TEST_LIBS += $(CAPSTONE_LIBS)

ifeq ($(HAVE_CAPSTONE),)
  $(info not built: timer samples of pem page-size (libcapstone-dev is missing))
endif
