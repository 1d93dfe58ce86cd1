#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
wakers - what it costs to record who woke whom

	cost/wakers	CPU time of a program of two threads that wake each other by pipes, some 50,000 times in a second of CPU time,
			recorded with OS::Sched::Waking, beyond that of the same recording without it; both take turns
"""
import os
import re
import statistics
import subprocess

from measure import Folder, PEM, QUICK, cpus, heading, report, uninterrupted, wanted

ROUNDS = 3 if QUICK else 15
PASSES = 2000 if QUICK else 25000
EVENTS = "APP,OS::Syscall,OS::Sched::Switch,OS::Sched::Wakeup,OS::Sched::Migrate,OS::Process,OS::Mem::PageFault"
SOURCE = r"""
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static int there[2], back[2];
static long passes;
/* About 15 us. */
static void work(void)
{
	for (volatile int i = 0; i < 30000; i++)
		;
}
static void *answers(void *unused)
{
	char byte;
	for (long i = 0; i < passes; i++) {
		work();
		if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1)
			abort();
	}
	return unused;
}
int main(int count, char **arguments)
{
	pthread_t thread;
	char byte = 0;
	passes = count > 1 ? atol(arguments[1]) : 0;
	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answers, NULL))
		return 1;
	for (long i = 0; i < passes; i++) {
		work();
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			return 1;
	}
	return pthread_join(thread, NULL);
}
"""


def build(folder):
    path = os.path.join(folder, "passes")
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run(compiler + ["-O2", "-pthread", "-x", "c", "-o", path, "-"], input=SOURCE.encode(), check=True)
    return path


def command(program):
    """On one CPU, and where that is allowed no other program interrupts it."""
    return ["taskset", "-c", str(cpus()[0])] + uninterrupted() + [program, str(PASSES)]


def recorded(folder, program, events):
    """Seconds of CPU of the program, and what its trace has."""
    trace = folder.fresh("trace")
    subprocess.run(["taskset", "-c", str(cpus()[1]), PEM, "record", "-q", "--buffer", "128M", "-e", events, "-o", trace, "--",
                    *command(program)], check=True)
    with open(os.path.join(trace, ".pem", "run"), encoding="utf-8") as said:
        return int(re.search(r"program_cpu_ns=(\d+)", said.read()).group(1)) / 1e9


def plain(program):
    before = os.times()
    subprocess.run(command(program), check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main():
    if not wanted("cost/wakers"):
        return
    with Folder() as folder:
        program = build(folder.path)
        ways = {"without": EVENTS, "with": EVENTS + ",OS::Sched::Waking"}
        found = {way: [] for way in [*ways, "plain"]}
        for _ in range(ROUNDS):
            found["plain"].append(plain(program))
            for way, events in ways.items():
                found[way].append(recorded(folder, program, events))
    heading("wakers", "%d switches, CPU time" % (2 * PASSES))
    base = statistics.median(found["without"])
    report("wakers", "cost/wakers", "%", [100 * (b / a - 1) for a, b in zip(found["without"], found["with"])],
           note="%.3f s recorded without it, %.3f s plain; %.0f switches in a second of CPU time" %
           (base, statistics.median(found["plain"]), 2 * PASSES / base))


main()
