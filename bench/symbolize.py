#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
symbolize - what it takes to name and fold samples of the CPU: hw/symbolize

	hw/symbolize	seconds for a million samples of pem report --by function: reading, naming by symbols and debug information,
			adding up by function; beside perf report --sort dso,symbol of samples of the same program. _cpu: CPU time

Two processes of Python are sampled as often as the kernel takes samples, until there are a million of pem's, or less where samples
are lost: what both took is divided by what they read. Their traces hold different samples of one program.
"""
import os
import shutil
import subprocess
import sys
import time

from measure import Folder, PEM, QUICK, balance, heading, report, wanted

ROUNDS = 1 if QUICK else 5
HZ = 2000 if QUICK else 20_000
SECONDS = 1 if QUICK else 40
CASE = "hw/symbolize"
PROGRAM = """import json, re, sys, time
end = time.time() + float(sys.argv[1])
while time.time() < end:
    json.loads(json.dumps({'a': list(range(200)), 'b': 'x' * 100}))
    re.sub('[a-f]+', 'x', 'abcdefghijklmnop' * 50)
"""


def two(folder):
    path = os.path.join(folder.path, "program.py")
    with open(path, "w", encoding="ascii") as out:
        out.write(PROGRAM)
    return ["sh", "-c", '"$0" "$@" & "$0" "$@"; wait', sys.executable, path, str(SECONDS)]


def measured(*command):
    """Seconds that passed and of CPU time, and what it printed."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit("symbolize: %s ended with %d" % (command[0], status))
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, out


def samples_of_perf(data):
    said = subprocess.run(["perf", "report", "-i", data, "--stats"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          universal_newlines=True, check=False).stdout
    return next((int(line.split(":")[1].split()[0]) for line in said.splitlines() if "SAMPLE events" in line), 0)


def main():
    if not wanted(CASE):
        return
    heading("symbolize", "samples at %d Hz" % HZ)
    with Folder() as folder:
        trace, data = folder.fresh("trace"), os.path.join(folder.path, "perf.data")
        subprocess.run([PEM, "record", "-q", "-F", str(HZ), "-e", "HW::HWPerf::HPMsAndPC", "-o", trace, "--", *two(folder)], check=True)
        count, has_perf = balance(trace)[1], shutil.which("perf") is not None
        if has_perf:
            subprocess.run(["perf", "record", "-q", "-F", str(HZ), "-e", "cpu-clock", "-o", data, "--", *two(folder)], check=True,
                           stderr=subprocess.DEVNULL)
        of_perf = samples_of_perf(data) if has_perf else 0
        ours, theirs = [], []
        for _ in range(ROUNDS):
            passed, cpu, out = measured(PEM, "report", "--by", "function", trace)
            if " json_loads" not in out and "_PyEval_EvalFrameDefault" not in out:
                sys.exit("symbolize: no function of Python is named: %s" % out[:2000])
            ours.append((passed * 1e6 / count, cpu * 1e6 / count))
            if of_perf:
                passed, cpu, _ = measured("perf", "report", "--stdio", "--sort", "dso,symbol", "-i", data)
                theirs.append((passed * 1e6 / of_perf, cpu * 1e6 / of_perf))
        for i, case in enumerate((CASE, CASE + "_cpu")):
            report("symbolize", case, "s", [one[i] for one in ours], "perf report", [one[i] for one in theirs], digits=2,
                   note="%d samples, perf's %d" % (count, of_perf))


if __name__ == "__main__":
    main()
