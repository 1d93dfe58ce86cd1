#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
explore_pairs.py - how precise pairs on two CPUs are, beside runs in turns

    explore/pair_spread, explore/pair_spread_busy, explore/pair_spread_cpu   the same command on both sides; what one side prints is
                    halved, so that its true ratio is 0.5. The standard deviation of the ratio, in %, of pairs at the same time and of
                    pairs in turns, as pem explore makes them to tell a gain; of explorations that alternate. busy: beside two loops
                    that take all they get. cpu: of CPU time, without the waits for a CPU

A gain's interval is as wide as this spread, so to see as small a gain takes the square of the factor as many runs.
"""
import math
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys

from measure import PEM, QUICK, Folder, heading, report, wanted

CASES = ("explore/pair_spread", "explore/pair_spread_busy", "explore/pair_spread_cpu")
EXPLORATIONS, TURNS = 1 if QUICK else 5, 6
WORK = """
import sys
from time import {clock}
began = {clock}()
table = list(range(1 << 16))
for i in range(1000000):
    table[i * 40503 & 0xffff] += i
print("v=%.6f" % (({clock}() - began) / float(sys.argv[1])))
"""
EXPERIMENT = """<exploration name="spread" policy="grid" trials="2" race="1" pairs="%s">
  <parameter name="a" values="1 2" default="1"/>
  <command>%s work.py {a}</command>
  <metric name="v" match="v=([0-9.]+)" unit="s"/>
</exploration>
"""


def explore(folder, number, in_pairs, clock):
    """Logarithms of the ratios of an exploration's comparison with the defaults, and how many seconds its runs took."""
    path = os.path.join(folder, "%s-%d" % ("pairs" if in_pairs else "turns", number))
    os.mkdir(path, 0o700)
    with open(path + "/work.py", "w", encoding="utf-8") as out:
        out.write(WORK.replace("{clock}", clock))
    with open(path + "/e.xml", "w", encoding="utf-8") as out:
        out.write(EXPERIMENT % ("yes" if in_pairs else "no", sys.executable))
    env = dict(os.environ, PEM_DB=path + "/db", XDG_STATE_HOME=path, TMPDIR=path)
    subprocess.run([PEM, "explore", "run", "e.xml"], cwd=path, env=env, stdout=subprocess.DEVNULL, check=True)
    with sqlite3.connect(path + "/db") as db:
        rows = db.execute("SELECT run, text = 'a=2', value, wall_ns FROM evidence JOIN directive ON directive.id = directive "
                          "JOIN run ON run.id = run WHERE directive.agent = 'explore' ORDER BY run, text").fetchall()
    last = rows[-2 * TURNS:]  # the comparison ends an exploration
    ratios = []
    for first, second in zip(last[::2], last[1::2]):
        treated, control = (first, second) if first[1] else (second, first)
        assert treated[1] and not control[1] and (first[0] == second[0]) == in_pairs, last
        ratios.append(math.log(treated[2] / control[2]))
    return ratios, sum(dict((row[0], row[3]) for row in last).values()) / 1e9


def interval(values):
    """95 % of the standard deviations of values drawn again (Efron, Ann. Stat. 7, 1979)"""
    chance = random.Random(1)
    drawn = sorted(statistics.stdev(chance.choices(values, k=len(values))) for _ in range(2000))
    return drawn[49], drawn[1949]


def spread(case):
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 if case.endswith("busy") else 0)]
    made, seconds = {True: [], False: []}, {True: 0, False: 0}
    try:
        with Folder(memory=False) as folder:
            for number in range(EXPLORATIONS):
                for in_pairs in (True, False):
                    ratios, took = explore(folder.path, number, in_pairs, "process_time" if case.endswith("cpu") else "perf_counter")
                    made[in_pairs] += ratios
                    seconds[in_pairs] += took
    finally:
        for loop in loops:
            loop.send_signal(signal.SIGKILL)
            loop.wait()
    ours, theirs = (100 * statistics.stdev(made[way]) for way in (True, False))
    low, high = interval(made[True])
    other_low, other_high = interval(made[False])
    # The median of values that have the interval's ends as least and greatest is the value.
    report("explore", case, "% of the ratio", [100 * low, ours, 100 * high], "in turns", [100 * other_low, theirs, 100 * other_high],
           note="(%.2f to %.2f), %.1f times as precise; ratio of medians %.3f and %.3f, true 0.500; %.0f s and %.0f s, load %.1f"
           % (100 * other_low, 100 * other_high, theirs / ours, *(math.exp(statistics.median(made[way])) for way in (True, False)),
              seconds[True], seconds[False], os.getloadavg()[0]),
           factor=theirs / ours, pairs=len(made[True]), turns=len(made[False]), load=os.getloadavg()[0])


def main():
    cases = wanted(*CASES)
    if cases and len(os.sched_getaffinity(0)) < 2:
        print("explore: skipped, pairs need two CPUs")
        return
    if cases:
        heading("explore", "standard deviation, and 95 % of it")
    for case in cases:
        spread(case)


main()
