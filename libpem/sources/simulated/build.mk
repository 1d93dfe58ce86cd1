# SPDX-License-Identifier: MIT
# source-simulated.so, and the tool for Valgrind that counts what it reads. How a tool is linked, and
# the links beside it, are those of agents/page-size/valgrind/build.mk.

SIMULATED := libpem/sources/simulated
ALL += $(B)/lib/pem/source-simulated.so

$(B)/lib/pem/source-simulated.so: $(call objects,$(wildcard $(SIMULATED)/*.c) \
  libpem/sources/readings/reading_builder.c) $(SOURCE_MAP)
	$(call say,LINK,$@)
	$(Q)$(LINK_PLUGIN) $(LINKED)

$(B)/tests/simulated_hierarchy: $(call objects,$(SIMULATED)/tool/hierarchy.c)

ifneq ($(HAVE_VALGRIND),)
HARDWARE_TOOL := $(B)/lib/pem/valgrind/pem-hardware-amd64-linux
ALL += $(HARDWARE_TOOL)

HARDWARE_OBJ := $(patsubst %.c,$(B)/obj/valgrind/%.o,$(wildcard $(SIMULATED)/tool/*.c))

$(HARDWARE_OBJ): $(B)/obj/valgrind/%.o: %.c
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -fno-pie -fno-builtin -fno-stack-protector \
	  -fno-strict-aliasing -isystem $(VALGRIND_INCLUDE) -Ispec/abi -DVGA_amd64=1 -DVGO_linux=1 \
	  -DVGP_amd64_linux=1 -DVGPV_amd64_linux_vanilla=1 -MMD -MP -c $< -o $@

$(HARDWARE_TOOL): $(HARDWARE_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) -static -no-pie -nodefaultlibs -nostartfiles -u _start -Wl,--build-id=none \
	  -Wl,-Ttext-segment=$(VALGRIND_ADDRESS) -o $@ $^ -L$(VALGRIND_ARCHIVES) \
	  -lcoregrind-amd64-linux -lvex-amd64-linux -lgcc-sup-amd64-linux -lgcc
else
  $(info not built: simulated hardware (valgrind with its libraries, for x86-64, is missing))
endif
