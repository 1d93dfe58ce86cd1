// SPDX-License-Identifier: MIT
/*
 * page_size_sampled.c - runs a command under the page-size agent's timer samples
 *
 * Use: page_size_sampled RATE_HZ COMMAND... (0: without). Prints seconds of processors that the
 * command and its children took, those that this process took, and the number of samples.
 */
#include "agents/page-size/timer/timer.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static double used_s(int who)
{
	struct rusage used;

	getrusage(who, &used);
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static int run(char **words)
{
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (!posix_spawnp(&pid, words[0], &actions, NULL, words, environ))
		waitpid(pid, &status, 0);
	posix_spawn_file_actions_destroy(&actions);
	return status;
}

int main(int argc, char **argv)
{
	uint32_t rate_hz = argc > 2 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	struct timer_result result = {0};
	struct timer *timer = NULL;
	struct pem_error error;

	if (argc < 3) {
		fprintf(stderr, "use: page_size_sampled RATE_HZ COMMAND...\n");
		return 1;
	}
	if (rate_hz && !(timer = timer__start(rate_hz, &error))) {
		fprintf(stderr, "%s\n", error.text);
		return 77;
	}
	if (run(argv + 2)) {
		fprintf(stderr, "page_size_sampled: %s failed\n", argv[2]);
		return 1;
	}
	timer__stop(timer, &result);
	printf("%.6f %.6f %zu\n", used_s(RUSAGE_CHILDREN), used_s(RUSAGE_SELF), result.count);
	free(result.addresses);
	return 0;
}
