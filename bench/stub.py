# SPDX-License-Identifier: MIT
"""
stub.py - what an event of two numbers costs from Python, and a log message of the same; for managed.py

    stub.py recorded|disabled|lttngust

Prints a line per round: what was measured, and ns of this thread's CPU time per operation; last, the events raised.
"""
import logging
import logging.handlers
import sys
import time

ROUNDS, EACH = 10, 20000
logger = logging.getLogger("bench")


def measure(function, name):
    for round in range(-1, ROUNDS):
        numbers = range(EACH)
        start = time.thread_time_ns()
        for i in numbers:
            function(i, i)
        if round >= 0:
            print(name, (time.thread_time_ns() - start) / EACH)


def message(a, b):
    logger.info("a=%d b=%d", a, b)


def lttngust():
    import lttngust  # gives the root logger a handler
    logger.setLevel(logging.INFO)
    measure(message, "lttngust")


def pem(recorded):
    import pem_bench
    measure(pem_bench.notify_bench_log, "log" if recorded else "disabled")
    logger.propagate = False
    logger.setLevel(logging.INFO if recorded else logging.WARNING)
    logger.addHandler(logging.handlers.MemoryHandler(1 << 30, flushOnClose=False))
    measure(message, "logging" if recorded else "logging_disabled")
    print("raised", (ROUNDS + 1) * EACH)


lttngust() if sys.argv[1] == "lttngust" else pem(sys.argv[1] == "recorded")
