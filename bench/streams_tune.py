#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
streams_tune - shell pipelines that pem rates --tune observes, and then runs with longer pipes or as they are

	streams/tuned/NAME		the gain in % of the time, as the loop of agents measured it, with its 95 % interval
	streams/predict_error/NAME	how far the predicted effect of longer pipes was from the measured one, in %

The loop chooses by chance which runs have longer pipes, and compares times without those in which other programs had the CPUs. A pipeline
runs until the loop has decided, or BENCH_ROUNDS times (40). A gain of 0 without an interval: no pipe was worth a trial.
"""
import json
import os
import subprocess

from measure import Folder, PEM, QUICK, heading, report, wanted

ROUNDS = 4 if QUICK else int(os.environ.get("BENCH_ROUNDS", "40"))
LINES = 100000 if QUICK else 2000000
PIPELINES = {
    "zcat_grep": "zcat f.gz | grep -c 7",
    "zcat_sort_uniq": "zcat f.gz | cut -c 1-3 | sort -S 64M | uniq -c | wc -l",
    "cat_gzip": "cat f | gzip -1 | wc -c",
    "cat_xz": "head -c 4000000 f | xz -0 | wc -c",
    "tar_gzip": "tar cf - f f.gz | gzip -1 | wc -c",
    "copies": "cat f f f f f f f f | cat | cat | wc -c",
    "seq_awk": "seq %d | awk '{ s += $1 } END { print s }'" % LINES,
    "dd_md5sum": "cat f f f f f f | dd bs=64k 2>/dev/null | md5sum",
    "base64_tr": "base64 f | tr a-z A-Z | wc -l",
    "python": "zcat f.gz | python3 -c 'import sys; print(sum(1 for line in sys.stdin))'",
}


def tune(command, folder):
    words = [PEM, "rates", "--tune", "--json", "-q", "-o", folder + "/result", "--", "sh", "-c", command]
    subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True, env={**os.environ, "PEM_DB": folder + "/db"})
    with open(folder + "/result", encoding="utf-8") as text:
        return json.load(text)


def predicted_ratio(observation):
    """How much more the last stage takes with longer pipes, as predicted; None: unknown."""
    rates = [way["rate_per_s"] for way in observation["predictions"][:2]]
    return rates[1] / rates[0] if observation["predictions_believed"] and len(rates) == 2 and all(rates) else None


def measure(name, command, folder):
    first = None
    while not first or (first["observation"]["lost"] and not first["directives"]):
        first = tune(command, folder)
        if first["purpose"] != "observed":
            print("%-22s not here: the pipeline can't be observed" % ("streams/tuned/" + name), flush=True)
            return
    last = first
    for _ in range(ROUNDS if first["directives"] else 0):
        last = tune(command, folder)
        if last["verdict"] != "unclear":
            break
    note = "no pipe is worth a trial"
    if first["directives"]:
        note = "%.1f to %.1f, %d runs with, %d without: %s" % (last["gain_low"], last["gain_high"], last["treated"], last["controls"], last["verdict"])
    report("streams_tune", "streams/tuned/" + name, "%", [last["gain"] if first["directives"] else 0], digits=1, note=note, low=last["gain_low"], high=last["gain_high"])
    ratio = predicted_ratio(first["observation"])
    if ratio and last["treated"] and last["controls"]:
        report("streams_tune", "streams/predict_error/" + name, "%", [100 * abs(ratio * (1 - last["gain"] / 100) - 1)], digits=1,
               note="predicted %+.1f %% of throughput" % (100 * (ratio - 1)))


def main():
    chosen = {case.rsplit("/", 1)[1] for case in wanted(*("streams/%s/%s" % (kind, name) for kind in ("tuned", "predict_error") for name in PIPELINES))}
    if not chosen:
        return
    heading("streams_tune", "of the pipeline's time")
    with Folder() as folder:
        folder = folder.path
        with open(folder + "/f", "w", encoding="ascii") as text:
            for i in range(LINES):
                text.write("%d %x\n" % (i * 7919 % 1000003, i))
        subprocess.run("gzip -1 -k f", shell=True, cwd=folder, check=True)
        for name in PIPELINES:
            if name in chosen:
                measure(name, PIPELINES[name], folder)


if __name__ == "__main__":
    main()
