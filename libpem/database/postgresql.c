/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* postgresql.c - a connection to a PostgreSQL server, as a plugin of libpem-agent */
#include "connection.h"

#include <errno.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The server itself ends a statement after this; then it has a second to say so. */
#define STATEMENT_MS PEM_DB_WAIT_MS
#define ANSWER_MS (STATEMENT_MS + 1000)
#define VACUUM_MS (30 * 60 * 1000)

struct pem_db_connection {
	PGconn *server;
	bool silent; /* it did not answer in time: nothing more is asked */
};

/* The first line of a server's message: the rest quotes the statement. */
static const char *first_line(const char *message, char *line, size_t bytes)
{
	snprintf(line, bytes, "%.*s", (int)strcspn(message, "\n"), message);
	return line;
}

#define SCHEMA                                                                                     \
	"the schema pem of this database is not as pem made it (%s): rename it (ALTER SCHEMA pem " \
	"RENAME TO other), and pem makes its own"
#define REFERENCE                                                                                  \
	"a row that another one refers to is not in the database (%s): if another process "        \
	"removed it, run the command again"
#define ANY "the database server says: %s"

static int fail(struct pem_db_connection *c, const PGresult *result, struct pem_error *error)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
	char line[256];
	static const struct {
		const char *state; /* how it begins (PostgreSQL's Appendix A) */
		int code;
		const char *format;
	} codes[] = {
		{"23503", -ENOENT, REFERENCE}, {"55P03", -EBUSY, ANY},
		{"57014", -EBUSY, ANY},        {"53100", -ENOSPC, ANY},
		{"25006", -EROFS, ANY},        {"42501", -EACCES, ANY},
		{"42P01", -EBADMSG, SCHEMA},   {"42703", -EBADMSG, SCHEMA},
		{"42804", -EBADMSG, SCHEMA},   {"42809", -EBADMSG, SCHEMA},
		{"42883", -EBADMSG, SCHEMA},   {"42P10", -EBADMSG, SCHEMA},
		{"22P02", -EBADMSG, SCHEMA},   {"22003", -EBADMSG, SCHEMA},
		{"23502", -EBADMSG, SCHEMA},   {"23514", -EBADMSG, SCHEMA},
		{"57P", -ECONNREFUSED, ANY},
	};
	size_t i;

	if (PQstatus(c->server) != CONNECTION_OK || !state)
		return pem_db__fail(error, -ECONNREFUSED, "the database server is gone: %s",
				    first_line(PQerrorMessage(c->server), line, sizeof(line)));
	snprintf(line, sizeof(line), "%s", message ? message : state);
	for (i = 0; i < PEM_DB_COUNT(codes); i++) {
		if (!strncmp(state, codes[i].state, strlen(codes[i].state)))
			return pem_db__fail(error, codes[i].code, codes[i].format, line);
	}
	return pem_db__fail(error, -EPROTO, "the database server refused a statement: %s", line);
}

/* Parameters as texts: the server knows their columns' types. */
static void to_texts(const struct pem_db_value *values, size_t count, char (*room)[32],
		     const char **texts)
{
	size_t i;

	for (i = 0; i < count; i++) {
		texts[i] = room[i];
		if (values[i].type == PEM_DB_INTEGER)
			snprintf(room[i], sizeof(room[i]), "%" PRId64, values[i].integer);
		else if (values[i].type == PEM_DB_REAL)
			snprintf(room[i], sizeof(room[i]), "%.17g", values[i].real);
		else
			texts[i] = values[i].text;
	}
}

