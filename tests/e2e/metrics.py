# SPDX-License-Identifier: MIT
"""metrics: numbers that a spec declares of its events: in the trace, in pem report, in pem diff; and wrong declarations"""
import json
import os
import re

from tap import BUILD, PEM, ROOT, equal, need, run, run_all, skip, test, tmp
from trace_files import Trace

SPEC = """<?xml version='1.0' encoding='UTF-8'?>
<spec provider='oven' version='1.0' description='An oven'>
  <event name='APP::Oven::Loaf' description='a loaf is put in'>
    <layerId value='APP'/><classId value='Oven'/><specifier value='Loaf'/>
    <fields><field name='grams' type='uint32' unit='grams' role='size' description='weight of the dough'/></fields>
  </event>
  <event name='APP::Oven::Bread' description='a bread is taken out'>
    <layerId value='APP'/><classId value='Oven'/><specifier value='Bread'/>
    <fields><field name='grams' type='uint32' unit='grams' role='size' description='weight of the bread'/></fields>
  </event>
%s</spec>
"""
METRICS = """  <metric name='APP::Oven::Weight' form='ratio' of='APP::Oven::Loaf.grams' to='APP::Oven::Loaf' unit='grams' description='mean weight'/>
  <metric name='APP::Oven::Lost' form='difference' of='APP::Oven::Loaf.grams' to='APP::Oven::Bread.grams' unit='grams' description='water'/>
  <metric name='APP::Oven::Pace' form='rate' of='APP::Oven::Bread' unit='breads' description='breads in a second'/>
  <metric name='APP::Oven::Baking' form='between' of='APP::Oven::Loaf' to='APP::Oven::Bread' unit='ns' description='time in the oven'/>
"""
PROGRAM = """#include "oven.h"
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 10; i++) {
		pem_notify_oven_loaf(1000 + i);
		usleep(3000);
		pem_notify_oven_bread(800);
	}
	return 0;
}
"""


def checked(metrics):
    path = os.path.join(tmp(), "oven.xml")
    with open(path, "w", encoding="utf-8") as out:
        out.write(SPEC % metrics)
    return path, run([PEM, "spec", "check", path])


def built():
    """A program with the spec's events."""
    need("gcc")
    spec, (rc, _, err) = checked(METRICS)
    equal((rc, err), (0, ""), "check")
    folder = os.path.dirname(spec)
    equal(run([PEM, "gen", "-q", "-o", folder, spec])[0], 0, "gen")
    program = os.path.join(folder, "oven")
    with open(program + ".c", "w", encoding="ascii") as out:
        out.write(PROGRAM)
    rc, _, err = run(["gcc", "-O1", "-I" + folder, "-I" + os.path.join(ROOT, "spec/abi"), program + ".c", "-o", program, "-ldl"])
    equal(rc, 0, err)
    return program


def recorded(events="APP::Oven"):
    trace = os.path.join(tmp(), "trace")
    rc, _, err = run([PEM, "record", "-q", "-e", events, "-o", trace, "--", built()])
    equal(rc, 0, err)
    return trace


@test
def a_spec_s_metrics_are_reported():
    "a ratio, a difference and a rate travel in the program and its trace, and the report has their values"
    trace = recorded()
    found = {m["metric"]: m for m in json.loads(run([PEM, "report", "--json", trace])[1])["metrics"]}
    equal(found["APP::Oven::Weight"]["value"], 1004.5, "mean weight")
    equal((found["APP::Oven::Lost"]["value"], found["APP::Oven::Lost"]["unit"]), (2045.0, "grams"), "water")
    assert 1 < found["APP::Oven::Pace"]["value"] < 334, found
    assert 3e6 < found["APP::Oven::Baking"]["value"] < 1e9, found
    equal(found["APP::Oven::Baking"]["unit"], "ns", "unit of a time")
    text = run([PEM, "report", trace])[1]
    assert "Metrics\n" in text and "APP::Oven::Weight" in text and "grams" in text, text
    assert re.search(r"APP::Oven::Baking +[\d.]+ ms", text), text


