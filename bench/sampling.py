#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
sampling - what it costs to be sampled 1,000 times a second: hw/sampling_slowdown

	hw/sampling_slowdown	percent that xz takes longer, as CPU time of its own, sampled by the timer (cpu-clock); beside perf record
				of the same rate. Samples have the instruction's address, process, thread and time.

Plain, observed by pem and observed by perf, in turn. What each recorder itself takes is not in it.
"""
import os
import shutil
import statistics
import subprocess
import sys

from measure import Folder, PEM, QUICK, balance, heading, report, wanted

ROUNDS = 1 if QUICK else 7
BYTES = 200_000 if QUICK else 40_000_000
CASE = "hw/sampling_slowdown"
HZ = 1000


def cpu_s(*command):
    """CPU time of the program under the command, which prints it itself."""
    timed = ["bash", "-c", 'xz -9 -T1 -c "$0" > /dev/null; times', command[-1]]
    done = subprocess.run([*command[:-1], *timed], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    if done.returncode:
        sys.exit("sampling: '%s' failed" % " ".join(command[:-1]))
    lines = [line for line in done.stdout.splitlines() if line.count("m") == 2 and line.endswith("s")]
    return sum(60 * float(part.split("m")[0]) + float(part.split("m")[1][:-1]) for part in lines[-1].split())


def main():
    if not wanted(CASE):
        return
    heading("sampling", "%d samples a second" % HZ)
    with Folder() as folder:
        data = folder.fresh("data")
        with open(data, "wb") as out, open(sys.executable, "rb") as program:
            out.write((program.read() * (1 + BYTES // os.path.getsize(sys.executable)))[:BYTES])
        plain, ours, theirs, count = [], [], [], 0
        has_perf = shutil.which("perf") is not None
        for _ in range(ROUNDS):
            plain.append(cpu_s(data))
            trace = folder.fresh("trace")
            ours.append(cpu_s(PEM, "record", "-q", "-F", str(HZ), "-e", "HW::HWPerf::HPMsAndPC", "--no-libc", "-o", trace, "--", data))
            count = balance(trace)[1]
            if has_perf:
                theirs.append(cpu_s("perf", "record", "-q", "-F", str(HZ), "-e", "cpu-clock", "-o", folder.fresh("perf.data"), "--", data))
        least = statistics.median(plain)
        report("sampling", CASE, "%", [100 * (s / least - 1) for s in ours], "perf record",
               [100 * (s / least - 1) for s in theirs], digits=2, note="%d samples of %.2f s" % (count, least))


if __name__ == "__main__":
    main()
