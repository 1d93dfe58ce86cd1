# SPDX-License-Identifier: MIT
"""
heaptrack.py - what heaptrack tells of a command, for the tests that compare with it

Not here: tests.
"""
import os

from tap import equal, need, run, tmp


def by_heaptrack(command, *costs):
    """For each cost, the stacks of frames, which leave out operator new, and their costs."""
    need("heaptrack", "heaptrack_print")
    folder = tmp()
    rc, out, err = run(["heaptrack", "-o", folder + "/h"] + command)
    equal(rc, 0, "exit status of heaptrack, with " + out + err)
    file = [name for name in os.listdir(folder) if name.startswith("h.")][0]
    found = {}
    for cost in costs:
        rc, out, err = run(["heaptrack_print", "-f", folder + "/" + file, "-F", folder + "/folded", "-p", "0", "-T", "0", "-l", "0",
                            "--disable-builtin-suppressions",
                            "--flamegraph-cost-type", cost])
        equal(rc, 0, "exit status of heaptrack_print, with " + err)
        with open(folder + "/folded") as lines:
            found[cost] = [(stack.split(";"), int(count)) for stack, count in (line.rstrip("\n").rsplit(" ", 1) for line in lines)]
    return found
