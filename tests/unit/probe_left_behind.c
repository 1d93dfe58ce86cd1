/* SPDX-License-Identifier: MIT */
/*
 * probe_left_behind.c - descriptors left to processes that end them: what those hold and share, for
 * how long, and that nobody is told of them
 *
 * Pipes stand for perf events and links here: who reads one sees when nobody holds its other end
 * any more.
 */
#ifdef PEM_TEST_LIBBPF
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "libpem/sources/kernel/kernel.h"

#define PIPES 40 /* for several processes */
#define WAIT_MS 20000

struct pipes {
	int in[PIPES], out[PIPES];
};

static void make(struct pipes *pipes)
{
	int i, ends[2];

	for (i = 0; i < PIPES; i++) {
		assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
		pipes->in[i] = ends[0];
		pipes->out[i] = ends[1];
	}
}

/* Has nobody its other end any more? Waits for it no longer than this. */
static bool has_ended(int in, int wait_ms)
{
	struct pollfd end = {.fd = in, .events = POLLIN};

	return poll(&end, 1, wait_ms) == 1 && end.revents & POLLHUP;
}

static bool holds(const char *pid, const char *what)
{
	char path[300], name[64];
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	fds = opendir(path);
	while (fds && !found && (entry = readdir(fds))) {
		n = readlinkat(dirfd(fds), entry->d_name, name, sizeof(name) - 1);
		name[n > 0 ? n : 0] = 0;
		found = !strcmp(name, what);
	}
	if (fds)
		closedir(fds);
	return found;
}

/* The other process that holds a pipe; 0: there is none. */
static pid_t holder_of(int in)
{
	char path[64], what[64];
	struct dirent *entry;
	pid_t found = 0;
	DIR *processes = opendir("/proc");
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", in);
	n = readlink(path, what, sizeof(what) - 1);
	assert_true(n > 0 && processes);
	what[n] = 0;
	while (!found && (entry = readdir(processes))) {
		if (isdigit((unsigned char)*entry->d_name) && atoi(entry->d_name) != getpid() &&
		    holds(entry->d_name, what))
			found = atoi(entry->d_name);
	}
	closedir(processes);
	return found;
}

static bool share_memory(pid_t a, pid_t b)
{
	long order = syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);

	if (order < 0 && errno != ESRCH) {
		print_message("# kcmp: %s\n", strerror(errno));
		skip();
	}
	assert_true(order >= 0);
	return order == 0;
}

/*
 * Leave the pipes' ends to processes, and have them no more. Who has what this returns lets those
 * wait.
 */
static int leave(struct pipes *pipes)
{
	int all[PIPES], held, i;

	memcpy(all, pipes->out, sizeof(all));
	held = pem_leave_behind(all, PIPES);
	assert_true(held >= 0);
	for (i = 0; i < PIPES; i++)
		close(pipes->out[i]);
	return held;
}

static void end(struct pipes *pipes)
{
	int i;

	for (i = 0; i < PIPES; i++) {
		assert_true(has_ended(pipes->in[i], WAIT_MS));
		close(pipes->in[i]);
	}
}

static void they_hold_theirs_until_they_are_let_go(void **state)
{
	struct pipes pipes;
	int other[2], held, i;

	(void)state;
	make(&pipes);
	assert_int_equal(pipe2(other, O_CLOEXEC), 0);
	held = leave(&pipes);
	close(other[1]);
	assert_true(has_ended(other[0], WAIT_MS));
	close(other[0]);
	for (i = 0; i < PIPES; i++)
		assert_false(has_ended(pipes.in[i], 0));
	close(held);
	end(&pipes);
	errno = 0;
	assert_int_equal(waitpid(-1, NULL, __WALL), -1);
	assert_int_equal(errno, ECHILD);
}

/* One copy of the program's memory, and not the program's own. */
static void they_share_one_copy_of_memory(void **state)
{
	pid_t first, last;
	struct pipes pipes;
	int held;

	(void)state;
	make(&pipes);
	held = leave(&pipes);
	while (!(first = holder_of(pipes.in[0])) || !(last = holder_of(pipes.in[PIPES - 1])) ||
	       first == last)
		usleep(1000); /* they close what is others' when they get to run */
	assert_true(share_memory(first, last));
	assert_false(share_memory(first, getpid()));
	close(held);
	end(&pipes);
}

static volatile int *handled; /* by whoever shares this */

static void handle(int number)
{
	(void)number;
	__atomic_fetch_add(handled, 1, __ATOMIC_SEQ_CST);
}

/*
 * The program's handlers know nothing of them: what they do would be done twice, and in memory that
 * several share.
 */
static void no_signal_is_handled_in_them(void **state)
{
	struct sigaction action = {.sa_handler = handle}, before;
	struct pipes pipes;
	pid_t holder;
	int held;

	(void)state;
	handled = mmap(NULL, sizeof(*handled), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	assert_ptr_not_equal(handled, MAP_FAILED);
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	make(&pipes);
	held = leave(&pipes);
	holder = holder_of(pipes.in[0]);
	assert_int_not_equal(holder, 0);
	assert_int_equal(kill(holder, SIGUSR1), 0);
	raise(SIGUSR1);
	close(held);
	end(&pipes);
	assert_int_equal(*handled, 1);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	munmap((void *)handled, sizeof(*handled));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_hold_theirs_until_they_are_let_go),
		cmocka_unit_test(they_share_one_copy_of_memory),
		cmocka_unit_test(no_signal_is_handled_in_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void)
{
	printf("1..0 # SKIP the kernel source was not built: clang or libbpf is missing\n");
	return 0;
}
#endif
