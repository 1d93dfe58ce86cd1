#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
stated - the cost of observing that 'pem report' states, beside the cost that is measured

	cost/stated/NAME	the stated cost in per cent of the measured one

The measured cost is the CPU time (user and system, children included) of the program under 'pem record', less that of the plain program
in the same round. Both are bound to a CPU that the recorder does not use. A row's bounds are those of the rounds. The note has the median
of the measured cost with its quartiles, and that of the stated cost with its bounds. Two more processes start below 'pem record', which
bind the program and measure it: their starts are taken from the stated cost. The costs of events are calibrated once before all rounds.

The programs allocate (malloc, sqlite3, json, strings, jq), make system calls (dd, find, tar), switch threads (pipe), have page faults
(faults), start processes (sh), or do little of all that (xz). BENCH_ROUNDS=N: so many rounds, where 15 take too long.
"""
import json
import os
import shutil
import statistics
import subprocess

from measure import Folder, HERE, PEM, QUICK, cpus, heading, report, wanted

ROUNDS = 1 if QUICK else int(os.environ.get("BENCH_ROUNDS", "15"))
ROWS, PAIRS, CALLS, PASSES, STARTS = (2000, 20000, 5000, 500, 5) if QUICK else (300000, 4000000, 300000, 40000, 150)
NAMES = "malloc sqlite3 json strings jq xz dd find tar pipe faults sh".split()
OWN_STARTS = 2
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
    inner = ["taskset", "-c", str(cpus()[0]), os.path.join(HERE, "timed"), folder.path + "/times"]
    subprocess.run(prefix + inner + words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    with open(folder.path + "/times", encoding="utf-8") as times:
        return sum(map(int, times.read().split()[1:])) / 1e3


def recorded(words, folder):
    """(CPU time of the program, the report's cost)."""
    trace = folder.fresh("trace")
    ms = cpu_ms(["taskset", "-c", str(cpus()[1]), PEM, "record", "-q", "-o", trace, "--"], words, folder)
    text = subprocess.run([PEM, "report", "--json", trace], stdout=subprocess.PIPE, check=True).stdout
    shutil.rmtree(trace)
    return ms, json.loads(text)["cost"]


def stated_ms(cost, key, each):
    starts = [kind[each] for kind in cost["kinds"] if kind["kind"] == "process-start"]
    return (cost[key] - OWN_STARTS * sum(starts)) / 1e6


def measure(case, words, folder):
    plain, more, costs = [], [], []
    for _ in range(ROUNDS):
        plain.append(cpu_ms([], words, folder))
        ms, cost = recorded(words, folder)
        more.append(ms - plain[-1])
        costs.append(cost)
    stated, least, most = (statistics.median(stated_ms(cost, key, each) for cost in costs) for key, each in
                           (("total_ns", "ns_each"), ("least_total_ns", "least_ns_each"), ("most_total_ns", "most_ns_each")))
    order, middle = sorted(more), statistics.median(more)
    low, high = order[len(order) // 4], order[-1 - len(order) // 4]
    shares = [100 * stated_ms(cost, "total_ns", "ns_each") / ms for cost, ms in zip(costs, more) if ms > 0] or [0]
    report("stated", case, "%", [100 * stated / middle if middle > 0 else 0],
           note="plain %.1f ms, measured +%.1f (%.1f to %.1f), stated %.1f (%.1f to %.1f), by rounds %.0f to %.0f %%" %
           (statistics.median(plain), middle, low, high, stated, least, most, min(shares), max(shares)),
           digits=1, plain_ms=statistics.median(plain), measured_ms=middle, low_ms=low, high_ms=high, stated_ms=stated,
           least_ms=least, most_ms=most, rounds=ROUNDS)


def main():
    cases = wanted(*("cost/stated/" + name for name in NAMES))
    if not cases:
        return
    heading("stated", "of the measured cost, %d rounds" % ROUNDS)
    with Folder() as folder:
        os.environ["XDG_CACHE_HOME"] = folder.path + "/cache"
        os.mkdir(folder.path + "/cache")
        found = commands(folder)
        for case in cases:
            words = found.get(case.rsplit("/", 1)[1])
            if words:
                measure(case, words, folder)
            else:
                print("%-22s not installed" % case)


main()
