# SPDX-License-Identifier: MIT
"""report_markers: records that only name a CPU's thread (PEM_NO_SWITCH) are in no count of switches"""
import csv
import json
import os
import re

from tap import PEM, equal, run, run_all, test, tmp
from trace_files import KERNEL, Trace

MS = 1_000_000
NAME = "OS::Sched::Switch"
NO_SWITCH = 0xffffffff
SWITCHES = 3
MARKERS = 2


def made(name, markers=MARKERS):
    """Process 7 has a phase, in which its CPU switches SWITCHES times and is named as often as markers says."""
    t = Trace(duration_ns=100 * MS)
    switch = t.event(NAME, "sets-thread", [("prevTid", "uint32", "previous-thread"), ("prevState", "uint32", "state"),
                                           ("nextPid", "uint32", "process"), ("nextTid", "uint32", "thread")])
    for which in ("Begin", "End"):
        t.event("APP::Work::" + which, "interval-" + which.lower(), [("name", "string", "name")], group="APP::Work", scope="system")
    t.metric("OS::Test::PerPhase", "ratio", (NAME, ""), ("APP::Work::Begin", ""))
    kernel = dict(pid=0, tid=0, cpu=1, source=KERNEL)
    t.add(switch, 0, [0, 0, 7, 7], **kernel)
    t.add("APP::Work::Begin", 10 * MS, [b"work"], pid=7)
    for i in range(SWITCHES):
        t.add(switch, (20 + i) * MS, [7 * (i % 2 == 0), 1 if i % 2 == 0 else 0, 7 * (i % 2), 7 * (i % 2)], **kernel)
    for i in range(markers):
        t.add(switch, (30 + i) * MS, [0, NO_SWITCH, 7, 7], **kernel)
    t.add("APP::Work::End", 90 * MS, [b"work"], pid=7)
    folder = os.path.join(tmp(), name)
    t.write(folder)
    return folder


def answer(*words):
    rc, out, err = run([PEM, *words])
    equal(rc, 0, "status of %s (stderr: %s)" % (words[0], err))
    return out


@test
def counts_of_the_report():
    "the report's event, layer, processes, phase and metric count switches; the markers have a number of their own, and the trace is balanced"
    r = json.loads(answer("report", "--json", made("trace")))
    event, = [e for e in r["per_event"] if e["name"] == NAME]
    equal((event["count"], event["markers"], event["balance"]["delivered"]), (SWITCHES + 1, MARKERS, SWITCHES + 1 + MARKERS), "event")
    equal(r["layers"]["OS"]["count"], SWITCHES + 1, "layer")
    equal(sum(p["count"] for p in r["processes"]), SWITCHES + 1 + 2, "events of processes")
    phase, = r["phases"]
    equal(phase["events"][NAME], SWITCHES, "in the phase")
    equal([m["value"] for m in r["metrics"]], [SWITCHES + 1], "metric")
    assert re.search(r"Switch +4 .* 2 more records only name a CPU's thread", answer("report", made("text"))), "the table"


@test
def counts_of_the_page():
    "the page of a trace with markers has the same strips of switches as the page of a trace without"
    def series(folder):
        out = folder + ".html"
        answer("export", "--to", "html", folder, "-o", out)
        with open(out, encoding="utf-8") as page:
            text = page.read()
        found = re.search(r'"name":"OS::Sched::Switch".*("series":.*)', text)
        return found.group(1)
    equal(series(made("with")), series(made("without", 0)), "series")


@test
def counts_of_a_comparison():
    "pem diff of a trace with markers and a trace without finds equal counts of switches"
    result = json.loads(answer("diff", "--json", made("with"), made("without", 0)))
    row, = [m for m in result["metrics"] if m["metric"] == NAME]
    equal((round(row["a"], 9), round(row["b"], 9)), (SWITCHES + 1, SWITCHES + 1), "switches")


@test
def rows_of_csv():
    "CSV has a row for each record, and the state tells a marker from a switch"
    trace = made("trace")
    out = trace + ".csv"
    answer("export", "--to", "csv", trace, "-o", out)
    with open(out, encoding="utf-8", newline="") as lines:
        states = [int(row["prevState"], 0) for row in csv.DictReader(lines) if row["event"] == NAME]
    equal((len(states), states.count(NO_SWITCH)), (SWITCHES + 1 + MARKERS, MARKERS), "rows and markers")


run_all()
