/* SPDX-License-Identifier: MIT */
/* postgres.c - settings of a PostgreSQL server: ALTER SYSTEM, a reload, and a new session */
#include "ways.h"

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MS 5000
#define RELOAD_STEP_US 2000

struct server {
	const char *in; /* the group's */
	PGconn *connection;
	/* Of the setting that was read last. */
	double factor; /* of a number without a unit */
	bool truth, restarts;
	bool names; /* values have names, which may be several */
};

static const struct settings_unit units[] = {
	{"B", 1},
	{"kB", 1024.0},
	{"MB", 1048576.0},
	{"GB", 1073741824.0},
	{"TB", 1099511627776.0},
	{"us", 1e-6},
	{"ms", 1e-3},
	{"s", 1},
	{"min", 60},
	{"h", 3600},
	{"d", 86400},
	{NULL, 1},
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void close_server(void *session)
{
	struct server *server = session;

	PQfinish(server->connection);
	free(server);
}

/* Connect, in place of the connection before. */
static int connect_again(struct server *server, struct pem_error *error)
{
	const char *const words[] = {"dbname", "connect_timeout", "application_name", NULL};
	const char *const values[] = {server->in, "5", "pem explore", NULL};
	const char *message;

	PQfinish(server->connection);
	server->connection = PQconnectdbParams(words, values, 1);
	if (PQstatus(server->connection) == CONNECTION_OK)
		return 0;
	message = PQerrorMessage(server->connection);
	return settings_fail(error, -ECONNREFUSED, "PostgreSQL does not answer: %.*s",
			     (int)strcspn(message, "\n"), message);
}

/* Run one statement with at most one parameter. Returns 0, 1: the server refused it, or -errno. */
static int run(struct server *server, const char *text, const char *parameter, PGresult **result,
	       struct pem_error *error)
{
	struct pollfd fd = {.fd = PQsocket(server->connection), .events = POLLIN};
	int64_t until = now_ms() + ANSWER_MS, left = ANSWER_MS;
	const char *message;
	PGresult *more;
	bool sent = PQsendQueryParams(server->connection, text, !!parameter, NULL, &parameter, NULL,
				      NULL, 0);

	*result = NULL;
	while (sent && PQisBusy(server->connection) && (left = until - now_ms()) > 0) {
		if (poll(&fd, 1, (int)left) > 0)
			sent = PQconsumeInput(server->connection);
	}
	if (sent && left <= 0)
		return settings_fail(error, -ETIMEDOUT, "PostgreSQL did not answer for %d s",
				     ANSWER_MS / 1000);
	*result = sent ? PQgetResult(server->connection) : NULL;
	while (*result && (more = PQgetResult(server->connection)))
		PQclear(more);
	if (PQresultStatus(*result) == PGRES_TUPLES_OK ||
	    PQresultStatus(*result) == PGRES_COMMAND_OK)
		return 0;
	message = PQresultErrorField(*result, PG_DIAG_MESSAGE_PRIMARY);
	settings_fail(error, 1, "%s", message ? message : "the connection ended");
	PQclear(*result);
	*result = NULL;
	return message ? 1 : -ECONNREFUSED;
}

static int open_server(struct settings_agent *agent, char *in, void **session,
		       struct pem_error *error)
{
	struct server *server = calloc(1, sizeof(*server));
	int rc;

	(void)agent;
	if (!server)
		return -ENOMEM;
	server->in = in;
	rc = connect_again(server, error);
	if (rc)
		close_server(server);
	else
		*session = server;
	return rc;
}

/* The first column of a statement's first row, and the row. Returns 1: there is none. */
static int ask(struct server *server, const char *text, const char *parameter, char *value,
	       PGresult **row, struct pem_error *error)
{
	PGresult *only;
	int rc = run(server, text, parameter, row ? row : &only, error);

	if (rc)
		return rc < 0 ? rc : -EPERM;
	row = row ? row : &only;
	rc = !PQntuples(*row) ? 1
			      : settings_take(value, PQgetvalue(*row, 0, 0),
					      (size_t)PQgetlength(*row, 0, 0), error);
	if (rc || row == &only)
		PQclear(*row);
	return rc;
}

static int get(void *session, const char *key, char *value, struct pem_error *error)
{
	struct server *server = session;
	char one[64];
	const char *unit;
	PGresult *row;
	int rc = ask(server,
		     "SELECT current_setting(name), unit, vartype, context, pending_restart "
		     "FROM pg_catalog.pg_settings WHERE name = lower($1)",
		     key, value, &row, error);

	if (rc)
		return rc < 0 ? rc
			      : settings_fail(error, -ENOENT, "PostgreSQL has no setting '%s'",
					      key);
	unit = PQgetvalue(row, 0, 1);
	snprintf(one, sizeof(one), "%s%.32s", *unit >= '0' && *unit <= '9' ? "" : "1", unit);
	settings_number(one, units, &server->factor);
	server->truth = !strcmp(PQgetvalue(row, 0, 2), "bool");
	server->names = !strcmp(PQgetvalue(row, 0, 2), "enum");
	server->restarts =
		!strcmp(PQgetvalue(row, 0, 3), "postmaster") || !strcmp(PQgetvalue(row, 0, 4), "t");
	PQclear(row);
	return 0;
}

/* The value that ALTER SYSTEM gave before. */
static int first(void *session, const char *key, char *value, struct pem_error *error)
{
	return ask(session,
		   "SELECT setting FROM pg_catalog.pg_file_settings WHERE name = lower($1) AND "
		   "sourcefile LIKE '%/postgresql.auto.conf' ORDER BY seqno DESC",
		   key, value, NULL, error);
}

static int set(void *session, const char *key, const char *value, struct pem_error *error)
{
	struct server *server = session;
	char *name = PQescapeIdentifier(server->connection, key, strlen(key));
	char *text = value ? PQescapeLiteral(server->connection, value, strlen(value)) : NULL;
	char statement[SETTINGS_VALUE_BYTES + 256];
	PGresult *result;
	int rc = name && (text || !value) ? 0 : -ENOMEM;

	if (!rc && value && server->restarts)
		rc = settings_fail(error, 1,
				   "PostgreSQL takes it only as it starts: give it as "
				   "{name} in the command that starts the server");
	if (!rc) {
		snprintf(statement, sizeof(statement),
			 value ? "ALTER SYSTEM SET %s = %s" : "ALTER SYSTEM RESET %s", name, text);
		rc = run(server, statement, NULL, &result, error);
		PQclear(result);
	}
	PQfreemem(name);
	PQfreemem(text);
	return rc;
}

/* Reload, and wait for a session that begins with what was loaded. */
static int commit(void *session, struct pem_error *error)
{
	struct server *server = session;
	char before[SETTINGS_VALUE_BYTES], after[SETTINGS_VALUE_BYTES];
	const char *loaded = "SELECT pg_catalog.pg_conf_load_time()";
	int64_t until = now_ms() + ANSWER_MS;
	int rc = connect_again(server, error);

	if (!rc)
		rc = ask(server, loaded, NULL, before, NULL, error);
	if (!rc)
		rc = ask(server, "SELECT pg_catalog.pg_reload_conf()", NULL, after, NULL, error);
	while (!rc) {
		rc = connect_again(server, error);
		if (!rc)
			rc = ask(server, loaded, NULL, after, NULL, error);
		if (rc || strcmp(before, after))
			break;
		if (now_ms() > until)
			rc = settings_fail(error, -ETIMEDOUT,
					   "PostgreSQL did not load its settings again for %d s",
					   ANSWER_MS / 1000);
		usleep(RELOAD_STEP_US);
	}
	return rc;
}

/* Does the server call a given name of an enum as it calls the value that it has? */
static bool same_name(struct server *server, const char *key, const char *given, const char *taken)
{
	char text[SETTINGS_VALUE_BYTES + 256], value[SETTINGS_VALUE_BYTES];
	char *name = PQescapeLiteral(server->connection, key, strlen(key));

	snprintf(text, sizeof(text), "SELECT pg_catalog.set_config(%.200s, $1, true)",
		 name ? name : "");
	PQfreemem(name);
	return !ask(server, text, given, value, NULL, NULL) && !strcmp(value, taken);
}

static bool same(void *session, const char *key, const char *given, const char *taken)
{
	static const char *const off[] = {"off", "false", "no", "0"}, *const on[] = {"on", "true",
										     "yes", "1"};
	struct server *server = session;
	double a, b;
	size_t i;

	if (server->truth) {
		for (i = 0; i < 4; i++) {
			if (!strcasecmp(given, off[i]))
				return !strcmp(taken, "off");
			if (!strcasecmp(given, on[i]))
				return !strcmp(taken, "on");
		}
	}
	if (!settings_number(given, units, &a) || !settings_number(taken, units, &b))
		return !strcasecmp(given, taken) ||
		       (server->names && same_name(server, key, given, taken));
	if (strchr("0123456789.", given[strlen(given) - 1]))
		a *= server->factor;
	if (strchr("0123456789.", taken[strlen(taken) - 1]))
		b *= server->factor;
	return a == b;
}

const struct settings_way_of settings_postgres = {
	.phase = SETTINGS_AFTER_START,
	.open = open_server,
	.get = get,
	.first = first,
	.set = set,
	.commit = commit,
	.same = same,
	.close = close_server,
};
