# SPDX-License-Identifier: MIT
# pem, the command. JSON goes through json-c; without it there is no pem, and the libraries are built alone.

CLI_SRC := $(wildcard cli/*.c)
CLI_OBJ := $(call objects,$(CLI_SRC))

ifeq ($(shell pkg-config --exists json-c && echo yes),yes)
CLI_CFLAGS := $(shell pkg-config --cflags json-c)
CLI_LIBS := $(shell pkg-config --libs json-c)
ALL += $(B)/bin/pem
else
$(warning pem, the command, is not built: json-c is missing (make deps installs it))
endif

$(CLI_OBJ): ALL_CFLAGS += $(CLI_CFLAGS)

# In the build tree and installed alike, libpem lies in ../lib.
$(B)/bin/pem: $(CLI_OBJ) $(LIBPEM)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -o $@ $(CLI_OBJ) -L$(B)/lib -Wl,-rpath,'$$ORIGIN/../lib' \
	  -lpem $(CLI_LIBS) -ldl