def by_hand():
    """A trace of two phases, with an event of a size, and a counter, in both."""
    trace = Trace(duration_ns=10 ** 9)
    for which in ("Begin", "End"):
        trace.event("APP::Work::" + which, "interval-" + which.lower(), [("name", "string", "name")], group="APP::Work")
    trace.event("APP::Test::Sale", "-", [("cents", "uint64", "size")])
    trace.event("APP::Test::Paid")
    trace.event("HW::Test::Cycles", "counter", [("value", "uint64", "value")])
    trace.metric("APP::Test::Price", "ratio", ("APP::Test::Sale", "cents"), ("APP::Test::Sale", ""), "cents")
    trace.metric("APP::Test::Pace", "rate", ("APP::Test::Sale", ""), unit="sales")
    trace.metric("APP::Test::Effort", "ratio", ("HW::Test::Cycles", "value"), ("APP::Test::Sale", ""), "cycles")
    trace.metric("APP::Test::Till", "between", ("APP::Test::Sale", ""), ("APP::Test::Paid", ""), "ns")
    return trace


@test
def metrics_of_phases():
    "each name of phases has the metrics of what happened within: counts, sums, what counters counted, in its own time"
    trace = by_hand()
    trace.add("HW::Test::Cycles", 0, [1000])
    for name, begin, sales in ((b"morning", 1000, (100, 300)), (b"evening", 500_001_000, (50, 60, 70))):
        trace.add("APP::Work::Begin", begin, [name])
        for i, cents in enumerate(sales):
            trace.add("APP::Test::Sale", begin + 1000 + i, [cents])
        trace.add("HW::Test::Cycles", begin + 2000, [1000 + begin])
        trace.add("APP::Work::End", begin + 100_000_000, [name])
    trace.add("APP::Test::Sale", 900_000_000, [10000])
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    phases = {p["name"]: {m["metric"]: m["value"] for m in p["metrics"]}
              for p in json.loads(run([PEM, "report", "--json", folder])[1])["phases"]}
    equal(phases, {"morning": {"APP::Test::Price": 200.0, "APP::Test::Pace": 20.0, "APP::Test::Effort": 500.0},
                   "evening": {"APP::Test::Price": 60.0, "APP::Test::Pace": 30.0, "APP::Test::Effort": 500_000_000 / 3}}, "metrics")
    text = run([PEM, "report", "--by", "phase", folder])[1]
    assert re.search(r"evening +APP::Test::Price +60.00 +cents", text), text


@test
def what_was_not_counted():
    "a metric of a counter without a reading has no value, in the report, its phases, the page and pem diff; of an event that did not happen it has"
    trace = by_hand()
    trace.add("APP::Work::Begin", 1000, [b"work"])
    trace.add("APP::Test::Sale", 2000, [100])
    trace.add("APP::Work::End", 6000, [b"work"])
    trace.metric("APP::Test::Unpaid", "difference", ("APP::Test::Sale", ""), ("APP::Test::Paid", ""), "sales")
    trace.metric("APP::Test::Share", "quotient", ("64*HW::Test::Cycles.value", ""), ("APP::Test::Sale.cents", ""), "cycles")
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    report = json.loads(run([PEM, "report", "--json", folder])[1])
    known = {"APP::Test::Price", "APP::Test::Pace", "APP::Test::Unpaid"}
    equal({m["metric"] for m in report["metrics"]}, known, "of the trace")
    equal({m["metric"] for m in report["phases"][0]["metrics"]}, known, "of the phase")
    for command in (["report", folder], ["diff", "--json", folder, folder]):
        out = run([PEM, *command])[1]
        assert "APP::Test::Price" in out and "APP::Test::Share" not in out and "APP::Test::Effort" not in out, out


def metrics_of(trace, name):
    """Names of the metrics of a trace, and of its phase."""
    folder = os.path.join(tmp(), name)
    trace.write(folder)
    report = json.loads(run([PEM, "report", "--json", folder])[1])
    return [{m["metric"] for m in of["metrics"]} for of in (report, report["phases"][0])]


