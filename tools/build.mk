# SPDX-License-Identifier: MIT
# What a newcomer types besides make: deps, demo, check, install; and check-all.

INSTALL ?= install
SO_VERSION := 1.0.0

deps:
	@tools/deps $(or $(TIER),check)

zoo-deps:
	@tools/deps zoo

# All cores, unless the caller said how many.
JOBS = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))

# These install first, then start make again: the top Makefile says why.
demo:
	@tools/deps build
	@$(MAKE) $(JOBS) --no-print-directory all
	@B='$(B)' demo/run

# The tests that T names may need none of what is missing: those that do are skipped, and say why.
check:
	@tools/deps check$(if $(T), || echo 'make: going on without these packages: tests that need one are skipped' >&2)
	@$(MAKE) $(JOBS) --no-print-directory check-built

# What pem says, beside its peers and programs of known truth.
truth:
	@$(MAKE) --no-print-directory check T=truth/

check-all:
	@tools/deps check
	@$(MAKE) $(JOBS) --no-print-directory check-all-built

# The reference of PEMAPI for each language, from the headers and the Python module.
API_PAGES := $(addprefix $(B)/gen/reference/api/,c.md cxx.md python.md)
ifneq ($(shell command -v python3),)
ALL += $(API_PAGES)
else
$(info the reference pages of PEMAPI are not made: python3 is missing)
endif
$(API_PAGES) &: tools/api_pages $(wildcard libpem/include/pem/*.h*) $(wildcard libpem/python/pemapi/*.py)
	$(call say,GEN,$(B)/gen/reference/api)
	$(Q)tools/api_pages $(B)/gen/reference/api

bindir = $(DESTDIR)$(PREFIX)/bin
libdir = $(DESTDIR)$(LIBDIR)
incdir = $(DESTDIR)$(PREFIX)/include/pem
sharedir = $(DESTDIR)$(PREFIX)/share

# The stubs of the catalogue, not those of examples: named by each spec's provider.
CATALOGUE_STUBS = $(patsubst %,$(B)/gen/stubs/%.h,$(shell \
  sed -n "s/.*<spec[^>]*provider=['\"]\([^'\"]*\).*/\1/p" $(sort $(wildcard spec/*/*.xml))))
GUIDES = $(sort $(wildcard docs/*.md))
# Examples that pages and headers name.
EXAMPLES = $(sort $(wildcard examples/*.*))
MAN_PAGES = $(sort $(wildcard docs/man/*.[1-8]))
COMPLETIONS = $(sort $(wildcard docs/completion/*))

# Pages of the event reference: those that the specs make, and none that an earlier build left.
REFERENCE_PAGES = $(sort $(filter %.7 %.html,$(file <$(B)/gen/reference.names)))

# Files that were built: what all made last, and none that an earlier build left.
BUILT = $(addprefix $(B)/,$(file <$(B)/complete))
VALGRIND_BUILT = $(filter-out $(B)/lib/pem/valgrind/pem-% %/vgpreload_pem-page-size-amd64-linux.so, \
  $(call built_in,lib/pem/valgrind,%))
# $(call built_in,FOLDER,PATTERNS)
built_in = $(filter $(2),$(foreach file,$(BUILT),$(if $(filter $(B)/$(1)/,$(dir $(file))),$(file))))
# Libraries that programs link with: each NAME.so is a link to NAME.so.1.
LIBPEM_MORE = $(filter %-agent.so %-names.so,$(call built_in,lib,%.so))
# pkg-config's files: of libpem, and of the libraries that were built.
PC_FILES = libpem/libpem.pc.in $(if $(filter %-agent.so,$(LIBPEM_MORE)),libpem/database/libpem-agent.pc.in) \
  $(if $(filter %-names.so,$(LIBPEM_MORE)),$(NAMES_PC)) \
  $(if $(filter %-hooks.so,$(BUILT)),agents/page-size/hooks/pem-page-size-hooks.pc.in)

# $(call put,MODE,FILES,FOLDER): nothing to do without files
put = $(if $(strip $(2)),$(Q)$(INSTALL) -d '$(3)' && $(INSTALL) -m $(1) $(2) '$(3)' && \
  $(call listed,$(3),$(notdir $(2))))
# The list of installed files, without DESTDIR, which make uninstall reads. An installation appends to
# LIST.new; $(list_kept) adds this to the list, which so has the files of earlier versions as well.
LIST = $(sharedir)/pem/installed
listed = $(INSTALL) -d '$(sharedir)/pem' && printf '$(1)/%s\n' $(2) >>'$(LIST).new'
list_kept = $(Q)touch '$(LIST)' && \
  awk -v root='$(DESTDIR)' 'index($$0, root) == 1 { $$0 = substr($$0, length(root) + 1) } 1' \
    '$(LIST).new' | sort -u -o '$(LIST)' - '$(LIST)' && chmod 644 '$(LIST)' && rm '$(LIST).new'

# Files name their own places, which are the same in each current folder.
ifneq ($(filter install uninstall,$(MAKECMDGOALS)),)
  $(foreach name,PREFIX LIBDIR,$(if $(filter-out /%,$(firstword $($(name)))),$(error \
    $(name)=$($(name)) does not begin with /: try $(name)=$(CURDIR)/$($(name)))))
  # The shell, awk and the list of files read these characters as something other than part of a name.
  define LINE_END :=


  endef
  $(foreach name,DESTDIR PREFIX LIBDIR PYTHONDIR,$(if $(findstring $(LINE_END),$($(name)))$(strip \
    $(foreach character,' " ` $$ \,$(findstring $(character),$($(name))))),$(error \
    $(name) has a newline or one of ' " ` $$ \ in it: choose another folder)))
endif

# A complete build is installed as it is: root builds nothing in a user's folder (AS_BUILT in
# tools/libraries.mk). What depends on PREFIX is made here: pkg-config's files and _place.py.
install: $(if $(AS_BUILT),,all)
	$(call put,755,$(call built_in,bin,%),$(bindir))
	$(call put,644,$(filter-out $(LIBPEM_MORE) %/libpem.so,$(call built_in,lib,%)),$(libdir))
	$(Q)$(INSTALL) -m 644 $(B)/lib/libpem.so.1 '$(libdir)/libpem.so.$(SO_VERSION)'
	$(Q)ln -sf libpem.so.$(SO_VERSION) '$(libdir)/libpem.so.1'
	$(Q)ln -sf libpem.so.1 '$(libdir)/libpem.so'
	$(Q)$(call listed,$(libdir),libpem.so.$(SO_VERSION) libpem.so.1 libpem.so)
	$(Q)for library in $(notdir $(LIBPEM_MORE)); do \
	  $(INSTALL) -m 644 "$(B)/lib/$$library.1" "$(libdir)/$$library.1" && \
	  ln -sf "$$library.1" "$(libdir)/$$library" && \
	  $(call listed,$(libdir),"$$library.1" "$$library") || exit; done
	$(call put,644,$(call built_in,lib/pem,%.so),$(libdir)/pem)
	$(call put,755,$(filter-out %.so,$(call built_in,lib/pem,%)),$(libdir)/pem)
	$(call put,644,$(call built_in,lib/pem/gstreamer,%.so),$(libdir)/pem/gstreamer)
	$(call put,755,$(filter-out $(VALGRIND_BUILT),$(call built_in,lib/pem/valgrind,%)),$(libdir)/pem/valgrind)
	$(if $(VALGRIND_BUILT),$(Q)cp -df $(VALGRIND_BUILT) '$(libdir)/pem/valgrind' && \
	  $(call listed,$(libdir)/pem/valgrind,$(notdir $(VALGRIND_BUILT))))
	$(call put,644,$(wildcard spec/abi/pem/*.h* libpem/include/pem/*.h*),$(incdir))
	$(call put,644,$(PYTHON_PARTS:%=$(B)/python/pemapi/%),$(DESTDIR)$(PYTHONDIR)/pemapi)
	$(Q)place='$(DESTDIR)$(PYTHONDIR)/pemapi/_place.py'; \
	  $(call python_place,"$(LIBDIR)/libpem.so.1") > "$$place" && chmod 644 "$$place" && \
	  $(call listed,$(DESTDIR)$(PYTHONDIR)/pemapi,_place.py)
	$(call put,644,libpem/jvm/pem/Probe.java,$(sharedir)/pem/java/pem)
	$(call put,644,$(CATALOGUE_STUBS),$(incdir)/stubs)
	$(call put,644,$(wildcard spec/*.xsd spec/*/*.xml),$(sharedir)/pem/spec)
	$(call put,644,$(wildcard examples/explore/*.xml examples/explore/*.c),$(sharedir)/pem/explore)
	$(call put,644,libpem/valgrind.supp,$(sharedir)/pem)
	$(call put,644,$(wildcard LICENSES/*.txt),$(sharedir)/doc/pem/LICENSES)
	$(Q)$(INSTALL) -d '$(libdir)/pkgconfig'
	$(Q)for file in $(PC_FILES); do name=$${file##*/}; name=$${name%.in}; \
	  sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    $$file > "$(libdir)/pkgconfig/$$name" && chmod 644 "$(libdir)/pkgconfig/$$name" && \
	  $(call listed,$(libdir)/pkgconfig,"$$name") || exit; done
	$(call put,644,$(addprefix $(B)/gen/reference/man/,$(filter %.7,$(REFERENCE_PAGES))),$(sharedir)/man/man7)
	$(call put,644,$(addprefix $(B)/gen/reference/html/,$(filter %.html,$(REFERENCE_PAGES))),$(sharedir)/doc/pem/events)
	$(call put,644,$(filter $(API_PAGES),$(BUILT)),$(sharedir)/doc/pem/api)
	$(call put,644,$(GUIDES),$(sharedir)/doc/pem)
	$(Q)for guide in $(notdir $(GUIDES)); do \
	  sed -z -i -f tools/guide_links.sed "$(sharedir)/doc/pem/$$guide" || exit; done
	$(call put,644,$(wildcard docs/pictures/*.png),$(sharedir)/doc/pem/pictures)
	$(call put,644,$(filter-out %.mk,$(EXAMPLES)),$(sharedir)/doc/pem/examples)
	$(Q)for page in $(MAN_PAGES); do \
	  section=man$${page##*.} name=$${page##*/}; \
	  $(INSTALL) -D -m 644 "$$page" "$(sharedir)/man/$$section/$$name" && \
	  $(call listed,$(sharedir)/man,"$$section/$$name") || exit; done
	$(call put,644,$(filter %/pem,$(COMPLETIONS)),$(sharedir)/bash-completion/completions)
	$(call put,644,$(filter %/_pem,$(COMPLETIONS)),$(sharedir)/zsh/site-functions)
	$(call put,644,$(filter %.fish,$(COMPLETIONS)),$(sharedir)/fish/vendor_completions.d)
	$(list_kept)
	$(if $(DESTDIR),,-$(Q)[ "$$(id -u)" != 0 ] || ldconfig)
	$(if $(DESTDIR),,@tools/next_step '$(PREFIX)' '$(LIBDIR)' '$(PYTHONDIR)')

uninstall:
	$(Q)tools/uninstall '$(DESTDIR)' '$(LIST)'
	$(if $(DESTDIR),,-$(Q)[ "$$(id -u)" != 0 ] || ldconfig)
