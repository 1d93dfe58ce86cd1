#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
kernel - what it costs to observe the kernel through BPF: kernel/bpf_log2, kernel/bpf_count, kernel/bpf_count_by_process

	kernel/bpf_log2		what logging raw_syscalls:sys_enter, number and first argument, adds to getppid: CPU time of the caller,
				nothing subtracted but the bare call. Beside it the stock BPF ring buffer with the same fields and a clock;
				_quiet: its reader looks by the clock and is not woken; _ftrace, _perf: the event as these record it;
				_bpftrace: a count by bpftrace, which records nothing; _empty, _clock: a program that does nothing, or
				reads the clock: what any record costs at least that says when
	kernel/bpf_count	the same for a count only, of the whole machine, beside an empty BPF program on the same tracepoint
	kernel/bpf_count_by_process	counts by process, as pem top keeps them, beside bpftrace's

The calls come in slices that fit the smallest buffer, and all observers are taken in turn, each round beginning with another: a
value is the median slice less the median slice of the bare call just before it. An observer that saw fewer calls than there
were (those of others count, too, in what sees the whole machine), or lost what it saw, has no value; ftrace, which nobody reads meanwhile, overwrites. It needs tracefs, which is mounted where nobody
else sees it.
"""
import glob
import json
import os
import re
import shutil
import signal
import statistics
import subprocess

from measure import Folder, HERE, Missing, PEM, QUICK, balance, heading, private_tracefs, report, wanted

ROUNDS = 1 if QUICK else 7
SLICES, CALLS, PAUSE_MS = (3, 2000, 5) if QUICK else (25, 20_000, 12)
CALLER = [os.path.join(HERE, "calls"), str(SLICES), str(CALLS), str(PAUSE_MS)]
OBSERVER = os.path.join(HERE, "kernel_peer")
EVENT = "OS::Syscall::Enter"
TRACEPOINT = "raw_syscalls:sys_enter"


def check(who, seen, lost=0):
    if seen < SLICES * CALLS or lost:
        raise Missing("%s saw %d of %d calls, and lost %d" % (who, seen, SLICES * CALLS, lost))


def number(pattern, text):
    """What stands in the parentheses of a pattern, of several the greatest; 0: it is not there."""
    return max((int(found) for found in re.findall(pattern, text, re.M)), default=0)


def slices(command, seen=None):
    """ns per call of each slice, from a command that runs CALLER and may print more, which seen checks."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    values = []
    for line in done.stdout.splitlines():
        try:
            values.append(float(line))
        except ValueError:
            pass
    if done.returncode or len(values) < SLICES:
        raise Missing((done.stderr.strip() or "no result").splitlines()[-1][-200:])
    if seen:
        seen(done.stdout + done.stderr)
    return values[:SLICES]


def bare(folder):
    return slices(CALLER)


def logged(folder):
    trace = folder.fresh("trace")
    values = slices([PEM, "record", "-q", "--no-libc", "-e", EVENT, "-o", trace, "--"] + CALLER)
    produced, delivered, _, _ = balance(trace)
    check("pem", produced, produced - delivered)
    folder.fresh("trace")
    return values


def counted(folder):
    counts = os.path.join(folder.path, "counts")
    values = slices([PEM, "stat", "-q", "-a", "--json", "-e", EVENT, "-o", counts, "--"] + CALLER)
    with open(counts, encoding="utf-8") as f:
        check("pem", sum(one["count"] for one in json.load(f)["events"] if one["name"] == EVENT))
    return values


