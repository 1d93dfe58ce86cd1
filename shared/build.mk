# SPDX-License-Identifier: MIT
# What several programs are linked with, each with objects of its own: their build.mk says which.

TEST_OBJ_shared_intervals := $(B)/obj/shared/intervals.o
TEST_OBJ_shared_format := $(B)/obj/shared/tracepoint_format.o
ifeq ($(shell pkg-config --exists libelf 2>/dev/null && echo yes),yes)
TEST_OBJ_shared_elf := $(B)/obj/shared/elf_probes.o
TEST_LIB_shared_elf := -lelf
TEST_CFLAGS_shared_elf := -DPEM_TEST_LIBELF
endif
