// SPDX-License-Identifier: MIT
/* settings_pipes.c - sizes of pipes that other processes hold (settings/pipes.h) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "settings/pipes.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define USUAL 65536u
#define TRIES 10000u
#define DEPTH 40u
#define DESCRIPTORS 32u

static uint64_t inode_of(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return status.st_ino;
}

static void hold(const char *name, int kept, int closed, unsigned depth, int ready)
{
	close(closed);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (; depth && !fork(); depth--)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (depth)
		close(kept);
	else
		prctl(PR_SET_NAME, name);
	close(ready);
	for (;;)
		pause();
}

/*
 * Start a process of this name that has one of two descriptors, below 'depth' others that have
 * none. Returns the first of them, once all are like that.
 */
static pid_t holder(const char *name, int kept, int closed, unsigned depth)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(ready[0]);
		hold(name, kept, closed, depth, ready[1]);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

static void end_holder(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void wait_for_size(struct settings_pipes *pipes, uint64_t inode, uint32_t bytes)
{
	unsigned i;

	for (i = 0; i < TRIES && settings_pipes__bytes(pipes, inode) != bytes; i++)
		usleep((useconds_t)(settings_pipes__look(pipes) / 1000));
	assert_int_equal(settings_pipes__bytes(pipes, inode), bytes);
}

static void a_size_that_changes(void **state)
{
	const pid_t self = getpid();
	struct settings_pipes *pipes;
	int ends[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = holder("holder", ends[0], ends[1], 0);
	pipes = settings_pipes__new(&self, 1, NULL, 0);
	assert_non_null(pipes);
	wait_for_size(pipes, inode_of(ends[0]), USUAL);
	assert_int_equal(fcntl(ends[0], F_SETPIPE_SZ, 2 * USUAL), 2 * USUAL);
	wait_for_size(pipes, inode_of(ends[0]), 2 * USUAL);
	settings_pipes__free(pipes);
	end_holder(pid);
	close(ends[0]);
	close(ends[1]);
}

static void a_longer_pipe_stays(void **state)
{
	struct settings_pipe_wish wish = {
		.from = "from here", .to = "to there", .bytes = 2 * USUAL};
	struct settings_pipes *pipes;
	pid_t pids[2];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(fcntl(ends[0], F_SETPIPE_SZ, 4 * USUAL), 4 * USUAL);
	pids[0] = holder(wish.from, ends[1], ends[0], 0);
	pids[1] = holder(wish.to, ends[0], ends[1], 0);
	pipes = settings_pipes__new(pids, 2, &wish, 1);
	assert_non_null(pipes);
	wait_for_size(pipes, inode_of(ends[0]), 4 * USUAL);
	/* Wishes are granted in the same look. */
	assert_int_equal(wish.was_bytes, 4 * USUAL);
	assert_int_equal(wish.error, 0);
	assert_int_equal(fcntl(ends[0], F_GETPIPE_SZ), 4 * USUAL);
	settings_pipes__free(pipes);
	end_holder(pids[0]);
	end_holder(pids[1]);
	close(ends[0]);
	close(ends[1]);
}

static void processes_below_each_other(void **state)
{
	const pid_t self = getpid();
	struct rlimit before, few;
	struct settings_pipes *pipes;
	int ends[2];
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = holder("deep", ends[0], ends[1], DEPTH);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = DESCRIPTORS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	pipes = settings_pipes__new(&self, 1, NULL, 0);
	assert_non_null(pipes);
	wait_for_size(pipes, inode_of(ends[0]), USUAL);
	settings_pipes__free(pipes);
	setrlimit(RLIMIT_NOFILE, &before);
	end_holder(pid);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_size_that_changes),
		cmocka_unit_test(a_longer_pipe_stays),
		cmocka_unit_test(processes_below_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