def counted_by_process(folder):
    output = os.path.join(folder.path, "output")
    interval_ms = 3 * SLICES * (PAUSE_MS + CALLS // 2000) + 500
    command = [PEM, "top", "-q", "-a", "--once", "--json", "-i", str(interval_ms), "-e", EVENT, "-o", output, "--"] + CALLER
    values = slices(["sh", "-c", '"$@" >"$0.counts" && cat "$0"', output, *command])
    with open(output + ".counts", encoding="utf-8") as f:
        (event,) = json.load(f)["events"]
    # The caller has ended.
    check("pem", sum(part["count"] for part in event["threads"] if not part["program"]))
    return values


def observed(what, records=False):
    def all_taken(said):
        check(what, number(r"(\d+) taken", said), number(r"(\d+) lost", said))
    return lambda folder: slices([OBSERVER, what] + CALLER, all_taken if records else None)


def ftrace(folder):
    instance = os.path.join(private_tracefs(), "instances", "pem-bench")
    enable = os.path.join(instance, "events", *TRACEPOINT.split(":"), "enable")
    os.makedirs(instance, exist_ok=True)
    try:
        with open(enable, "w", encoding="ascii") as f:
            f.write("1")
        values = slices(CALLER)
        check("ftrace", sum(number(r"^entries: (\d+)", read(path)) + number(r"^overrun: (\d+)", read(path))
                            for path in glob.glob(os.path.join(instance, "per_cpu", "cpu*", "stats"))))
        return values
    finally:
        with open(enable, "w", encoding="ascii") as f:
            f.write("0")
        os.rmdir(instance)


def perf(folder):
    private_tracefs()
    need("perf")
    data = os.path.join(folder.path, "perf.data")
    values = slices(["perf", "record", "-q", "-e", TRACEPOINT, "-o", data] + CALLER)
    said = subprocess.run(["perf", "report", "-i", data, "--stats"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True, check=False).stdout
    os.unlink(data)
    check("perf", number(r"SAMPLE events: +(\d+)", said), number(r"lost (\d+) chunks", said))
    return values


def bpftrace(folder):
    private_tracefs()
    need("bpftrace")
    return slices(["bpftrace", "-q", "-e", "tracepoint:%s { @ = count(); }" % TRACEPOINT, "-c", " ".join(CALLER)],
                  lambda said: check("bpftrace", number(r"^@: (\d+)", said)))


def bpftrace_by_process(folder):
    private_tracefs()
    need("bpftrace")
    return slices(["bpftrace", "-q", "-e", "tracepoint:%s { @[pid] = count(); }" % TRACEPOINT, "-c", " ".join(CALLER)],
                  lambda said: check("bpftrace", number(r"^@\[\d+\]: (\d+)", said)))


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


def need(tool):
    if not shutil.which(tool):
        raise Missing("%s is missing" % tool)


def added(folder, observers):
    """What each observer adds to a call, round by round: {name: [ns]}; one that can't run is said, and has none."""
    found = {name: [] for name in observers}
    for first in range(ROUNDS):
        turn = list(observers.items())
        first %= max(len(turn), 1)
        for name, run in turn[first:] + turn[:first]:
            plain = statistics.median(bare(folder))
            try:
                found[name].append(statistics.median(run(folder)) - plain)
            except Missing as why:
                print("kernel: no %s: %s" % (name, why))
                del observers[name]
                found[name] = []
    return found


LOG_PEERS = {
    "": ("BPF ring buffer", observed("ringbuf", True)),
    "_quiet": ("BPF ring buffer, not woken", observed("ringbuf_quiet", True)),
    "_ftrace": ("ftrace", ftrace),
    "_perf": ("perf record", perf),
    "_bpftrace": ("bpftrace count", bpftrace),
}


def bpf_log2(folder, cases):
    peers = {s: LOG_PEERS[s] for s in LOG_PEERS if "kernel/bpf_log2" + s in cases}
    found = added(folder, dict({"pem": logged, "an empty program": observed("empty"), "the clock alone": observed("clock")},
                               **{name: run for name, run in peers.values()}))
    if not found["pem"]:
        return
    for suffix, (name, _) in peers.items():
        report("kernel", "kernel/bpf_log2" + suffix, "ns", found["pem"], name, found[name], digits=1)
    for suffix, name in (("_empty", "an empty program"), ("_clock", "the clock alone")):
        if found[name]:
            report("kernel", "kernel/bpf_log2" + suffix, "ns", found["pem"], name, found[name], digits=1)


def bpf_count(folder):
    found = added(folder, {"pem": counted, "an empty program": observed("empty")})
    if found["pem"] and found["an empty program"]:
        more = [a - b for a, b in zip(found["pem"], found["an empty program"])]
        report("kernel", "kernel/bpf_count", "ns", found["pem"], "an empty program", found["an empty program"], digits=1,
               note="%+.1f ns" % statistics.median(more), more=statistics.median(more))


def bpf_count_by_process(folder):
    found = added(folder, {"pem": counted_by_process, "bpftrace": bpftrace_by_process})
    if found["pem"]:
        report("kernel", "kernel/bpf_count_by_process", "ns", found["pem"], "bpftrace", found["bpftrace"], digits=1)


def main():
    logs = ["kernel/bpf_log2" + suffix for suffix in LOG_PEERS]
    cases = wanted(*logs, "kernel/bpf_count", "kernel/bpf_count_by_process")
    if not cases:
        return
    if os.geteuid() != 0 or not os.path.exists(OBSERVER):
        print("kernel: needs root, and a build with a BPF compiler")
        return
    heading("kernel", "caller and observers on their own CPUs")
    with Folder() as folder:
        if any(c in logs for c in cases):
            bpf_log2(folder, cases)
        if "kernel/bpf_count" in cases:
            bpf_count(folder)
        if "kernel/bpf_count_by_process" in cases:
            bpf_count_by_process(folder)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: os._exit(1))
    main()
