# SPDX-License-Identifier: MIT
# What several programs are linked with, each with objects of its own, which their build.mk files name.

TEST_OBJ_shared_intervals := $(B)/obj/shared/intervals.o
