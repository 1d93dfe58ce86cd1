# SPDX-License-Identifier: MIT
# What several programs are linked with, each with objects of its own: their build.mk says which.
# Here is what its tests need.

$(B)/tests/cxx_names: $(call objects,shared/cxx_names.c)
$(B)/tests/shared_intervals: $(call objects,shared/intervals.c)
$(B)/tests/shared_sketch: $(call objects,shared/sketch.c)
$(B)/tests/shared_betweens: $(call objects,shared/betweens.c shared/number_map.c)
$(B)/tests/shared_processes: $(call objects,shared/processes.c)
$(B)/tests/shared_format: $(call objects,shared/tracepoint_format.c)
ifneq ($(HAVE_LIBELF),)
$(B)/tests/shared_elf: $(call objects,shared/elf_probes.c)
TEST_LIBS += -lelf
endif
