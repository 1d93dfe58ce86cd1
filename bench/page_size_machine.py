#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
page_size_machine.py - how near the savings that the calibrated model predicts are to those of programs, on this machine

    page-size/calibration_s      seconds that a calibration takes
    page-size/calibration_error  difference of the predicted and the measured saving by large pages, in percent of the greater
                                 one: median over random chases and updates, also with 60, 240 and 960 instructions
                                 between, of 64 MiB to 1 GiB

The saving is what an access takes less with 2 MiB than with 4 KiB pages. Predicted ones are simulated in the calibrated
geometry; measured ones are of loops that the calibration does not have. Those of each program are written to page-size.jsonl,
beside the results. Others who share the last cache change the measured savings from minute to minute. Not here: the loops
(page_size_calibrate.c).
"""
import json
import os
import re
import subprocess
import sys

from measure import BUILD, HERE, QUICK, heading, report, wanted

CASES = ("page-size/calibration_s", "page-size/calibration_error")
SECONDS = "2" if QUICK else "30"
# A saving below this share of the time of an access is no saving.
SAVING_MIN = 0.02


def lines(what):
    out = subprocess.run([os.path.join(HERE, "page_size_calibrate"), what, SECONDS], stdout=subprocess.PIPE, text=True, check=True)
    return out.stdout.splitlines()


def errors():
    """In percent, of each program whose saving is one."""
    found = []
    with open(os.path.join(BUILD, "bench", "page-size.jsonl"), "a", encoding="utf-8") as log:
        for line in lines("check"):
            program, mib, waits, *numbers = line.split()
            small, large, predicted = (float(n) for n in numbers)
            saving = small - large
            log.write(json.dumps({"what": "calibration", "program": program, "mib": int(mib), "waits": float(waits),
                                  "small_ns": small, "large_ns": large, "predicted_ns": predicted}) + "\n")
            if max(saving, predicted) > SAVING_MIN * small:
                found.append(abs(predicted - saving) / max(saving, predicted) * 100)
    return found


def main():
    cases = wanted(*CASES)
    if not cases:
        return
    heading("page_size_machine")
    if CASES[0] in cases:
        seconds = [float(re.match(r"([\d.]+) s$", lines("calibrate")[-1]).group(1)) for _ in range(1 if QUICK else 3)]
        report("page_size_machine", CASES[0], "s", seconds)
    if CASES[1] in cases:
        found = errors()
        if found:
            report("page_size_machine", CASES[1], "%", found, note="%d programs and sizes" % len(found))


if __name__ == "__main__":
    sys.exit(main())
