# SPDX-License-Identifier: MIT
"""report_page_samples: counters at events go by their names, and memory by how often it was used, in report and export"""
import csv
import json
import os
import re
import struct

from tap import PEM, equal, run, run_all, test, tmp
from trace_files import KERNEL, START, Trace, event_id

AT_EVENT = "HW::HWPerf::HPMsAtEvent"
ENTER, EXIT = "OS::Syscall::Enter", "OS::Syscall::Exit"
REGION, PASS = "OS::Pages::Region", "OS::Pages::Pass"


def reported(trace):
    """A trace's report, for programs and for people, and its table of records."""
    folder, table = os.path.join(tmp(), "trace"), os.path.join(tmp(), "out.csv")
    trace.write(folder)
    rc, out, err = run([PEM, "report", "--json", folder])
    equal(rc, 0, "status of report: " + err)
    _, text, _ = run([PEM, "report", folder])
    rc, _, err = run([PEM, "export", "--to", "csv", folder, "-o", table])
    equal(rc, 0, "status of export: " + err)
    with open(table, newline="", encoding="utf-8") as rows:
        return json.loads(out), text, list(csv.DictReader(rows))


def counters(**run_members):
    """Two system calls on one CPU, and a third on another, with two counters."""
    t = Trace(duration_ns=1000, **run_members)
    t.event(ENTER)
    t.event(EXIT)
    t.model[AT_EVENT] = ((), [
        "event\t%08x\t%s\tHW\tHWPerf\tHPMsAtEvent\t1\tinfo\tsample\t\t-\tstub\t\t28\t96\t4\t0\t\t\t" %
        (event_id(AT_EVENT), AT_EVENT),
        "field\teventId\tuint32\t-\t16\t-\t8\t1\t\t-\t0\t", "field\tmissing\tuint8\t-\t16\t-\t12\t1\t\t-\t0\t",
        "field\tpc\tuint64\t-\t16\t-\t16\t1\t\t-\t0\t", "field\tcounterValues\tlist\tuint64\t10\t-\t24\t8\t\t-\t0\t"])
    for at, cpu, name, missing, values in ((0, 0, ENTER, 0, (1000, 10)), (10, 0, EXIT, 0, (1700, 30)),
                                           (20, 0, ENTER, 2, (2000, 0)), (30, 0, EXIT, 0, (2900, 70)),
                                           (40, 1, ENTER, 0, (5, 5)), (50, 1, EXIT, 0, (13, 9))):
        data = struct.pack("<IBxxxQIxxxx2Q", event_id(name), missing, 0, 2, *values)
        t.records.append((START + at, AT_EVENT, data, (KERNEL, 7, 7, cpu)))
        t.add(name, at + 1, pid=7, cpu=cpu, source=KERNEL)
    return t


@test
def counters_go_by_their_names():
    "what was added up to each kind of event, counter by counter, without values that are missing"
    report, text, rows = reported(counters(counters="Cycles,Instructions"))
    found = {e["event"]: (e["count"], e["means"]) for e in report["counters"]}
    equal(found, {EXIT: (3, {"Cycles": (700 + 900 + 8) / 3, "Instructions": (20 + 40 + 4) / 3}),
                  ENTER: (3, {"Cycles": 300.0})}, "counters")
    assert re.search(r"^UP TO EVENT +COUNT +Cycles +Instructions$", text, re.M), text
    assert re.search(r"^OS::Syscall::Exit +3 +536 +21$", text, re.M), text
    equal([row["counterValues"] for row in rows if row["event"] == AT_EVENT][0], "Cycles=1000 Instructions=10", "csv")
    # What a hostile trace calls them breaks no cell, and is no formula.
    _, _, rows = reported(counters(counters='=1+1"\';,b'))
    equal([row["counterValues"] for row in rows if row["event"] == AT_EVENT][0], "'=1+1\"';=1000 b=10", "csv of odd names")


@test
def without_names():
    "a trace of before that has no names is shown with numbers in their place"
    report, text, rows = reported(counters())
    equal(sorted(name for e in report["counters"] if e["event"] == EXIT for name in e["means"]), ["value 0", "value 1"], "names")
    assert "value 1" in text, text
    equal([row["counterValues"] for row in rows if row["event"] == AT_EVENT][0], "1000 10", "csv")


@test
def memory_by_use():
    "regions by the share of passes in which they were used, the most used first"
    t = Trace(duration_ns=1000)
    t.event(REGION, "sample", [("pid", "uint32", "-"), ("pages", "uint32", "-"), ("address", "uint64", "-"),
                               ("size", "uint64", "-"), ("accessed", "uint32", "-"), ("huge", "uint32", "-")])
    t.event(PASS, "gauge", [("pid", "uint32", "-")])
    for number in range(4):
        for region, uses in enumerate(((0, 1, 0, 0), (1, 1, 1, 1), (0, 0, 0, 0))):
            t.add(REGION, number * 10 + region, [7, 5 + region, region << 21, 1 << 21, uses[number], 0], pid=0)
        if number > 1:  # it had no page before
            t.add(REGION, number * 10 + 5, [7, 1, 9 << 21, 1 << 21, 1, 0], pid=0)
        t.add(PASS, number * 10 + 9, [7], pid=0)
    report, text, _ = reported(t)
    equal([(m["pid"], m["address"] >> 21, m["bytes"], m["pages"], m["used"], m["passes"]) for m in report["memory"]],
          [(7, 1, 1 << 21, 6, 4, 4), (7, 9, 1 << 21, 1, 2, 4), (7, 0, 1 << 21, 5, 1, 4), (7, 2, 1 << 21, 7, 0, 4)],
          "regions")
    assert re.search(r" 0x200000 +2\.0 MiB +6 +100\.0 % of 4 passes$", text, re.M), text
    assert "3 of 4 regions with pages were used" in text, text


run_all()
