# SPDX-License-Identifier: MIT
"""report_sums: what pem report adds up: sums that pass 64 bits, allocations that failed"""
import json
import os

from tap import PEM, equal, run, run_all, test, tmp
from trace_files import Trace

ALLOC = "APP::Test::Alloc"
FIELDS = [("asked", "uint64", "size"), ("got", "uint64", "address")]


def report(trace):
    """What a trace says as JSON, by event, and as text."""
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    rc, out, err = run([PEM, "report", "--json", folder])
    equal(rc, 0, "status (stderr: %s)" % err)
    rc, text, err = run([PEM, "report", "--by", "event", folder])
    equal(rc, 0, "status of the text (stderr: %s)" % err)
    return {e["name"]: e for e in json.loads(out)["per_event"]}, " ".join(text.split())


@test
def failed_allocations():
    "an allocation that got no memory is counted as failed, whatever its event is called, and its size is not summed"
    trace = Trace()
    trace.event(ALLOC, "allocation", FIELDS, unit="bytes")
    trace.event("APP::Test::Other", "-", FIELDS, unit="bytes")
    for i, (size, address) in enumerate([(100, 4096), (1 << 62, 0), (300, 8192), (7, 0), (0, 0)]):
        trace.add(ALLOC, i, [size, address])
        trace.add("APP::Test::Other", i, [size, address])
    events, text = report(trace)
    alloc, other = events[ALLOC], events["APP::Test::Other"]
    equal((alloc["count"], alloc["sum"], alloc["failed"]), (5, 400, 2), "count, sum, failed")
    equal(alloc["mean"], 400 / 3, "mean of those that did not fail")
    assert "mean 133 B, p50 100 B, p90 300 B, p99 300 B, p99.9 300 B; 2 failed" in text, text
    equal((other["sum"], "failed" in other), ((1 << 62) + 407, False), "an event that is no allocation")


@test
def all_failed():
    "where every allocation failed there is no sum, and this is said"
    trace = Trace()
    trace.event(ALLOC, "allocation", FIELDS, unit="bytes")
    trace.add(ALLOC, 1, [100, 0])
    events, text = report(trace)
    equal((events[ALLOC]["sum"], events[ALLOC]["failed"], "mean" in events[ALLOC]), (0, 1, False), "sum, failed, mean")
    assert "1 failed" in text and "in all" not in text, text


@test
def sums_over_64_bits():
    "a sum that passes 64 bits is said to be over them and does not begin again at 0; the mean is right"
    trace = Trace()
    trace.event(ALLOC, "allocation", FIELDS, unit="bytes")
    for i in range(5):
        trace.add(ALLOC, i, [1 << 62, 4096])
    trace.add(ALLOC, 6, [5, 4096])
    events, text = report(trace)
    equal((events[ALLOC]["sum"], events[ALLOC]["overflowed"]), ((1 << 64) - 1, True), "sum")
    equal(events[ALLOC]["mean"], float(5 * (1 << 62) + 5) / 6, "mean")
    assert "in all over 16.0 EiB" in text, text


@test
def a_sum_that_fits():
    "the greatest sum of 64 bits is no overflow"
    trace = Trace()
    trace.event(ALLOC, "allocation", FIELDS, unit="bytes")
    trace.add(ALLOC, 1, [(1 << 64) - 2, 4096])
    trace.add(ALLOC, 2, [1, 4096])
    events, text = report(trace)
    equal((events[ALLOC]["sum"], "overflowed" in events[ALLOC]), ((1 << 64) - 1, False), "sum")
    assert "in all 16.0 EiB" in text, text


@test
def counters_over_64_bits():
    "counters of several processes whose sum passes 64 bits, too"
    trace = Trace()
    name = trace.event("APP::Test::Work", "counter", [("done", "uint64", "value")])
    for pid in (1, 2):
        trace.add(name, pid, [1 << 63], pid=pid)
    events, _ = report(trace)
    equal((events[name]["last"], events[name]["overflowed"]), ((1 << 64) - 1, True), "their sum")


WORK = "APP::Work::"
FAR = (1 << 63) + 5


def phases(*intervals):
    """A trace of phases: name, begin, end."""
    trace = Trace(duration_ns=FAR)
    for which in ("Begin", "End"):
        trace.event(WORK + which, "interval-" + which.lower(), [("name", "string", "name")], group="APP::Work")
    for name, begin, end in intervals:
        trace.add(WORK + "Begin", begin, [name])
        trace.add(WORK + "End", end, [name])
    return trace


@test
def durations_over_64_bits():
    "a sum of durations that passes 64 bits is said to be over them, and has no mean"
    trace = phases()
    for thread in (1, 2):
        trace.add(WORK + "Begin", 0, [b"long"], tid=thread)
    for thread in (1, 2):
        trace.add(WORK + "End", FAR, [b"long"], tid=thread)
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    told = json.loads(run([PEM, "report", "--json", folder])[1])
    equal(told["phases"][0]["duration_ns"], (1 << 64) - 1, "of phases")
    equal(told["intervals"][0]["total_ns"], (1 << 64) - 1, "of intervals")
    rows = [line.split() for line in run([PEM, "report", "--by", "interval", folder])[1].splitlines()
            if line.startswith("APP::Work")]
    equal(rows[0][1:5], ["long", "2", "over", "5,124,095"], "count and total")
    # The total, the longest and four percentiles: each duration is known, so only their mean is not.
    equal(rows[0].count("h"), 6, "a mean of what is not known: %s" % rows)


@test
def names_of_phases_without_end():
    "a trace of ever new names of phases takes a bounded number of rows: the rest share one"
    folder = os.path.join(tmp(), "trace")
    phases(*[(b"n%d" % i, 2 * i, 2 * i + 1) for i in range(70000)]).write(folder)
    told = json.loads(run([PEM, "report", "--json", folder])[1])["phases"]
    equal(len(told), 65537, "rows")
    equal(sum(phase["times"] for phase in told), 70000, "phases in all")
    equal([p["times"] for p in told if p["name"] == "(other names)"], [70000 - 65536], "in the row of the rest")
    text = run([PEM, "report", folder])[1]
    assert "and 65,487 more (--by phase)" in text, text


@test
def events_within_phases():
    "a phase counts the events within it, also those that occur first after it began"
    trace = phases((b"outer", 0, 100), (b"inner", 40, 60))
    names = [trace.event("APP::Test::E%d" % i) for i in range(3)]
    for i, time in enumerate((10, 50, 200)):
        trace.add(names[i], time)
    trace.add(names[1], 70)
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    told = {p["name"]: p["events"] for p in json.loads(run([PEM, "report", "--json", folder])[1])["phases"]}
    equal({k: v for k, v in told["outer"].items() if "::Test::" in k}, {names[0]: 1, names[1]: 2}, "outer")
    equal({k: v for k, v in told["inner"].items() if "::Test::" in k}, {names[1]: 1}, "inner")


run_all()
