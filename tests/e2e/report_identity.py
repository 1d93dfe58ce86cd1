# SPDX-License-Identifier: MIT
"""report_identity: a process is its number and its start: what had one number after the other has a row each"""
import collections
import csv
import json
import os

from html_page import choose_process, exported, show, shown
from tap import PEM, equal, run, run_all, test, tmp
from trace_files import COUNTER, Trace

MS = 10 ** 6
PARENT = 1


def by_hand():
    trace = Trace(duration_ns=1000 * MS)
    trace.event("OS::Test::Start", "thread-start", [("pid", "uint32", "process"), ("tid", "uint32", "thread"), ("parent", "uint32", "parent")])
    trace.event("OS::Test::End", "thread-end", [("pid", "uint32", "process"), ("tid", "uint32", "thread")])
    trace.event("OS::Test::Exec", "process-name", [("pid", "uint32", "process"), ("comm", "string", "name")])
    trace.event("OS::Test::Map", "object", [("address", "uint64", "address")])
    trace.event("APP::Test::Work")
    return trace


def life(trace, at, pid, tid, name, works):
    """A thread starts, raises events, and ends; with a name it is a process."""
    trace.add("OS::Test::Start", at * MS, [pid, tid, PARENT if name else pid], pid=PARENT if name else pid, tid=PARENT if name else pid)
    if name:
        trace.add("OS::Test::Exec", (at + 1) * MS, [pid, name], pid=pid, tid=tid)
    for i in range(works):
        trace.add("APP::Test::Work", (at + 2) * MS + i, pid=pid, tid=tid)
    trace.add("OS::Test::End", (at + 3) * MS, [pid, tid], pid=pid, tid=tid)


def report(trace, *options):
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    rc, out, err = run([PEM, "report", *options, folder])
    equal((rc, err), (0, ""), "report")
    return out


@test
def processes_of_one_number():
    "three programs that had one number have three rows, with their names, starts, ends and events"
    trace = by_hand()
    for at, name, works in ((10, b"ls", 1), (20, b"cat", 2), (30, b"echo", 3)):
        life(trace, at, 7, 7, name, works)
    found = [(p["name"], p["start_ns"], p["end_ns"], p["parent"], p["layers"]["APP"]) for p in json.loads(report(trace, "--json"))["processes"] if p["pid"] == 7]
    equal(found, [("ls", 10 * MS, 13 * MS, 1, 1), ("cat", 20 * MS, 23 * MS, 1, 2), ("echo", 30 * MS, 33 * MS, 1, 3)], "processes")


@test
def processes_of_one_number_in_words():
    "the table has a row for each of them"
    trace = by_hand()
    for at, name, works in ((10, b"ls", 1), (20, b"cat", 2), (30, b"echo", 3)):
        life(trace, at, 7, 7, name, works)
    rows = [line.split() for line in report(trace, "--by", "process").splitlines() if line.strip().startswith("7 ")]
    equal(sorted(r[4] for r in rows), ["cat", "echo", "ls"], "rows")


@test
def threads_of_one_number():
    "threads that had one number have a row each, and a process counts all of them"
    trace = by_hand()
    life(trace, 5, 7, 7, b"server", 0)
    trace.records = [r for r in trace.records if r[1] != "OS::Test::End"]
    for i in range(5):
        life(trace, 10 + 10 * i, 7, 8, None, i + 1)
    server, = [p for p in json.loads(report(trace, "--json"))["processes"] if p["pid"] == 7]
    equal([(t["tid"], t["layers"]["APP"]) for t in server["threads"] if t["tid"] == 8], [(8, n) for n in (1, 2, 3, 4, 5)], "threads")


@test
def a_sampler_that_comes_first():
    "what a sampler tells of a process shortly before its start is this process's"
    trace = by_hand()
    trace.add("OS::Test::Map", 10 * MS - 5000, [4096], pid=7, tid=7, source=COUNTER)
    life(trace, 10, 7, 7, b"ls", 1)
    found = [(p["name"], p["start_ns"], p["count"], len(p["threads"])) for p in json.loads(report(trace, "--json"))["processes"] if p["pid"] == 7]
    equal(found, [("ls", 10 * MS, 4, 1)], "processes")


