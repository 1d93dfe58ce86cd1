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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 10000

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

/* As poll(), for PATIENCE_MS in all, also when signals come in between. */
static int wait_for(struct pollfd *ended)
{
	struct timespec now;
	int64_t until_ms, left_ms = PATIENCE_MS;
	int rc;

	clock_gettime(CLOCK_MONOTONIC, &now);
	until_ms = now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000 + PATIENCE_MS;
	while ((rc = poll(ended, 1, (int)left_ms)) < 0 && errno == EINTR) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		left_ms = until_ms - (now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000);
		if (left_ms < 0)
			left_ms = 0;
	}
	return rc;
}

/*
 * Returns 0; 1: it ended with another status; or -errno. value: what it printed. A pipe that nobody
 * reads limits that, and a child that it leaves running is not waited for.
 */
static int run(char *const *words, char *value, struct pem_error *error)
{
	char text[SETTINGS_VALUE_BYTES];
	struct pollfd ended = {.fd = -1, .events = POLLIN};
	int fds[2], status = 0, rc;
	ssize_t bytes;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	fcntl(fds[1], F_SETFL, 0);
	rc = start(words, fds[1], &pid);
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return settings_fail(error, rc, "%s can't be run: %s", words[0], strerror(-rc));
	}
	ended.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (ended.fd < 0 || wait_for(&ended) <= 0) {
		rc = settings_fail(error, -ETIMEDOUT,
				   "%s %s ran for more than %d s, or printed more than 64 KiB",
				   words[0], words[1], PATIENCE_MS / 1000);
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL); /* it may have joined another group */
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	bytes = read(fds[0], text, sizeof(text));
	close(ended.fd);
	close(fds[0]);
	if (!rc)
		rc = settings_take(value, text, bytes < 0 ? 0 : (size_t)bytes, error);
	return rc ? rc : status != 0;
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
