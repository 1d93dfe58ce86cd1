/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exercise.c - run pem-exercise, which measures what it does (exercise/main.c)
 *
 * It may hang: it is observed, and another program may stop it. Then it is waited for no longer
 * than LIMIT_MS, and ended.
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 20000 /* beside eight busy loops the longest word takes one second */

/* Wait until there is something to do. Then become the program, which reads it. */
static void become(const char *path, int cpu, char *const environment[], int fd)
{
	char name[] = "pem-exercise", byte;
	char *const argv[] = {name, NULL};
	cpu_set_t one;
	sigset_t none;

	CPU_ZERO(&one);
	if (cpu >= 0) {
		CPU_SET((unsigned)cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (recv(fd, &byte, 1, MSG_PEEK) == 1 && dup2(fd, STDIN_FILENO) == STDIN_FILENO &&
	    dup2(fd, STDOUT_FILENO) == STDOUT_FILENO && !pem_run__drop_capabilities())
		execve(path, argv, environment);
	_exit(1);
}

bool pem_exercise__begin(struct pem_exercise *e, int cpu, char *const environment[])
{
	char folder[PATH_MAX - 32], path[PATH_MAX];
	int ends[2];

	*e = (struct pem_exercise){.limit_ms = LIMIT_MS};
	if (!pem_library_folder(folder, sizeof(folder)))
		return false;
	snprintf(path, sizeof(path), "%s/pem/pem-exercise", folder);
	/* A socket: writing to it raises no SIGPIPE if the program has ended. */
	if (access(path, X_OK) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	e->pid = fork();
	if (!e->pid) {
		close(ends[1]);
		become(path, cpu, environment, ends[0]);
	}
	close(ends[0]);
	e->fd = ends[1];
	if (e->pid > 0)
		return true;
	e->pid = 0;
	close(e->fd);
	return false;
}

static uint64_t now_ms(void)
{
	return (uint64_t)(pem_step__clock_ns(CLOCK_MONOTONIC) / 1e6);
}

/* Wait until there is something to read, but not longer than the limit. */
static bool is_ready(const struct pem_exercise *e, int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	uint64_t end = now_ms() + e->limit_ms, now = end - e->limit_ms;
	int ready = -1;

	for (; ready < 0 && now <= end; now = now_ms()) {
		ready = poll(&pollfd, 1, (int)(end - now));
		if (ready < 0 && errno != EINTR)
			return false;
	}
	return ready > 0;
}

static bool do_word(const struct pem_exercise *e, struct pem_exercise_word word,
		    struct pem_exercised *done)
{
	/* It is written in one piece. */
	return send(e->fd, &word, sizeof(word), MSG_NOSIGNAL) == sizeof(word) &&
	       is_ready(e, e->fd) &&
	       recv(e->fd, done, sizeof(*done), MSG_DONTWAIT) == sizeof(*done);
}

bool pem_exercise__do(const struct pem_exercise *e, char what, struct pem_exercised *done)
{
	return do_word(e, (struct pem_exercise_word){what, PEM_CACHES}, done);
}

bool pem_exercise__turn(const struct pem_exercise *e, char what, enum pem_caches caches, double *ns)
{
	struct pem_exercised done;

	if (!do_word(e, (struct pem_exercise_word){what, (uint8_t)caches}, &done))
		return false;
	*ns = done.ns;
	return true;
}

static bool take_turn(void *arg, unsigned step, enum pem_caches caches, double *ns)
{
	const struct pem_exercise_step *steps = arg;

	return pem_exercise__turn(steps[step].exercise, steps[step].what, caches, ns);
}

bool pem_exercise__compare(struct pem_exercise_step *steps, unsigned step_count,
			   struct pem_step *taken)
{
	struct pem_exercised done;
	unsigned i = step_count;

	/* What the last one writes, that of the first step, is left. */
	while (i-- > 0) {
		if (!pem_exercise__do(steps[i].exercise, steps[i].what, &done))
			return false;
		steps[i].count = done.count;
		taken[0] = done.step;
	}
	return pem_step__compare(take_turn, steps, step_count, taken);
}

void pem_exercise__end(struct pem_exercise *e)
{
	int pidfd;

	if (!e->pid)
		return;
	close(e->fd);
	pidfd = (int)syscall(SYS_pidfd_open, e->pid, 0);
	if (pidfd < 0 || !is_ready(e, pidfd))
		kill(e->pid, SIGKILL);
	if (pidfd >= 0)
		close(pidfd);
	while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
		;
	e->pid = 0;
}
