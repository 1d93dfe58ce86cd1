# SPDX-License-Identifier: MIT
"""stat_interval: pem stat -i, rates as they change"""
import json
import re

from tap import PEM, equal, run, run_all, test

# Seconds, event, count, rate; with a field its sum, the sum's rate and mean.
LINE = re.compile(r" *(\d+\.\d{3})  (\S+) +([\d,]+) +([\d,.]+)/s(?: +(\S+(?: \w+)?) +(\S+(?: \S+)?)/s +(\S+(?: \w+)?))?")
PROGRAM = ["sh", "-c", "i=0; while [ $i -lt 8 ]; do ls / >/dev/null; sleep 0.03; i=$((i + 1)); done"]


def intervals(*options):
    """What pem stat -i prints of PROGRAM: the lines before the table of the whole, and that."""
    rc, _, err = run([PEM, "stat", *options, "--", *PROGRAM])
    equal(rc, 0, "exit status, having said: " + err)
    live, _, whole = err.partition("\n\n")
    return live.splitlines(), whole


@test
def one_header_steady_columns():
    "one header, and columns that keep their places"
    lines, _ = intervals("-e", "Malloc,Free", "-f", "size", "-i", "40")
    equal(lines[0].split(), ["SECONDS", "EVENT", "COUNT", "RATE", "SUM", "SUM/S", "MEAN"], "header")
    assert len(lines) > 5, "only these lines: %r" % lines
    count_ends = lines[0].index("COUNT") + 5
    for line in lines[1:]:
        if line.endswith("none came"):
            continue
        found = LINE.fullmatch(line)
        assert found, "no line of an interval: %r" % line
        equal(found.end(3), count_ends, "end of the column COUNT in %r" % line)
        equal(found[5] is not None, "Malloc" in found[2], "has the field's columns: %r" % line)


@test
def lines_add_up():
    "the lines' counts add up to the whole, and time goes on"
    lines, whole = intervals("-e", "Malloc", "-i", "40")
    found = [LINE.fullmatch(line) for line in lines[1:] if "none came" not in line]
    total = re.search(r"Malloc +([\d,]+)", whole)[1]
    equal(sum(int(f[3].replace(",", "")) for f in found), int(total.replace(",", "")), "sum of the lines")
    times = [float(line.split()[0]) for line in lines[1:]]
    equal(times, sorted(times), "times")


@test
def nothing_came():
    "an interval without events is said, once until some come, or with -z shown as zeros"
    quiet = [PEM, "stat", "-e", "Malloc", "-i", "20", "-q"]
    _, _, err = run(quiet + ["--", "sleep", "0.15"])
    assert re.search(r"^ +\d\.\d{3}  none came$", err, re.MULTILINE), "not said: " + err
    assert not re.search(r"none came\n.*none came", err), "said again: " + err
    _, _, err = run(quiet + ["-z", "--", "sleep", "0.15"])
    assert re.search(r"^ +\d\.\d{3}  APP::Libc::Malloc +0 +0/s$", err, re.MULTILINE), "not shown: " + err
    assert "none came" not in err, err


@test
def intervals_keep_their_time():
    "an interval never ends before it is due, however often it was printed"
    rc, out, err = run([PEM, "stat", "--json", "-e", "Malloc", "-i", "20", "--", "sleep", "0.5"])
    equal(rc, 0, "exit status, having said: " + err)
    *found, whole = [json.loads(line) for line in out.splitlines()]
    # Deadlines are multiples of the interval: one that was late (a busy machine) makes the next shorter, or is left out.
    due = [i["time_ns"] // 20_000_000 for i in found[:-1]]
    equal(due, sorted(set(due)), "a deadline each")
    equal(sum(i["interval_ns"] for i in found), found[-1]["time_ns"], "intervals follow one another")
    assert "events" in whole and "duration_ns" in whole, whole


@test
def json_has_rates():
    "JSON has an object an interval, with rate, unit, sum and mean"
    rc, out, _ = run([PEM, "stat", "--json", "-e", "Malloc", "-f", "size", "-i", "50", "--", *PROGRAM])
    equal(rc, 0, "exit status")
    *found, _ = [json.loads(line) for line in out.splitlines()]
    events = [(i, e) for i in found for e in i["events"]]
    assert events, "no event in any interval"
    for interval, event in events:
        equal(event["name"], "APP::Libc::Malloc", "name")
        equal(event["unit"], "bytes", "unit")
        assert abs(event["rate_hz"] - event["count"] * 1e9 / interval["interval_ns"]) < 0.01 * event["rate_hz"], event
        assert abs(event["mean"] * event["count"] - event["sum"]) < 1, event


run_all()
