/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exercise.c - run pem-exercise, which measures what it does (exercise/main.c)
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Wait until there is something to do. Then become the program, which reads it. */
static void become(const char *path, char *const environment[], int fd)
{
	char name[] = "pem-exercise", byte;
	char *const argv[] = {name, NULL};
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (recv(fd, &byte, 1, MSG_PEEK) == 1 && dup2(fd, STDIN_FILENO) == STDIN_FILENO &&
	    dup2(fd, STDOUT_FILENO) == STDOUT_FILENO && !pem_run__drop_capabilities())
		execve(path, argv, environment);
	_exit(1);
}

bool pem_exercise__begin(struct pem_exercise *e, char *const environment[])
{
	char folder[PATH_MAX - 32], path[PATH_MAX];
	int ends[2];

	e->pid = 0;
	if (!pem_library_folder(folder, sizeof(folder)))
		return false;
	snprintf(path, sizeof(path), "%s/pem/pem-exercise", folder);
	/* A socket: writing to it raises no SIGPIPE if the program has ended. */
	if (access(path, X_OK) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return false;
	e->pid = fork();
	if (!e->pid) {
		close(ends[1]);
		become(path, environment, ends[0]);
	}
	close(ends[0]);
	e->fd = ends[1];
	if (e->pid > 0)
		return true;
	e->pid = 0;
	close(e->fd);
	return false;
}

bool pem_exercise__do(const struct pem_exercise *e, char what, struct pem_exercised *done)
{
	return send(e->fd, &what, 1, MSG_NOSIGNAL) == 1 &&
	       recv(e->fd, done, sizeof(*done), MSG_WAITALL) == sizeof(*done);
}

void pem_exercise__end(struct pem_exercise *e)
{
	if (!e->pid)
		return;
	close(e->fd);
	while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
		;
	e->pid = 0;
}
