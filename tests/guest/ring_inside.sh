#!/bin/sh
# SPDX-License-Identifier: MIT
# ring_inside.sh - the ring as pem.ko compiles it, tried inside the kernel by a module of its own (tests/guest/ring_module)
#
# guest: limit=60 file=tests/guest/ring_module

insmod build/guest/*/ring/pem_ring_test.ko || exit 1
cat /sys/kernel/debug/pem_ring_test || exit 1
rmmod pem_ring_test
