# SPDX-License-Identifier: MIT
"""guest_x86_64_newest: the kernel layer and the module, in a guest with the newest Linux of Debian's later suites"""
from guest.suite import run_all

LIMIT_S = 600  # a fetch, or the slowest program, on a busy machine
LONG_S = 150

run_all("x86_64-newest")