@test
def events_without_records_beside_gaps():
    "in a trace with gaps an event without records is known to be absent if programs raise it, and unknown if the kernel does"
    for source, known in (("stub", True), ("tracepoint", False)):
        trace = by_hand()
        trace.event("APP::Test::Absent")
        head = trace.model["APP::Test::Absent"][1]
        head[0] = head[0].replace("\tstub\t", "\t%s\t" % source)
        trace.metric("APP::Test::Rest", "difference", ("APP::Test::Sale", ""), ("APP::Test::Absent", ""), "sales")
        trace.add("APP::Work::Begin", 1000, [b"work"])
        trace.add("APP::Test::Sale", 2000, [100])
        trace.add("APP::Work::End", 6000, [b"work"])
        trace.gaps.append(("OS", "no rights"))
        equal(["APP::Test::Rest" in names for names in metrics_of(trace, source)], [known] * 2, "known, of source " + source)


@test
def events_of_which_some_were_lost():
    "a metric of an event of which records were discarded is printed neither of the trace nor of a phase"
    trace = by_hand()
    trace.add("APP::Work::Begin", 1000, [b"work"])
    trace.add("APP::Test::Sale", 2000, [100])
    trace.add("APP::Work::End", 6000, [b"work"])
    equal(["APP::Test::Price" in names for names in metrics_of(trace, "whole")], [True] * 2, "whole")
    trace.discarded["APP::Test::Sale"] = 1
    equal(["APP::Test::Price" in names for names in metrics_of(trace, "lost")], [False] * 2, "with a loss")


@test
def counters_that_can_not_be_counted():
    "where a counter is not to be had, pem stat and pem report print no metric of it"
    rc, out, _ = run([PEM, "list", "--json", "HW::HWPerf::CacheMisses"])
    if rc != 0 or json.loads(out)[0]["available"]:
        skip("this machine counts cache misses")
    for events in ("HW::HWPerf::CacheMisses,task-clock", "HW::*"):
        _, out, _ = run([PEM, "stat", "-q", "--json", "-e", events, "--", "true"])
        equal([m["metric"] for m in json.loads(out)["metrics"]], [], "stat -e " + events)
        trace = os.path.join(tmp(), "trace%d" % len(events))
        run([PEM, "record", "-q", "-e", events, "-o", trace, "--", "true"])
        equal(json.loads(run([PEM, "report", "--json", trace])[1])["metrics"], [], "report of " + events)


@test
def a_quotient_of_sums():
    "a quotient is worked out of all its terms with their factors, of the trace and of phases; one that lacks a term has no value"
    trace = by_hand()
    sale, paid, cycles = "APP::Test::Sale", "APP::Test::Paid", "HW::Test::Cycles.value"
    trace.metric("APP::Test::Share", "quotient", (f"3*{sale}.cents-2*{paid}+{sale}", ""), (f"4*{cycles}", ""), "shares")
    trace.metric("APP::Test::None", "quotient", (sale, ""), (f"{paid}-APP::Test::Gone", ""), "shares")
    trace.add("HW::Test::Cycles", 0, [1000])
    trace.add("APP::Work::Begin", 1000, [b"work"])
    trace.add(sale, 2000, [10])
    trace.add(sale, 3000, [20])
    trace.add(paid, 4000)
    trace.add("HW::Test::Cycles", 5000, [1050])
    trace.add("APP::Work::End", 6000, [b"work"])
    trace.add(paid, 7000)
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    report = json.loads(run([PEM, "report", "--json", folder])[1])
    values = {m["metric"]: m["value"] for m in report["metrics"]}
    equal(values["APP::Test::Share"], (3 * 30 - 2 * 2 + 2) / (4 * 1050), "of the trace")
    assert "APP::Test::None" not in values, values
    equal({m["metric"]: m["value"] for m in report["phases"][0]["metrics"]}["APP::Test::Share"], (3 * 30 - 2 + 2) / 200, "of the phase")
    rc, out, err = run([PEM, "diff", "--json", folder, folder])
    equal((rc, err), (0, ""), "diff")
    assert "APP::Test::Share" in out, out


