#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
callback - asynchronous callbacks: how long after an event in another process, and what they cost

	callback/delay_p50, callback/delay_p99	10,000 events a second, max_delay_us 100, every CPU taken by a spinning thread
	callback/cpu				of one CPU, the consumer's thread
	callback/producer			what raising an event takes, the clock read twice for it included
	callback/..._idle			the same on a machine with nothing else to do
	callback/..._default			the same as the first with max_delay_us as it comes, 1000
	callback/timer				CPU time of a thread that only sleeps 100 us, each time: the bound on all others,
						as a thread that waits by the clock can't be woken for less

The peers are a thread that blocks in read while the producer writes to an eventfd for each event, and the same with a pipe,
in turn with us. LTTng live is no peer: its reader gets packets by a timer, as it comes once a second.
"""
import json
import os
import subprocess
import sys

from measure import HERE, QUICK, Folder, heading, report, wanted

CALL_BACK = os.path.join(HERE, "call_back")
RATE_HZ = 10_000
COUNT = 500 if QUICK else 20_000
ROUNDS = 1 if QUICK else 5
CASES = ["callback/timer"] + ["callback/%s%s" % (what, where) for where in ("", "_idle", "_default")
                              for what in ("delay_p50", "delay_p99", "cpu", "producer")]
KEYS = {"delay_p50": ("p50_us", "us"), "delay_p99": ("p99_us", "us"), "cpu": ("cpu_percent", "%"),
        "producer": ("producer_ns", "ns")}


def call_back(kind, max_delay_us, rate_hz=RATE_HZ):
    done = subprocess.run([CALL_BACK, kind, str(max_delay_us), str(rate_hz), str(COUNT)], stdout=subprocess.PIPE,
                          check=True)
    return json.loads(done.stdout)


def measure(where, max_delay_us):
    """Rounds of us and the peers, in turn; the load goes on through all of them."""
    ours, eventfd, pipe = [], [], []
    load = None if where == "_idle" else subprocess.Popen([CALL_BACK, "spin"], stdin=subprocess.PIPE)
    try:
        for _ in range(ROUNDS):
            ours.append(call_back("pem", max_delay_us))
            eventfd.append(call_back("eventfd", 0))
            pipe.append(call_back("pipe", 0))
    finally:
        if load:
            load.stdin.close()
            load.wait()
    lost = sum(r["lost"] for r in ours)
    for what, (key, unit) in KEYS.items():
        note = "a pipe: %.3f" % sorted(r[key] for r in pipe)[ROUNDS // 2]
        if what == "cpu":
            note += "; wake-ups a second: %.0f, eventfd %.0f" % (ours[0]["wakeups_hz"], eventfd[0]["wakeups_hz"])
        report("callback", "callback/%s%s" % (what, where), unit, [r[key] for r in ours], "eventfd",
               [r[key] for r in eventfd], note, lost=lost)


def main():
    cases = wanted(*CASES)
    if not cases:
        return 0
    heading("callback")
    with Folder():
        if "callback/timer" in cases:
            report("callback", "callback/timer", "us", [call_back("timer", 100)["cpu_us_each"] for _ in range(ROUNDS)])
        for where, max_delay_us in (("", 100), ("_idle", 100), ("_default", 0)):
            if {"callback/%s%s" % (what, where) for what in KEYS} & set(cases):
                measure(where, max_delay_us)
    return 0


if __name__ == "__main__":
    sys.exit(main())
