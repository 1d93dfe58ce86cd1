#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
compare - runs the benchmarks of two builds in turn, and says which figures differ by more than their noise

Use: bench/compare.py OLD NEW [ROUNDS] [PROGRAM...]
OLD, NEW: build folders with benchmarks in them (make bench CASE=none builds them). ROUNDS: how often each runs (3).
PROGRAM: of those in bench/build.mk (all that both builds have). BENCH_CASE and BENCH_QUICK go to them.

Each round runs a program of the old build, then the same of the new one, every other round the other way round. A
figure is worse if its median is, and the best of the new rounds is worse than the worst of the old ones. Exit status 1
if one is. Not here: any case, and what a figure means (docs/benchmarks.md).
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

NOT_PROGRAMS = ("raise", "timed", "calls", "guest_calls", "guest_pem", "call_back", "attach_first", "read_trace", "kernel_peer")


def figures(build, program):
    """One run of a program: {(case, unit): value}."""
    with tempfile.NamedTemporaryFile(mode="r", encoding="utf-8") as out:
        subprocess.run([os.path.join(build, "bench", program)], env=dict(os.environ, BENCH_OUT=out.name), check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = [json.loads(line) for line in out]
    return {(line["case"], line["unit"]): line["value"] for line in lines}


def more_is_better(unit):
    return unit.endswith("/s")


def worse(old, new, unit):
    """Is every new value worse than every old one?"""
    return max(new) < min(old) if more_is_better(unit) else min(new) > max(old)


def row(case, unit, old, new):
    """One figure's line; whether it is worse."""
    before, after = statistics.median(old), statistics.median(new)
    word = "worse" if worse(old, new, unit) else "better" if worse(new, old, unit) else ""
    print("%-34s %10.3f (%.3f-%.3f) %10.3f (%.3f-%.3f) %-12s %s %s" %
          (case, before, min(old), max(old), after, min(new), max(new), unit,
           "%.3f" % (after / before) if before else "-", word), flush=True)
    return word == "worse"


def compare(builds, program, rounds):
    """All figures of one program; how many are worse."""
    values = [{}, {}]
    for number in range(rounds):
        for which in (0, 1) if number % 2 == 0 else (1, 0):
            for figure, value in figures(builds[which], program).items():
                values[which].setdefault(figure, []).append(value)
    print("== " + program)
    for figure in sorted(set(values[0]) ^ set(values[1])):
        print("%-34s only in the %s build" % (figure[0], "old" if figure in values[0] else "new"))
    return sum(row(*figure, values[0][figure], values[1][figure]) for figure in values[0] if figure in values[1])


def main():
    words = sys.argv[1:]
    if len(words) < 2 or not all(os.path.isdir(os.path.join(build, "bench")) for build in words[:2]):
        sys.exit(__doc__.strip())
    builds, words = [os.path.abspath(build) for build in words[:2]], words[2:]
    rounds = int(words.pop(0)) if words and words[0].isdigit() else 3
    found = [{name for name in os.listdir(os.path.join(build, "bench")) if os.access(os.path.join(build, "bench", name), os.X_OK)
              and os.path.isfile(os.path.join(build, "bench", name)) and "." not in name} for build in builds]
    programs = words or sorted((found[0] & found[1]) - set(NOT_PROGRAMS))
    count = sum(compare(builds, program, rounds) for program in programs)
    print("\n%d figures are worse by more than their noise" % count)
    return 1 if count else 0


sys.exit(main())
