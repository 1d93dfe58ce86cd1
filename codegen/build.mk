# SPDX-License-Identifier: MIT
# pem-codegen, and all it makes from the specs of this tree:
#   $(B)/gen/stubs/PROVIDER.h (spec/ and examples/), $(B)/gen/catalogue.c,
#   $(B)/gen/tsdl/PROVIDER.tsdl, $(B)/gen/pem_events.bpf.h, $(B)/gen/pem_kernel_events.h,
#   $(B)/gen/pem_kmod_{events,headers,emit}.h, and the event reference in $(B)/gen/reference
# pem-codegen leaves files alone whose content stays the same, so one stamp says when it last ran
# and each file keeps its own time: touching a spec rebuilds only what its change reaches.

CODEGEN_OBJ := $(call objects,$(wildcard codegen/*.c codegen/*/*.c) shared/model_words.c shared/metric_sum.c)
# To build for another machine, name one that runs on this: PEM_CODEGEN=build/bin/pem-codegen
PEM_CODEGEN := $(B)/bin/pem-codegen
SPECS := $(sort $(wildcard spec/*/*.xml))
EXAMPLE_SPECS := $(sort $(wildcard examples/*.xml))
CODEGEN_STAMP := $(B)/gen/.codegen

ifeq ($(AS_BUILT)$(filter command line,$(origin PEM_CODEGEN))$(HAVE_XML2),)
  $(error libxml2 is missing, which reads the event specs: run 'make deps' (package libxml2-dev))
endif

ALL += $(PEM_CODEGEN)
GENERATED += $(CODEGEN_STAMP)

# Java: $(call in_java,SPEC,PROVIDER,PROGRAM.java) puts a program's classes, and what they need,
# into the folder of $@.
in_java = $(PEM_CODEGEN) --backend java -o $(@D)/gen $(1) && \
  $(CC) -std=gnu11 -shared -fPIC $(CFLAGS) $(WARNINGS) $(INC_ABI) -I$(@D)/gen \
    $(JDK_CFLAGS) \
    $(@D)/gen/$(2)_jni.c -o $(@D)/libpem_$(2)_java.so -ldl && \
  $(JDK)/bin/javac -Xlint:all -Werror -encoding UTF-8 -sourcepath $(@D)/gen -d $(@D) $(3) && \
  touch $@
ifeq ($(HAVE_JAVA),)
  $(info Java programs are not built: javac or its jni.h is missing \
    (make deps installs default-jdk-headless))
endif

# The schema travels inside the program.
$(B)/gen/pem_xsd.h: spec/pem.xsd
	@mkdir -p $(@D)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@

$(B)/gen/hardware_xsd.h: spec/hardware.xsd
	@mkdir -p $(@D)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@

# So do the catalogue's specs, by which the checks know its events.
$(B)/gen/catalogue_specs.h: $(SPECS) codegen/build.mk
	@mkdir -p $(@D)
	$(Q)for spec in $(SPECS); do \
	  echo "{\"$$spec\","; sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $$spec; echo '},'; done > $@

$(B)/obj/codegen/catalogue.o: $(B)/gen/catalogue_specs.h
$(B)/obj/codegen/xml/validate.o: $(B)/gen/pem_xsd.h
$(B)/obj/codegen/hardware/hardware.o: $(B)/gen/hardware_xsd.h

# So do the looks and the filter of the event reference.
$(B)/gen/reference.%.h: codegen/backends/reference.%
	@mkdir -p $(@D)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< > $@

$(B)/obj/codegen/backends/html.o: $(B)/gen/reference.css.h $(B)/gen/reference.js.h

$(B)/bin/pem-codegen: $(CODEGEN_OBJ)
	$(call say,LINK,$@)
	$(Q)$(LINK) $(CODEGEN_OBJ) $(XML2_LIBS)

$(CODEGEN_STAMP): $(PEM_CODEGEN) $(SPECS) $(EXAMPLE_SPECS) codegen/build.mk
	$(call say,GEN,$(B)/gen)
	$(Q)$(PEM_CODEGEN) --backend c -o $(B)/gen/stubs $(SPECS) $(EXAMPLE_SPECS)
	$(Q)$(PEM_CODEGEN) --backend model --backend bpf --backend kmod -o $(B)/gen \
	  --backend ctf -o $(B)/gen/tsdl --backend man -o $(B)/gen/reference/man \
	  --backend html -o $(B)/gen/reference/html --names $(SPECS) > $(B)/gen/reference.names
	@touch $@

# Files that come with a stamp, $<. Their rule has this recipe, so that make reads their times after
# the stamp's recipe ran; one that somebody removed has to be made again.
# make -n and -q run it, too: they take a file for changed if its recipe did not run.
with_stamp = +@[ -e $@ ] || $(if $(dry_run),:,{ rm $<; \
  echo 'make: $@ was removed: make it again' >&2; exit 1; })
short_flags = $(filter-out --%,$(firstword -$(MAKEFLAGS)))
dry_run = $(findstring n,$(short_flags))$(findstring q,$(short_flags))
$(B)/gen/stubs/%.h $(B)/gen/tsdl/%.tsdl: $(CODEGEN_STAMP)
	$(with_stamp)
$(B)/gen/catalogue.c $(B)/gen/pem_events.bpf.h $(B)/gen/pem_kernel_events.h: $(CODEGEN_STAMP)
	$(with_stamp)

# Programs over what is generated in other languages, without sanitizers, as what is preloaded into
# them is: $(call in_LANGUAGE,SOURCE,FOLDER OF WHAT IS GENERATED,PROVIDER) makes $@. Fortran needs
# FOLDER/PROVIDER_symbols.o, Rust FOLDER/libpem_PROVIDER.rlib; the build.mk of the folder says what
# these depend on.
in_cxx = $(CXX) -std=c++17 $(CXXFLAGS) -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror \
  $(INC_ABI) -I$(B)/gen -I$(2) -o $@ $(1) -ldl
in_fortran = $(FC) -std=f2008 $(FFLAGS) -Wall -Wextra -pedantic -Werror -J $(2) -o $@ \
  $(2)/$(3).f90 $(1) $(2)/$(3)_symbols.o -ldl
# rustc would take make's flags for its own.
RUST = env -u MAKEFLAGS -u MFLAGS $(RUSTC) --edition 2021 $(RUSTFLAGS)
in_rust = $(RUST) -D warnings --extern pem_$(3)=$(2)/libpem_$(3).rlib -o $@ $(1)

$(B)/gen/%_symbols.o:
	$(call say,CC,$@)
	$(Q)$(CC) -std=gnu11 -fPIC $(CFLAGS) $(WARNINGS) $(INC_ABI) -c $(@:.o=.c) -o $@

$(B)/gen/%.rlib: provider = $(patsubst libpem_%.rlib,%,$(@F))
$(B)/gen/%.rlib:
	$(call say,RUSTC,$@)
	$(Q)rm -f $(@D)/lib$(provider)_symbols.a
	$(Q)$(AR) crs $(@D)/lib$(provider)_symbols.a $(@D)/$(provider)_symbols.o
	$(Q)$(RUST) -D warnings --crate-type rlib --crate-name pem_$(provider) -L native=$(@D) \
	  -l static=$(provider)_symbols $(@D)/pem_$(provider)/src/lib.rs -o $@
