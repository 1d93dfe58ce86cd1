/* SPDX-License-Identifier: MIT */
/*
 * calls.c - programs that spend most of their time in the kernel
 *
 *	calls SLICES CALLS PAUSE_MS	repeats the cheapest system call; prints ns per call for
 *					each slice
 *	calls pipe COUNT		two processes pass a byte to and fro COUNT times
 *
 * The first program is bound to the last CPU. It measures CPU time of its thread, so that other
 * threads do not count. Between two slices it sleeps, so that a recorder of the calls can drain its
 * buffers: a slice should fit into the smallest buffer of all recorders.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void bind_to_last(void)
{
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (cpu = CPU_SETSIZE - 1; cpu > 0 && !CPU_ISSET(cpu, &set); cpu--)
		;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int pass_to_and_fro(unsigned long count)
{
	int there[2], back[2];
	char byte = 0;
	pid_t child;

	if (pipe(there) || pipe(back))
		return 1;
	child = fork();
	if (child < 0)
		return 1;
	if (!child) {
		while (count-- && read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1)
			;
		_exit(0);
	}
	while (count-- && write(there[1], &byte, 1) == 1 && read(back[0], &byte, 1) == 1)
		;
	return waitpid(child, NULL, 0) != child;
}

int main(int argc, char **argv)
{
	unsigned long slices, calls, i, slice;
	struct timespec pause = {0, 0};
	uint64_t before;

	if (argc == 3 && !strcmp(argv[1], "pipe"))
		return pass_to_and_fro(strtoul(argv[2], NULL, 10));
	if (argc != 4) {
		fprintf(stderr, "usage: calls SLICES CALLS PAUSE_MS | calls pipe COUNT\n");
		return 64;
	}
	slices = strtoul(argv[1], NULL, 10);
	calls = strtoul(argv[2], NULL, 10);
	pause.tv_nsec = strtol(argv[3], NULL, 10) * 1000000;
	bind_to_last();
	nanosleep(&pause, NULL);
	for (slice = 0; slice < slices; slice++) {
		for (i = 0; i < 1000; i++) /* warm up again after the sleep */
			syscall(SYS_getppid);
		before = cpu_ns();
		for (i = 0; i < calls; i++)
			syscall(SYS_getppid);
		printf("%.2f\n", (double)(cpu_ns() - before) / (double)calls);
		nanosleep(&pause, NULL);
	}
	return 0;
}
