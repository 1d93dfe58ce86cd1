// SPDX-License-Identifier: MIT
/*
 * forked.c - forks children, one after the other, beside threads that allocate
 *
 *	forked CHILDREN ALLOCATIONS THREADS
 *
 * Each child makes this number of allocations and ends. Prints the CPU time of a child, and of a
 * fork in the parent, in us.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;
static void *volatile kept;

static void *work(void *arg)
{
	void *volatile memory;

	while (!stop) {
		memory = malloc(99);
		free(memory);
	}
	return arg;
}

static double cpu_us(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int one(int allocations)
{
	int status;
	pid_t pid = fork();

	if (pid)
		return waitpid(pid, &status, 0) != pid || status;
	while (allocations--)
		free(kept = malloc(77));
	_exit(0);
}

int main(int argc, char *argv[])
{
	int children, allocations, threads, i;
	pthread_t thread[16];
	double before;

	if (argc != 4)
		return 2;
	children = atoi(argv[1]);
	allocations = atoi(argv[2]);
	threads = atoi(argv[3]) < 16 ? atoi(argv[3]) : 16;
	free(kept = malloc(77));
	for (i = 0; i < threads; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	before = cpu_us(RUSAGE_THREAD);
	for (i = 0; i < children; i++)
		if (one(allocations))
			return 1;
	printf("%.1f %.1f\n", cpu_us(RUSAGE_CHILDREN) / children,
	       (cpu_us(RUSAGE_THREAD) - before) / children);
	stop = 1;
	for (i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	return 0;
}
