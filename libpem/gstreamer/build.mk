# SPDX-License-Identifier: MIT
# libgstpem.so: loaded by GStreamer into programs that run with GST_TRACERS=pem.

GSTREAMER_PLUGIN := $(B)/lib/pem/gstreamer/libgstpem.so
ifneq ($(HAVE_GSTREAMER),)
CFLAGS_libpem_gstreamer_tracer := $(GSTREAMER_CFLAGS)
ALL += $(GSTREAMER_PLUGIN)

$(GSTREAMER_PLUGIN): $(call objects,libpem/gstreamer/tracer.c)
	$(call say,LINK,$@)
	$(Q)$(LINK_PLUGIN) $^ $(GSTREAMER_LIBS) -lpthread
else
  $(info not built: libgstpem.so, which shows the queues of GStreamer to pem rates \
    (libgstreamer1.0-dev of 1.22 or later is missing))
endif