static int give_rows(const PGresult *result, pem_db_row row, void *arg, struct pem_error *error)
{
	struct pem_db_value columns[PEM_DB_COLUMNS_MAX];
	int width = PQnfields(result), rows = PQntuples(result), i, j, rc;

	if ((size_t)width > PEM_DB_COLUMNS_MAX)
		return pem_db__fail(error, -EBADMSG, "the database has not pem's tables");
	for (i = 0; i < rows; i++) {
		for (j = 0; j < width; j++)
			columns[j] = (struct pem_db_value){
				.type = PEM_DB_TEXT,
				/* A row of pem's has no NULL, and no control character. */
				.text = PQgetisnull(result, i, j) ? "\x01"
								  : PQgetvalue(result, i, j)};
		rc = row(arg, columns, (size_t)width);
		if (rc)
			return pem_db__fail(error, rc, "%s", strerror(-rc));
	}
	return 0;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Wait until the server has answered. False: it did not in time, or it is gone. */
static bool await(struct pem_db_connection *c, int64_t until_ms)
{
	struct pollfd fd = {.fd = PQsocket(c->server)};
	int64_t left_ms;
	int unsent;

	while ((unsent = PQflush(c->server)) > 0 || PQisBusy(c->server)) {
		left_ms = until_ms - now_ms();
		fd.events = unsent > 0 ? POLLIN | POLLOUT : POLLIN;
		if (left_ms <= 0 || (poll(&fd, 1, (int)left_ms) < 0 && errno != EINTR))
			return false;
		if (!PQconsumeInput(c->server))
			return true; /* PQgetResult says why */
	}
	return true;
}

/* The result of the last of the statements that were sent, or of the first that failed. */
static PGresult *last_result(struct pem_db_connection *c, int wait_ms)
{
	int64_t until_ms = now_ms() + wait_ms;
	PGresult *last = NULL, *next;
	ExecStatusType status;

	for (;;) {
		if (!await(c, until_ms)) {
			c->silent = true;
			PQclear(last);
			return NULL;
		}
		next = PQgetResult(c->server);
		if (!next)
			return last;
		status = PQresultStatus(last);
		if (last && status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
			PQclear(next);
			continue;
		}
		PQclear(last);
		last = next;
	}
}

static int run_within(struct pem_db_connection *c, int wait_ms, const char *text,
		      const struct pem_db_value *values, size_t count, pem_db_row row, void *arg,
		      struct pem_error *error)
{
	const char *texts[PEM_DB_COLUMNS_MAX];
	char room[PEM_DB_COLUMNS_MAX][32];
	ExecStatusType status;
	PGresult *result = NULL;
	int rc = 0, sent = 0;

	to_texts(values, count, room, texts);
	/* With values a statement has to be one; without, it may be several. */
	if (!c->silent)
		sent = count ? PQsendQueryParams(c->server, text, (int)count, NULL, texts, NULL,
						 NULL, 0)
			     : PQsendQuery(c->server, text);
	if (sent)
		result = last_result(c, wait_ms);
	if (c->silent)
		return pem_db__fail(error, -ECONNREFUSED,
				    "the database server did not answer within %d seconds",
				    wait_ms / 1000);
	status = PQresultStatus(result);
	if (status == PGRES_TUPLES_OK && row)
		rc = give_rows(result, row, arg, error);
	else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
		rc = fail(c, result, error);
	PQclear(result);
	return rc;
}

static int run(struct pem_db_connection *c, const char *text, const struct pem_db_value *values,
	       size_t count, pem_db_row row, void *arg, struct pem_error *error)
{
	return run_within(c, ANSWER_MS, text, values, count, row, arg, error);
}

static int take_version(void *arg, const struct pem_db_value *values, size_t count)
{
	int *number = arg;

	*number = count == 1 ? atoi(values[0].text) : -1;
	return 0;
}

static int version(struct pem_db_connection *c, struct pem_error *error)
{
	int number = 0, rc;

	rc = run(c,
		 "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'pem' AND "
		 "table_name = 'schema_version'",
		 NULL, 0, take_version, &number, error);
	if (rc || number == 0)
		return rc;
	number = -1;
	rc = run(c, "SELECT version FROM pem.schema_version", NULL, 0, take_version, &number,
		 error);
	if (!rc && number < 1)
		return pem_db__fail(error, -EBADMSG, SCHEMA, "schema_version has no version");
	return rc ? rc : number;
}

static int set_version(struct pem_db_connection *c, int number, struct pem_error *error)
{
	char text[192];

	snprintf(text, sizeof(text),
		 "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL);"
		 "DELETE FROM schema_version; INSERT INTO schema_version VALUES (%d)",
		 number);
	return run(c, text, NULL, 0, NULL, NULL, error);
}

static void close_server(struct pem_db_connection *c)
{
	PQfinish(c->server);
	free(c);
}

static void say_nothing(void *arg, const char *message)
{
	(void)arg;
	(void)message;
}

static int set_up(struct pem_db_connection *c, bool read_only, struct pem_error *error)
{
	char text[256];
	int rc = 0, there = 0;

	PQsetNoticeProcessor(c->server, say_nothing, NULL);
	snprintf(text, sizeof(text),
		 "SET search_path = pem; SET lock_timeout = %u; SET statement_timeout = %u;"
		 "SET client_encoding = 'UTF8'%s",
		 PEM_DB_WAIT_MS, STATEMENT_MS,
		 read_only ? "; SET default_transaction_read_only = on" : "");
	rc = run(c, text, NULL, 0, NULL, NULL, error);
	if (!rc)
		rc = run(c, "SELECT count(*) FROM pg_namespace WHERE nspname = 'pem'", NULL, 0,
			 take_version, &there, error);
	/* To make it takes a right that users of a shared database may lack. */
	if (rc || read_only || there)
		return rc;
	/* Two that begin at once: the lock lets the second see what the first made. */
	return run(c,
		   "BEGIN; SELECT pg_advisory_xact_lock(7365997);"
		   "CREATE SCHEMA IF NOT EXISTS pem; COMMIT",
		   NULL, 0, NULL, NULL, error);
}

static struct pem_db_connection *open_server(const char *url, bool read_only,
					     struct pem_error *error)
{
	/* What the URL says comes last and wins. */
	const char *const keys[] = {"fallback_application_name", "connect_timeout", "dbname", NULL};
	const char *const values[] = {"pem", "10", url, NULL};
	struct pem_db_connection *c = calloc(1, sizeof(*c));
	char line[256];
	int rc;

	if (c)
		c->server = PQconnectdbParams(keys, values, 1);
	if (!c || !c->server)
		rc = pem_db__fail(error, -ENOMEM, "out of memory");
	else if (PQstatus(c->server) != CONNECTION_OK)
		rc = pem_db__fail(error, -ECONNREFUSED, "no connection to the database server: %s",
				  first_line(PQerrorMessage(c->server), line, sizeof(line)));
	else
		rc = set_up(c, read_only, error);
	if (!rc)
		return c;
	if (c)
		close_server(c);
	errno = -rc;
	return NULL;
}

static int vacuum(struct pem_db_connection *c, struct pem_error *error)
{
	int rc = run(c, "SET statement_timeout = 0", NULL, 0, NULL, NULL, error);

	return rc ? rc
		  : run_within(c, VACUUM_MS,
			       "VACUUM application, machine, run, metric, directive, evidence, "
			       "validation, lease",
			       NULL, 0, NULL, NULL, error);
}

__attribute__((visibility("default"))) const struct pem_db_driver pem_db_postgresql = {
	.id_type = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
	/* One writer at a time, as with SQLite. */
	.begin = "BEGIN; SELECT pg_advisory_xact_lock(7365997)",
	.begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
	.shortens = true,
	.open = open_server,
	.close = close_server,
	.run = run,
	.version = version,
	.set_version = set_version,
	.vacuum = vacuum,
};
