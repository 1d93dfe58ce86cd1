// SPDX-License-Identifier: MIT
/* shared_processes.c - descendants, threads and descriptors of processes (shared/processes.h) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "processes.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEEP 3

/* Numbers in the order of visits. */
struct seen {
	int numbers[64];
	size_t count, most;
};

static bool see(int number, void *arg)
{
	struct seen *seen = arg;

	seen->numbers[seen->count++] = number;
	return seen->count < seen->most;
}

static bool has(const struct seen *seen, int number)
{
	size_t i;

	for (i = 0; i < seen->count; i++)
		if (seen->numbers[i] == number)
			return true;
	return false;
}

/* Start a process with a line of others below it; their pids, the first one's first. */
static void start_line(pid_t pids[DEEP])
{
	int ready[2], depth;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pids[0] = fork();
	if (!pids[0]) {
		close(ready[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (depth = 1; depth < DEEP; depth++) {
			if (fork())
				break;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pid = getpid();
			(void)!write(ready[1], &pid, sizeof(pid));
		}
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	for (depth = 1; depth < DEEP; depth++)
		assert_int_equal(read(ready[0], &pids[depth], sizeof(pid)), sizeof(pid));
	close(ready[0]);
}

static void end_line(const pid_t pids[DEEP])
{
	kill(pids[0], SIGKILL);
	waitpid(pids[0], NULL, 0);
}

static void descendants_come_after_their_parents(void **state)
{
	struct seen seen = {.most = 64};
	pid_t pids[DEEP];

	(void)state;
	start_line(pids);
	pem_proc__walk(pids, 1, 8, see, &seen);
	assert_int_equal(seen.count, DEEP);
	assert_memory_equal(seen.numbers, pids, sizeof(pids));
	end_line(pids);
}

static void a_walk_ends_at_its_depth_or_by_its_visitor(void **state)
{
	struct seen two = {.most = 64}, one = {.most = 1};
	pid_t pids[DEEP];

	(void)state;
	start_line(pids);
	pem_proc__walk(pids, 1, 1, see, &two);
	assert_int_equal(two.count, 2);
	pem_proc__walk(pids, 1, 8, see, &one);
	assert_int_equal(one.count, 1);
	end_line(pids);
}

static void a_root_below_another_is_visited_once(void **state)
{
	struct seen seen = {.most = 64};
	pid_t pids[DEEP];

	(void)state;
	start_line(pids);
	pem_proc__walk(pids, 2, 8, see, &seen);
	assert_int_equal(seen.count, DEEP);
	end_line(pids);
}

static void parents_show_the_same_children(void **state)
{
	struct seen lists = {.most = 64}, parents = {.most = 64};
	pid_t pids[2][DEEP];

	(void)state;
	start_line(pids[0]);
	start_line(pids[1]);
	pem_proc__children(getpid(), true, see, &parents);
	assert_int_equal(parents.count, 2);
	assert_true(has(&parents, pids[0][0]) && has(&parents, pids[1][0]));
	if (!access("/proc/thread-self/children", F_OK)) {
		pem_proc__children(getpid(), false, see, &lists);
		assert_int_equal(lists.count, 2);
		assert_true(lists.numbers[0] == pids[0][0] && lists.numbers[1] == pids[1][0]);
	}
	end_line(pids[0]);
	end_line(pids[1]);
}

static void *pause_there(void *arg)
{
	pthread_barrier_wait(arg);
	pthread_barrier_wait(arg);
	return NULL;
}

static void threads_and_descriptors_are_visited(void **state)
{
	struct seen threads = {.most = 64}, descriptors = {.most = 64};
	pthread_barrier_t barrier;
	pthread_t thread;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, pause_there, &barrier), 0);
	pthread_barrier_wait(&barrier);
	pem_proc__threads(getpid(), see, &threads);
	pem_proc__descriptors(getpid(), see, &descriptors);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	assert_true(threads.count >= 2 && has(&threads, getpid()));
	assert_true(has(&descriptors, ends[0]) && has(&descriptors, ends[1]));
	close(ends[0]);
	close(ends[1]);
}

static void a_pipe_is_resized(void **state)
{
	struct pem_proc_pipe reader, writer, other;
	struct stat status;
	int ends[2], fd, set;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_true(pem_proc__is_pipe(getpid(), ends[0], &reader) && !reader.writes);
	assert_true(pem_proc__is_pipe(getpid(), ends[1], &writer) && writer.writes);
	assert_int_equal(fstat(ends[0], &status), 0);
	assert_true(reader.inode == status.st_ino && writer.inode == status.st_ino);
	assert_int_equal(pem_proc__pipe_bytes(&reader, 0, &set), 65536);
	assert_int_equal(set, 65536);
	assert_int_equal(pem_proc__pipe_bytes(&writer, 131072, &set), 65536);
	assert_int_equal(set, 131072);
	assert_int_equal(fcntl(ends[0], F_GETPIPE_SZ), 131072);
	assert_int_equal(pem_proc__pipe_bytes(&writer, INT32_MAX, &set), 131072);
	assert_true(set < 0);
	other = reader;
	other.inode++;
	assert_int_equal(pem_proc__pipe_bytes(&other, 0, &set), -ESTALE);
	/* The process has a file there by now that nobody can open. */
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	other.descriptor = fd;
	assert_int_equal(pem_proc__pipe_bytes(&other, 0, &set), -ESTALE);
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	assert_false(pem_proc__is_pipe(getpid(), fd, &other));
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

static void pipes_of_descendants_are_found(void **state)
{
	struct pem_proc_pipes found = {0};
	const pid_t self = getpid();
	pid_t pids[DEEP];
	size_t i, seen = 0;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	start_line(pids);
	pem_proc__find_pipes(&self, 1, &found);
	for (i = 0; i < found.count; i++) {
		assert_int_not_equal(found.pipes[i].pid, self);
		seen += found.pipes[i].descriptor == ends[0] ||
			found.pipes[i].descriptor == ends[1];
	}
	assert_int_equal(seen, 2 * DEEP);
	assert_int_equal(found.processes, 1 + DEEP);
	free(found.pipes);
	end_line(pids);
	close(ends[0]);
	close(ends[1]);
}

static void a_process_is_read(void **state)
{
	struct pem_proc_stat stat;
	char name[16];

	(void)state;
	prctl(PR_SET_NAME, "odd) (name");
	assert_true(pem_proc__read(getpid(), &stat));
	assert_int_equal(stat.pid, getpid());
	assert_int_equal(stat.parent, getppid());
	assert_true(stat.began_ticks > 0);
	assert_string_equal(stat.name, "odd) (name");
	pem_proc__name(getpid(), name, sizeof(name));
	assert_string_equal(name, "odd) (name");
	assert_false(pem_proc__read(0, &stat));
	pem_proc__name(0, name, sizeof(name));
	assert_string_equal(name, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descendants_come_after_their_parents),
		cmocka_unit_test(a_walk_ends_at_its_depth_or_by_its_visitor),
		cmocka_unit_test(a_root_below_another_is_visited_once),
		cmocka_unit_test(parents_show_the_same_children),
		cmocka_unit_test(threads_and_descriptors_are_visited),
		cmocka_unit_test(a_pipe_is_resized),
		cmocka_unit_test(pipes_of_descendants_are_found),
		cmocka_unit_test(a_process_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
