#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
explore.py - how good the policies of pem explore are, on spaces that others measured, and how quick

    explore/evals_5pct, explore/evals_1pct   trials until within 5 % or 1 % of the optimum, of 21 seeds each, by space. Beside our
                    forest and chance in the same run, and published medians of a forest with expected improvement
    explore/noise_regret    15 % of all runs are up to 30 % slower: how many of 100 explorations call a configuration best that is
                    within 2 % of the true best, beside the same without races, and without noise
    explore/between_trials  CPU time of the explorer between two trials with 1,000 trials known

The spaces are CSV files of DeepPerf (github.com/DeepPerf/DeepPerf, Data/*_AllNumeric.csv): PEM_BENCH_SPACES is their folder,
../shared/data/spaces beside the source tree otherwise. PEM_BENCH_POLICY takes another policy than the default one.
"""
import csv
import glob
import json
import os
import statistics
import subprocess

from measure import BUILD, HERE, QUICK, heading, report, wanted

EXPLORE = os.path.join(BUILD, "bin", "pem-explore")
SPACES = os.environ.get("PEM_BENCH_SPACES") or os.path.join(os.path.dirname(BUILD), "..", "shared", "data", "spaces")
POLICY = os.environ.get("PEM_BENCH_POLICY", "portfolio")
SHARES = {"explore/evals_5pct": (0.05, {"x264": 13, "LLVM": 11, "BDBC": 30}), "explore/evals_1pct": (0.01, {"x264": 17, "LLVM": 25, "BDBC": 53})}
BUDGET, SEEDS, EXPLORATIONS = 100, 5 if QUICK else 21, 10 if QUICK else 100
GREATER = ("Apache",)  # its values are rates


def spaces():
    """{name: (path, options)}; empty with a sentence if there are none."""
    found = {os.path.splitext(os.path.basename(path))[0]: path for path in sorted(glob.glob(os.path.join(SPACES, "*.csv")))}
    if not found:
        print("explore: skipped, %s has no spaces; PEM_BENCH_SPACES names a folder of CSV files" % SPACES)
    return {name: (path, ["--maximize"] if name in GREATER else []) for name, path in found.items()}


def optimum(path, options):
    with open(path, encoding="utf-8") as lines:
        values = [float(row[-1]) for row in list(csv.reader(lines))[1:]]
    return max(values) if options else min(values)


def replay(space, policy, seeds, *options):
    path, more = space
    run = subprocess.run([EXPLORE, "replay", path, "--policy", policy, "--seeds", str(seeds), "--budget", str(BUDGET), "--json", *more, *options],
                         stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)["seeds"]


def trials(explorations, best, share):
    """The first trial of each that is within a share of the best; BUDGET + 1: none is."""
    return [next((i + 1 for i, value in enumerate(one["best"]) if abs(value - best) <= share * abs(best)), BUDGET + 1) for one in explorations]


def evals(cases):
    for name, space in spaces().items():
        best = optimum(*space)
        made = {policy: replay(space, policy, SEEDS) for policy in (POLICY, "forest", "random")}
        for case in cases:
            share, published = SHARES[case]
            counts = {policy: trials(seeds, best, share) for policy, seeds in made.items()}
            report("explore", "%s/%s" % (case, name), "trials", counts[POLICY], "forest", counts["forest"], digits=0,
                   note="chance %.0f%s" % (statistics.median(counts["random"]), ", published forest %d" % published[name] if name in published else ""),
                   random=statistics.median(counts["random"]), published=published.get(name), not_reached=BUDGET + 1)


def noise(case):
    for name, space in spaces().items():
        near = {}
        for way, options in (("races", ["--noise", "0.15,0.3"]), ("no races", ["--noise", "0.15,0.3", "--no-race"]), ("no noise", [])):
            near[way] = sum(one["called"]["regret"] <= 0.02 for one in replay(space, POLICY, EXPLORATIONS, *options))
        report("explore", "%s/%s" % (case, name), "of %d" % EXPLORATIONS, [near["races"]], "without races", [near["no races"]], digits=0,
               note="without noise %d" % near["no noise"], without_noise=near["no noise"])


def between(case):
    for policy in (POLICY, "forest"):
        run = subprocess.run([os.path.join(HERE, "between_trials"), policy, "1000", "12"], stdout=subprocess.PIPE, text=True, check=True)
        report("explore", "%s/%s" % (case, policy), "s", [float(line) for line in run.stdout.split()])


def main():
    cases = wanted(*SHARES, "explore/noise_regret", "explore/between_trials")
    if not cases:
        return
    heading("explore")
    if set(SHARES) & set(cases):
        evals([case for case in SHARES if case in cases])
    for case, measure in (("explore/noise_regret", noise), ("explore/between_trials", between)):
        if case in cases:
            measure(case)


main()
