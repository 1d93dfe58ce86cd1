# SPDX-License-Identifier: MIT
"""guest_aarch64_6_1: the kernel layer and the module, in a guest of arm64 with Debian 12's Linux 6.1"""
from guest.suite import run_all

LIMIT_S = 300  # a fetch, or the slowest program, on a busy machine
LONG_S = 140

run_all("aarch64-6.1")
