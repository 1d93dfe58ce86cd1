# SPDX-License-Identifier: MIT
"""guest_x86_64_6_1: the kernel layer and the module, in a guest with Debian 12's Linux 6.1"""
from guest.suite import run_all

LIMIT_S = 300  # a fetch, or the slowest program, on a busy machine
LONG_S = 140

run_all("x86_64-6.1")
