#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
page_size.py - how quick and how right the page-size agent's model of the TLB is, on streams of known shapes

    page-size/exact_rate        references a second that the exact simulator takes, for one mapping, on one core
    page-size/model_rate        references a second that the model takes, with 16 sites, for all mappings at once; its memory
                                for each touched small page is of the programs that touch 400 MB or more
    page-size/miss_ratio_error  greatest difference of the miss ratio over 16 mappings, from exact simulation of all references
    page-size/burst_error       the same of a model that reads only a quarter of the references, in bursts of 65536
    page-size/regret            what the choice by the model lacks of the best gain among all mappings of 6 sites, for budgets
                                of 1 to 32 % of the large pages; both gains are simulated

Values are over programs and two geometries of TLBs. Those of each are written to page-size.jsonl, beside the results. Nothing
here is measured on a TLB: the rates are CPU time, all else is simulated. Not here: the streams (page_size_model.c).
"""
import json
import os
import subprocess
import sys

from measure import BUILD, HERE, QUICK, heading, report, wanted

CASES = ("page-size/exact_rate", "page-size/model_rate", "page-size/miss_ratio_error", "page-size/burst_error",
         "page-size/regret")
REFERENCES = {"rate": 16000000, "error": 4000000, "burst": 4000000, "regret": 1000000}
QUICK_REFERENCES = 50000
LOG = os.path.join(BUILD, "bench", "page-size.jsonl")
PAGES_MIN = 100000  # with fewer pages the fixed part of the model counts, some 10 MB of samples and stacks


def rows(what):
    """(program, geometry, numbers) of each line; these go to page-size.jsonl, too."""
    count = QUICK_REFERENCES if QUICK else REFERENCES[what]
    out = subprocess.run([os.path.join(HERE, "page_size_model"), what, str(count)], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    found = []
    kept = []
    if os.path.exists(LOG):  # other benchmarks have rows in it, too
        with open(LOG, encoding="utf-8") as log:
            kept = [line for line in log if json.loads(line).get("what") != what]
    with open(LOG, "w", encoding="utf-8") as log:
        log.writelines(kept)
        for line in out.splitlines():
            program, geometry, *numbers = line.split()
            found.append((program, geometry, [float(n) for n in numbers]))
            log.write(json.dumps({"what": what, "program": program, "geometry": geometry, "simulated": True,
                                  "references": count, "values": found[-1][2]}) + "\n")
    return found


def worst(found, value, pick=max):
    program, geometry, numbers = pick(found, key=lambda row: row[2][value])
    return "%s, %s: %.4g" % (program, geometry, numbers[value])


def main():
    cases = wanted(*CASES)
    if not cases:
        return
    heading("page_size")
    if {CASES[0], CASES[1]} & set(cases):
        found = rows("rate")
        for case, value in ((CASES[0], 0), (CASES[1], 1)):
            if case in cases:
                more = {}
                if value:
                    kept = [n[2] for _, _, n in found if n[3] >= PAGES_MIN]
                    more = {"bytes_per_page_max": max(kept)} if kept else {}
                report("page_size", case, "M references/s", [n[value] for _, _, n in found],
                       note="least: " + worst(found, value, min) + "".join(
                           "; at most %.1f bytes a small page" % b for b in more.values()), **more)
    for case, what, value in ((CASES[2], "error", 0), (CASES[3], "burst", 0), (CASES[4], "regret", 1)):
        if case in cases:
            found = rows(what)
            values = [n[value] for _, _, n in found]
            report("page_size", case, "% of the gain" if what == "regret" else "% points", values,
                   note="mean %.3f; most: %s" % (sum(values) / len(values), worst(found, value)),
                   mean=sum(values) / len(values))


if __name__ == "__main__":
    sys.exit(main())
