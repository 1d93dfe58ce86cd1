#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
sampling - what 1,000 samples a second cost a program, and whoever takes them

	hw/sampling_slowdown		where the program is
	hw/sampling_stacks_slowdown	which calls led there, by unwind tables: -g, beside perf record --call-graph dwarf
	hw/sampling_fp_slowdown		the same by frame pointers: --call-graph fp, beside perf record --call-graph fp (its -g)
	..._recorder_cpu		CPU time that each recorder takes itself, for a second of the program's, beyond what it takes to
					record 'true': that is the same for any program, however long, and in the JSON as start_ms;
					counted_ms there is all of it, as pem counts it

'xz -9' compresses a file of Python's: CPU time of the program alone, observed by nobody, observed by pem and observed by perf, in turn.
What each recorder itself takes is not in the slowdown: it is what it and all that it started took, without the program. pem
unwinds as it records; perf writes the stacks' bytes, and unwinds when it reports.
"""
import os
import shutil
import statistics
import subprocess
import sys

from measure import Folder, PEM, QUICK, balance, heading, recorder_cpu_ns, report, wanted

ROUNDS = 1 if QUICK else 7
BYTES = 200_000 if QUICK else 40_000_000
HZ = 1000
# Of each case: what pem and perf take for it.
CASES = {
    "hw/sampling_slowdown": ((), ()),
    "hw/sampling_stacks_slowdown": (("-g",), ("--call-graph", "dwarf")),
    "hw/sampling_fp_slowdown": (("--call-graph", "fp"), ("--call-graph", "fp")),
}


def ended(command):
    """Run a command: what it prints, and the CPU time of it and all that it waited for."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True)
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit("sampling: '%s' failed" % " ".join(command))
    return said, usage.ru_utime + usage.ru_stime


def cpu_s(*command):
    """(CPU time of the program under the command, that of all else that the command took)."""
    timed = ["bash", "-c", 'xz -9 -T1 -c "$0" > /dev/null; times', command[-1]]
    said, used = ended([*command[:-1], *timed])
    lines = [line for line in said.splitlines() if line.count("m") == 2 and line.endswith("s")]
    # Of the shell, and of its child.
    shell, program = (sum(60 * float(part.split("m")[0]) + float(part.split("m")[1][:-1]) for part in line.split()) for line in lines)
    return program, max(0, used - shell - program)


def once(case, folder, data, result):
    """Take a round's figures of a case: what cpu_s tells of each recorder, and what it takes to record 'true'."""
    pem_words, perf_words = CASES[case]
    trace, perf_data = os.path.join(folder.path, "trace"), os.path.join(folder.path, "perf.data")
    ways = {"pem": [PEM, "record", "-q", "-F", str(HZ), "-e", "HW::HWPerf::HPMsAndPC", *pem_words, "--no-libc", "-o", trace, "--"]}
    if shutil.which("perf"):
        ways["perf"] = ["perf", "record", "-q", "-F", str(HZ), "-e", "cpu-clock", *perf_words, "-o", perf_data, "--"]
    for name, words in ways.items():
        folder.fresh("trace")
        result[name + " start"].append(ended([*words, "true"])[1])
        folder.fresh("trace")
        result[name].append(cpu_s(*words, data))
        if name == "pem":
            result["samples"] = balance(trace)[1]
            result["own"].append(recorder_cpu_ns(trace) / 1e6)


def tell(case, result, plain):
    least = statistics.median(plain)
    peer = " ".join(("perf record",) + CASES[case][1])
    report("sampling", case, "%", [100 * (program / least - 1) for program, _ in result["pem"]], peer,
           [100 * (program / least - 1) for program, _ in result["perf"]], digits=2,
           note="%d samples of %.2f s" % (result["samples"], least))
    start = {name: statistics.median(result[name + " start"] or [0]) for name in ("pem", "perf")}
    beyond = {name: [1e3 * (rest - start[name]) / least for _, rest in result[name]] for name in start}
    report("sampling", case.replace("slowdown", "recorder_cpu"), "ms/s", beyond["pem"], peer, beyond["perf"], digits=2,
           note="to start and end: %.0f ms, perf %.0f" % (1e3 * start["pem"], 1e3 * start["perf"]),
           start_ms=1e3 * start["pem"], peer_start_ms=1e3 * start["perf"], counted_ms=statistics.median(result["own"]))


def main():
    cases = wanted(*CASES)
    if not cases:
        return
    heading("sampling", "%d samples a second" % HZ)
    with Folder() as folder:
        data = folder.fresh("data")
        with open(data, "wb") as out, open(sys.executable, "rb") as program:
            out.write((program.read() * (1 + BYTES // os.path.getsize(sys.executable)))[:BYTES])
        plain, results = [], {case: {key: [] for key in ("pem", "pem start", "own", "perf", "perf start")} for case in cases}
        for _ in range(ROUNDS):
            plain.append(cpu_s(data)[0])
            for case in cases:
                once(case, folder, data, results[case])
        for case in cases:
            tell(case, results[case], plain)


if __name__ == "__main__":
    main()
