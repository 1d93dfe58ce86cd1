# SPDX-License-Identifier: MIT
# libpem-jvm.so: an agent of Java virtual machines.

ifneq ($(HAVE_JVMTI),)
CFLAGS_libpem_jvm_jvm := $(JDK_CFLAGS)
CFLAGS_libpem_jvm_probe := $(JDK_CFLAGS)
ALL += $(B)/lib/libpem-jvm.so

$(B)/lib/libpem-jvm.so: $(call objects,libpem/jvm/jvm.c libpem/jvm/probe.c) $(B)/lib/libpem.so.1 libpem/jvm/libpem-jvm.map
	$(call say,LINK,$@)
	$(Q)$(LINK_ADAPTER) -Wl,-z,defs $(LINKED) -ldl
else
  $(info not built: libpem-jvm.so, which shows Java virtual machines \
    (jvmti.h is missing: default-jdk-headless))
endif
