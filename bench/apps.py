#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
apps - what it costs real programs that all events of applications are recorded

	apps/sqlite3	sqlite3 inserts rows with an index into a file on disk, a thousand to a transaction
	apps/redis	redis-server answers redis-benchmark, which nobody records; the server's side is what counts
	apps/xz		xz compresses a library of this machine
	apps/compile	gcc compiles a C file of this tree, from its driver to the assembler
	apps/small_files	make compiles 50 small files
	apps/git	git looks at a repository of 400 files, in 20 commands
	apps/python	Python starts and ends 20 times
	apps/pgbench	PostgreSQL answers pgbench's queries
	apps/nginx	nginx answers ab

Each runs plain, under 'pem record -e APP' (the events that are recorded by default), under 'pem record -e APP::*' (with those
of level 'detail', such as each lock), under 'pem stat -e APP' (counted, not recorded), under 'pem record --budget 1%', and with LTTng-UST's wrapper of malloc and
free alone (lttng) in turn. A round holds one run of each; a slowdown is that of a run beside the plain one of its round:
in per cent of time that passed, of the program's CPU time (NAME_cpu), and of its instructions (NAME_insns: by callgrind, one run,
no servers). A record takes a clock's read (notify/floor): a program
that raises events faster than every 300 ns of its own time can't be recorded for 3 %; it can be counted. The program is bound to one CPU and its recorder to another. Tools that stop a program
at each call (ltrace, strace) run once, for comparison, and only where they work here.
"""
import os
import shutil
import statistics
import subprocess
import time

from app_programs import MAKERS, OBSERVER_CPU, PROGRAM_CPU, Program, instructions, on
from measure import Folder, Missing, PEM, QUICK, beside, heading, lttng_version, recorder_cpu_ns, report, wanted

WRAPPER = "liblttng-ust-libc-wrapper.so"
ROUNDS = 1 if QUICK else 7
LIMIT_S = 60  # of one case's rounds
SLOW_LIMIT_S = 0.3 if QUICK else 15
INSNS_LIMIT_S = 1 if QUICK else 400  # of one run that counts instructions


def pem(program, folder, events, *options):
    trace = folder.fresh("trace")
    run = program.run(on(OBSERVER_CPU, PEM, "record", "-q", "-e", events, *options, "-o", trace, "--"))
    sums = [0, 0]
    with open(os.path.join(trace, ".pem", "balance"), encoding="utf-8") as f:
        for cells in (line.split("\t") for line in f):
            if cells[0] == "event":
                sums = [sums[0] + int(cells[2]), sums[1] + int(cells[4])]
    run.events, run.lost, run.recorder_s = sums[0], sums[1], recorder_cpu_ns(trace) / 1e9
    shutil.rmtree(trace)
    return run


def counted(program):
    return program.run(on(OBSERVER_CPU, PEM, "stat", "-q", "-e", "APP", "--"))


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
            run = program.run(on(OBSERVER_CPU, *prefix), limit_s=SLOW_LIMIT_S)
            said.append("%s: %.3g s" % (tool, run.wall_s))
        except subprocess.TimeoutExpired:
            said.append("%s: not done after %.0f s" % (tool, time.monotonic() - start))
        except (subprocess.CalledProcessError, OSError):
            said.append("%s: cannot run here" % tool)
    return "one run each: " + "; ".join(said)


def measure(case, program, folder, lttng):
    ways = {"plain": lambda: program.run([]), "pem": lambda: pem(program, folder, "APP"),
            "pem APP::*": lambda: pem(program, folder, "APP::*"), "pem stat": lambda: counted(program),
            "pem 1%": lambda: pem(program, folder, "APP", "--budget", "1%")}
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
        most, least, budget = [statistics.median(slowdowns(runs[way], base, what)) for way in ("pem APP::*", "pem stat", "pem 1%")]
        report("apps", name, "% slower", slowdowns(runs["pem"], base, what), peer,
               slowdowns(runs["lttng"], base, what) if lttng else (), "with detail %.2f, counted only %.2f, with --budget 1%% %.2f" % (most, least, budget),
               digits=2, detail=most, counted=least, budget=budget, plain_s=statistics.median(getattr(b, what) for b in base))
    for way in ("pem", "pem APP::*"):
        recorder_ms = [r.recorder_s * 1e3 for r in runs[way]]
        print("    %-12s %8d events (%d lost in all rounds), %.0f ns of CPU time each, "
              "%.0f ms of the recorder's (%.0f to %.0f); plain %.3f s" %
              (way, statistics.median(r.events for r in runs[way]), sum(r.lost for r in runs[way]), each_ns(runs[way], base),
               statistics.median(recorder_ms), min(recorder_ms), max(recorder_ms),
               statistics.median(b.wall_s for b in base)), flush=True)


def measure_instructions(case, program, folder):
    """A row of what all processes of the program execute more, their loaders' and pem's in them included. One run of each."""
    trace = folder.fresh("trace")
    base = instructions(program, [], INSNS_LIMIT_S)
    observed = base and instructions(program, on(OBSERVER_CPU, PEM, "record", "-q", "-e", "APP", "-o", trace, "--"), INSNS_LIMIT_S)
    shutil.rmtree(trace, ignore_errors=True)
    if not observed:
        print("    instructions: not counted, valgrind is not here or takes more than %d s" % INSNS_LIMIT_S)
        return
    report("apps", case + "_insns", "% more", [100 * (observed / base - 1)], digits=2, note="of %.1f million" % (base / 1e6))


def main():
    chosen = wanted(*MAKERS)
    if not chosen:
        return
    heading("apps", "program on CPU %d, recorder on CPU %d" % (PROGRAM_CPU, OBSERVER_CPU))
    with Folder() as folder:
        lttng = beside("apps", folder, OBSERVER_CPU)
        try:
            for case in chosen:
                tools, make = MAKERS[case]
                missing = [tool for tool in tools.split() if not shutil.which(tool)]
                if missing:
                    print("%-22s %s is not installed" % (case, " nor ".join(missing)))
                    continue
                try:
                    program = make(folder)
                    measure(case, program, folder, lttng)
                except Missing as error:
                    print("%-22s %s" % (case, error))
                    continue
                if isinstance(program, Program):
                    measure_instructions(case, program, folder)
                print("    " + (slow_tools(program) if isinstance(program, Program) else
                                "ltrace, strace: not for a server that a client waits for"), flush=True)
        finally:
            if lttng:
                lttng.close()


main()
