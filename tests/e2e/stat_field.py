# SPDX-License-Identifier: MIT
"""stat_field: what pem stat says of a field beyond its sum: histogram, frequent values, deviation"""
import csv
import json
import os
import re

from probe_trace import program
from tap import PEM, ROOT, equal, need, run, run_all, skip, test, tmp

KEEP = ["--histogram", "--top", "--variance"]


def stat(*options, event="APP::Types::Integers", field="u16"):
    """Of the program types, which raises Integers with u16 0, 65535 and 3. Standard output and error."""
    rc, out, err = run([PEM, "stat", "-q", "-e", event, "-f", field, *options, "--", program("types")[0]],
                       env={"COLUMNS": "120", "PEM_SPEC_PATH": os.path.join(ROOT, "tests/programs")})
    equal(rc, 0, "status, after " + err)
    return out, err


@test
def json_has_all():
    "--json has the variance, buckets that hold a value, and values with bounds"
    event = json.loads(stat("--json", *KEEP)[0])["events"][0]
    equal(round(event["variance"]), round(sum((v - 21846) ** 2 for v in (0, 65535, 3)) / 3), "variance")
    equal(event["histogram"], [{"below": 1, "count": 1}, {"from": 2, "below": 4, "count": 1},
                               {"from": 32768, "below": 65536, "count": 1}], "histogram")
    equal(event["top"], [{"value": v, "count": 1, "error": 0} for v in (0, 3, 65535)], "top")


@test
def output_to_standard_output():
    "-o - is standard output, of the table and of JSON, and no file of that name is made"
    folder = tmp()
    for options, begins in (["-o", "-"], "true ran for "), (["--json", "-o", "-"], "{"):
        rc, out, err = run([PEM, "stat", "-q", "-e", "Malloc", *options, "--", "true"], cwd=folder)
        equal((rc, err), (0, ""), "status and standard error")
        assert out.lstrip().startswith(begins), out
        equal(os.listdir(folder), [], "files")


@test
def signed_values_keep_their_sign():
    "frequent values of a signed field are signed, and those below zero share a bucket"
    event = json.loads(stat("--json", *KEEP, field="i64")[0])["events"][0]
    equal([v["value"] for v in event["top"]], [0, -2 ** 63, -6][:1] + sorted([-2 ** 63, -6], key=lambda v: v % 2 ** 64),
          "values")
    equal(event["histogram"], [{"below": 1, "count": 3}], "histogram")


@test
def floating_values_are_numbers():
    "frequent values of a floating field are numbers"
    event = json.loads(stat("--json", "--top", event="APP::Types::Floats", field="f32")[0])["events"][0]
    equal(sorted(v["value"] for v in event["top"])[:2], [-1.5, 0], "values")
    assert "variance" not in event and "histogram" not in event, event


@test
def charts_fit_80_columns():
    "the charts say bounds, counts and values in lines of at most 80 columns"
    _, err = stat(*KEEP)
    for words in ("DEVIATION", "0 or less", "32,768", "65,536", "most frequent u16", "AT MOST", "########"):
        assert words in err, "%r is not in %r" % (words, err)
    equal([line for line in err.splitlines() if len(line) > 80 and " ran for " not in line], [],
          "long lines")
    assert "\x1b" not in err, "colours where there is no terminal"


@test
def a_share_has_bounds():
    "of more values than are kept, the share of a frequent one is a range that contains the true one; of few it is exact"
    source = os.path.join(tmp(), "sizes.c")
    with open(source, "w", encoding="ascii") as out:
        out.write("#include <stdlib.h>\nint main(void) { for (int i = 0; i < 30000; i++) "
                  "{ free(malloc(i % 3 ? 5000 + i * 7919 % 997 : 4096)); } return 0; }\n")
    need("gcc")
    equal(run(["gcc", "-O0", "-fno-builtin", "-o", source[:-2], source])[0], 0, "gcc")
    command = [PEM, "stat", "-q", "-e", "APP::Libc::Malloc", "-f", "size", "--top"]
    _, out, _ = run([*command, "--json", "--", source[:-2]])
    event = json.loads(out)["events"][0]
    bounds = {v["value"]: (v["count"] - v["error"], v["count"]) for v in event["top"]}
    assert bounds[4096][0] <= 10000 <= bounds[4096][1], bounds
    rows = re.findall(r"^ +([\d.,]+ \w+) +([\d,]+) +([\d,]+) +([\d.<]+)(?: to ([\d.]+))? %$", run([*command, "--", source[:-2]])[2], re.M)
    assert len(rows) == 10, rows
    for value, most, least, low, high in rows:
        most, least = (int(n.replace(",", "")) for n in (most, least))
        equal(bool(high), most != least, "bounds of " + value)
        if high:
            assert abs(float(low) - 100 * least / event["count"]) < 0.1, (value, rows)
        if value == "4.0 KiB":
            assert float(low) <= 100 * 10000 / event["count"] + 0.05 and 100 * 10000 / event["count"] <= float(high or low) + 0.05, rows


