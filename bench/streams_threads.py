#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
streams_threads - rates of stages that are threads, as pem rates prints them

	streams/stream_5pct	of stages with queues of pem/stream.h, those with a rate within 5 % of the true one
	streams/gstreamer_5pct	the same of a pipeline of GStreamer
	streams/tbb_5pct	the same with queues of oneTBB

The true rate of a stage is its items over its own CPU time. A stage whose rate is unknown counts as wrong. The note has the
worst error of a known rate. Run it on a machine that is idle.
"""
import json
import os
import re
import subprocess
import sys

from measure import BUILD, PEM, QUICK, heading, report, wanted

RUNS = 1 if QUICK else 10
COUNT = "500" if QUICK else "3000"
WORKS = ["200", "400", "150"]
PROGRAMS = {"stream": ("streams", []), "gstreamer": ("gstreamer", ["queue"]), "tbb": ("tbb", ["1"])}


def errors(command):
    """Errors of the rates of all stages in percent; None: unknown."""
    done = subprocess.run([PEM, "rates", "--json", "--", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=True)
    stages = {(stage["pid"], stage.get("tid")): stage for stage in json.loads(done.stdout)["stages"]}
    found = []
    for pid, tid, items, ns in re.findall(r"^s\d (\d+) (\d+) (\d+) (\d+)$", done.stderr, re.M):
        rate = stages.get((int(pid), int(tid)), {}).get("rate_per_s")
        found.append(rate and 100 * (rate * int(ns) / 1e9 / int(items) - 1))
    return found


def main():
    cases = wanted(*("streams/%s_5pct" % name for name in PROGRAMS))
    if cases:
        heading("streams_threads", "%d runs" % RUNS)
    for name, (program, words) in PROGRAMS.items():
        path = os.path.join(BUILD, "programs", program)
        if "streams/%s_5pct" % name not in cases:
            continue
        if not os.path.exists(path):
            print("streams/%s_5pct: its program was not built" % name)
            continue
        all_errors = [errors([path, COUNT, *words, *WORKS]) for _ in range(RUNS)]
        known = [abs(error) for run in all_errors for error in run if error is not None]
        report("streams_threads", "streams/%s_5pct" % name, "%",
               [100 * sum(error is not None and abs(error) <= 5 for error in run) / len(run) for run in all_errors],
               note="worst error %.1f %%, unknown %d of %d" % (max(known, default=0), sum(map(len, all_errors)) - len(known), sum(map(len, all_errors))),
               digits=1)


if __name__ == "__main__":
    sys.exit(main())
