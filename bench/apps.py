#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
apps - what it costs real programs that all events of applications are recorded

	apps/sqlite3	sqlite3 inserts rows with an index into a file on disk, a thousand to a transaction
	apps/redis	redis-server answers redis-benchmark, which nobody records; the server's side is what counts
	apps/xz		xz compresses a library of this machine
	apps/compile	gcc compiles a C file of this tree, from its driver to the assembler

Each runs plain, under 'pem record -e APP' (the events that are recorded by default), under 'pem record -e APP::*' (with those
of level 'detail', such as each lock), under 'pem stat -e APP' (counted, not recorded), and with LTTng-UST's wrapper of malloc and
free alone (lttng) in turn. A round holds one run of each; a slowdown is that of a run beside the plain one of its round:
in per cent of time that passed, and of the program's CPU time (NAME_cpu). A record takes a clock's read (notify/floor): a program
that raises events faster than every 300 ns of its own time can't be recorded for 3 %; it can be counted. The program is bound to one CPU and its recorder to another. Tools that stop a program
at each call (ltrace, strace) run once, for comparison, and only where they work here.
"""
import os
import re
import shutil
import socket
import statistics
import subprocess
import time

from measure import (BUILD, Folder, Missing, PEM, QUICK, HERE, beside, cpus, cpu_ns, heading, lttng_version, recorder_cpu_ns,
                     report, wanted)

TIMED = os.path.join(HERE, "timed")
WRAPPER = "liblttng-ust-libc-wrapper.so"
ROUNDS = 1 if QUICK else 7
LIMIT_S = 60  # of one case's rounds
SLOW_LIMIT_S = 0.3 if QUICK else 15
ROWS = 200 if QUICK else 50_000
REQUESTS = 200 if QUICK else 40_000
XZ_BYTES = (1 if QUICK else 12) << 18
PROGRAM_CPU, RECORDER_CPU = cpus()


class Run:
    """Time that passed, the program's CPU time, and for pem how many events there were and the recorder's CPU time."""

    def __init__(self, wall_s, cpu_s, events=0, lost=0, recorder_s=0.0):
        self.wall_s, self.cpu_s, self.events, self.lost, self.recorder_s = wall_s, cpu_s, events, lost, recorder_s


def on(cpu, *words):
    return ["taskset", "-c", str(cpu), *words]


class Program:
    """A program that runs to its end. prepare: makes what it starts from anew."""

    def __init__(self, folder, command, prepare=lambda: None):
        self.command, self.prepare = command, prepare
        self.times = folder.path + "/times"

    def run(self, prefix, env=None, limit_s=None):
        self.prepare()
        subprocess.run(prefix + on(PROGRAM_CPU, TIMED, self.times, *self.command), check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})}, timeout=limit_s)
        with open(self.times, encoding="utf-8") as f:
            wall, user, system = map(int, f.read().split())
        return Run(wall / 1e9, (user + system) / 1e6)


class Redis:
    """A server that is run under the prefix; what is timed is its client's run, and its own CPU time meanwhile."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = str(s.getsockname()[1])

    def client(self, *words):
        return subprocess.run(on(RECORDER_CPU, *words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                              timeout=120).stdout

    def server_pid(self):
        for _ in range(100):
            try:
                said = self.client("redis-cli", "-p", self.port, "info", "server").decode()
                return int(re.search(r"process_id:(\d+)", said).group(1))
            except (subprocess.CalledProcessError, AttributeError):
                time.sleep(0.05)
        raise Missing("redis-server did not start")

    def run(self, prefix, env=None):
        server = subprocess.Popen(prefix + on(PROGRAM_CPU, "redis-server", "--port", self.port, "--save", "", "--bind",
                                              "127.0.0.1", "--dir", self.folder.path, "--appendonly", "no"),
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        try:
            pid = self.server_pid()
            before, start = cpu_ns(pid), time.monotonic()
            self.client("redis-benchmark", "-p", self.port, "-n", str(REQUESTS), "-t", "set,get,lpush,hset", "-c", "20", "-q")
            took, used = time.monotonic() - start, cpu_ns(pid) - before
        finally:
            subprocess.run(["redis-cli", "-p", self.port, "shutdown", "nosave"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
            server.wait(timeout=60)
        return Run(took, used / 1e9)


def pem(program, folder, events):
    trace = folder.fresh("trace")
    run = program.run(on(RECORDER_CPU, PEM, "record", "-q", "-e", events, "-o", trace, "--"))
    sums = [0, 0]
    with open(os.path.join(trace, ".pem", "balance"), encoding="utf-8") as f:
        for cells in (line.split("\t") for line in f):
            if cells[0] == "event":
                sums = [sums[0] + int(cells[2]), sums[1] + int(cells[4])]
    run.events, run.lost, run.recorder_s = sums[0], sums[1], recorder_cpu_ns(trace) / 1e9
    shutil.rmtree(trace)
    return run


def counted(program):
    return program.run(on(RECORDER_CPU, PEM, "stat", "-q", "-e", "APP", "--"))


def wrapped(program, lttng):
    lttng.start("lttng_ust_libc:*")
    try:
        run = program.run([], {"LD_PRELOAD": WRAPPER})
    finally:
        lttng.stop()
    return run


def slowdowns(runs, base, what):
    return [100 * (getattr(r, what) / getattr(b, what) - 1) for r, b in zip(runs, base)]


def each_ns(runs, base):
    """CPU time that an event costs, processes' start and end with it."""
    return statistics.median((r.cpu_s - b.cpu_s) * 1e9 / max(1, r.events) for r, b in zip(runs, base))


def slow_tools(program):
    """What the others cost that stop a program at each call; one run."""
    said = []
    for tool, prefix in (("ltrace -c", ["ltrace", "-f", "-c", "-o", "/dev/null"]),
                         ("strace -c", ["strace", "-f", "-c", "-o", "/dev/null"]),
                         ("perf trace -s", ["perf", "trace", "-s", "-o", "/dev/null"])):
        if not shutil.which(prefix[0]):
            said.append("%s: not installed" % tool)
            continue
        try:
            start = time.monotonic()
            run = program.run(on(RECORDER_CPU, *prefix), limit_s=SLOW_LIMIT_S)
            said.append("%s: %.3g s" % (tool, run.wall_s))
        except subprocess.TimeoutExpired:
            said.append("%s: not done after %.0f s" % (tool, time.monotonic() - start))
        except (subprocess.CalledProcessError, OSError):
            said.append("%s: cannot run here" % tool)
    return "one run each: " + "; ".join(said)


def measure(case, program, folder, lttng):
    ways = {"plain": lambda: program.run([]), "pem": lambda: pem(program, folder, "APP"),
            "pem APP::*": lambda: pem(program, folder, "APP::*"), "pem stat": lambda: counted(program)}
    if lttng:
        ways["lttng"] = lambda: wrapped(program, lttng)
    runs = {way: [] for way in ways}
    program.run([])
    order = list(ways)
    start = time.monotonic()
    for _ in range(ROUNDS):
        if runs["plain"] and time.monotonic() - start > LIMIT_S:
            print("    only %d rounds: a busy machine" % len(runs["plain"]))
            break
        for way in order:
            runs[way].append(ways[way]())
        order = order[1:] + order[:1]
    base = runs["plain"]
    peer = "LTTng-UST %s malloc wrapper" % lttng_version()
    for name, what in ((case, "wall_s"), (case + "_cpu", "cpu_s")):
        most, least = [statistics.median(slowdowns(runs[way], base, what)) for way in ("pem APP::*", "pem stat")]
        report("apps", name, "% slower", slowdowns(runs["pem"], base, what), peer,
               slowdowns(runs["lttng"], base, what) if lttng else (), "with detail %.2f, counted only %.2f" % (most, least), digits=2,
               detail=most, counted=least, plain_s=statistics.median(getattr(b, what) for b in base))
    for way in ("pem", "pem APP::*"):
        recorder_ms = [r.recorder_s * 1e3 for r in runs[way]]
        print("    %-12s %8d events (%d lost in all rounds), %.0f ns of CPU time each, "
              "%.0f ms of the recorder's (%.0f to %.0f); plain %.3f s" %
              (way, statistics.median(r.events for r in runs[way]), sum(r.lost for r in runs[way]), each_ns(runs[way], base),
               statistics.median(recorder_ms), min(recorder_ms), max(recorder_ms),
               statistics.median(b.wall_s for b in base)), flush=True)


def make_sqlite(folder):
    script, data = folder.path + "/inserts.sql", os.path.join(HERE, "rows.db")
    with open(script, "w", encoding="utf-8") as f:
        f.write("create table t(a integer primary key, b text, c real);\ncreate index i on t(b);\n")
        for first in range(0, ROWS, 1000):
            f.write("begin;\n")
            for i in range(first, min(first + 1000, ROWS)):
                f.write("insert into t(b, c) values('row number %d of many', %d.5);\n" % (i * 7919 % ROWS, i))
            f.write("commit;\n")

    def prepare():
        for name in (data, data + "-journal"):
            if os.path.exists(name):
                os.unlink(name)

    return Program(folder, ["sqlite3", data, ".read " + script], prepare)


def make_xz(folder):
    source = next(os.path.join(where, name) for where in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib")
                  if os.path.isdir(where) for name in sorted(os.listdir(where)) if name.startswith("libc.so")
                  or name.startswith("libstdc++.so"))
    path = folder.path + "/library"
    with open(source, "rb") as f:
        data = f.read()
    with open(path, "wb") as f:
        f.write((data * (XZ_BYTES // len(data) + 1))[:XZ_BYTES])
    return Program(folder, ["xz", "-k", "-c", "-T1", "-6", path])


def make_compile(folder):
    source = os.path.join(os.path.dirname(BUILD), "libpem", "model_parse.c")
    root = os.path.dirname(BUILD)
    words = [w for d in ("spec/abi", "shared", "libpem", "libpem/include") for w in ("-I", os.path.join(root, d))]
    return Program(folder, ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", *words, "-c", source, "-o", folder.path + "/out.o"])


def main():
    makers = {"apps/sqlite3": ("sqlite3", make_sqlite), "apps/redis": ("redis-server", Redis), "apps/xz": ("xz", make_xz),
              "apps/compile": ("gcc", make_compile)}
    chosen = wanted(*makers)
    if not chosen:
        return
    heading("apps", "program on CPU %d, recorder on CPU %d" % (PROGRAM_CPU, RECORDER_CPU))
    with Folder() as folder:
        lttng = beside("apps", folder, RECORDER_CPU)
        try:
            for case in chosen:
                tool, make = makers[case]
                if not shutil.which(tool):
                    print("%-22s %s is not installed" % (case, tool))
                    continue
                program = make(folder)
                measure(case, program, folder, lttng)
                print("    " + (slow_tools(program) if isinstance(program, Program) else
                                "ltrace, strace: not for a server that a client waits for"), flush=True)
        finally:
            if lttng:
                lttng.close()


main()
