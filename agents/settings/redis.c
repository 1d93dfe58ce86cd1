/* SPDX-License-Identifier: MIT */
/* redis.c - settings of a redis server: CONFIG SET and GET over a socket, in its protocol RESP */
#include "ways.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_S 5

/* redis.conf: "1k => 1000 bytes, 1kb => 1024 bytes"; units are case insensitive. */
static const struct settings_unit units[] = {
	{"b", 1},        {"k", 1e3}, {"kb", 1024},       {"m", 1e6},
	{"mb", 1048576}, {"g", 1e9}, {"gb", 1073741824}, {NULL, 1},
};

static void close_redis(void *session)
{
	fclose(session);
}

static int connect_to(const char *in, struct pem_error *error)
{
	const struct timeval patience = {.tv_sec = ANSWER_S};
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	struct addrinfo local_info = {.ai_family = AF_UNIX,
				      .ai_addr = (struct sockaddr *)&local,
				      .ai_addrlen = sizeof(local)};
	struct addrinfo *found = NULL, *info = &local_info;
	char host[256];
	const char *port = strrchr(in, ':');
	int fd = -1, code = ECONNREFUSED;

	if (*in == '/' || *in == '.') {
		snprintf(local.sun_path, sizeof(local.sun_path), "%s", in);
	} else {
		bool bracket = *in == '[';

		snprintf(host, sizeof(host), "%.*s",
			 port ? (int)(port - in) - 2 * bracket : (int)strlen(in), in + bracket);
		code = getaddrinfo(host, port ? port + 1 : "6379", &hints, &found);
		if (code)
			return settings_fail(error, -EINVAL, "redis at %s: %s", in,
					     gai_strerror(code));
		info = found;
	}
	for (; info && fd < 0; info = info->ai_next) {
		fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 &&
		    (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
		     setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
		     connect(fd, info->ai_addr, info->ai_addrlen))) {
			code = errno;
			close(fd);
			fd = -1;
		}
	}
	if (found)
		freeaddrinfo(found);
	if (fd < 0)
		/* A socket without a server is a server that does not run. */
		return settings_fail(error, code == ENOENT ? -ECONNREFUSED : -code,
				     "redis at %s does not answer: %s", in, strerror(code));
	return fd;
}

static int open_redis(struct settings_agent *agent, char *in, void **session,
		      struct pem_error *error)
{
	int fd = connect_to(in, error);

	(void)agent;
	if (fd < 0)
		return fd;
	*session = fdopen(fd, "r");
	if (!*session)
		close(fd);
	return *session ? 0 : -ENOMEM;
}

/* Send a command of up to four words. */
static int send_words(FILE *server, const char *const *words, int count, struct pem_error *error)
{
	char text[2 * SETTINGS_VALUE_BYTES];
	int bytes = snprintf(text, sizeof(text), "*%d\r\n", count), i;

	for (i = 0; i < count && (size_t)bytes < sizeof(text); i++)
		bytes += snprintf(text + bytes, sizeof(text) - (size_t)bytes, "$%zu\r\n%s\r\n",
				  strlen(words[i]), words[i]);
	if ((size_t)bytes >= sizeof(text))
		return settings_fail(error, -EMSGSIZE, "a value for redis is too long");
	if (send(fileno(server), text, (size_t)bytes, MSG_NOSIGNAL) != bytes)
		return settings_fail(error, -ECONNREFUSED, "redis ended");
	return 0;
}

/*
 * Read an answer: a status, an error or a list. value: the list's last text, or the error's words.
 * Returns the list's length; 0 for a status; -EPROTO for an error; another -errno: there is none.
 */
static int read_answer(FILE *server, char *value, struct pem_error *error)
{
	char line[SETTINGS_VALUE_BYTES + 2];
	size_t bytes;
	int count, i, rc = 0;

	errno = 0;
	if (!fgets(line, sizeof(line), server))
		return settings_fail(error, errno == EAGAIN ? -ETIMEDOUT : -ECONNREFUSED,
				     "redis did not answer within %d s, or it ended", ANSWER_S);
	if (*line != '*')
		return settings_take(value, line + 1, strlen(line + 1), error)
			       ?: (*line == '+' ? 0 : -EPROTO);
	*value = '\0';
	count = atoi(line + 1);
	for (i = 0; !rc && i < count; i++) {
		bytes = fgets(line, sizeof(line), server) && *line == '$'
				? strtoul(line + 1, NULL, 10) + 2
				: SIZE_MAX;
		if (bytes > sizeof(line) || fread(line, 1, bytes, server) != bytes)
			rc = settings_fail(error, -EMSGSIZE, "redis's answer is long, or it ended");
		else
			rc = settings_take(value, line, bytes, error);
	}
	return rc ? rc : count < 0 ? 0 : count;
}

static int get(void *session, const char *key, char *value, struct pem_error *error)
{
	int rc = send_words(session, (const char *const[]){"CONFIG", "GET", key}, 3, error);

	if (!rc)
		rc = read_answer(session, value, error);
	if (rc == -EPROTO)
		return settings_fail(error, -EPERM, "redis refused CONFIG GET: %.150s", value);
	if (rc == 0 || rc > 2)
		return settings_fail(error, -ENOENT, "redis has no setting '%s'", key);
	return rc < 0 ? rc : 0;
}

static int set(void *session, const char *key, const char *value, struct pem_error *error)
{
	char answer[SETTINGS_VALUE_BYTES];
	int rc = send_words(session, (const char *const[]){"CONFIG", "SET", key, value}, 4, error);

	if (!rc)
		rc = read_answer(session, answer, error);
	if (rc != -EPROTO)
		return rc;
	return settings_fail(error, 1, "%.100s%s", answer,
			     strstr(answer, "immutable")
				     ? ": give it as {name} in the command that starts it"
				     : "");
}

static bool same(void *session, const char *key, const char *given, const char *taken)
{
	double a, b;

	(void)session;
	(void)key;
	return settings_number(given, units, &a) && settings_number(taken, units, &b) && a == b;
}

const struct settings_way_of settings_redis = {
	.phase = SETTINGS_AFTER_START,
	.open = open_redis,
	.get = get,
	.set = set,
	.same = same,
	.close = close_redis,
};
