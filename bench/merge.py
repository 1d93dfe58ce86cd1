#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
merge - how fast traces are read: reader/merge_context

	reader/merge_context	records per second of CPU time that pem's reader hands out, in order of time over all streams and with process
				and thread of the kernel's: system calls and what programs allocate on all CPUs, read from memory

babeltrace2 reads the same trace, of fewer rounds, with its muxer and without output (-o dummy).
"""
import os
import re
import shutil
import subprocess
import sys

from measure import Folder, HERE, PEM, QUICK, balance, heading, report, wanted

ROUNDS = 1 if QUICK else 7
BYTES = 20_000 if QUICK else 3_000_000
READ = os.path.join(HERE, "read_trace")
WORK = ("for i in 1 2 3; do dd if=/dev/zero of=/dev/null bs=1 count=%d status=none & done; "
        "for i in 1 2 3 4 5 6 7 8; do find /usr/share -size +1 >/dev/null 2>&1; done; wait") % (BYTES // 3)
CASE = "reader/merge_context"


def record(folder):
    trace = folder.fresh("trace")
    done = subprocess.run([PEM, "record", "-q", "--buffer", "256M", "-e", "OS,APP", "-o", trace, "--", "sh", "-c", WORK])
    if done.returncode:
        sys.exit("merge: nothing was recorded")
    return trace


def ours(trace):
    """Records a second, of one pass."""
    done = subprocess.run([READ, trace], stdout=subprocess.PIPE, check=True, universal_newlines=True)
    records, ns = map(int, done.stdout.split())
    if records != balance(trace)[1]:
        sys.exit("merge: %d records, and the trace says %d" % (records, balance(trace)[1]))
    return records * 1e3 / ns


def theirs(trace):
    """The same of babeltrace2, its start (measured by --help) counted: a trace takes it seconds."""
    done = subprocess.run(["sh", "-c", "babeltrace2 -o dummy \"$1\" >/dev/null 2>&1; times", "sh", trace], stdout=subprocess.PIPE,
                          universal_newlines=True)
    minutes, seconds = zip(*re.findall(r"(\d+)m([\d.]+)s", done.stdout.splitlines()[1]))
    return balance(trace)[1] / (60e6 * sum(map(int, minutes)) + 1e6 * sum(map(float, seconds)))


def main():
    if not wanted(CASE):
        return
    heading("merge", "one core, CPU time")
    with Folder() as folder:
        trace = record(folder)
        rates, other = [], []
        for _ in range(ROUNDS):
            rates.append(ours(trace))
            if shutil.which("babeltrace2") and len(other) < 3:
                other.append(theirs(trace))
        report("merge", CASE, "M events/s", rates, "babeltrace2", other, digits=2,
               note="%d events in %d streams" % (balance(trace)[1], sum(n[0] in "uk" for n in os.listdir(trace))))


if __name__ == "__main__":
    main()
