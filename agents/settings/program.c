/* SPDX-License-Identifier: MIT */
/* program.c - a program of the user's that sets and gets: PROGRAM set NAME VALUE, PROGRAM get NAME
 */
#include "ways.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 30000

extern char **environ;

static int open_program(struct settings_agent *agent, char *in, void **session,
			struct pem_error *error)
{
	char path[PATH_MAX];

	(void)agent;
	if (strchr(in, '/') && !realpath(in, path))
		return settings_fail(error, -errno, "%s can't be run: %m", in);
	*session = in;
	if (strchr(in, '/'))
		strcpy(in, path);
	return 0;
}

static void close_program(void *session)
{
	(void)session;
}

static int start(char *const *words, int out, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int code;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	/* A group of its own, which is ended as a whole. */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, out, 2);
	code = posix_spawnp(pid, words[0], &actions, &attributes, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -code;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Read what it prints until it ends; a child that it leaves running is not waited for. */
static int read_until_end(int fd, pid_t pid, char *value, int *status, struct pem_error *error)
{
	char text[SETTINGS_VALUE_BYTES * 2];
	int64_t until = now_ms() + PATIENCE_MS;
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	size_t bytes = 0;
	ssize_t got;
	bool ended = false;

	for (;;) {
		got = -1;
		if (poll(&poll_fd, 1, ended ? 0 : 20) > 0)
			got = read(fd, text + bytes, sizeof(text) - bytes);
		if (got > 0)
			bytes += (size_t)got;
		if (bytes == sizeof(text) || now_ms() > until)
			break;
		if (got <= 0 && ended)
			return settings_take(value, text, bytes, error);
		ended = ended || waitpid(pid, status, WNOHANG) == pid;
		if (!got)
			poll_fd.fd = -1; /* its end was closed */
	}
	if (!ended) {
		kill(-pid, SIGKILL);
		waitpid(pid, status, 0);
	}
	return bytes == sizeof(text)
		       ? settings_fail(error, -EMSGSIZE, "it printed more than %zu bytes", bytes)
		       : settings_fail(error, -ETIMEDOUT, "it ran for more than %d s",
				       PATIENCE_MS / 1000);
}

/* Returns 0; 1: it ended with another status, and value is what it printed; or -errno. */
static int run(char *const *words, char *value, struct pem_error *error)
{
	struct pem_error why = {0};
	int fds[2], status = 0, rc;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	rc = start(words, fds[1], &pid);
	close(fds[1]);
	if (rc)
		settings_fail(&why, rc, "%s", strerror(-rc));
	else
		rc = read_until_end(fds[0], pid, value, &status, &why);
	close(fds[0]);
	if (rc)
		return settings_fail(error, rc, "%s %s %s: %s", words[0], words[1], words[2],
				     why.text);
	return status ? 1 : 0;
}

static int get(void *session, const char *key, char *value, struct pem_error *error)
{
	int rc = run((char *[]){session, "get", (char *)key, NULL}, value, error);

	return rc <= 0 ? rc
		       : settings_fail(error, -ENOENT, "%s get %s failed: %.200s", (char *)session,
				       key, value);
}

static int set(void *session, const char *key, const char *value, struct pem_error *error)
{
	char said[SETTINGS_VALUE_BYTES];
	int rc = run((char *[]){session, "set", (char *)key, (char *)value, NULL}, said, error);

	if (rc <= 0)
		return rc;
	said[strcspn(said, "\n")] = '\0';
	return settings_fail(error, 1, "%s", *said ? said : "the program failed");
}

const struct settings_way_of settings_program = {
	.phase = SETTINGS_BEFORE_START,
	.open = open_program,
	.get = get,
	.set = set,
	.close = close_program,
};
