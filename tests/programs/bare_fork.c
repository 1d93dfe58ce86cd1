// SPDX-License-Identifier: MIT
/*
 * bare_fork.c - raises ticks on both sides of forks that the C library's fork, and whoever it
 * tells, know nothing of
 */
#include "probe.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#pragma weak _Fork
extern pid_t _Fork(void);

/* argv[3]: by which call. */
static pid_t bare_fork(char **argv)
{
	if (!strcmp(argv[3], "_Fork") && _Fork)
		return _Fork();
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

/* The child tells by its status that it came to its end. */
static void end(void)
{
	_exit(3);
}

static int wait_for(pid_t child)
{
	int status;

	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3
		       ? 0
		       : 1;
}

/* Parent, child and a grandchild that fork made, at the same time. */
static int both(uint64_t count, char **argv)
{
	int failed = 0;
	pid_t child, grandchild;

	probe_raise(0, 1, count);
	child = bare_fork(argv);
	if (!child) {
		probe_raise(1, 1, count);
		grandchild = fork();
		if (!grandchild) {
			probe_raise(2, 1, count);
			probe_tell(2, count);
			end();
		}
		failed = wait_for(grandchild);
		probe_tell(1, count);
		_exit(failed ? 1 : 3);
	}
	probe_raise(0, count + 1, 2 * count);
	probe_tell(0, 2 * count);
	return wait_for(child);
}

static volatile int stop;

static void *raise_until_stopped(void *arg)
{
	uint64_t who = (uintptr_t)arg, n = 0;

	while (!stop) {
		pem_notify_probe_tick(who, ++n);
		if (n % 16 == 0)
			usleep(50);
	}
	probe_tell(who, n);
	return NULL;
}

/*
 * Threads come with what each of them needs of the library: some child is of a moment when one of
 * them had its lock.
 */
static void *raise_a_few(void *arg)
{
	probe_raise((uintptr_t)arg, 1, 5);
	probe_tell((uintptr_t)arg, 5);
	return NULL;
}

static void *make_threads(void *arg)
{
	uintptr_t who = 1000;
	pthread_t thread;

	(void)arg;
	while (!stop) {
		pthread_create(&thread, NULL, raise_a_few, (void *)++who);
		pthread_join(thread, NULL);
	}
	return NULL;
}

static int beside_threads(uint64_t count, char **argv)
{
	pthread_t thread[3];
	int failed = 0;
	uint64_t i;
	pid_t child;

	pthread_create(&thread[0], NULL, raise_until_stopped, (void *)1);
	pthread_create(&thread[1], NULL, raise_until_stopped, (void *)2);
	pthread_create(&thread[2], NULL, make_threads, NULL);
	for (i = 0; i < 40; i++) {
		child = bare_fork(argv);
		if (!child) {
			probe_raise(10 + i, 1, count);
			probe_tell(10 + i, count);
			end();
		}
		failed |= wait_for(child);
	}
	stop = 1;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return failed;
}

/*
 * A child that raises nothing, one whose second thread is the first to raise, and the parent after
 * both.
 */
static int quiet(uint64_t count, char **argv)
{
	pthread_t thread;
	int failed;
	pid_t child;

	probe_raise(0, 1, count);
	child = bare_fork(argv);
	if (!child)
		exit(3);
	failed = wait_for(child);
	child = bare_fork(argv);
	if (!child) {
		pthread_create(&thread, NULL, raise_a_few, (void *)1);
		pthread_join(thread, NULL);
		probe_raise(2, 1, count);
		probe_tell(2, count);
		exit(3);
	}
	failed |= wait_for(child);
	probe_raise(0, count + 1, 2 * count);
	probe_tell(0, 2 * count);
	return failed;
}

int main(int argc, char **argv)
{
	static const struct probe_mode modes[] = {
		{"both", both},
		{"beside-threads", beside_threads},
		{"quiet", quiet},
		{NULL, NULL},
	};

	return probe_main(modes, argc, argv);
}