@test
def percentiles_have_bounds():
    "a histogram gives bounds of percentiles, which hold the value that a recording of the same program has at that rank"
    source, trace, table = (os.path.join(tmp(), name) for name in ("sizes.c", "trace", "t.csv"))
    with open(source, "w", encoding="ascii") as out:
        out.write("#include <stdlib.h>\nint main(void) { for (long i = 0; i < 5000; i++) "
                  "{ free(malloc(1 + (i * 7919 % 5000) * (i * 7919 % 5000))); } return 0; }\n")
    need("gcc")
    equal(run(["gcc", "-O0", "-fno-builtin", "-o", source[:-2], source])[0], 0, "gcc")
    _, out, err = run([PEM, "stat", "-q", "-e", "APP::Libc::Malloc", "-f", "size", "--histogram", "--json", "--", source[:-2]])
    event = json.loads(out)["events"][0]
    equal(run([PEM, "record", "-q", "-e", "APP::Libc::Malloc", "-o", trace, "--", source[:-2]])[0], 0, "record")
    equal(run([PEM, "export", "--to", "csv", "-o", table, trace])[0], 0, "export")
    with open(table, encoding="utf-8", newline="") as text:
        sizes = sorted(int(row["size"]) for row in csv.DictReader(text))
    equal(event["count"], len(sizes), "allocations of both runs")
    for key, share in (("p50", 500), ("p90", 900), ("p99", 990), ("p99_9", 999)):
        exact, bounds = sizes[-(-len(sizes) * share // 1000) - 1], event[key]
        assert bounds["from"] <= exact <= bounds["to"] < 2 * bounds["from"], (key, exact, bounds)
    few = json.loads(stat("--json", "--histogram")[0])["events"][0]
    equal((few["p50"], few["p99"]), ({"from": 2, "to": 3}, {"from": 32768, "to": 65535}), "of 0, 3 and 65535")
    signed = json.loads(stat("--json", "--histogram", field="i64")[0])["events"][0]
    equal(signed["p99_9"], {"from": -2 ** 63, "to": 0}, "values of 0 and below share a bucket")
    assert " p50 2 to 3, p90 32,768 to 65,535" in stat("--histogram")[1], err


@test
def what_did_not_occur():
    "events that did not occur are a number below the table, rows with -z, and objects of JSON"
    command = [PEM, "stat", "-q", "-e", "Malloc,Phase"]
    for options, shown in ([], False), (["-z"], True):
        _, _, err = run(command + options + ["--", "ls", "/"])
        assert "Libc::Malloc" in err, err
        equal("Phase::Begin" in err, shown, "a row with %r: %s" % (options, err))
        equal("2 events did not occur; -z lists them" in err, not shown, "a number with %r: %s" % (options, err))
    _, out, _ = run(command + ["--json", "--", "sh", "-c", "ls / >/dev/null"])
    equal(sorted(e["name"] for e in json.loads(out)["events"] if not e["count"]), ["APP::Phase::Begin", "APP::Phase::End"], "JSON")


@test
def a_field_is_needed():
    "without -f, or with counters only, it says what is missing"
    rc, _, err = run([PEM, "stat", "--top", "--", "true"])
    equal(rc, 1, "status")
    assert "-f" in err, err
    rc, _, err = run([PEM, "stat", "-e", "HW::Software::ContextSwitches", "-f", "value", "--top", "--", "true"])
    equal(rc, 2, "status")
    assert "of the application and the kernel" in err, err


@test
def kernel_events_are_distributed_too():
    "a field of a kernel event has its histogram, which adds up to its count"
    there = json.loads(run([PEM, "list", "--json", "OS::Syscall::Enter"])[1])[0]
    if not there["available"]:
        skip("OS::Syscall::Enter: " + there["reason"])
    _, out, _ = run([PEM, "stat", "-q", "--json", *KEEP, "-e", "OS::Syscall::Enter", "-f", "number", "--", "true"])
    event = json.loads(out)["events"][0]
    assert event["count"] > 0 and event["variance"] > 0, event
    equal(sum(b["count"] for b in event["histogram"]), event["count"], "values in the histogram")


@test
def sums_that_pass_64_bits():
    "a sum of large values, which may have passed 64 bits, is unknown and so is the mean; those of small ones are known"
    for field in "u64", "i64":
        event = json.loads(stat("--json", field=field)[0])["events"][0]
        equal((event.get("may_have_overflowed"), "mean" in event), (True, False), "what is said of " + field)
        _, err = stat(field=field)
        equal(err.split("Types::Integers")[1].split("\n")[0].count("unknown"), 2, "sum and mean in: " + err)
    event = json.loads(stat("--json")[0])["events"][0]
    equal((event["sum"], "may_have_overflowed" in event), (65538, False), "a sum that is known")


run_all()
