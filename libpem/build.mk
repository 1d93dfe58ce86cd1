# SPDX-License-Identifier: MIT
# libpem.so.1: producer side, sessions, reader. Needs the C library and nothing else, since it is
# preloaded.

# Rooms, in the order of docs/architecture.md: each includes and calls only those before it.
LIBPEM_ROOMS := core writer dirs processes delivery source_host statistics cost chunks flight \
  callbacks session recovery
LIBPEM_SRC := $(wildcard libpem/*.c libpem/producer/*.c libpem/reader/*.c libpem/context/*.c libpem/streams/*.c \
  libpem/gstreamer/offer.c \
  $(LIBPEM_ROOMS:%=libpem/%/*.c)) shared/model_words.c shared/metric_sum.c shared/plugin_folders.c \
  shared/call_kinds.c shared/spec_files.c
# Of the shared library alone: a program linked with libpem.a would get its open and mmap, too.
LIBPEM_DIRECT := libpem/producer/direct.c
CFLAGS_libpem_producer_direct := -U_FORTIFY_SOURCE
LIBPEM_OBJ := $(call objects,$(filter-out $(LIBPEM_DIRECT),$(LIBPEM_SRC))) $(B)/obj/gen/catalogue.o
# What runs in the middle of a program's events, perhaps in a signal handler, must not ask the loader
# for a function: their calls go through pointers that the loader fills as the process starts. All
# else is for consumers, and found when it is called first.
IN_EVENTS := $(call objects,$(wildcard libpem/producer/*.c) shared/model_words.c \
  $(patsubst %,libpem/%.c,distribution entry membership pool printable runtime_dir util))
$(IN_EVENTS): private ALL_CFLAGS += -fno-plt
LIBPEM := $(B)/lib/libpem.so
# A program loads the libpem beside it, in the build tree and installed alike: LIBDIR is chosen after
# the program was linked, and is one of these folders or one that the loader searches.
BESIDE := $$ORIGIN/../lib:$$ORIGIN/../lib64:$$ORIGIN/../lib/$(MULTIARCH)
LINK_LIBPEM = -L$(B)/lib -lpem -Wl,-rpath,'$(BESIDE)'
# Libraries that are preloaded or loaded beside it, and plugins of pem's.
# A stub header leaves a provider in each file that includes it: one of them remains in the library.
# Code and constants are one mapping, not three.
PACKED := -Wl,--gc-sections -Wl,--sort-section=alignment -Wl,-T,libpem/pages.ld -Wl,-z,noseparate-code
LINK_ADAPTER = $(LINK) -shared -Wl,-soname,$(@F) -Wl,-z,now -Wl,-rpath,'$$ORIGIN' $(PACKED)
LINK_PLUGIN = $(LINK) -shared -Wl,-z,defs
# Prerequisites as arguments of theirs; a map lists what is exported.
LINKED = $(patsubst %.map,-Wl$(comma)--version-script=%.map,$^)
comma := ,
# What each source exports.
SOURCE_MAP := libpem/sources/source.map

ALL += $(LIBPEM) $(B)/lib/libpem.a

$(B)/lib/libpem.so.1: $(LIBPEM_OBJ) $(call objects,$(LIBPEM_DIRECT)) libpem/libpem.map libpem/pages.ld
	$(call say,LINK,$@)
	$(Q)$(LINK) -shared -Wl,-soname,libpem.so.1 -Wl,-z,defs -Wl,-z,lazy -Wl,-z,nodelete $(PACKED) \
	  -Wl,--version-script=libpem/libpem.map $(IN_EVENTS) \
	  $(filter-out $(IN_EVENTS),$(filter %.o,$^)) -lpthread -ldl

$(LIBPEM): $(B)/lib/libpem.so.1
	$(Q)ln -sf libpem.so.1 $@

$(B)/lib/libpem.a: $(LIBPEM_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIBPEM_OBJ)

$(B)/gen/libpem/system_calls.h: tools/system_calls
	$(call say,GEN,$@)
	@mkdir -p $(@D)
	$(Q)tools/system_calls $(CC) >$@.new && mv $@.new $@
$(B)/obj/libpem/system_calls.o: $(B)/gen/libpem/system_calls.h
# Members that were just stored one by one would be loaded two at a time, which waits for the stores.
$(foreach file,context_pass context_intervals context_blocks reader_trace reader_stream,\
  $(eval CFLAGS_libpem_$(file) := -fno-tree-slp-vectorize))
CFLAGS_libpem_system_calls := -I$(B)/gen/libpem

$(B)/obj/gen/catalogue.o: $(B)/gen/catalogue.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c $< -o $@
