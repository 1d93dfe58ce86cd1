#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
report - reading what is large: report/10g, report/10g_memory, pairing/10m, pairing/10m_memory

	report/10g		seconds of pem report for a trace of 10 GB, beside cat of its streams
	report/10g_memory	the most memory that it takes
	pairing/10m		nanoseconds of CPU time for each of 10 million intervals, all context (reader/pass), beside each of 1 million:
				the same if the time is linear
	pairing/10m_memory	the most memory of the same

BENCH_REPORT_BYTES: another size than 10 GB. The trace lies on the disk of TMPDIR.
"""
import glob
import os
import subprocess
import sys
import time

from measure import Folder, HERE, PEM, QUICK, RAISE, balance, heading, report, wanted

ROUNDS = 1 if QUICK else 3
BYTES = int(os.environ.get("BENCH_REPORT_BYTES", 20_000_000 if QUICK else 10_000_000_000))
PAIRS = 20_000 if QUICK else 10_000_000
RECORD_BYTES = 24  # of APP::Bench::Log
RATE_HZ = 6_000_000
READ = os.path.join(HERE, "read_trace")
REPORT, REPORT_MEMORY, PAIRING, PAIRING_MEMORY = "report/10g", "report/10g_memory", "pairing/10m", "pairing/10m_memory"


def measured(*command):
    """Seconds that passed and of CPU time, the most MiB, and what it printed."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, universal_newlines=True)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit("report: %s ended with %d" % (command[0], status))
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out


def recorded(folder, name, events, *command):
    trace = folder.fresh(name)
    done = subprocess.run([PEM, "record", "-q", "--buffer", "256M", "-e", events, "-o", trace, "--", *command],
                          stdout=subprocess.DEVNULL)
    if done.returncode:
        sys.exit("report: nothing was recorded of " + command[0])
    return trace


def streams(trace):
    return sorted(glob.glob(os.path.join(trace, "[ukc]_*")))


def large(folder):
    trace = recorded(folder, "large", "APP::Bench::Log", RAISE, "paced", str(RATE_HZ), str(BYTES // RECORD_BYTES))
    size = sum(os.path.getsize(path) for path in streams(trace))
    times, memory, floor = [], [], []
    for _ in range(ROUNDS):
        seconds, _, most, _ = measured(PEM, "report", "--by", "layer", trace)
        times.append(seconds)
        memory.append(most)
        start = time.monotonic()
        for path in streams(trace):
            subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
        floor.append(time.monotonic() - start)
    report("report", REPORT, "s", times, "cat", floor, digits=2,
           note="%.2f GB, %d events, %.1f M/s" % (size / 1e9, balance(trace)[1], balance(trace)[1] / 1e6 / min(times)))
    report("report", REPORT_MEMORY, "MiB", memory, digits=0)
    subprocess.run(["rm", "-rf", trace], check=True)


def pairing(folder):
    traces = {}
    for count in (PAIRS, PAIRS // 10):
        traces[count] = recorded(folder, "pairs%d" % count, "APP::File::ReadBegin,APP::File::ReadEnd",
                                 "dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=%d" % count, "status=none")
    each, memory = {count: [] for count in traces}, {count: [] for count in traces}
    for _ in range(ROUNDS):
        for count, trace in traces.items():
            _, cpu, most, out = measured(READ, trace, "pass")
            if int(out.split()[0]) != balance(trace)[1]:
                sys.exit("report: %s records, and the trace says %d" % (out.split()[0], balance(trace)[1]))
            each[count].append(cpu * 1e9 / (balance(trace)[1] / 2))
            memory[count].append(most)
    report("report", PAIRING, "ns", each[PAIRS], "a tenth of them", each[PAIRS // 10], digits=1,
           note="%d records" % balance(traces[PAIRS])[1])
    report("report", PAIRING_MEMORY, "MiB", memory[PAIRS], "a tenth of them", memory[PAIRS // 10], digits=1)


def main():
    if not wanted(REPORT, REPORT_MEMORY, PAIRING, PAIRING_MEMORY):
        return
    heading("report", "%.1f GB, %d pairs" % (BYTES / 1e9, PAIRS))
    with Folder(memory=False) as folder:
        if wanted(REPORT, REPORT_MEMORY):
            large(folder)
        if wanted(PAIRING, PAIRING_MEMORY):
            pairing(folder)


if __name__ == "__main__":
    main()
