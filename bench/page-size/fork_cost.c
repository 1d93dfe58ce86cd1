// SPDX-License-Identifier: MIT
/*
 * fork_cost.c - what a server pays that forks to save itself: fork_cost [MEGABYTES]
 *
 * It prints the ns that the first touches took, that fork took, and that the parent took to write
 * to every small page while the child lived.
 */
#include "program.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t write_all(volatile char *memory, uint64_t bytes)
{
	uint64_t start = now_ns(), i;

	for (i = 0; i < bytes; i += PAGE)
		memory[i]++;
	return now_ns() - start;
}

int main(int argc, char **argv)
{
	uint64_t bytes = program_argument(argc, argv, 1, 512) << 20, touch_ns, fork_ns, copy_ns;
	char *memory = program_array(bytes, 1), byte;
	int ends[2];
	pid_t child;

	if (pipe(ends))
		return 1;
	touch_ns = write_all(memory, bytes);
	fork_ns = now_ns();
	child = fork();
	if (child < 0)
		return 1;
	if (!child) {
		/* It lives until the parent closes its end. */
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	fork_ns = now_ns() - fork_ns;
	copy_ns = write_all(memory, bytes);
	close(ends[1]);
	waitpid(child, NULL, 0);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", touch_ns, fork_ns, copy_ns);
	return 0;
}
