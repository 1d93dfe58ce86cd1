// SPDX-License-Identifier: MIT
/*
 * timed.c - runs a command and measures its time: timed FILE COMMAND [ARG...]
 *
 * It writes to FILE the elapsed ns, and the us of CPU time in user and system mode of the command
 * and its children. So a recorded command is measured without the recorder. The exit status is the
 * command's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long ns_of(const struct timespec *t)
{
	return (long long)t->tv_sec * 1000000000 + t->tv_nsec;
}

static long long us_of(const struct timeval *t)
{
	return (long long)t->tv_sec * 1000000 + t->tv_usec;
}

int main(int argc, char **argv)
{
	struct timespec start, end;
	struct rusage usage;
	int status;
	pid_t child;
	FILE *out;

	if (argc < 3 || !(out = fopen(argv[1], "we"))) {
		fprintf(stderr, "use: timed FILE COMMAND [ARG...]\n");
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	child = fork();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &end);
	getrusage(RUSAGE_CHILDREN, &usage);
	fprintf(out, "%lld %lld %lld\n", ns_of(&end) - ns_of(&start), us_of(&usage.ru_utime),
		us_of(&usage.ru_stime));
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
