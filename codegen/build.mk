# SPDX-License-Identifier: MIT
# pem-codegen, and all it makes from the specs of this tree:
#   $(B)/gen/stubs/PROVIDER.h (spec/ and examples/), $(B)/gen/catalogue.c, $(B)/gen/tsdl/PROVIDER.tsdl,
#   $(B)/gen/pem_events.bpf.h, $(B)/gen/pem_kernel_events.h, $(B)/gen/pem_kmod_events.h, $(B)/gen/pem_kmod_headers.h
# pem-codegen leaves files alone whose content stays the same, so one stamp says when it last ran and each file
# keeps its own time: touching a spec rebuilds only what its change reaches.

CODEGEN_OBJ := $(call objects,$(wildcard codegen/*.c))
PEM_CODEGEN := $(B)/bin/pem-codegen
SPECS := $(sort $(wildcard spec/*/*.xml))
EXAMPLE_SPECS := $(sort $(wildcard examples/*.xml))
CODEGEN_STAMP := $(B)/gen/.codegen

ifeq ($(shell pkg-config --exists libxml-2.0 2>/dev/null && echo 1),)
  $(error libxml2 is missing, which reads the event specs: run 'make deps' (package libxml2-dev))
endif

ALL += $(PEM_CODEGEN)
GENERATED += $(CODEGEN_STAMP)
INC_codegen += -I$(B)/gen

# The schema travels inside the program.
$(B)/gen/pem_xsd.h: spec/pem.xsd
	@mkdir -p $(@D)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@

$(B)/obj/codegen/validate.o: $(B)/gen/pem_xsd.h

$(PEM_CODEGEN): $(CODEGEN_OBJ)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -o $@ $(CODEGEN_OBJ) $(shell pkg-config --libs libxml-2.0)

$(CODEGEN_STAMP): $(PEM_CODEGEN) $(SPECS) $(EXAMPLE_SPECS)
	$(call say,GEN,$(B)/gen)
	$(Q)$(PEM_CODEGEN) --backend c -o $(B)/gen/stubs $(SPECS) $(EXAMPLE_SPECS)
	$(Q)$(PEM_CODEGEN) --backend model -o $(B)/gen $(SPECS)
	$(Q)$(PEM_CODEGEN) --backend ctf -o $(B)/gen/tsdl $(SPECS)
	$(Q)$(PEM_CODEGEN) --backend bpf -o $(B)/gen $(SPECS)
	$(Q)$(PEM_CODEGEN) --backend kmod -o $(B)/gen $(SPECS)
	@touch $@

# A recipe that does nothing, so that make looks at the files' times after the stamp's ran.
$(B)/gen/stubs/%.h $(B)/gen/tsdl/%.tsdl: $(CODEGEN_STAMP)
	@:
$(B)/gen/catalogue.c $(B)/gen/pem_events.bpf.h $(B)/gen/pem_kernel_events.h: $(CODEGEN_STAMP)
	@:
