#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
system_wide - a kernel-heavy workload while everything the machine does is recorded: kernel/system_wide_*

	kernel/system_wide_find		find / -xdev
	kernel/system_wide_pipe		two processes that pass a byte to and fro, on one CPU: on two it takes as long as waking up one
					that sleeps, which it does less where an observer keeps it busy
	kernel/system_wide_make		make -j2 of C files of this tree

All tracepoints of the scheduler, of memory and of system calls that both pem and tracefs have here, of all CPUs; perf record -a and trace-cmd record
have the same ones, buffers as they come. trace-cmd gives up where function tracing can't be set up; ftrace to files is what it does
besides: a process for each CPU that copies trace_pipe_raw. All are taken in turn, each round beginning with another, and each just
after the bare workload. Values are how many times as long the workload takes; '_cpu' of its own CPU time. Lost: of how many events,
all rounds together; perf tells how many chunks of its buffers it lost, whose events nobody knows, beside the samples that came.
LTTng's kernel tracer needs its modules: without them it is not beside us.
"""
import functools
import glob
import json
import os
import re
import shutil
import statistics
import subprocess

from measure import Folder, HERE, Missing, PEM, QUICK, balance, heading, private_tracefs, report, wanted

ROUNDS = 1 if QUICK else 5
TIMED = os.path.join(HERE, "timed")
CALLS = os.path.join(HERE, "calls")
PATTERNS = ("OS::Sched::*", "OS::Mem::*", "OS::Syscall::*")
LIMIT_S = 120
SOURCES = 3 if QUICK else 12


@functools.lru_cache(None)
def events():
    """{event of these classes: its tracepoint 'system:name'}, of those that all can have: some tracepoints are for BPF alone."""
    found, folder = {}, os.path.join(private_tracefs(), "events")
    for pattern in PATTERNS:
        done = subprocess.run([PEM, "list", "--json", pattern], stdout=subprocess.PIPE, check=True)
        for event in json.loads(done.stdout):
            tracepoint = event["sources"][0]
            if event["available"] and os.path.exists(os.path.join(folder, *tracepoint.split(":"))):
                found[event["name"]] = tracepoint
    return found


def tracepoints():
    return sorted(set(events().values()))


class Observer:
    """command() is what a workload is run under; lost() is what it lost of how much: (lost, all), in words of SHARE."""

    SHARE = "%d of %d"

    def __init__(self, folder):
        self.folder = folder

    def end(self):
        """Leave nothing behind where the workload failed."""


class Pem(Observer):
    name = "pem"

    def command(self):
        self.trace = self.folder.fresh("trace")
        return [PEM, "record", "-q", "--no-libc", "-a", "-e", ",".join(events()), "-o", self.trace, "--"]

    def lost(self):
        produced, delivered, _, _ = balance(self.trace)
        self.folder.fresh("trace")
        return produced - delivered, produced


class Perf(Observer):
    name = "perf record"
    SHARE = "%d chunks beside %d samples"

    def command(self):
        need("perf")
        self.file = os.path.join(self.folder.path, "perf.data")
        return ["perf", "record", "-q", "-a", "-o", self.file] + [w for t in tracepoints() for w in ("-e", t)] + ["--"]

    def lost(self):
        done = subprocess.run(["perf", "report", "-i", self.file, "--stats"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True, check=False)
        os.unlink(self.file)
        lost = re.search(r"lost (\d+) chunks", done.stdout)
        samples = re.search(r"SAMPLE events: +(\d+)", done.stdout)
        if not samples:
            raise Missing("its data has no samples: " + done.stdout.strip()[-200:])
        return int(lost.group(1)) if lost else 0, int(samples.group(1))


class TraceCmd(Observer):
    name = "trace-cmd record"

    def command(self):
        need("trace-cmd")
        self.allow()
        self.file = os.path.join(self.folder.path, "trace.dat")
        return ["trace-cmd", "record", "-q", "-o", self.file] + [w for t in tracepoints() for w in ("-e", t)]

    def allow(self):
        """It switches function tracing on, which it needs not for events, and gives up where a kernel's is off for good."""
        switch = "/proc/sys/kernel/ftrace_enabled"
        try:
            with open(switch, "w", encoding="ascii") as f:
                f.write("1")
        except PermissionError:
            ours = os.path.join(self.folder.path, "ftrace_enabled")
            with open(ours, "w", encoding="ascii") as f:
                f.write("1\n")
            subprocess.run(["mount", "--bind", ours, switch], check=True)
        except OSError:
            pass  # there is none

    def lost(self):
        done = subprocess.run(["trace-cmd", "report", "--stat", "-i", self.file], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, universal_newlines=True, check=False)
        os.unlink(self.file)
        lost = sum(int(n) for n in re.findall(r"^(?:overrun|commit overrun|dropped events): (\d+)", done.stdout, re.M))
        read = sum(int(n) for n in re.findall(r"^(?:entries|read events): (\d+)", done.stdout, re.M))
        return lost, lost + read


