# SPDX-License-Identifier: MIT
"""
spec_versions.py - a spec that goes on: programs and traces made from its earlier editions
"""
import csv
import json
import os

from spec_program import FIRST, build
from tap import PEM, equal, need, run, run_all, test, tmp

SECOND = """<spec provider='till' description='a till'>
<event name='APP::Till::Closed' description='the day is over'>
<layerId value='APP'/><classId value='Till'/><specifier value='Closed'/></event>
<event name='APP::Till::Paid' version='2' description='someone paid'>
<layerId value='APP'/><classId value='Till'/><specifier value='Paid'/>
<fields><field name='cents' type='uint64' unit='cents' description='how much'/>
<field name='till' type='uint16' unit='none' description='at which till'/></fields>
</event></spec>"""


def record(folder, name, *programs):
    trace = os.path.join(folder, name)
    rc, _, err = run([PEM, "record", "-q", "--no-libc", "-o", trace, "--", "sh", "-c", "; ".join(programs)])
    equal(rc, 0, "record: " + err)
    return trace


def rows(trace):
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", trace])
    equal(rc, 0, "export: " + err)
    return [r for r in csv.DictReader(out.splitlines()) if r["event"].startswith("APP::Till")]


@test
def two_versions_in_one_trace():
    "programs of an event's first and second version are recorded side by side, each with its own fields"
    need("gcc")
    folder = tmp()
    old = build(folder, "old", FIRST % "someone paid", "pem_notify_till_paid(250)")
    new = build(folder, "new", SECOND, "pem_notify_till_paid(9900000000, 3)")
    trace = record(folder, "trace", old, new)
    equal([(r["event"], r["cents"], r["till"]) for r in rows(trace)],
          [("APP::Till::Paid", "250", ""), ("APP::Till::Paid", "9900000000", "3")], "events")
    rc, out, err = run([PEM, "report", trace])
    equal(sorted(line.split()[:2] for line in out.splitlines() if line.startswith("  APP::Till::")),
          [["APP::Till::Paid", "1"], ["APP::Till::Paid@2", "1"]], "report")
    rc, out, err = run([PEM, "report", "--json", trace])
    equal({(e["name"], e["version"]) for e in json.loads(out)["per_event"] if "Till" in e["name"]},
          {("APP::Till::Paid", 1), ("APP::Till::Paid", 2)}, "report --json")
    need("babeltrace2")
    rc, out, err = run(["babeltrace2", trace])
    equal((rc, err), (0, ""), "babeltrace2")
    paid = [line.split("}, {")[1].strip(" }\n") for line in out.splitlines() if "APP::Till::Paid" in line]
    equal(paid, ["cents = 250", "cents = 9900000000, till = 3"], "what babeltrace2 reads")


@test
def versions_can_be_told_apart():
    "list and stat show version 2 as NAME@2, and -e takes it for that version alone"
    need("gcc")
    folder = tmp()
    old = build(folder, "old", FIRST % "someone paid", "pem_notify_till_paid(250)")
    new = build(folder, "new", SECOND, "pem_notify_till_paid(9900000000, 3)")
    env = {"PEM_SPEC_PATH": folder + "/old:" + folder + "/new"}
    rc, out, err = run([PEM, "list", "Paid"], env=env)
    equal([line.split()[0] for line in out.splitlines()[1:]], ["APP::Till::Paid", "APP::Till::Paid@2"], "list " + err)
    assert run([PEM, "list", "-v", "Paid"], env=env)[1].count("APP::Till::Paid@2\n") == 1, "list -v"
    for pattern, wanted in (("Paid", {"": 1, "@2": 1}), ("Paid@1", {"": 1}), ("APP::Till::Paid@2", {"@2": 1})):
        _, _, err = run([PEM, "stat", "-q", "-f", "till", "-e", pattern, "--", "sh", "-c", old + ";" + new],
                        env=env) if pattern != "Paid@1" else run(
                            [PEM, "stat", "-q", "-e", pattern, "--", "sh", "-c", old + ";" + new], env=env)
        rows_of = [line.split()[:2] for line in err.splitlines() if line.startswith("  APP::Till::Paid")]
        equal({row[0].removeprefix("APP::Till::Paid"): int(row[1]) for row in rows_of}, wanted, "stat -e " + pattern)
        equal(len(rows_of), len(wanted), "rows of stat -e " + pattern)


@test
def a_compatible_edit_is_the_same_event():
    "programs made before and after a better description raise one event"
    need("gcc")
    folder = tmp()
    old = build(folder, "old", FIRST % "someone paid", "pem_notify_till_paid(1)")
    new = build(folder, "new", FIRST % "a customer has paid the whole bill", "pem_notify_till_paid(2)")
    trace = record(folder, "trace", old, new)
    equal([r["cents"] for r in rows(trace)], ["1", "2"], "events")
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "report: " + err)
    equal([e["count"] for e in json.loads(out)["per_event"] if e["name"] == "APP::Till::Paid"], [2], "events of one kind")


@test
def a_trace_of_an_older_spec_is_read():
    "a trace is read by the model it carries, whatever became of the spec"
    need("gcc")
    folder = tmp()
    trace = record(folder, "trace", build(folder, "old", FIRST % "someone paid", "pem_notify_till_paid(250)"))
    later = folder + "/later"
    os.mkdir(later)
    with open(later + "/till.xml", "w", encoding="utf-8") as f:
        f.write(SECOND)
    rc, out, err = run([PEM, "export", "--to", "csv", "-o", "-", trace], env={"PEM_SPEC_PATH": later})
    equal(rc, 0, "export: " + err)
    equal([r["cents"] for r in csv.DictReader(out.splitlines()) if r["event"] == "APP::Till::Paid"], ["250"], "events")


run_all()
