#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
drain - how fast a session moves to a trace on tmpfs what 8 threads raised, by how many threads of its own do it

	recorder/drain_1	one thread: time for a million events
	recorder/drain_2, _4, _8	so many, as far as there are CPUs, beside one in alternation

The threads that raise events end before. In a recording they take CPUs as well: notify/sustained.
"""
import os
import statistics
import subprocess
import sys

from measure import HERE, QUICK, Folder, heading, report, wanted

ROUNDS = 2 if QUICK else 11
RAISING, EVENTS = 8, 50_000 if QUICK else 200_000
CASES = {"recorder/drain_%d" % n: n for n in (1, 2, 4, 8)}


def run(folder, threads):
    """(elapsed, CPU time) in ms for a million events."""
    done = subprocess.run([os.path.join(HERE, "drained"), str(threads), str(RAISING), str(EVENTS), folder.fresh("trace")],
                          stdout=subprocess.PIPE, check=True, universal_newlines=True)
    events, elapsed, cpu = map(int, done.stdout.split())
    return elapsed / events, cpu / events


def main():
    cases = wanted(*CASES)
    if not cases:
        return 0
    heading("drain")
    have = len(os.sched_getaffinity(0))
    with Folder() as folder:
        counts = [n for c, n in CASES.items() if c in cases and n <= have]
        runs = {n: [] for n in {1, *counts}}
        for _ in range(ROUNDS):
            for n in sorted(runs):
                runs[n].append(run(folder, n))
    for n in counts:
        note = "CPU time %.1f ms, %.0f million/s" % (statistics.median(c for _, c in runs[n]),
                                                   1e3 / statistics.median(e for e, _ in runs[n]))
        report("drain", "recorder/drain_%d" % n, "ms/million", [e for e, _ in runs[n]],
               None if n == 1 else "one thread", [] if n == 1 else [e for e, _ in runs[1]], note)
    for case, n in CASES.items():
        if case in cases and n > have:
            print("%s: not measured: it takes %d CPUs, and this process has %d" % (case, n, have))
    return 0


if __name__ == "__main__":
    sys.exit(main())
