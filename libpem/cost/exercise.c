/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * exercise.c - run pem-exercise, which measures what it does (exercise/main.c)
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void become(const char *path, char *const argv[], char *const environment[], int go,
		   int result)
{
	sigset_t none;
	char byte;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (read(go, &byte, 1) == 1 && dup2(result, STDOUT_FILENO) == STDOUT_FILENO &&
	    !pem_run__drop_capabilities())
		execve(path, argv, environment);
	_exit(1);
}

bool pem_exercise__begin(struct pem_exercise *e, const char *word, char *const environment[])
{
	char folder[PATH_MAX - 32], path[PATH_MAX], name[] = "pem-exercise", what[16];
	char *const argv[] = {name, what, NULL};
	int go[2], result[2];

	if (!pem_library_folder(folder, sizeof(folder)))
		return false;
	snprintf(path, sizeof(path), "%s/pem/pem-exercise", folder);
	snprintf(what, sizeof(what), "%s", word);
	/* A socket: writing to it raises no SIGPIPE if the program has ended. */
	if (access(path, X_OK) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, go))
		return false;
	if (pipe2(result, O_CLOEXEC)) {
		close(go[0]);
		close(go[1]);
		return false;
	}
	e->pid = fork();
	if (!e->pid) {
		close(go[1]);
		become(path, argv, environment, go[0], result[1]);
	}
	close(go[0]);
	close(result[1]);
	e->go = go[1];
	e->result = result[0];
	if (e->pid > 0)
		return true;
	close(e->go);
	close(e->result);
	return false;
}

bool pem_exercise__end(struct pem_exercise *e, void *result, size_t bytes)
{
	int status = -1;
	ssize_t n = -1;

	if (send(e->go, "g", 1, MSG_NOSIGNAL) == 1)
		n = read(e->result, result, bytes);
	close(e->go);
	close(e->result);
	return waitpid(e->pid, &status, 0) == e->pid && !status && n == (ssize_t)bytes;
}
