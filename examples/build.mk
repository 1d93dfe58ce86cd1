# SPDX-License-Identifier: MIT
# Examples, each a program $(B)/examples/NAME of its own. Their specs become $(B)/gen/stubs/*.h
# (codegen/build.mk).
#   hello			includes a generated header only
#   between_collections	uses PEMAPI: linked with libpem
#   watch		uses PEMAPI on another program
#   umt			a program to look at: docs/umt.md
#   probes		encloses its code by probes: docs/probes.md
#   stream		stages with queues between them: docs/rates.md

EXAMPLES := hello between_collections watch shop umt probes stream
CFLAGS_examples_shop := -I$(B)/gen/stubs
CFLAGS_examples_umt := -I$(B)/gen/stubs
ALL += $(EXAMPLES:%=$(B)/examples/%)

$(EXAMPLES:%=$(B)/examples/%): $(B)/examples/%: $(B)/obj/examples/%.o $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(filter %.o,$^) $(EXAMPLE_LIBS) -ldl

$(B)/examples/between_collections $(B)/examples/watch: EXAMPLE_LIBS := $(LINK_LIBPEM)
$(B)/examples/probes $(B)/examples/stream: EXAMPLE_LIBS := -lpthread

# An agent.
ifneq ($(HAVE_AGENTS),)
ALL += $(B)/examples/agent
$(B)/examples/agent: $(B)/obj/examples/agent.o $(LIBPEM_AGENT)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(filter %.o,$^) $(LINK_LIBPEM) $(LINK_LIBPEM_AGENT) -ldl
endif

# The consumer in C++.
ifneq ($(HAVE_CXX),)
ALL += $(B)/examples/between_collections_cxx
endif
$(B)/examples/between_collections_cxx: examples/between_collections.cpp \
  libpem/include/pem/pem.hpp $(LIBPEM)
	$(call say,LINK,$@)
	$(Q)$(CXX) -std=c++17 $(CXXFLAGS) $(SAN_FLAGS) -Wall -Wextra -Wpedantic -Wconversion -Wshadow \
	  -Werror $(INC_PUBLIC) -o $@ $< $(LINK_LIBPEM) -ldl

# The shop in other languages: shop_cxx, shop_fortran, shop_rust.
SHOP_LANGUAGES := $(if $(HAVE_CXX),cxx) $(if $(HAVE_FORTRAN),fortran) $(if $(HAVE_RUST),rust)
ifeq ($(HAVE_CXX),)
$(info examples/shop.cpp is not built: $(CXX) is missing (make deps installs g++))
endif
ifeq ($(HAVE_FORTRAN),)
$(info examples/shop.f90 is not built: $(FC) is missing (make deps installs gfortran))
endif
ifeq ($(HAVE_RUST),)
$(info examples/shop.rs is not built: $(RUSTC) is missing (package rustc, or rustup))
endif
SHOP_STAMP := $(B)/gen/examples/.stamp
SHOPS := $(SHOP_LANGUAGES:%=$(B)/examples/shop_%)
ALL += $(SHOPS)

$(SHOP_STAMP): $(PEM_CODEGEN) examples/shop.xml
	$(call say,GEN,$(@D))
	$(Q)for backend in c++ fortran rust; do \
	  $(PEM_CODEGEN) --backend $$backend -o $(@D) examples/shop.xml || exit; done
	@touch $@

$(SHOPS) $(B)/gen/examples/shop_symbols.o: $(SHOP_STAMP)
$(B)/examples/shop_fortran $(B)/gen/examples/libpem_shop.rlib: $(B)/gen/examples/shop_symbols.o
$(B)/examples/shop_rust: $(B)/gen/examples/libpem_shop.rlib

$(B)/examples/shop_cxx: examples/shop.cpp
	$(call say,LINK,$@)
	$(Q)$(call in_cxx,$<,$(B)/gen/examples,shop)

$(B)/examples/shop_fortran: examples/shop.f90
	$(call say,LINK,$@)
	$(Q)$(call in_fortran,$<,$(B)/gen/examples,shop)

$(B)/examples/shop_rust: examples/shop.rs
	$(call say,LINK,$@)
	$(Q)$(call in_rust,$<,$(B)/gen/examples,shop)

ALL += $(B)/examples/between_collections.py

$(B)/examples/between_collections.py: examples/between_collections.py
	$(call say,COPY,$@)
	$(Q)cp $< $@

# In Java and Python; each finds what is made for it beside itself.
ALL += $(B)/examples/shop.py $(if $(HAVE_JAVA),$(B)/examples/java/Shop.class)

$(B)/examples/shop.py: examples/shop.py examples/shop.xml $(PEM_CODEGEN)
	$(call say,GEN,$@)
	$(Q)$(PEM_CODEGEN) --backend python -o $(@D) examples/shop.xml && cp $< $@

$(B)/examples/java/Shop.class: examples/Shop.java examples/shop.xml $(PEM_CODEGEN)
	$(call say,JAVAC,$@)
	$(Q)$(call in_java,examples/shop.xml,shop,$<)