def three_of_one_number():
    trace = by_hand()
    for at, name, works in ((10, b"ls", 1), (20, b"cat", 2), (30, b"echo", 3)):
        life(trace, at, 7, 7, name, works)
    return trace


@test
def rows_of_one_number():
    "the CSV table tells processes and threads of one number apart by their starts"
    folder, out = os.path.join(tmp(), "trace"), os.path.join(tmp(), "out.csv")
    three_of_one_number().write(folder)
    equal(run([PEM, "export", "--to", "csv", folder, "-o", out])[0], 0, "export")
    with open(out, newline="", encoding="utf-8") as f:
        rows = [row for row in csv.DictReader(f) if row["event"] == "APP::Test::Work"]
    equal(collections.Counter((r["pid"], r["process"], r["process_start_ns"], r["thread_start_ns"]) for r in rows),
          {("7", "ls", str(10 * MS), str(10 * MS)): 1, ("7", "cat", str(20 * MS), str(20 * MS)): 2, ("7", "echo", str(30 * MS), str(30 * MS)): 3}, "rows")


@test
def a_choice_of_one_number():
    "the page offers each of them, and shows the events of the one that is chosen"
    b = show(exported(three_of_one_number())[1])
    values = dict(b.script("return [...document.querySelectorAll('#process option')].map(o => [o.text, o.value])"))
    for name, works in ("ls", 1), ("cat", 2), ("echo", 3):
        choose_process(b, values["%s (7)" % name])
        equal(shown(b, "#events tbody tr")["APP::Test::Work"][0], works, name)


@test
def phases_and_counters_of_one_number():
    "the page shows the phases of the process that is chosen, and a counter begins again with each of them"
    trace = three_of_one_number()
    trace.event("APP::Phase::Begin", "interval-begin", [("name", "string", "name")])
    trace.event("APP::Phase::End", "interval-end", [("name", "string", "name")])
    trace.event("HW::Cache::Misses", "counter", [("value", "uint64", "value")], unit="misses")
    for at in 10, 20, 30:
        trace.add("APP::Phase::Begin", (at + 1) * MS + 1, [b"works"], pid=7, tid=7)
        trace.add("APP::Phase::End", (at + 3) * MS - 1, [b"works"], pid=7, tid=7)
        for i in 1, 2:
            trace.add("HW::Cache::Misses", (at + i) * MS + 2, [(100 - at) * i], pid=7, tid=7, source=COUNTER)
    page = exported(trace)[1]
    with open(page, encoding="utf-8") as f:
        assert '"bad_values":0' in f.read(), "a counter went backwards"
    b = show(page)
    values = dict(b.script("return [...document.querySelectorAll('#process option')].map(o => [o.text, o.value])"))
    choose_process(b, values["cat (7)"])
    equal(b.script("const d = document.querySelector('#phases').dataset; return [d.inside, d.total]"), ["1", "1"], "phases of cat")


@test
def counters_and_times_of_one_number():
    "pem diff counts what each process counted, and no time goes from one process to the next"
    traces = []
    for times in 1, 2:
        trace = three_of_one_number()
        trace.event("HW::Cache::Misses", "counter", [("value", "uint64", "value")], unit="misses")
        trace.event("APP::Test::Rest")
        trace.metric("APP::Test::Pause", "between", ("APP::Test::Work", ""), ("APP::Test::Rest", ""), "ns")
        for at, last in (10, 500), (20, 700), (30, 40):
            for i in 1, 2:
                trace.add("HW::Cache::Misses", (at + i) * MS + 2, [last * times * i // 2], pid=7, tid=7, source=COUNTER)
        trace.add("APP::Test::Rest", 22 * MS - 1, pid=7, tid=7)
        folder = os.path.join(tmp(), "times%d" % times)
        trace.write(folder)
        traces.append(folder)
    rc, out, err = run([PEM, "diff", "--json", *traces])
    equal((rc, err), (0, ""), "diff")
    found = {m["metric"]: (round(m["a"]), round(m["b"])) for m in json.loads(out)["metrics"] if m["a"] is not None}
    equal(found["HW::Cache::Misses"], (1240, 2480), "misses")
    assert "APP::Test::Pause" not in found, found


run_all()
