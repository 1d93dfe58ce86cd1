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
#include "bench/bench.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
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

/* One byte each way, count times; the first one begins. 0, or 1 after saying what went wrong. */
static int pass(const char *who, int from, int to, bool is_first, unsigned long count)
{
	char byte = 0;

	for (; count; count--) {
		if ((is_first && write(to, &byte, 1) != 1) || read(from, &byte, 1) != 1 ||
		    (!is_first && write(to, &byte, 1) != 1)) {
			fprintf(stderr, "calls: %s lost the other one, %lu bytes before the end\n",
				who, count);
			return 1;
		}
	}
	return 0;
}

/* Each process closes the ends of the other one, so that it learns when the other one is gone. */
static int pass_to_and_fro(unsigned long count)
{
	int there[2], back[2], status, failed;
	pid_t child;

	if (pipe(there) || pipe(back)) {
		perror("calls: pipe");
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (child < 0) {
		perror("calls: fork");
		return 1;
	}
	if (!child) {
		close(there[1]);
		close(back[0]);
		_exit(pass("the child", there[0], back[1], false, count));
	}
	close(there[0]);
	close(back[1]);
	failed = pass("the parent", back[0], there[1], true, count);
	close(there[1]);
	return waitpid(child, &status, 0) != child || status || failed;
}

/* A number of at least min; ends the program if it is none. */
static unsigned long number(const char *name, const char *text, unsigned long min)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || *text < '0' || *text > '9' || value < min) {
		fprintf(stderr, "calls: %s is a number from %lu on, not '%s'\n", name, min, text);
		exit(64);
	}
	return value;
}

int main(int argc, char **argv)
{
	unsigned long slices, calls, pause_ms, i, slice;
	struct timespec pause;
	uint64_t before;

	if (argc == 3 && !strcmp(argv[1], "pipe"))
		return pass_to_and_fro(number("COUNT", argv[2], 1));
	if (argc != 4) {
		fprintf(stderr, "usage: calls SLICES CALLS PAUSE_MS | calls pipe COUNT\n");
		return 64;
	}
	slices = number("SLICES", argv[1], 1);
	calls = number("CALLS", argv[2], 1);
	pause_ms = number("PAUSE_MS", argv[3], 0);
	pause.tv_sec = (time_t)(pause_ms / 1000);
	pause.tv_nsec = (long)(pause_ms % 1000) * 1000000;
	if (bench__pin() < 0)
		fprintf(stderr, "calls: not bound to one CPU\n");
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
