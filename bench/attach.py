#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
attach - from the call that attaches to a process which runs already to the first of its events in a callback

	attach/first_event	the process raises 8 events 1,000 times a second
	attach/first_event_p99	the same attachments' 99th percentile

The peer is bpftrace with a probe on a function that the process calls, from its start to its first line of output; its start
is part of it, as who attaches with it has to start it.
"""
import os
import shutil
import subprocess
import sys
import time

from measure import HERE, PEM, QUICK, RAISE, Folder, heading, report, wanted

ROUNDS = 2 if QUICK else 50
PEER_ROUNDS = 1 if QUICK else 5
CASES = ("attach/first_event", "attach/first_event_p99")
PROBE = 'uprobe:/lib/x86_64-linux-gnu/libc.so.6:clock_nanosleep { printf("x\\n"); exit(); }'


def ours(pid):
    done = subprocess.run([os.path.join(HERE, "attach_first"), str(pid)], stdout=subprocess.PIPE, check=True)
    return float(done.stdout) / 1000


def theirs(pid):
    start = time.monotonic()
    peer = subprocess.Popen(["bpftrace", "-p", str(pid), "-q", "-e", PROBE], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL)
    line = peer.stdout.readline()
    took = (time.monotonic() - start) * 1000
    peer.communicate()
    return took if line.strip() == b"x" else None


def main():
    cases = wanted(*CASES)
    if not cases:
        return 0
    heading("attach")
    with Folder():
        program = subprocess.Popen([PEM, "run", "--", RAISE, "threads", "1", "1000"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        try:
            program.stdout.readline()
            times, peers = [], []
            for i in range(ROUNDS):
                times.append(ours(program.pid))
                if i < PEER_ROUNDS and shutil.which("bpftrace") and os.geteuid() == 0:
                    peers.append(theirs(program.pid))
            peers = [p for p in peers if p is not None]
        finally:
            program.communicate()
    if CASES[0] in cases:
        report("attach", CASES[0], "ms", times, "bpftrace", peers, "goal: below 50 ms")
    if CASES[1] in cases:
        p99 = sorted(times)[min(len(times) - 1, len(times) * 99 // 100)]
        report("attach", CASES[1], "ms", [p99], "bpftrace", [max(peers)] if peers else [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
