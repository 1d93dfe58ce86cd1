#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
page_size_hooks.py - what compiler hooks cost: programs compiled with -fsanitize=thread and linked with pem's runtime

    page-size/hooks_slowdown    CPU time of a profiling run, by that of the program compiled without hooks
    page-size/hooks_unasked     the same of a run that writes no profile

Runs alternate: without hooks, with hooks unasked, with hooks and a profile. Medians are compared for each program of
bench/page-size; a value is of one program. PEM_BENCH_PROGRAM=WORD takes the programs with this word in their names. All is measured.
"""
import os
import resource
import statistics
import subprocess
import sys

from measure import Folder, QUICK, heading, report, wanted
from page_size_workloads import SHAPES, SMALL

CASES = ("page-size/hooks_slowdown", "page-size/hooks_unasked")
ROUNDS = 1 if QUICK else 5


def seconds(words, env):
    """CPU time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, env={**os.environ, **env}, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def slowdowns(name, folder):
    """(of a profiling run, of one unasked) of a program."""
    words = SHAPES[name].split() if QUICK else []
    program, hooked, profile = os.path.join(SMALL, name), os.path.join(SMALL, name + "-hooks"), os.path.join(folder, "profile")
    ways = {"plain": ([program, *words], {}), "unasked": ([hooked, *words], {}),
            "asked": ([hooked, *words], {"PEM_PAGE_SIZE_PROFILE": profile})}
    times = {way: [] for way in ways}
    for number in range(ROUNDS):
        for way in list(ways)[::1 if number % 2 else -1]:
            if os.path.exists(profile):
                os.unlink(profile)
            times[way].append(seconds(*ways[way]))
    middle = {way: max(statistics.median(found), 1e-9) for way, found in times.items()}
    return middle["asked"] / middle["plain"], middle["unasked"] / middle["plain"]


def main():
    cases = wanted(*CASES)
    if not cases:
        return 0
    heading("page_size_hooks")
    found = {}
    with Folder() as folder:
        for name in SHAPES:
            if os.environ.get("PEM_BENCH_PROGRAM", "") not in name:
                continue
            if not os.path.exists(os.path.join(SMALL, name + "-hooks")):
                print("    left out: the runtime of compiler hooks is for x86-64")
                return 0
            found[name] = slowdowns(name, folder.path)
            print("    %-13s %5.2f times; unasked %5.2f" % (name, *found[name]), flush=True)
    for which, case in enumerate(CASES):
        if case in cases and found:
            values = {name: both[which] for name, both in found.items()}
            report("page_size_hooks", case, "times", list(values.values()),
                   note="most: %s, %.2f; measured" % max(values.items(), key=lambda item: item[1]), programs=values)
    return 0


if __name__ == "__main__":
    sys.exit(main())
