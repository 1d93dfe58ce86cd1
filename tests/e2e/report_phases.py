# SPDX-License-Identifier: MIT
"""report_phases: which events lie in a phase, by its scope; sums in phases; traces of known content"""
import json
import os

from tap import PEM, equal, run, run_all, test, tmp
from trace_files import Trace

MS = 10 ** 6


def by_hand(scope="thread", role="name"):
    """A trace with phases of a scope, and an event with a value."""
    trace = Trace(duration_ns=1000 * MS)
    for which in ("Begin", "End"):
        trace.event("APP::Work::" + which, "interval-" + which.lower(), [("name", "string", role)], group="APP::Work", scope=scope)
    trace.event("APP::Test::Sale", "-", [("cents", "uint64", "value")])
    trace.event("OS::Test::Start", "thread-start", [("pid", "uint32", "process"), ("tid", "uint32", "thread"), ("parent", "uint32", "parent")])
    trace.metric("APP::Test::Price", "ratio", ("APP::Test::Sale", "cents"), ("APP::Test::Sale", ""), "cents")
    return trace


def phases(trace):
    """By name: sales inside, and the mean price if it is known."""
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    rc, out, err = run([PEM, "report", "--json", folder])
    equal((rc, err), (0, ""), "report")
    return {p["name"]: (p["events"].get("APP::Test::Sale", 0), {m["metric"]: m["value"] for m in p["metrics"]}.get("APP::Test::Price"))
            for p in json.loads(out)["phases"]}


def two_threads(scope):
    """Thread 10 of process 1 is in a phase, and others raise events: 1 in it, then 2 of its process, 4 of its CPU, 8 of others."""
    trace = by_hand(scope)
    trace.add("APP::Work::Begin", 10 * MS, [b"work"], pid=1, tid=10, cpu=3)
    at = 20 * MS
    for times, pid, tid, cpu in ((1, 1, 10, 3), (2, 1, 11, 4), (4, 2, 20, 3), (8, 2, 21, 4)):
        for _ in range(times):
            trace.add("APP::Test::Sale", at, [times * 100], pid=pid, tid=tid, cpu=cpu)
            at += 1000
    trace.add("APP::Work::End", 90 * MS, [b"work"], pid=1, tid=10, cpu=3)
    trace.add("APP::Test::Sale", 95 * MS, [1], pid=1, tid=10, cpu=3)
    return phases(trace)["work"]


@test
def events_of_the_scope():
    "a phase has the events of its thread, its process, its CPU or of all, and the metrics of these events"
    equal({scope: two_threads(scope) for scope in ("thread", "process", "cpu", "system")},
          {"thread": (1, 100.0), "process": (3, 500 / 3), "cpu": (5, 1700 / 5), "system": (15, (100 + 400 + 1600 + 6400) / 15)}, "inside")


@test
def nested_and_overlapping():
    "each phase of a thread has what the thread raised between its two ends, however phases overlap"
    trace = by_hand()
    for at, what, name in ((10, "Begin", b"a"), (20, "Begin", b"b"), (30, "End", b"a"), (40, "Begin", b"c"), (50, "End", b"c"), (60, "End", b"b")):
        trace.add("APP::Work::" + what, at * MS, [name])
    for at in range(15, 65, 10):
        trace.add("APP::Test::Sale", at * MS, [at])
        trace.add("APP::Test::Sale", at * MS + 1, [1000], tid=99)
    equal({n: p[0] for n, p in phases(trace).items()}, {"a": 2, "b": 4, "c": 1}, "sales")


@test
def processes_that_a_thread_started():
    "the events of a process lie in a phase of the thread that started it, also those of its children, and in no other thread's"
    trace = by_hand()
    trace.add("APP::Work::Begin", 10 * MS, [b"starter"], pid=1, tid=10)
    trace.add("APP::Work::Begin", 11 * MS, [b"other"], pid=1, tid=11)
    trace.add("OS::Test::Start", 20 * MS, [2, 2, 1], pid=1, tid=10)
    trace.add("APP::Test::Sale", 21 * MS, [7], pid=2)
    trace.add("OS::Test::Start", 22 * MS, [3, 3, 2], pid=2)
    trace.add("APP::Test::Sale", 23 * MS, [9], pid=3)
    trace.add("APP::Work::End", 30 * MS, [b"starter"], pid=1, tid=10)
    trace.add("APP::Work::End", 31 * MS, [b"other"], pid=1, tid=11)
    equal(phases(trace), {"starter": (2, 8.0), "other": (0, None)}, "phases")


@test
def phases_that_scripts_mark():
    "a phase that one process begins and another one ends has all events; so has one of a process that does nothing else"
    for pid in (6, 5):
        trace = by_hand()
        trace.add("APP::Work::Begin", 10 * MS, [b"script"], pid=5)
        trace.add("APP::Test::Sale", 21 * MS, [7], pid=2)
        trace.add("APP::Test::Sale", 22 * MS, [9], pid=3)
        trace.add("APP::Work::End", 30 * MS, [b"script"], pid=pid)
        equal(phases(trace), {"script": (2, 8.0)}, "phases")


@test
def large_sums():
    "a sum in a phase does not begin again at 2^64"
    trace = by_hand("process")
    trace.add("APP::Work::Begin", 10 * MS, [b"large"])
    for i, cents in enumerate((2 ** 64 - 1, 2 ** 64 - 1, 2)):
        trace.add("APP::Test::Sale", 20 * MS + i, [cents])
    trace.add("APP::Work::End", 30 * MS, [b"large"])
    equal(phases(trace), {"large": (3, 2.0 ** 65 / 3)}, "phase")


@test
def records_without_a_thread():
    "a metric of a thread's phase is unknown if records name a process and not its thread; that of a process's phase is known"
    found = {}
    for scope in ("thread", "process"):
        trace = by_hand(scope)
        trace.add("APP::Work::Begin", 10 * MS, [b"work"])
        trace.add("APP::Test::Sale", 20 * MS, [4])
        trace.add("APP::Test::Sale", 21 * MS, [6], tid=0)
        trace.add("APP::Work::End", 30 * MS, [b"work"])
        found[scope] = phases(trace)["work"]
    equal(found, {"thread": (1, None), "process": (2, 5.0)}, "phases")


run_all()
