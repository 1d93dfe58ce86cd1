# SPDX-License-Identifier: MIT
# The Python module pemapi: in the build tree $(B)/python, to be named by PYTHONPATH; installed
# where python3 looks.

PYTHON_PARTS := $(notdir $(wildcard libpem/python/pemapi/*.py))
PYTHON_MODULE := $(PYTHON_PARTS:%=$(B)/python/pemapi/%) $(B)/python/pemapi/_place.py
# The folder below PREFIX that python3 looks into, if there is one.
PYTHONDIR ?= $(or $(shell python3 -I -c 'import sys; print(*[p for p in sys.path \
  if p.startswith("$(PREFIX)/lib/python") and p.endswith("-packages")][:1])' 2>/dev/null),\
  $(PREFIX)/lib/python3/dist-packages)

ALL += $(PYTHON_MODULE)

$(PYTHON_PARTS:%=$(B)/python/pemapi/%): $(B)/python/pemapi/%: libpem/python/pemapi/%
	@mkdir -p $(@D)
	$(Q)cp $< $@

# Where the library lies, and its version. $(1): an expression of Python
python_place = printf '%s\n' '\# SPDX-License-Identifier: LGPL-2.1-or-later' \
  '"""_place - where this was built for"""' 'import os' '' \
  'LIBRARY = $(1)' 'VERSION = "$(VERSION)"'
BESIDE_PYTHON := os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib/libpem.so.1")

$(B)/python/pemapi/_place.py: Makefile libpem/python/build.mk
	@mkdir -p $(@D)
	$(Q)$(call python_place,$(BESIDE_PYTHON)) > $@
