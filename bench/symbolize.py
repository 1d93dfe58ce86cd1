#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
symbolize - what it takes to name and fold samples of the CPU

	hw/symbolize		seconds for a million samples of pem report --by function: reading, naming by symbols and debug information,
				adding up by function; beside perf report --sort dso,symbol of samples of the same program. _cpu: CPU time
	hw/symbolize_stacks	the same of samples with stacks, of pem export --to folded; beside perf report -g folded of stacks by
				frame pointers, all of them, without inlined functions, which would take it far longer. _cpu: CPU time

Two processes of Python are sampled as often as the kernel takes samples, until there are a million of pem's, or less where samples
are lost: what both took is divided by what they read. Their traces hold different samples of one program. Stacks are those of bench/stacked.c, which has
frame pointers: pem's were unwound as they were recorded, with -g.
"""
import os
import shutil
import subprocess
import sys
import time

from measure import HERE, Folder, PEM, QUICK, balance, heading, report, wanted

ROUNDS = 1 if QUICK else 5
HZ = 2000 if QUICK else 20_000
SECONDS = 1 if QUICK else 40
CASE, STACKS = "hw/symbolize", "hw/symbolize_stacks"
PROGRAM = """import json, re, sys, time
end = time.time() + float(sys.argv[1])
while time.time() < end:
    json.loads(json.dumps({'a': list(range(200)), 'b': 'x' * 100}))
    re.sub('[a-f]+', 'x', 'abcdefghijklmnop' * 50)
"""


def python(folder):
    path = os.path.join(folder.path, "program.py")
    with open(path, "w", encoding="ascii") as out:
        out.write(PROGRAM)
    return sys.executable, path


def two(program):
    return ["sh", "-c", '"$0" "$@" & "$0" "$@"; wait', *program, str(SECONDS)]


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


def check_names(out):
    if " json_loads" not in out and "_PyEval_EvalFrameDefault" not in out:
        sys.exit("symbolize: no function of Python is named: %s" % out[:2000])


def check_stacks(out):
    if "stacked;" not in out or ";parse_value;parse_list;parse_value;parse_list;" not in out:
        sys.exit("symbolize: no stack of stacked is named: %s" % out[:2000])


def compare(case, folder, program, words, ours, theirs, check):
    """Sample a program by both, whose words to record are (pem's, perf's), and time the commands that read it."""
    trace, data = folder.fresh("trace"), os.path.join(folder.path, "perf.data")
    subprocess.run([PEM, "record", "-q", "-F", str(HZ), "-e", "HW::HWPerf::HPMsAndPC", *words[0], "-o", trace, "--", *two(program)],
                   check=True, stdout=subprocess.DEVNULL)
    count, has_perf = balance(trace)[1], shutil.which("perf") is not None
    if has_perf:
        subprocess.run(["perf", "record", "-q", "-F", str(HZ), "-e", "cpu-clock", *words[1], "-o", data, "--", *two(program)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    of_perf = samples_of_perf(data) if has_perf else 0
    taken, by_perf = [], []
    for _ in range(ROUNDS):
        passed, cpu, out = measured(PEM, *ours, trace)
        check(out)
        taken.append((passed * 1e6 / count, cpu * 1e6 / count))
        if of_perf:
            passed, cpu, _ = measured("perf", "report", "--stdio", *theirs, "-i", data)
            by_perf.append((passed * 1e6 / of_perf, cpu * 1e6 / of_perf))
    for i, name in enumerate((case, case + "_cpu")):
        report("symbolize", name, "s", [one[i] for one in taken], "perf report", [one[i] for one in by_perf], digits=2,
               note="%d samples, perf's %d" % (count, of_perf))
    shutil.rmtree(trace)


def main():
    cases = wanted(CASE, STACKS)
    if not cases:
        return
    heading("symbolize", "samples at %d Hz" % HZ)
    with Folder() as folder:
        if CASE in cases:
            compare(CASE, folder, python(folder), ((), ()), ("report", "--by", "function"), ("--sort", "dso,symbol"), check_names)
        if STACKS in cases:
            compare(STACKS, folder, (os.path.join(HERE, "stacked"),), (("-g",), ("--call-graph", "fp")),
                    ("export", "--to", "folded", "-o", "-"),
                    ("--no-children", "--no-inline", "--percent-limit", "0", "-g", "folded,0,caller"), check_stacks)


if __name__ == "__main__":
    main()
