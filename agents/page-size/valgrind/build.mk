# SPDX-License-Identifier: MIT
# The tool for Valgrind, linked with the distribution's libraries as Valgrind's own tools are: a
# static program without a C library, loaded where no other program is. So it has rules of its own,
# and no sanitizers.
#
# VALGRIND_LIB=$(B)/lib/pem/valgrind valgrind --tool=pem-page-size finds there what it wants beside
# the tool: the library that replaces malloc and execve in the program, and links to all that
# the distribution has: a program that starts Valgrind inherits VALGRIND_LIB.

VALGRIND_TOOLS := $(B)/lib/pem/valgrind
ifneq ($(HAVE_VALGRIND),)
VALGRIND_TOOL := $(VALGRIND_TOOLS)/pem-page-size-amd64-linux
VALGRIND_PRELOAD := $(VALGRIND_TOOLS)/vgpreload_pem-page-size-amd64-linux.so
VALGRIND_LINKS := $(addprefix $(VALGRIND_TOOLS)/,$(filter-out pem-%,$(notdir \
  $(wildcard $(VALGRIND_FOLDER)/*-linux $(VALGRIND_FOLDER)/*.so $(VALGRIND_FOLDER)/default.supp))))
ALL += $(VALGRIND_TOOL) $(VALGRIND_PRELOAD) $(VALGRIND_LINKS)

VALGRIND_OBJ := $(patsubst %.c,$(B)/obj/valgrind/%.o,$(wildcard agents/page-size/valgrind/*.c) \
  agents/page-size/profile/ranges.c agents/page-size/sites/site.c)
VALGRIND_EXEC := $(B)/obj/valgrind/agents/page-size/valgrind/preload/exec.o
# Valgrind's headers are not made for our warnings.
VALGRIND_FLAGS := -std=gnu11 -O2 -g $(WARNINGS) -fno-pie -fno-builtin -fno-stack-protector \
  -fno-strict-aliasing -isystem $(VALGRIND_INCLUDE) -Iagents/page-size -DVGA_amd64=1 -DVGO_linux=1 \
  -DVGP_amd64_linux=1 -DVGPV_amd64_linux_vanilla=1

$(VALGRIND_OBJ): $(B)/obj/valgrind/%.o: %.c
	$(call say,CC,$<)
	$(Q)$(CC) $(VALGRIND_FLAGS) -MMD -MP -c $< -o $@

$(VALGRIND_TOOL): $(VALGRIND_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) -static -no-pie -nodefaultlibs -nostartfiles -u _start -Wl,--build-id=none \
	  -Wl,-Ttext-segment=$(VALGRIND_ADDRESS) -o $@ $^ -L$(VALGRIND_ARCHIVES) \
	  -lcoregrind-amd64-linux -lvex-amd64-linux -lgcc-sup-amd64-linux -lgcc

# It is loaded into the program, where it must not need a library.
$(VALGRIND_EXEC): $(B)/obj/valgrind/%.o: %.c
	$(call say,CC,$<)
	$(Q)$(CC) -std=gnu11 -O2 -g $(WARNINGS) -fPIC -fno-builtin -fno-stack-protector \
	  -isystem $(VALGRIND_INCLUDE) -MMD -MP -c $< -o $@

$(VALGRIND_PRELOAD): $(VALGRIND_ARCHIVES)/libreplacemalloc_toolpreload-amd64-linux.a $(VALGRIND_EXEC)
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -nodefaultlibs -Wl,-z,interpose,-z,initfirst -o $@ -Wl,--whole-archive $^ \
	  -Wl,--no-whole-archive

$(VALGRIND_LINKS): $(VALGRIND_TOOLS)/%: $(VALGRIND_FOLDER)/%
	$(call say,LINK,$@)
	$(Q)ln -sf $< $@ && touch -h $@
else
  $(info not built: profiles of unmodified programs (valgrind with its libraries, for x86-64, is missing))
endif
