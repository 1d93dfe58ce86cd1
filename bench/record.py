#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
record - what recording to a trace takes: notify/record_bytes, notify/compressed_bytes, notify/sustained

	notify/record_bytes	bytes on disk for an event of two 64-bit fields, packet headers included
	notify/compressed_bytes	the same with --compress, beside a trace that is not compressed
	notify/compressed_cpu	the recorder's CPU time for a million of these events, beside the same
	notify/sustained	share of events that one thread loses to a trace on tmpfs when it raises 20 million a second, default
				buffers; then the same with the 64 MiB that pem-record(1) names for it (_64M), the recorder's CPU time for
				a million, beside what writing the bytes alone takes (_floor), and the highest rate without a loss

'raise' runs under 'pem record' on one CPU, and the recorder on another. The peer is LTTng-UST, its channel as it comes,
its consumer daemon on that other CPU, in turn with us.
"""
import os
import resource
import statistics
import subprocess
import sys

from measure import (Folder, PEM, QUICK, RAISE, balance, beside, cpus, heading, lttng_version, recorder_cpu_ns, report,
                     wanted)

TARGET_HZ = 20_000_000
SECONDS = 0.01 if QUICK else 2
ROUNDS = 1 if QUICK else 5
BYTES_EVENTS = 20_000 if QUICK else 1_000_000
RATE_BYTES_HZ = 1_000_000
PEER = "LTTng-UST " + lttng_version()


class Run:
    """What one run of 'raise' came to."""

    def __init__(self, raised, took_ns, lost, size, recorder_ns):
        self.raised, self.took_ns, self.lost, self.size, self.recorder_ns = raised, took_ns, lost, size, recorder_ns

    def rate_hz(self):
        return self.raised * 1e9 / self.took_ns


def raise_events(prefix, options, rate_hz, count):
    program, _ = cpus()
    done = subprocess.run(prefix + ["taskset", "-c", str(program), RAISE] + options + ["paced", str(rate_hz), str(count)],
                          stdout=subprocess.PIPE, check=True, universal_newlines=True)
    raised, took = done.stdout.split()[-2:]
    return int(raised), int(took)


def ours(folder, rate_hz, count, options=()):
    trace = folder.fresh("trace")
    _, observer = cpus()
    record = ["taskset", "-c", str(observer), PEM, "record", "-q", "--no-libc", "-e", "APP", "-o", trace, *options, "--"]
    raised, took = raise_events(record, [], rate_hz, count)
    produced, delivered, discarded, overwritten = balance(trace)
    if produced != raised or delivered + discarded + overwritten != produced:
        sys.exit("record: %d events raised, and the trace says %r" % (raised, balance(trace)))
    size = sum(os.path.getsize(os.path.join(trace, n)) for n in os.listdir(trace) if n.startswith("u_"))
    run = Run(raised, took, discarded, size, recorder_cpu_ns(trace))
    folder.fresh("trace")
    return run


def theirs(lttng, rate_hz, count):
    lttng.start("pem_bench:log")
    before = lttng.consumer_cpu_ns()
    raised, took = raise_events([], ["--lttng"], rate_hz, count)
    lost, size = lttng.stop()
    return Run(raised, took, lost, size, lttng.consumer_cpu_ns() - before)


def record_bytes(folder, lttng):
    mine = [ours(folder, RATE_BYTES_HZ, BYTES_EVENTS) for _ in range(min(ROUNDS, 3))]
    peer = [theirs(lttng, RATE_BYTES_HZ, BYTES_EVENTS) for _ in range(min(ROUNDS, 3))] if lttng else []
    report("record", "notify/record_bytes", "bytes", [r.size / (r.raised - r.lost) for r in mine], PEER,
           [r.size / (r.raised - r.lost) for r in peer], "%d events" % mine[0].raised)


def compressed(folder):
    plain, packed = [], []
    for _ in range(ROUNDS):
        plain.append(ours(folder, RATE_BYTES_HZ, BYTES_EVENTS))
        packed.append(ours(folder, RATE_BYTES_HZ, BYTES_EVENTS, ["--compress"]))
    report("record", "notify/compressed_bytes", "bytes", [r.size / (r.raised - r.lost) for r in packed], "as it is",
           [r.size / (r.raised - r.lost) for r in plain], "an event of two counters: numbers that follow each other")
    report("record", "notify/compressed_cpu", "ms/million", [r.recorder_ns / r.raised for r in packed], "as it is",
           [r.recorder_ns / r.raised for r in plain], "CPU time of the recorder")


def highest(run):
    """The highest rate in Hz at which run(rate, count) loses nothing, found by halving; and the rate at full speed."""
    full = run(0, int(TARGET_HZ * SECONDS))
    if not full.lost:
        return full.rate_hz(), full.rate_hz()
    low, high = 0.0, full.rate_hz()
    for _ in range(1 if QUICK else 5):
        middle = (low + high) / 2
        if run(int(middle), int(middle * SECONDS / 2) + 1).lost:
            high = middle
        else:
            low = middle
    return low, full.rate_hz()


def plain_write_ns(folder, size):
    """CPU time of writing as many bytes as a trace has to a new file beside it, in pieces of 64 KiB."""
    _, observer = cpus()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["taskset", "-c", str(observer), "dd", "if=/dev/zero", "of=" + folder.fresh("plain"), "bs=64K",
                    "count=%d" % max(1, size >> 16)], stderr=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    os.unlink(folder.fresh("plain"))
    return 1e9 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def sustained(folder, lttng):
    count = int(TARGET_HZ * SECONDS)
    mine, larger, peer, floor = [], [], [], []
    for _ in range(ROUNDS):
        mine.append(ours(folder, TARGET_HZ, count))
        floor.append(plain_write_ns(folder, mine[-1].size) / mine[-1].raised)
        larger.append(ours(folder, TARGET_HZ, count, ["--buffer", "64M"]))
        if lttng:
            peer.append(theirs(lttng, TARGET_HZ, count))
    note = "%.1f million/s were asked for, %.1f raised" % (TARGET_HZ / 1e6, statistics.median(r.rate_hz() for r in mine) / 1e6)
    if peer:
        note += "; LTTng-UST's %.1f" % (statistics.median(r.rate_hz() for r in peer) / 1e6)
    report("record", "notify/sustained", "% lost", [100 * r.lost / r.raised for r in mine], PEER,
           [100 * r.lost / r.raised for r in peer], note)
    report("record", "notify/sustained_64M", "% lost", [100 * r.lost / r.raised for r in larger])
    report("record", "notify/sustained_cpu", "ms/million", [r.recorder_ns / r.raised for r in mine], PEER,
           [r.recorder_ns / max(1, r.raised - r.lost) for r in peer],
           "CPU time of the recorder for a million events written")
    report("record", "notify/sustained_floor", "ms/million", floor, note="dd, as many bytes to a new file beside the trace")
    if QUICK:
        return
    best, full = highest(lambda rate, n: ours(folder, rate, n))
    large, _ = highest(lambda rate, n: ours(folder, rate, n, ["--buffer", "256M"]))
    other = [highest(lambda rate, n: theirs(lttng, rate, n))[0] / 1e6] if lttng else []
    report("record", "notify/sustained_rate", "million/s", [best / 1e6], PEER, other,
           "highest without a loss, of %.1f raised at full speed; with --buffer 256M %.1f" % (full / 1e6, large / 1e6))


def main():
    chosen = wanted("notify/record_bytes", "notify/compressed_bytes", "notify/sustained")
    if not chosen:
        return
    heading("record", "program on CPU %d, recorder on CPU %d" % cpus())
    with Folder() as folder:
        lttng = beside("record", folder, cpus()[1], raising=True)
        try:
            if "notify/record_bytes" in chosen:
                record_bytes(folder, lttng)
            if "notify/compressed_bytes" in chosen:
                compressed(folder)
            if "notify/sustained" in chosen:
                sustained(folder, lttng)
        finally:
            if lttng:
                lttng.close()


main()
