#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
stated - the cost of observing that 'pem report' states, beside the cost that is measured

	cost/stated/NAME	the stated cost in per cent of the measured one

The measured cost is the CPU time (user and system, children included) of the program under 'pem record', less that of the plain program
in the same round. Both are bound to a CPU that the recorder does not use, and where that is allowed no other program interrupts them
(SCHED_FIFO): what caches lose to others is not pem's cost. The median's interval is that of order statistics, of 95 % confidence.
More processes start below 'pem record', which bind the program and measure it: their starts are taken from the stated cost. The costs
of events are measured again for each program, before its rounds.

The verdict: 'within 20 %' if the stated cost is from 80 to 120 % of the measured median; else 'not told apart' if the measured median's
interval has a part between 80 and 120 % of the stated cost, or the stated bounds have one; else 'off', or 'too few rounds' of fewer
than 6.

The programs allocate (malloc, sqlite3, json, strings, jq; with NAME-g the stacks of allocations are recorded), make system calls (dd, find, tar), switch threads (pipe), have page faults
(faults), start processes (sh), or do little of all that (xz). BENCH_ROUNDS=N: so many rounds, where 15 take too long.
"""
import json
import os
import shutil
import statistics
import subprocess

from measure import Folder, HERE, PEM, QUICK, cpus, heading, report, uninterrupted, wanted

ROUNDS = 1 if QUICK else int(os.environ.get("BENCH_ROUNDS", "15"))
ROUNDS_LEAST = 6  # the median lies between the least and the most of fewer with less confidence
ROWS, PAIRS, CALLS, PASSES, STARTS = (2000, 20000, 5000, 500, 5) if QUICK else (300000, 4000000, 300000, 40000, 150)
NAMES = "malloc sqlite3 json strings jq xz dd find tar pipe faults sh malloc-g sqlite3-g strings-g jq-g".split()
STACKS = ["-g", "-e", "APP::Libc::*alloc,APP::Libc::Free"]
SQL = ("create table t(a, b); with recursive c(x) as (select 1 union all select x + 1 from c where x < %d) "
       "insert into t select x, x * 7919 %% 100003 from c; create index i on t(b); select count(*), sum(a) from t where b > 50000;" % ROWS)
JSON = "import json\nd = [{'k%%d' %% i: [i] * 5} for i in range(%d)]\nfor _ in range(4): json.loads(json.dumps(d))" % (ROWS // 20)
STRINGS = "import re\nfor i in range(%d): re.sub('a+', 'b', 'aaab' * 300); bytearray(2000)" % (ROWS // 10)
FAULTS = ("import mmap\nfor i in range(%d):\n m = mmap.mmap(-1, 1 << 20)\n for at in range(0, 1 << 20, 4096): m[at] = 1\n m.close()" %
          (CALLS // 3000 or 1))
SHELL = "i=0; while [ $i -lt %d ]; do /bin/true; i=$((i + 1)); done" % STARTS


def commands(folder):
    """{name: words}, of the programs that are installed."""
    numbers, text, tree = folder.path + "/numbers.json", folder.path + "/text", "/usr/include"
    with open(numbers, "w", encoding="utf-8") as out:
        json.dump([{"number": i, "text": "row %d" % i, "parts": [i, i + 1, i + 2]} for i in range(ROWS // 12)], out)
    with open(text, "w", encoding="utf-8") as out:
        out.writelines("%d is the square of %d\n" % (i * i, i) for i in range(ROWS // 6))
    found = {"malloc": [os.path.join(HERE, "allocate"), str(PAIRS), "malloc"], "sqlite3": ["sqlite3", ":memory:", SQL],
             "json": ["python3", "-S", "-c", JSON], "strings": ["python3", "-S", "-c", STRINGS],
             "jq": ["jq", "[.[] | .parts | add] | add", numbers], "xz": ["xz", "-k", "-c", "-T1", "-2", text],
             "dd": ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=%d" % CALLS, "status=none"],
             "find": ["find", tree, tree, tree, "-size", "+1000k"], "tar": ["tar", "-cf", folder.path + "/tar", tree],
             "pipe": [os.path.join(HERE, "calls"), "pipe", str(PASSES)], "faults": ["python3", "-S", "-c", FAULTS],
             "sh": ["sh", "-c", SHELL]}
    return {name: words for name, words in found.items() if shutil.which(words[0])}


def cpu_ms(prefix, words, folder):
    inner = ["taskset", "-c", str(cpus()[0])] + uninterrupted() + [os.path.join(HERE, "timed"), folder.path + "/times"]
    subprocess.run(prefix + inner + words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with open(folder.path + "/times", encoding="utf-8") as times:
        return sum(map(int, times.read().split()[1:])) / 1e3


def recorded(words, folder, options=()):
    """(CPU time of the program, the report's cost)."""
    trace = folder.fresh("trace")
    ms = cpu_ms(["taskset", "-c", str(cpus()[1]), PEM, "record", "-q", *options, "-o", trace, "--"], words, folder)
    text = subprocess.run([PEM, "report", "--json", trace], stdout=subprocess.PIPE, check=True).stdout
    shutil.rmtree(trace)
    return ms, json.loads(text)["cost"]


def stated_ms(cost, key, each):
    """Without the starts of the programs that bind the program and measure it."""
    starts = [kind[each] for kind in cost["kinds"] if kind["kind"] == "process-start"]
    return (cost[key] - (3 if uninterrupted() else 2) * sum(starts)) / 1e6


def median_interval(values):
    """The order statistics between which the median lies with a confidence of 95 %; all values if they are few."""
    order, n = sorted(values), len(values)
    rank = max(0, int(n / 2 - 0.98 * n ** 0.5))
    return order[rank], order[-1 - rank]


def verdict(measured, low, high, stated, least, most):
    if measured > 0 and abs(stated / measured - 1) <= 0.2:
        return "within 20 %"
    if min(high, stated / 0.8) >= max(low, stated / 1.2) or min(high, most) >= max(low, least):
        return "not told apart"
    return "off" if ROUNDS >= ROUNDS_LEAST else "too few rounds"


def measure(case, words, folder):
    plain, more, costs = [], [], []
    os.environ["XDG_CACHE_HOME"] = folder.fresh("cache")
    os.mkdir(os.environ["XDG_CACHE_HOME"])
    options = STACKS if case.endswith("-g") else ()
    recorded(["true"], folder, options)
    for _ in range(ROUNDS):
        plain.append(cpu_ms([], words, folder))
        ms, cost = recorded(words, folder, options)
        more.append(ms - plain[-1])
        costs.append(cost)
    stated, least, most = (statistics.median(stated_ms(cost, key, each) for cost in costs) for key, each in
                           (("total_ns", "ns_each"), ("least_total_ns", "least_ns_each"), ("most_total_ns", "most_ns_each")))
    middle = statistics.median(more)
    low, high = median_interval(more)
    said = verdict(middle, low, high, stated, least, most)
    report("stated", case, "%", [100 * stated / middle if middle > 0 else 0],
           note="%s: plain %.1f ms, measured +%.1f (%.1f to %.1f), stated %.1f (%.1f to %.1f)" %
           (said, statistics.median(plain), middle, low, high, stated, least, most),
           digits=1, plain_ms=statistics.median(plain), measured_ms=middle, low_ms=low, high_ms=high, stated_ms=stated,
           least_ms=least, most_ms=most, rounds=ROUNDS, verdict=said)
    return said


def main():
    cases = wanted(*("cost/stated/" + name for name in NAMES))
    if not cases:
        return
    heading("stated", "of the measured cost, %d rounds" % ROUNDS)
    with Folder() as folder:
        found, said = commands(folder), []
        for case in cases:
            words = found.get(case.rsplit("/", 1)[1].removesuffix("-g"))
            if words:
                said.append(measure(case, words, folder))
            else:
                print("%-22s not installed" % case)
        print("%-22s %s" % ("cost/stated", ", ".join("%d %s" % (said.count(one), one) for one in sorted(set(said)))))


main()