class Ftrace(Observer):
    name = "ftrace to files"
    instance, copies = "", ()

    def command(self):
        self.instance = os.path.join(private_tracefs(), "instances", "pem-bench-wide")
        self.end()
        os.mkdir(self.instance)
        self.cpus = sorted(glob.glob(os.path.join(self.instance, "per_cpu", "cpu*")))
        self.copies = [subprocess.Popen(["cp", os.path.join(cpu, "trace_pipe_raw"),
                                         os.path.join(self.folder.path, "ftrace." + os.path.basename(cpu))]) for cpu in self.cpus]
        self.switch("1")
        return []

    def switch(self, to):
        for t in tracepoints():
            with open(os.path.join(self.instance, "events", *t.split(":"), "enable"), "w", encoding="ascii") as f:
                f.write(to)

    def end(self):
        for copy in self.copies:
            copy.kill()
            copy.wait()
        self.copies = ()
        if os.path.exists(self.instance):
            os.rmdir(self.instance)
        for path in glob.glob(os.path.join(self.folder.path, "ftrace.*")):
            os.unlink(path)

    def lost(self):
        self.switch("0")
        said = ""
        for cpu in self.cpus:
            with open(os.path.join(cpu, "stats"), encoding="ascii") as f:
                said += f.read()
        self.end()
        lost = sum(int(n) for n in re.findall(r"^(?:overrun|commit overrun|dropped events): (\d+)", said, re.M))
        return lost, lost + sum(int(n) for n in re.findall(r"^(?:entries|read events): (\d+)", said, re.M))


def need(tool):
    if not shutil.which(tool):
        raise Missing("%s is missing" % tool)


def find(_):
    return ["sh", "-c", "find %s -xdev >/dev/null 2>&1 || true" % ("/usr/share" if QUICK else "/")]


def pipe(_):
    return ["taskset", "-c", str(min(os.sched_getaffinity(0))), CALLS, "pipe", "1000" if QUICK else "200000"]


def make(folder):
    """C files of this tree that need nothing but its headers and libxml2's."""
    where = os.path.join(folder.path, "make")
    if not os.path.exists(where):
        os.mkdir(where)
        flags = subprocess.run(["pkg-config", "--cflags", "libxml-2.0"], stdout=subprocess.PIPE,
                               universal_newlines=True).stdout.strip()
        sources = [os.path.abspath(s) for s in sorted(glob.glob("codegen/*.c"))][:SOURCES]
        with open(os.path.join(where, "Makefile"), "w", encoding="utf-8") as f:
            f.write("all: %s\n" % " ".join(os.path.basename(s) + ".o" for s in sources))
            for s in sources:
                f.write("%s.o:\n\t@cc -O2 -w -fsyntax-only -D_GNU_SOURCE -I%s -I%s -I%s/gen %s %s\n" %
                        (os.path.basename(s), os.path.dirname(s), os.path.abspath("spec/abi"), os.path.dirname(HERE), flags, s))
    return ["make", "-s", "-C", where, "-j2"]


WORKLOADS = {"kernel/system_wide_find": find, "kernel/system_wide_pipe": pipe, "kernel/system_wide_make": make}
OBSERVERS = (Pem, Perf, TraceCmd, Ftrace)


def timed(folder, command, under=()):
    """(ns that passed, ns of CPU time) of a command, which an observer's command may run."""
    out = os.path.join(folder.path, "timed")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    try:
        done = subprocess.run([*under, TIMED, out, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, env=environment, universal_newlines=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        raise Missing("it did not end within %d s" % LIMIT_S) from None
    if done.returncode:
        raise Missing((done.stderr.strip() or "no reason").splitlines()[-1][-200:])
    with open(out, encoding="ascii") as f:
        ns, user, system = map(int, f.read().split()[:3])
    return ns, (user + system) * 1000


def measure(folder, case, command):
    ratios = {o.name: ([], []) for o in OBSERVERS}
    losses = {o.name: [0, 0] for o in OBSERVERS}
    observers = [o(folder) for o in OBSERVERS]
    timed(folder, command)  # what is to be in caches is
    for first in range(ROUNDS):
        first %= max(len(observers), 1)
        for o in observers[first:] + observers[:first]:
            bare = timed(folder, command)
            try:
                took = timed(folder, command, o.command())
                lost, whole = o.lost()
            except Missing as why:
                print("system_wide: no %s: %s" % (o.name, why))
                observers = [other for other in observers if other is not o]
                ratios[o.name] = ([], [])
                o.end()
                continue
            losses[o.name][0] += lost
            losses[o.name][1] += whole
            for i in range(2):
                ratios[o.name][i].append(took[i] / bare[i])
    if not ratios["pem"][0]:
        return
    for i, suffix in enumerate(("", "_cpu")):
        for peer in OBSERVERS[1:]:
            report("system_wide", case + suffix, "times", ratios["pem"][i], peer.name, ratios[peer.name][i],
                   note="" if i else "lost: %s, %s %s" % (share(Pem, losses), peer.name, share(peer, losses)),
                   lost=losses["pem"][0], events=losses["pem"][1], peer_lost=losses[peer.name][0],
                   peer_events=losses[peer.name][1])


def share(observer, losses):
    return observer.SHARE % tuple(losses[observer.name])


def main():
    cases = wanted(*WORKLOADS)
    if not cases:
        return
    if os.geteuid() != 0:
        print("system_wide: the whole machine is root's")
        return
    print("system_wide: no LTTng: its kernel tracer needs modules" if not glob.glob("/lib/modules/%s/**/lttng-tracer.ko*" %
          os.uname().release, recursive=True) else "system_wide: LTTng's modules are here and not asked")
    heading("system_wide", "slowdown of the workload")
    with Folder() as folder:
        for case in cases:
            measure(folder, case, WORKLOADS[case](folder))


if __name__ == "__main__":
    main()