@test
def wrong_sums_are_refused():
    "a sum that has no term where one belongs, too many of them, or that no quotient has, is an error with its line"
    loaf = "APP::Oven::Loaf"
    for form, of, words in (("quotient", loaf + " + -" + loaf, "of"), ("quotient", "0*" + loaf, "factor of 1 to 999"),
                            ("quotient", loaf + ".flour", "no field of this name"),
                            ("quotient", " + ".join([loaf] * 8), "9 terms: expected 8 at most"),
                            ("ratio", loaf + " + " + loaf, "expected form='quotient'")):
        rc, out, err = checked(f"  <metric name='APP::Oven::X' form='{form}' of='{of}' to='{loaf}' description='x'/>\n")[1]
        assert rc == 1 and words in out + err and "oven.xml:" in out + err, (of, rc, out, err)


@test
def a_metric_of_values_that_are_no_sizes():
    "a field of role value is summed for metrics, of the whole trace and of phases, though its last value is shown"
    trace = Trace(duration_ns=10 ** 9)
    for which in ("Begin", "End"):
        trace.event("APP::Work::" + which, "interval-" + which.lower(), [("name", "string", "name")], group="APP::Work")
    trace.event("APP::Test::Step", "-", [("error", "int64", "value")])
    trace.event("APP::Test::Call", "interval-begin", [], group="APP::Test::Call")
    trace.event("APP::Test::Return", "interval-end", [("answer", "uint32", "value")], group="APP::Test::Call")
    trace.metric("APP::Test::Error", "ratio", ("APP::Test::Step", "error"), ("APP::Test::Step", ""), "units")
    trace.metric("APP::Test::Answer", "ratio", ("APP::Test::Return", "answer"), ("APP::Test::Return", ""), "answers")
    trace.add("APP::Test::Step", 500, [-30])
    trace.add("APP::Work::Begin", 1000, [b"x"])
    for i, error in enumerate((5, -3, 7)):
        trace.add("APP::Test::Step", 2000 + i, [error])
    trace.add("APP::Test::Call", 2100)
    trace.add("APP::Test::Return", 2200, [42])
    trace.add("APP::Work::End", 3000, [b"x"])
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    report = json.loads(run([PEM, "report", "--json", folder])[1])
    equal({m["metric"]: m["value"] for m in report["metrics"]}, {"APP::Test::Error": -21 / 4, "APP::Test::Answer": 42.0}, "of the trace")
    phase = next(p for p in report["phases"] if p["name"] == "x")
    equal({m["metric"]: m["value"] for m in phase["metrics"]}, {"APP::Test::Error": 3.0, "APP::Test::Answer": 42.0}, "of the phase")


@test
def a_phase_s_own_begin_and_end_do_not_lie_within_it():
    "a metric of begins and ends of phases counts those of phases within, and neither of the phase's own"
    trace = by_hand()
    trace.metric("APP::Test::Open", "difference", ("APP::Work::Begin", ""), ("APP::Work::End", ""), "phases")
    trace.metric("APP::Test::Begun", "difference", ("APP::Work::Begin", ""), ("APP::Test::Paid", ""), "phases")
    for i, (which, name) in enumerate((("Begin", b"outer"), ("Begin", b"inner"), ("End", b"inner"), ("End", b"outer"))):
        trace.add("APP::Work::" + which, 1000 + i, [name])
    trace.add("APP::Test::Paid", 2000)
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    phases = {p["name"]: {m["metric"]: m["value"] for m in p["metrics"]}
              for p in json.loads(run([PEM, "report", "--json", folder])[1])["phases"]}
    equal({name: (m["APP::Test::Open"], m["APP::Test::Begun"]) for name, m in phases.items()},
          {"outer": (0.0, 1.0), "inner": (0.0, 0.0)}, "phases")


