# SPDX-License-Identifier: MIT
# Examples, each a program $(B)/examples/NAME of its own. Their specs become $(B)/gen/stubs/*.h (codegen/build.mk).
#   hello			includes a generated header only
#   between_collections	uses PEMAPI: linked with libpem

EXAMPLES := hello between_collections shop
EXAMPLE_OBJ_between_collections := $(call objects,examples/collector.c)
EXAMPLE_LIB_between_collections := -L$(B)/lib -lpem -Wl,-rpath,'$$ORIGIN/../lib'
CFLAGS_examples_shop := -I$(B)/gen/stubs
ALL += $(EXAMPLES:%=$(B)/examples/%)

$(EXAMPLES:%=$(B)/examples/%): $(B)/examples/%: $(B)/obj/examples/%.o $(EXAMPLE_OBJ_between_collections) $(B)/lib/libpem.so
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(SAN_FLAGS) -o $@ $< $(EXAMPLE_OBJ_$*) $(EXAMPLE_LIB_$*) -ldl
