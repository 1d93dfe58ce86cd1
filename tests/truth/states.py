# SPDX-License-Identifier: MIT
"""
states: how long threads ran, waited for a CPU and were blocked, beside the kernel's own account (/proc/PID/schedstat), the
program's clock, and bpftrace: each within 1 %
"""
import json
import os
import signal
import subprocess
import time

import probing
from patience import HANG_S
from tap import PEM, equal, need, run, run_all, skip, start, test, tmp
from tracefs import need_tracefs

LONG_S = 12
EVENTS = "OS::Syscall,OS::Sched::Switch,OS::Sched::Waking,OS::Sched::Wakeup,OS::Process"
WORK = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static unsigned long long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static unsigned long long delay(void)
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");
	unsigned long long ns;

	if (!file || fscanf(file, "%*u %llu", &ns) != 1)
		abort();
	fclose(file);
	return ns;
}

/*
 * How long the thread ran and waited for a CPU so far, and the time. It waits for no CPU in between. What schedstat says
 * that it ran is of the last tick.
 */
static void account(unsigned long long at[3])
{
	do {
		at[1] = delay();
		at[0] = now(CLOCK_THREAD_CPUTIME_ID);
		at[2] = now(CLOCK_MONOTONIC);
	} while (delay() != at[1]);
}

/* Work of 0.4 s in pieces, with sleeps between. */
static void *works(void *unused)
{
	unsigned long long begin[3], end[3];
	int i;

	account(begin);
	for (i = 0; i < 100; i++) {
		unsigned long long until = now(CLOCK_THREAD_CPUTIME_ID) + 4000000;

		while (now(CLOCK_THREAD_CPUTIME_ID) < until)
			;
		usleep(2000);
	}
	account(end);
	printf("%d %llu %llu %llu\n", gettid(), end[0] - begin[0], end[1] - begin[1], end[2] - begin[2]);
	return unused;
}

int main(void)
{
	pthread_t threads[3];
	int i;

	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, works, NULL);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""

# A child uses 200 MB in small pages and ends; the parent prints its number and what the kernel says that it ran.
LARGE = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (200u << 20)

int main(void)
{
	struct rusage usage;
	pid_t child = fork();
	char *memory;

	if (child == 0) {
		memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		madvise(memory, BYTES, MADV_NOHUGEPAGE);
		memset(memory, 1, BYTES);
		_exit(0);
	}
	wait4(child, NULL, 0, &usage);
	printf("%d %ld\n", child, (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
	return 0;
}
"""


def built(name, source):
    """A program of C."""
    probing.here()
    need("gcc")
    path = os.path.join(tmp(), name)
    with open(path + ".c", "w", encoding="ascii") as out:
        out.write(source)
    rc, _, err = run(["gcc", "-O1", "-pthread", "-o", path, path + ".c"])
    equal(rc, 0, err)
    return path


def recorded(*command):
    """What the command printed, and by thread: what it did for how long."""
    trace = tmp() + "/trace"
    rc, out, err = run([PEM, "record", "-q", "--no-libc", "--buffer", "128M", "-e", EVENTS, "-o", trace, "--", *command])
    equal(rc, 0, "status of record (stderr: %s)" % err)
    rc, found, err = run([PEM, "report", "--json", trace])
    equal(rc, 0, "status of report (stderr: %s)" % err)
    found = json.loads(found)
    equal(found["events"]["discarded"], 0, "lost records")
    return out, {row["tid"]: row for row in found["thread_states"]}


@test
def states_are_the_kernels():
    "three threads that work and sleep beside a busy loop: what each ran, waited for a CPU and was blocked is the kernel's account"
    work = built("work", WORK)
    if not os.path.exists("/proc/self/schedstat"):
        skip("this kernel was built without CONFIG_SCHED_INFO")
    cpu = str(min(os.sched_getaffinity(0)))
    loop = subprocess.Popen(["taskset", "-c", cpu, "sh", "-c", "while :; do :; done"])
    try:
        out, threads = recorded("taskset", "-c", cpu, work)
    finally:
        loop.kill()
        loop.wait()
    for line in out.splitlines():
        tid, ran, delay, lived = map(int, line.split())
        row = threads[tid]
        truth = {"running_ns": ran, "runnable_ns": delay, "blocked_ns": lived - ran - delay}
        print("# thread %d: %s" % (tid, ", ".join("%s %.4f of the kernel's" % (what, row[what] / ns) for what, ns in truth.items())))
        for what, ns in truth.items():
            assert abs(row[what] - ns) < 0.01 * max(ns, lived / 10), (what, row, truth)


@test
def an_end_is_counted():
    "a process ran as long as its parent is told, the time included in which the kernel takes its memory apart"
    out, threads = recorded(built("large", LARGE))
    child, ran_us = map(int, out.split())
    print("# %d us ran, %.4f of the kernel's" % (ran_us, threads[child]["running_ns"] / 1000 / ran_us))
    # What interrupts and the host take from it counts as well. Of this process, 8 % are behind its end.
    assert abs(threads[child]["running_ns"] - ran_us * 1000) < 0.04 * ran_us * 1000, (threads[child], ran_us)


# How long each thread of the machine ran, by the switches that have both ends. The clock is read once for each.
RAN = """tracepoint:sched:sched_switch {
    $now = nsecs;
    if (@on[args->prev_pid]) { @ran[args->prev_pid] = @ran[args->prev_pid] + ($now - @on[args->prev_pid]); delete(@on[args->prev_pid]); }
    @on[args->next_pid] = $now;
} END { clear(@on); }"""
PROGRAMS = "for i in 1 2 3 4; do seq 200000 | sort -r | xz -T2 -1 | wc -c & done; wait"


@test
def programs_nobody_here_wrote():
    "of pipelines of sort and xz, with threads, what each thread ran is what bpftrace says in the same run"
    probing.here()
    need_tracefs()
    for name in "bpftrace", "xz":
        need(name)
    peer_out = tmp() + "/bpftrace"
    with open(peer_out, "w", encoding="utf-8") as out:
        peer = start(["bpftrace", "-f", "json", "-e", RAN], stdout=out, stderr=subprocess.STDOUT,
                     env={"BPFTRACE_MAP_KEYS_MAX": "100000"})
    lines = lambda: open(peer_out, encoding="utf-8").read().splitlines()
    for _ in range(100 * HANG_S):
        if peer.poll() is not None or any('"attached_probes"' in line for line in lines()):
            break
        time.sleep(0.01)
    if peer.poll() is not None:
        skip("bpftrace does not run here: " + " ".join(lines())[-200:])
    _, threads = recorded("sh", "-c", PROGRAMS)
    peer.send_signal(signal.SIGINT)
    peer.wait(60)
    ran, = [json.loads(line)["data"]["@ran"] for line in lines() if '"@ran"' in line]
    assert len(threads) > 16, threads
    ours, theirs = (sum(of) for of in zip(*((row["running_ns"], int(ran[str(tid)])) for tid, row in threads.items())))
    print("# %d threads ran %d ms, %.4f of bpftrace's" % (len(threads), ours // 1000000, ours / theirs))
    for tid, row in threads.items():
        of = int(ran[str(tid)])
        # Of a switch that the kernel leaves out, the two may take the time differently.
        assert abs(row["running_ns"] - of) < max(0.01 * of, 5000000), (row, of)
    assert abs(ours - theirs) < 0.005 * theirs, (ours, theirs)


run_all()
