#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
streams_queue - rates of a stage found from outside by the counters of its queue, and what that costs

	streams/within_5pct	runs of two stages, of which the found rate of the second is within 5 % of the true one
	streams/overhead	CPU time of a reader that samples each 100 ms, in percent of a CPU

The runs are those of the paper (HPCC 2015): 0.8 to 8 MB/s, exponential and deterministic service, utilisation 0.1 to 0.99;
an item is 64 bytes, so that a service takes 8 to 80 us. The peer is the paper's heuristic, in the same runs: its monitor is a
thread of the program that samples each 200 us. Where that is allowed, no other program interrupts the stages. The true rate
is by the stage's own clock around its work, which takes longer than set when the machine stops it; the note has the share of
runs within 5 % of the set rate as well.
"""
import math
import os
import random
import subprocess
import sys

from measure import HERE, QUICK, heading, report, uninterrupted, wanted

RUNS = 12 if QUICK else int(os.environ.get("STREAM_RUNS", "1800"))
ITEM_BYTES = 64
MIN_ITEMS = 4000
TANDEM, WATCH = os.path.join(HERE, "streams_tandem"), os.path.join(HERE, "streams_watch")


def observe(period_ms, seconds, service_ns, arrival_ns, kind, seed, period_us):
    """(items, busy, low, high, wall in ns, readings, us of CPU), (heuristic's items/s, times it converged, utilisation, ns)."""
    first = uninterrupted()
    words = [*(first and ["chrt", "-f", "2"]), WATCH, str(period_ms), *first, TANDEM, "%.3f" % seconds, "%.1f" % service_ns,
             "%.1f" % arrival_ns, kind, "64", str(seed), str(period_us)]
    out = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return [float(word) for word in out[1].split()], [float(word) for word in out[0].split()]


def within():
    """Errors in percent of each run: ours, ours to the set rate, the heuristic's (nan: it found nothing)."""
    random.seed(1)
    ours, of_set, theirs = [], [], []
    for seed in range(RUNS):
        service_ns = 1e3 * ITEM_BYTES / random.uniform(0.8, 8)
        arrival_ns = service_ns / random.uniform(0.1, 0.99)
        seconds = max(0.1, MIN_ITEMS * arrival_ns / 1e9)
        try:
            found, heuristic = observe(10, seconds, service_ns, arrival_ns, ("det", "exp")[seed % 2], seed, 200)
        except (subprocess.CalledProcessError, IndexError):
            found, heuristic = [0, 0], [math.nan, 0, 0, 0]  # nothing was read before the end
        rate = found[0] / found[1] if found[1] else math.nan
        ours.append(100 * (rate * heuristic[3] - 1))
        of_set.append(100 * (rate * service_ns - 1))
        theirs.append(100 * (heuristic[0] * heuristic[3] / 1e9 - 1))
    return ours, of_set, theirs


def share(errors, limit):
    return 100 * sum(abs(error) <= limit for error in errors) / len(errors)


def main():
    cases = wanted("streams/within_5pct", "streams/overhead")
    if not cases:
        return
    heading("streams_queue", "%d runs" % RUNS)
    if "streams/within_5pct" in cases:
        ours, of_set, theirs = within()
        known = [error for error in theirs if not math.isnan(error)]
        report("streams_queue", "streams/within_5pct", "%", [share(ours, 5)], "the paper's heuristic", [share(theirs, 5)],
               "of the set rate: %.1f; within 20 %%: heuristic %.1f, which found a rate in %d runs"
               % (share(of_set, 5), share(theirs, 20), len(known)),
               digits=1)
    if "streams/overhead" in cases:
        values = []
        for seed in range(1 if QUICK else 5):
            found, _ = observe(100, 0.5 if QUICK else 3, 900, 1000, "det", seed, 0)
            values.append(100 * found[6] * 1e3 / found[4])
        report("streams_queue", "streams/overhead", "% of a CPU", values, note="a million items a second", digits=4)


if __name__ == "__main__":
    sys.exit(main())
