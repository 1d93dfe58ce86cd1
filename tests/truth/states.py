# SPDX-License-Identifier: MIT
"""
states: how long threads ran, waited for a CPU and were blocked, beside the kernel's own account (/proc/PID/schedstat) and the
program's clock: each within 1 %
"""
import json
import os
import subprocess

import probing
from tap import PEM, equal, need, run, run_all, skip, test, tmp

LONG_S = 8
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

static void account(unsigned long long at[3])
{
	FILE *file = fopen("/proc/thread-self/schedstat", "r");

	if (!file || fscanf(file, "%llu %llu", &at[0], &at[1]) != 2)
		abort();
	fclose(file);
	at[2] = now(CLOCK_MONOTONIC);
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


@test
def states_are_the_kernels():
    "three threads that work and sleep beside a busy loop: what each ran, waited for a CPU and was blocked is the kernel's account"
    probing.here()
    need("gcc")
    if not os.path.exists("/proc/self/schedstat"):
        skip("this kernel was built without CONFIG_SCHED_INFO")
    folder, cpu = tmp(), str(min(os.sched_getaffinity(0)))
    with open(folder + "/work.c", "w", encoding="ascii") as out:
        out.write(WORK)
    rc, _, err = run(["gcc", "-O1", "-pthread", "-o", folder + "/work", folder + "/work.c"])
    equal(rc, 0, err)
    loop = subprocess.Popen(["taskset", "-c", cpu, "sh", "-c", "while :; do :; done"])
    try:
        rc, out, err = run([PEM, "record", "-q", "--no-libc", "-e", EVENTS, "-o", folder + "/trace", "--", "taskset", "-c", cpu,
                            folder + "/work"])
    finally:
        loop.kill()
        loop.wait()
    equal(rc, 0, "status of record (stderr: %s)" % err)
    rc, found, err = run([PEM, "report", "--json", folder + "/trace"])
    equal(rc, 0, "status of report (stderr: %s)" % err)
    threads = {row["tid"]: row for row in json.loads(found)["thread_states"]}
    for line in out.splitlines():
        tid, ran, delay, lived = map(int, line.split())
        row = threads[tid]
        truth = {"running_ns": ran, "runnable_ns": delay, "blocked_ns": lived - ran - delay}
        print("# thread %d: %s" % (tid, ", ".join("%s %.4f of the kernel's" % (what, row[what] / ns) for what, ns in truth.items())))
        for what, ns in truth.items():
            assert abs(row[what] - ns) < 0.01 * max(ns, lived / 10), (what, row, truth)


run_all()