@test
def counters_of_phases():
    "what a counter counted before the first record of a flight recording is unknown; a value that falls is another counter's"
    for ran_ns, readings, expected in ((0, (1000, 1050), 1050.0), (10 ** 9, (10 ** 12, 10 ** 12 + 50), 50.0),
                                       (0, (10 ** 9, 100, 130), 10 ** 9 + 30.0)):
        trace = by_hand()
        if ran_ns:
            trace.run["ran_ns"] = ran_ns
        trace.add("APP::Work::Begin", 1000, [b"x"])
        trace.add("APP::Test::Sale", 1500, [100])
        for i, value in enumerate(readings):
            trace.add("HW::Test::Cycles", 2000 + i, [value])
        trace.add("APP::Work::End", 3000, [b"x"])
        folder = os.path.join(tmp(), "trace")
        trace.write(folder)
        (phase,) = json.loads(run([PEM, "report", "--json", folder])[1])["phases"]
        equal({m["metric"]: m["value"] for m in phase["metrics"]}["APP::Test::Effort"], expected, "of %r" % (readings,))


@test
def sums_of_phases_are_exact():
    "what was summed before a phase takes no digits from the sum within it"
    trace = by_hand()
    trace.add("APP::Test::Sale", 10, [1 << 60])
    for i in range(16):
        trace.add("APP::Test::Sale", 20 + i, [(1 << 64) - 1])
    trace.add("APP::Work::Begin", 1000, [b"x"])
    for i, cents in enumerate((100, 301)):
        trace.add("APP::Test::Sale", 2000 + i, [cents])
    trace.add("APP::Work::End", 3000, [b"x"])
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    (phase,) = json.loads(run([PEM, "report", "--json", folder])[1])["phases"]
    equal(phase["metrics"][0], {"metric": "APP::Test::Price", "value": 200.5}, "price")


@test
def times_between_events():
    "a time goes from the last first event to the next second one in the same thread"
    trace = by_hand()
    for tid, name, time in ((1, "Sale", 1000), (1, "Sale", 2000), (2, "Paid", 2500), (1, "Paid", 5000), (1, "Paid", 9000),
                            (2, "Sale", 10000), (2, "Paid", 11000)):
        trace.add("APP::Test::" + name, time, [5] if name == "Sale" else [], tid=tid)
    folder = os.path.join(tmp(), "trace")
    trace.write(folder)
    found = {m["metric"]: m["value"] for m in json.loads(run([PEM, "report", "--json", folder])[1])["metrics"]}
    equal(found["APP::Test::Till"], (3000 + 1000) / 2, "mean of 2000 to 5000 and 10000 to 11000")


@test
def they_are_counted_without_a_trace():
    "pem stat has those metrics whose counts and sums it keeps, and no others"
    program = built()
    rc, _, err = run([PEM, "stat", "-q", "--json", "-o", "/dev/fd/2", "-e", "APP::Oven", "-f", "grams", "--", program])
    equal(rc, 0, err)
    found = {m["metric"]: m for m in json.loads(err)["metrics"]}
    equal(sorted(found), ["APP::Oven::Lost", "APP::Oven::Pace", "APP::Oven::Weight"], "metrics")
    equal((found["APP::Oven::Weight"]["value"], found["APP::Oven::Lost"]["value"]), (1004.5, 2045.0), "weight and water")
    assert 1 < found["APP::Oven::Pace"]["value"] < 334, found
    rc, _, err = run([PEM, "stat", "-q", "-e", "APP::Oven", "--", program])
    equal(rc, 0, err)
    assert "APP::Oven::Pace" in err and "breads/s" in err and "Weight" not in err, err
    rc, _, err = run([PEM, "stat", "-q", "-e", "APP::Oven::Loaf", "-f", "grams", "--", program])
    equal(rc, 0, err)
    assert "APP::Oven::Weight" in err and "Lost" not in err and "Pace" not in err, err


