# SPDX-License-Identifier: MIT
"""
time_pingpong: events of programs and of the kernel lie on one line of time, within the error that the trace states

Two threads on two CPUs (tests/programs/pingpong.c) take turns, so that there is one order in which their ticks (stubs: the cycle
counter) and system calls (BPF: CLOCK_MONOTONIC, converted; the module: the counter) can have happened.

guest: bpf=x86_64-6.12 module=x86_64-6.1 file=build/programs/pingpong
"""
import csv
import os

import probing
from probe_trace import EVENT, program, report, served
from tap import PEM, equal, run, run_all, skip, test, tmp

ENTER = "OS::Syscall::Enter"
SIGNATURE = 1 << 30
STEPS = 4  # of a turn
SLOWER = 10 if os.environ.get("PEM_TEST_EMULATED") else 1
NOTICED_NS = 1000 * SLOWER  # beyond the error: some two of the steps lie nearer than that


def here():
    probing.here()
    if not {0, 1} <= os.sched_getaffinity(0):
        skip("needs CPUs 0 and 1")


def play(mode, turns):
    """When each step was, in the order in which they happened, and the error that the trace states: in ns."""
    trace, out = os.path.join(tmp(), "trace"), os.path.join(tmp(), "trace.csv")
    rc, _, err = run([PEM, "record", "-q", "--no-libc", "-e", "APP," + ENTER, "-o", trace, "--",
                      *program("pingpong", mode, turns)])
    equal(rc, 0, "status of record: " + err)
    served(trace)
    told = report(trace)
    equal(told["events"]["discarded"], 0, "discarded")
    rc, _, err = run([PEM, "export", "--to", "csv", "-o", out, trace])
    equal(rc, 0, "status of export: " + err)
    steps = {}
    with open(out, newline="") as file:
        for row in csv.DictReader(file):
            if row["event"] == EVENT:
                steps[int(row["field_number" if "field_number" in row else "number"])] = int(row["clock"])
            elif row["event"] == ENTER and int(row["argument0"], 16) >> 30 == 1:
                steps[int(row["argument0"], 16) - SIGNATURE] = int(row["clock"])
    equal(sorted(steps), list(range(1, turns * STEPS + 1)), "steps")
    return [steps[i] * 1e9 / told["info"]["clock_hz"] for i in sorted(steps)], told["info"]["clock_error_ns"]


def worst_inversion(times):
    """By how much a step lies before one that came before it, at worst; 0: all are in order."""
    latest, worst = 0, 0
    for time in times:
        latest = max(latest, time)
        worst = max(worst, latest - time)
    return worst


def shifted(times, by):
    """The same, had the kernel's clock been off: calls are every second step."""
    return [time + by * (i % 2) for i, time in enumerate(times)]


def check(mode, turns):
    times, error = play(mode, turns)
    worst = worst_inversion(times)
    assert worst <= error, "a step lies %.0f ns before an earlier one; the trace's clocks agree within %d ns" % (worst, error)
    for by in (-error - NOTICED_NS, error + NOTICED_NS):  # the test would have noticed
        assert worst_inversion(shifted(times, by)) > error, "shifted by %d ns, and nothing seems wrong" % by


@test
def turns_through_memory():
    "ticks and system calls of two threads that pass turns through memory are in the order in which they happened"
    here()
    check("spin", 5000 // SLOWER)


@test
def turns_through_pipes():
    "the same with pipes, where the kernel's wake-up lies between two turns"
    here()
    check("pipe", 3000 // SLOWER)


run_all()
