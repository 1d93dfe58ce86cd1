#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
memory - what recording adds to the memory of a process, with default settings: memory/threads_1, memory/threads_1000

	memory/threads_N	N threads raise events all the time, and a recorder that keeps up writes them to a trace
	memory/wide_1000	1,000 threads raise events, and pem stat keeps histogram, variance and most frequent values of a field
	memory/threads_10000	as threads_1000, with --buffer 256M: each thread holds a chunk
	memory/stopped_1000	as threads_1000, once the recorder has been stopped for so long that all buffers are full

Counted is what the process has to itself (private pages, libraries' too) beyond what the same program has when nobody
records it, and all blocks of the files that it shares with the recorder: pool, control page and the session's page. The
C library's adapter is preloaded, as 'pem record' does by itself. The peer's is counted alike: LTTng-UST with the channel that
it makes by default, whose buffers belong to a user and not to a process.
"""
import os
import re
import signal
import subprocess
import sys
import time

from measure import Folder, PEM, QUICK, RAISE, beside, children, heading, lttng_version, report, wanted

MIB = float(1 << 20)
THREADS = (1, 1000, 10000)
BURSTS_HZ = {1: 1000, 1000: 50, 10000: 1}  # of 8 events, in each thread
SETTLE_S = 0.1 if QUICK else 1.5
ROUNDS = 1 if QUICK else 3
POOL_BYTES = 32 << 20  # the default
BUFFERS = {1: [], 1000: [], 10000: ["--buffer", "256M"]}
PEER = "LTTng-UST " + lttng_version()
SHARED = re.compile(r"/(pool|control)-|/config$|ust-shm|shm-ust-consumer|lttng-ust")


def private_bytes(pid):
    """(private, resident of shared buffers that are no files of ours) of a process."""
    private = buffers = 0
    name = ""
    with open("/proc/%d/smaps" % pid, encoding="utf-8") as f:
        for line in f:
            cells = line.split()
            if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                name = " ".join(cells[5:])
            elif cells[0] in ("Private_Clean:", "Private_Dirty:") and not SHARED.search(name):
                private += int(cells[1]) * 1024
            elif cells[0] == "Rss:" and SHARED.search(name):
                buffers += int(cells[1]) * 1024
    return private, buffers


def file_bytes(folder):
    """Blocks of the files that a producer and its recorder share."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            if SHARED.search(os.path.join(where, name)):
                total += os.stat(os.path.join(where, name)).st_blocks * 512
    return total


class Program:
    """'raise threads N' from its being ready to its end."""

    def __init__(self, prefix, options, threads):
        self.first = subprocess.Popen(prefix + [RAISE] + options + ["threads", str(threads), str(BURSTS_HZ[threads])],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.first.stdout.readline() != b"ready\n":
            sys.exit("memory: %s did not start" % " ".join(prefix + [RAISE] + options))
        self.pid = children(self.first.pid)[0] if prefix else self.first.pid
        time.sleep(SETTLE_S)

    def end(self):
        self.first.communicate()


def alone(threads):
    program = Program([], [], threads)
    bytes_, _ = private_bytes(program.pid)
    program.end()
    return bytes_


def ours(folder, threads, base, full):
    """(while the recorder keeps up, if asked for once it has stopped): bytes beyond base."""
    program = Program([PEM, "record", "-q", "-e", "APP", *BUFFERS[threads], "-o", folder.fresh("trace"), "--"], [], threads)
    steady = private_bytes(program.pid)[0] - base + file_bytes(folder.runtime)
    if full:
        os.kill(program.first.pid, signal.SIGSTOP)
        time.sleep(SETTLE_S if QUICK else 1 + 2 * POOL_BYTES / (24 * 8 * threads * BURSTS_HZ[threads]))
        full = private_bytes(program.pid)[0] - base + file_bytes(folder.runtime)
        os.kill(program.first.pid, signal.SIGCONT)
    program.end()
    return steady, full


def theirs(lttng, threads, base):
    lttng.start("pem_bench:log")
    program = Program([], ["--lttng"], threads)
    private, buffers = private_bytes(program.pid)
    program.end()
    lttng.stop()
    return private - base + buffers


def wide(folder, threads):
    """What 'pem stat' with all of a field adds, without a record: a part for each thread."""
    values = []
    os.environ["PEM_SPEC_PATH"] = "bench"
    for _ in range(ROUNDS):
        base = alone(threads)
        program = Program([PEM, "stat", "-q", "-o", os.devnull, "-e", "APP::Bench::Log", "-f", "a",
                           "--histogram", "--top", "--variance", "--"], [], threads)
        values.append((private_bytes(program.pid)[0] - base + file_bytes(folder.runtime)) / MIB)
        program.end()
    report("memory", "memory/wide_%d" % threads, "MiB", values, note="of which 1.1 MiB are 1,152 bytes a thread")


def measure(folder, lttng, threads, case, full_case):
    steady, stopped, peer = [], [], []
    for _ in range(ROUNDS):
        base = alone(threads)
        mine, full = ours(folder, threads, base, full_case and not stopped)
        steady.append(mine / MIB)
        if full:
            stopped.append(full / MIB)
        if lttng:
            peer.append(theirs(lttng, threads, base) / MIB)
    if case:
        report("memory", case, "MiB", steady, PEER, peer)
    if full_case:
        report("memory", full_case, "MiB", stopped, note="the pool is %d MiB" % (POOL_BYTES / MIB))


def main():
    chosen = wanted("memory/threads_1", "memory/threads_1000", "memory/threads_10000", "memory/stopped_1000",
                    "memory/wide_1000")
    if not chosen:
        return
    heading("memory", "with default settings; no CPU is chosen")
    with Folder() as folder:
        lttng = beside("memory", folder, raising=True)
        try:
            for threads in THREADS:
                cases = [c if c in chosen else None for c in ("memory/threads_%d" % threads, "memory/stopped_%d" % threads)]
                if any(cases):
                    measure(folder, lttng, threads, *cases)
            if "memory/wide_1000" in chosen:
                wide(folder, 1000)
        finally:
            if lttng:
                lttng.close()


main()
