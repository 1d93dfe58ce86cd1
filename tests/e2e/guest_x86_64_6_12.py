# SPDX-License-Identifier: MIT
"""guest_x86_64_6_12: the kernel layer and the module, in a guest with Linux 6.12 of Debian 12's backports"""
from guest.suite import run_all

LIMIT_S = 300  # a fetch, or the slowest program, on a busy machine
LONG_S = 150

run_all("x86_64-6.12")
