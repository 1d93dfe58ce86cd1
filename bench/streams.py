#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
streams.py - how good the estimators of pem rates are, beside the paper's heuristic in the same runs

    streams/within_5pct_simulated   of 1,800 simulated tandem runs, the share whose service rate is estimated within 5 %
    streams/phases_low, streams/phases_high   the rate changes halfway, utilization below or above 0.5: share of runs in which both
                    phases are found, by the paper's criterion (20 % of either rate), and by a stricter one
    streams/change_located          changes by |log r| = FACTOR * CV: share found once, within 100 intervals
    streams/false_alarms            series of 100,000 intervals without a change: share in which one is reported
"""
import os
import subprocess

from measure import HERE, QUICK, heading, report, wanted

RUNS, ITEMS = (60, 20000) if QUICK else (1800, 200000)
SURE = 0.75  # MODEL_CHANGE_SURE
KINDS = ("exponential", "deterministic", "jitter", "bimodal", "ar1", "batches", "gamma4", "outliers")
CV = {0: 1.0, 1: 0.08, 2: 0.08, 3: 1.42, 6: 0.5}  # no change below 5 % is reported: 0.08 stands for less
EXPONENTIAL = 0


def runs(*words):
    done = subprocess.run([os.path.join(HERE, "stream_runs"), *map(str, words)], stdout=subprocess.PIPE, text=True, check=True)
    return [[float(word) for word in line.split()] for line in done.stdout.splitlines()]


def share(flags):
    flags = list(flags)
    return 100.0 * sum(flags) / len(flags) if flags else float("nan")


def near(value, truth, within):
    return abs(value / truth - 1) <= within


def within(case):
    found = runs("within", RUNS, ITEMS)
    ours, theirs = ([share(near(row[at], row[2], limit) for row in found) for limit in (0.05, 0.2)] for at in (3, 6))
    # The clock's nanosecond is up to 0.1 % of a service.
    holds = share(row[4] * 0.999 <= row[2] <= row[5] * 1.001 for row in found)
    report("streams", case, "%", [ours[0]], "heuristic", [theirs[0]], digits=1,
           note="within 20 %%: %.1f, heuristic %.1f (paper: most), which converged in %.1f; our interval holds the rate in %.1f" %
           (ours[1], theirs[1], share(row[7] > 0 for row in found), holds), ours_20pct=ours[1], heuristic_20pct=theirs[1], interval_holds=holds)
    for kind, low, high in ((0, 0.1, 0.5), (0, 0.5, 1), (1, 0.1, 0.5), (1, 0.5, 1)):
        rows = [row for row in found if row[0] == kind and low <= row[1] < high]
        report("streams", "%s/%s_%s" % (case, KINDS[kind], "low" if low < 0.5 else "high"), "%", [share(near(row[3], row[2], 0.05) for row in rows)],
               "heuristic", [share(near(row[6], row[2], 0.05) for row in rows)], digits=1,
               note="heuristic within 20 %%: %.1f" % share(near(row[6], row[2], 0.2) for row in rows))


def is_large(row):
    """May this change be located? Its |log r| has to be SURE times the coefficient of variation."""
    return abs(1 - max(row[1:3]) / min(row[1:3])) >= 0.2 and max(row[1:3]) / min(row[1:3]) >= (2.12 if row[0] == EXPONENTIAL else 1)


def phases(case):
    found = runs(case.rsplit("_", 1)[1], RUNS // 3, ITEMS)

    def both(row, at):
        return near(row[at], row[1], 0.2) and near(row[at + 1], row[2], 0.2)

    def strictly(row):
        return row[3] == 2 and near(row[4], row[1], 0.05) and near(row[5], row[2], 0.05) and abs(row[6]) <= 100

    large = [row for row in found if is_large(row)]
    strict = share(map(strictly, large))
    report("streams", case, "%", [share(both(row, 4) for row in found)], "heuristic", [share(both(row, 7) for row in found)], digits=1,
           note="paper %s; of the %.0f %% of changes that are large enough: exactly two phases, within 5 %%, located within 100 items: %.1f" %
           ("43.4" if case.endswith("low") else "72.2", 100.0 * len(large) / len(found), strict), strict=strict)


def located(case):
    for kind, cv in CV.items():
        for factor in (0.3, 0.5, SURE, 1.0):
            rows = runs("power", kind, 20 if QUICK else 200, factor * cv)
            delays = sorted(row[2] for row in rows if row[0] > 1)
            report("streams", "%s/%s_%g" % (case, KINDS[kind], factor), "%", [share(row[0] == 2 and abs(row[1]) <= 100 for row in rows)], digits=1,
                   note="found %.1f, delay median %d intervals" % (share(row[0] > 1 for row in rows), delays[len(delays) // 2] if delays else -1))


def alarms(case):
    for kind, name in enumerate(KINDS):
        rows = runs("alarms", kind, 5 if QUICK else 100, 100000)
        report("streams", "%s/%s" % (case, name), "%", [share(row[0] > 1 for row in rows)], digits=1)


def main():
    cases = {"streams/within_5pct_simulated": within, "streams/phases_low": phases, "streams/phases_high": phases,
             "streams/change_located": located, "streams/false_alarms": alarms}
    asked = wanted(*cases)
    if asked:
        heading("streams")
    for case in asked:
        cases[case](case)


main()
