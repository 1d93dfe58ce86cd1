# SPDX-License-Identifier: MIT
# What several programs are linked with, each with objects of its own: their build.mk says which.

TEST_OBJ_shared_intervals := $(B)/obj/shared/intervals.o
TEST_OBJ_shared_format := $(B)/obj/shared/tracepoint_format.o
