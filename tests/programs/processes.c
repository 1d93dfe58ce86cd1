// SPDX-License-Identifier: MIT
/*
 * processes.c - raises ticks around fork, vfork, posix_spawn, exec, and beyond the end of the
 * command
 */
#include "probe.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>

extern char **environ;

static int plain(uint64_t count, char **argv)
{
	(void)argv;
	probe_raise(0, 1, count);
	probe_tell(0, count);
	return 0;
}

/* Both sides of a fork go on, the child as a raiser of its own. */
static int fork_both(uint64_t count, char **argv)
{
	pid_t child;

	(void)argv;
	probe_raise(0, 1, count);
	child = fork();
	if (!child) {
		probe_raise(1, 1, count);
		probe_tell(1, count);
		_exit(0);
	}
	probe_raise(0, count + 1, 2 * count);
	probe_tell(0, 2 * count);
	return waitpid(child, NULL, 0) == child ? 0 : 1;
}

static volatile int stop;

static void *raise_until_stopped(void *arg)
{
	uint64_t who = (uintptr_t)arg, n = 0;

	while (!stop) {
		pem_notify_probe_tick(who, ++n);
		/* a trace small enough to compare record by record */
		if (n % 16 == 0)
			usleep(50);
	}
	probe_tell(who, n);
	return NULL;
}

/*
 * Threads raise while the main thread forks: each child has that one thread, and a child of its
 * own.
 */
static int fork_beside_threads(uint64_t count, char **argv)
{
	pthread_t thread[3];
	uintptr_t i;

	(void)argv;
	for (i = 0; i < 3; i++)
		pthread_create(&thread[i], NULL, raise_until_stopped, (void *)(i + 1));
	for (i = 0; i < 10; i++) {
		if (!fork()) {
			probe_raise(10 + i, 1, count);
			if (!fork()) {
				probe_raise(100 + i, 1, count);
				probe_tell(100 + i, count);
				_exit(0);
			}
			wait(NULL);
			probe_tell(10 + i, count);
			_exit(0);
		}
		wait(NULL);
	}
	stop = 1;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	return 0;
}

/* posix_spawn, and vfork with an event between it and exec. */
static int spawn(uint64_t count, char **argv)
{
	char number[24], *child_argv[] = {argv[0], (char *)"plain", number, NULL};
	pid_t child;
	int i;

	snprintf(number, sizeof(number), "%" PRIu64, count);
	probe_raise(0, 1, count);
	for (i = 0; i < 3; i++) {
		if (posix_spawn(&child, argv[0], NULL, NULL, child_argv, environ))
			return 1;
		waitpid(child, NULL, 0);
		child = vfork();
		if (!child) {
			execv(argv[0], child_argv);
			_exit(127);
		}
		waitpid(child, NULL, 0);
	}
	probe_raise(0, count + 1, 2 * count);
	probe_tell(0, 2 * count);
	return 0;
}

/* The same process, one program image after another: argv[3] more of them. */
static int exec_chain(uint64_t count, char **argv)
{
	unsigned long more = strtoul(argv[3], NULL, 10);
	char number[24], *next[] = {argv[0], argv[1], argv[2], number, NULL};

	probe_raise(more, 1, count);
	probe_tell(more, count);
	if (!more)
		return 0;
	snprintf(number, sizeof(number), "%lu", more - 1);
	execv(argv[0], next);
	return 1;
}

/*
 * The command ends at once; a child goes on raising until its standard input is at its end, then
 * tells. argv[3] "daemon": in a session of its own, orphaned.
 */
static int outlive(uint64_t count, char **argv)
{
	char byte;

	if (fork()) {
		probe_raise(0, 1, count);
		probe_tell(0, count);
		return 0;
	}
	if (!strcmp(argv[3], "daemon")) {
		setsid();
		if (fork())
			_exit(0);
	}
	probe_raise(1, 1, count);
	probe_tell(1, count);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	probe_raise(1, count + 1, 2 * count); /* nobody asks for these any more */
	probe_tell(2, count);
	return 0;
}

static volatile int forks, crashes;

/* The child goes on as a copy of what was interrupted, and ends soon. */
static void fork_in_handler(int signal_number)
{
	int saved = errno, status;
	pid_t child;

	(void)signal_number;
	if (forks++ < 50) {
		child = fork();
		if (child > 0 && (waitpid(child, &status, 0) != child || status))
			crashes++;
	}
	errno = saved;
}

/*
 * A handler that forks in the middle of events; how many children did not come to their end is told
 * as raiser 2. argv[3]: ms to stay afterwards, if given.
 */
static int fork_inside(uint64_t count, char **argv)
{
	struct sigaction action = {.sa_handler = fork_in_handler, .sa_flags = SA_RESTART};
	struct itimerval timer = {{0, 200}, {0, 200}}, none = {{0, 0}, {0, 0}};
	pid_t self = getpid();
	uint64_t n = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	while (n < count) {
		pem_notify_probe_tick(0, ++n);
		if (getpid() != self) {
			probe_raise(1, 1, 3);
			_exit(0);
		}
	}
	setitimer(ITIMER_REAL, &none, NULL);
	probe_tell(0, n);
	probe_tell(2, (uint64_t)crashes);
	if (argv[3])
		usleep((unsigned)atoi(argv[3]) * 1000);
	return 0;
}

/* Raise until killed; how many is in the file argv[3], eight bytes, never ahead of the truth. */
static int for_ever(uint64_t count, char **argv)
{
	int fd = open(argv[3], O_RDWR | O_CREAT | O_TRUNC, 0600);
	uint64_t n = 0;

	if (fd < 0)
		return 1;
	for (;;) {
		pem_notify_probe_tick(0, ++n);
		if (n % count == 0 && pwrite(fd, &n, sizeof(n), 0) != sizeof(n))
			return 1;
	}
}

/*
 * Work argv[3] times, however long that is, and a system call between ticks: what observing them
 * costs is a share of it.
 */
static int worked(uint64_t count, char **argv)
{
	uint64_t work = strtoul(argv[3] ? argv[3] : "0", NULL, 10), n, i;

	for (n = 1; n <= count; n++) {
		pem_notify_probe_tick(0, n);
		syscall(SYS_getppid, 987654321L); /* which it ignores, and a predicate finds */
		for (i = 0; i < work; i++)
			__asm__ volatile("");
	}
	probe_tell(0, count);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct probe_mode modes[] = {
		{"plain", plain},
		{"fork", fork_both},
		{"fork-beside-threads", fork_beside_threads},
		{"spawn", spawn},
		{"exec", exec_chain},
		{"outlive", outlive},
		{"fork-inside", fork_inside},
		{"for-ever", for_ever},
		{"worked", worked},
		{NULL, NULL},
	};

	return probe_main(modes, argc, argv);
}
