#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
merge - how fast traces are read: reader/merge_context, reader/pass

	reader/merge_context	records per second of CPU time that pem's reader hands out, in order of time over all streams and with process
				and thread of the kernel's: system calls and what programs allocate on all CPUs, read from memory
	reader/pass		the same with all context: states of threads, open intervals, phases, messages and blocks (pem/context.h)

babeltrace2 reads the same trace, of fewer rounds, with its muxer and without output (-o dummy). Its CPU time counts from its
start to its end, the reading of metadata included, as ours does; once it counts what it reads, which must be all.
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
PASS = "reader/pass"


def record(folder):
    trace = folder.fresh("trace")
    done = subprocess.run([PEM, "record", "-q", "--buffer", "256M", "-e", "OS,APP", "-o", trace, "--", "sh", "-c", WORK])
    if done.returncode:
        sys.exit("merge: nothing was recorded")
    return trace


def ours(trace, *how):
    """Records a second, of one reading."""
    done = subprocess.run([READ, trace, *how], stdout=subprocess.PIPE, check=True, universal_newlines=True)
    records, ns = map(int, done.stdout.split())
    if records != balance(trace)[1]:
        sys.exit("merge: %d records, and the trace says %d" % (records, balance(trace)[1]))
    return records * 1e3 / ns


def theirs(trace):
    """The same of babeltrace2."""
    done = subprocess.run(["sh", "-c", "babeltrace2 -o dummy \"$1\" >/dev/null 2>&1 || exit 1; times", "sh", trace],
                          stdout=subprocess.PIPE, universal_newlines=True)
    if done.returncode:
        sys.exit("merge: babeltrace2 does not read the trace")
    minutes, seconds = zip(*re.findall(r"(\d+)m([\d.]+)s", done.stdout.splitlines()[1]))
    return balance(trace)[1] / (60e6 * sum(map(int, minutes)) + 1e6 * sum(map(float, seconds)))


def count_theirs(trace):
    """That babeltrace2 reads every event."""
    done = subprocess.run(["babeltrace2", trace, "--component=counter:sink.utils.counter"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, universal_newlines=True)
    counted = re.findall(r"^\s*([\d,]+) Event messages", done.stdout, re.M)  # again and again, the last being of all
    if not counted or int(counted[-1].replace(",", "")) != balance(trace)[1]:
        sys.exit("merge: babeltrace2 counts %s events of %d" % (counted[-1] if counted else "no", balance(trace)[1]))


def main():
    if not wanted(CASE) and not wanted(PASS):
        return
    heading("merge", "one core, CPU time")
    with Folder() as folder:
        trace = record(folder)
        rates, other, passes = [], [], []
        if shutil.which("babeltrace2"):
            count_theirs(trace)
        for _ in range(ROUNDS):
            rates.append(ours(trace))
            passes.append(ours(trace, "pass"))
            if shutil.which("babeltrace2") and len(other) < 3:
                other.append(theirs(trace))
        report("merge", CASE, "M events/s", rates, "babeltrace2", other, digits=2,
               note="%d events in %d streams" % (balance(trace)[1], sum(n[0] in "uk" for n in os.listdir(trace))))
        report("merge", PASS, "M events/s", passes, "babeltrace2", other, digits=2)


if __name__ == "__main__":
    main()