@test
def they_are_compared():
    "pem diff has all four, the time between two events among them"
    rc, out, err = run([PEM, "diff", "--all", "--json", recorded(), recorded()])
    assert rc in (0, 5), err
    rows = {row["metric"]: row for row in json.loads(out)["metrics"]}
    assert {"APP::Oven::Weight", "APP::Oven::Lost", "APP::Oven::Pace", "APP::Oven::Baking"} <= set(rows), sorted(rows)
    equal([round(rows["APP::Oven::Weight"]["a"], 6), round(rows["APP::Oven::Lost"]["b"], 6)], [1004.5, 2045.0], "weight and water")
    assert 3e6 < rows["APP::Oven::Baking"]["a"] < 1e9, rows["APP::Oven::Baking"]


@test
def a_part_of_a_term_is_not_compared():
    "where one run recorded a term's event with a predicate, pem diff does not compare what is made of it"
    rc, out, err = run([PEM, "diff", "--all", "--json", recorded(), recorded("APP::Oven::Loaf,APP::Oven::Bread where grams > 900")])
    assert rc in (0, 4, 5), err
    names = {row["metric"] for row in json.loads(out)["metrics"]}
    equal(sorted(names & {"APP::Oven::Weight", "APP::Oven::Lost", "APP::Oven::Pace"}), ["APP::Oven::Weight"], "metrics compared")


@test
def a_metric_without_its_events():
    "a trace that lacks an event of a metric does not have the metric"
    trace = os.path.join(tmp(), "trace")
    equal(run([PEM, "record", "-q", "-e", "APP::Libc::Free", "-o", trace, "--", "true"])[0], 0, "record")
    equal(json.loads(run([PEM, "report", "--json", trace])[1])["metrics"], [], "metrics")
    equal(run([PEM, "record", "-q", "-e", "APP::Libc::Malloc", "-o", trace + "2", "--", "ls", "/"])[0], 0, "record")
    found = json.loads(run([PEM, "report", "--json", trace + "2"])[1])
    equal([m["metric"] for m in found["metrics"]], ["APP::Libc::MeanRequest"], "metrics")
    malloc = [e for e in found["per_event"] if e["name"] == "APP::Libc::Malloc"][0]
    assert abs(found["metrics"][0]["value"] - malloc["sum"] / malloc["count"]) < 1e-6, found["metrics"]


@test
def wrong_declarations():
    "each mistake in a metric is named where it is, and says what is expected"
    line = "  <metric name='APP::Oven::%s' form='%s' of='%s'%s unit='none' description='x'/>\n"
    cases = (
        (("M", "ratio", "APP::Oven::Loaf", ""), "lacks to=''"),
        (("M", "rate", "APP::Oven::Loaf", " to='APP::Oven::Bread'"), "is a rate and has to=''"),
        (("M", "ratio", "APP::Oven::Loaf.kilos", " to='APP::Oven::Bread'"), "no field of this name"),
        (("M", "between", "APP::Oven::Loaf.grams", " to='APP::Oven::Bread'"), "expected no fields"),
        (("Loaf", "rate", "APP::Oven::Loaf", ""), "an event has the name"),
        (("M", "sum", "APP::Oven::Loaf", ""), "'rate', 'ratio', 'difference', 'between' or 'quotient'"),
        (("M", "rate", "Loaf", ""), "APP::Shop::Sale.cents"),
    )
    for words, expected in cases:
        rc, out, err = checked(line % words)[1]
        equal(rc, 1, "status of %s (%s)" % (words, out))
        assert expected in err and "oven.xml:11" in err, (words, err)
    path = checked("")[0]
    with open(path, encoding="utf-8") as spec:
        text = spec.read().replace("role='size' description='weight of the bread'/>", "role='size' description='weight of the bread'/>"
                                   "<field name='price' type='uint32' unit='cents' role='value' description='what it is sold for'/>")
    with open(path, "w", encoding="utf-8") as out:
        out.write(text.replace("</spec>", line % ("M", "ratio", "APP::Oven::Bread.price", " to='APP::Oven::Bread'") + "</spec>"))
    rc, _, err = run([PEM, "spec", "check", path])
    assert rc == 1 and "expected 'grams'" in err, err
    rc, _, err = checked(line % ("M", "rate", "APP::Oven::Loaf", "") * 2)[1]
    assert rc == 1 and "a second metric 'APP::Oven::M'" in err, err


run_all()
