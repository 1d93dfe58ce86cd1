# SPDX-License-Identifier: MIT
"""report_percentiles: what pem report gives as percentiles is, to the error that it states, what a script finds in the exported records"""
import csv
import json
import os

import probing
from tap import PEM, equal, run, run_all, test, tmp
from trace_files import Trace

SHARES = {"p50": 500, "p90": 900, "p99": 990, "p99_9": 999}


def exact(values, per_mille):
    """The value of rank ceil(n * share), from 1 on."""
    return sorted(values)[max(1, -(-len(values) * per_mille // 1000)) - 1]


def compare(entry, values, error, suffix, what):
    for key, per_mille in SHARES.items():
        true, given = exact(values, per_mille), entry[key + suffix]
        assert abs(given - true) <= error * true, "%s: %s is %s, exactly %s" % (what, key, given, true)


def report(trace):
    rc, out, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, err)
    return json.loads(out)


def records(trace):
    table = os.path.join(tmp(), "t.csv")
    equal(run([PEM, "export", "--to", "csv", "-o", table, trace])[0], 0, "export")
    with open(table, encoding="utf-8", newline="") as text:
        yield from csv.DictReader(text)


@test
def sizes_of_a_program():
    "sizes of allocations: each percentile beside the sorted sizes"
    trace = os.path.join(tmp(), "trace")
    equal(run([PEM, "record", "-q", "-e", "APP::Libc::Malloc", "-o", trace, "--", "ls", "-lR", "/usr/share/doc"])[0], 0, "record")
    sizes = [int(row["size"]) for row in records(trace)]
    found = report(trace)
    (event,) = [e for e in found["per_event"] if e["name"] == "APP::Libc::Malloc"]
    assert len(sizes) > 1000 and len(set(sizes)) > 10, (len(sizes), len(set(sizes)))
    equal(event["count"], len(sizes), "allocations")
    assert found["info"]["percentile_error"] < 0.01, found["info"]
    compare(event, sizes, found["info"]["percentile_error"], "", "sizes")


@test
def calls_of_a_program():
    "durations of system calls, by name and as intervals: each percentile beside the sorted durations"
    probing.here()
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", "OS::Syscall::Enter,OS::Syscall::Exit", "-o", trace, "--", "dd", "if=/dev/zero", "of=/dev/null",
                      "bs=4096", "count=5000", "status=none"])
    equal(rc, 0, err)
    begins, took = {}, {}
    for row in records(trace):
        if row["event"] == "OS::Syscall::Enter":
            begins[row["tid"]] = row["number"], int(row["time_ns"])
        elif row["event"] == "OS::Syscall::Exit" and row["tid"] in begins:
            number, begin = begins.pop(row["tid"])
            took.setdefault(number, []).append(int(row["time_ns"]) - begin)
    found = report(trace)
    error = found["info"]["percentile_error"]
    for name in ("read", "write"):
        calls = [c for c in found["system_calls"] if c["call"] == name]
        (interval,) = [i for i in found["intervals"] if i["interval"].endswith(" " + name)]
        equal((sum(c["count"] for c in calls), interval["count"]), (len(took[name]),) * 2, name)
        compare(interval, took[name], error, "_ns", name)
        if len(calls) == 1:
            compare(calls[0], took[name], error, "_ns", name + " by call")


@test
def durations_of_known_truth():
    "intervals whose durations are of many orders"
    trace = Trace(duration_ns=10 ** 15)
    begin = trace.event("APP::T::Begin", "interval-begin", [("number", "uint64", "-")], group="APP::T", scope="thread")
    end = trace.event("APP::T::End", "interval-end", [("number", "uint64", "-")], group="APP::T", scope="thread")
    at, took = 10, []
    for i in range(3000):
        took.append(3 + (i * 7919 % 3000) ** 3)
        trace.add(begin, at, [i])
        trace.add(end, at + took[-1], [i])
        at += took[-1] + 5
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    found = report(folder)
    (interval,) = found["intervals"]
    equal(interval["count"], 3000, "intervals")
    compare(interval, took, found["info"]["percentile_error"], "_ns", "intervals")


@test
def floating_and_negative_values():
    "of a floating field the percentiles are of the values that are summed"
    trace = Trace(duration_ns=10 ** 9)
    event = trace.event("APP::T::Weighed", "-", [("weight", "float64", "size")])
    values = [1.0 + i / 1000 for i in range(1000)] + [-5.0]
    for i, value in enumerate(values):
        trace.add(event, i, [value])
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    found = report(folder)
    (weighed,) = [e for e in found["per_event"] if e["name"] == event]
    compare(weighed, [v for v in values if v >= 0], found["info"]["percentile_error"], "", "values")


@test
def narrow_terminals():
    "in a narrow terminal some percentiles are left out and rows stay one line; elsewhere all are there"
    trace = Trace(duration_ns=10 ** 9)
    begin = trace.event("APP::T::Begin", "interval-begin", [("number", "uint64", "-")], group="APP::T", scope="thread")
    end = trace.event("APP::T::End", "interval-end", [("number", "uint64", "-")], group="APP::T", scope="thread")
    for i in range(100):
        trace.add(begin, 1000 * i, [i])
        trace.add(end, 1000 * i + 500, [i])
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    heads = {}
    for width in (70, 80, 100, 120):
        out = run([PEM, "report", "--by", "interval", folder], env={"COLUMNS": str(width)})[1]
        (head,) = [line for line in out.splitlines() if line.startswith("INTERVAL")]
        assert "LONGEST" in head and "P99" in head and len(head) <= width, (width, out)
        heads[width] = head
    assert "P99.9" not in heads[70] and "P99.9" in heads[120], heads
    out = run([PEM, "report", "--by", "interval", folder], env={"COLUMNS": ""})[1]
    assert "P50" in out and "P90" in out and "P99.9" in out, out


run_all()
