/* SPDX-License-Identifier: MIT */
/* pragma.c - SQLite's PRAGMA: stored in a database, or tried on a connection of our own */
#include "ways.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BUSY_MS 10000

struct database {
	const char *path; /* the group's */
	sqlite3 *tried; /* pragmas of a connection are tried on this one */
	bool vacuum;
};

/* What SQLite's documentation calls numbers that it returns, from 0 on. */
static const struct words {
	const char *pragma;
	const char *words[4];
} words[] = {
	{"synchronous", {"OFF", "NORMAL", "FULL", "EXTRA"}},
	{"temp_store", {"DEFAULT", "FILE", "MEMORY"}},
	{"auto_vacuum", {"NONE", "FULL", "INCREMENTAL"}},
	{"secure_delete", {"OFF", "ON", "FAST"}},
	{NULL, {NULL}},
};
static const char *const truths[2][3] = {{"OFF", "NO", "FALSE"}, {"ON", "YES", "TRUE"}};

static bool is_one_of(const char *key, const char *const *names)
{
	for (; *names && strcasecmp(key, *names); names++)
		;
	return *names;
}

static int fail(sqlite3 *db, int code, const struct database *database, struct pem_error *error)
{
	return settings_fail(error,
			     code == SQLITE_BUSY || code == SQLITE_LOCKED ? -EBUSY
			     : code == SQLITE_CANTOPEN                    ? -EACCES
									  : -EIO,
			     "%s: %s", database->path, db ? sqlite3_errmsg(db) : "no memory");
}

/* Run one PRAGMA. value: NULL to read. result: empty if it returns none. */
static int run(const struct database *database, sqlite3 *db, const char *key, const char *value,
	       char *result, struct pem_error *error)
{
	char *text = value ? sqlite3_mprintf("PRAGMA \"%w\"=%Q", key, value)
			   : sqlite3_mprintf("PRAGMA \"%w\"", key);
	sqlite3_stmt *statement = NULL;
	int code = text ? sqlite3_prepare_v2(db, text, -1, &statement, NULL) : SQLITE_NOMEM, rc = 0;

	sqlite3_free(text);
	*result = '\0';
	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		rc = settings_take(result, (const char *)sqlite3_column_text(statement, 0) ?: "",
				   (size_t)sqlite3_column_bytes(statement, 0), error);
	else if (code != SQLITE_DONE)
		rc = fail(db, code, database, error);
	sqlite3_finalize(statement);
	return rc;
}

static int connect(const struct database *database, sqlite3 **db, struct pem_error *error)
{
	/* The path has no link: its owner may have put one there since it was resolved. */
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW;
	int code = sqlite3_open_v2(database->path, db, flags, NULL);

	sqlite3_busy_timeout(*db, BUSY_MS);
	return code ? fail(*db, code, database, error) : 0;
}

static void close_database(void *session)
{
	sqlite3_close(((struct database *)session)->tried);
	free(session);
}

static int open_database(struct settings_agent *agent, char *in, void **session,
			 struct pem_error *error)
{
	struct database *database;
	char path[PATH_MAX];
	int rc;

	(void)agent;
	if (!realpath(in, path))
		return settings_fail(error, -errno,
				     "%s can't be opened: %m. Make the database first, or give the "
				     "value by {name} in the command",
				     in);
	database = calloc(1, sizeof(*database));
	if (!database)
		return -ENOMEM;
	database->path = strcpy(in, path);
	rc = connect(database, &database->tried, error);
	if (rc)
		close_database(database);
	else
		*session = database;
	return rc;
}

static int get(void *session, const char *key, char *value, struct pem_error *error)
{
	static const char *const stored[] = {
		"page_size",      "auto_vacuum",  "user_version",       "encoding",
		"application_id", "journal_mode", "default_cache_size", NULL};
	struct database *database = session;
	char there[SETTINGS_VALUE_BYTES];
	sqlite3 *db = NULL;
	int rc = run(database, database->tried, key, NULL, value, error);

	if (!rc && is_one_of(key, stored)) {
		rc = connect(database, &db, error);
		if (!rc)
			rc = run(database, db, key, NULL, there, error);
		sqlite3_close(db);
		/* Of journal modes, the database stores wal alone. */
		if (!rc && (strcasecmp(key, "journal_mode") || !strcasecmp(there, "wal") ||
			    !strcasecmp(value, "wal")))
			strcpy(value, there);
	}
	if (!rc && !*value)
		rc = settings_fail(error, -ENOENT, "SQLite has no PRAGMA %s that can be read", key);
	return rc;
}

static int set(void *session, const char *key, const char *value, struct pem_error *error)
{
	static const char *const vacuumed[] = {"page_size", "auto_vacuum", NULL};
	struct database *database = session;
	char result[SETTINGS_VALUE_BYTES];

	database->vacuum |= is_one_of(key, vacuumed);
	return run(database, database->tried, key, value, result, error);
}

static int commit(void *session, struct pem_error *error)
{
	struct database *database = session;
	int code = database->vacuum ? sqlite3_exec(database->tried, "VACUUM", NULL, NULL, NULL)
				    : SQLITE_OK;

	database->vacuum = false;
	return code ? fail(database->tried, code, database, error) : 0;
}

static bool same(void *session, const char *key, const char *given, const char *taken)
{
	static const struct settings_unit none[] = {{NULL, 1}};
	const struct words *of;
	double a, b;
	int i;

	(void)session;
	if (!strcasecmp(given, taken) ||
	    (settings_number(given, none, &a) && settings_number(taken, none, &b) && a == b))
		return true;
	for (of = words; of->pragma && strcasecmp(of->pragma, key); of++)
		;
	if (!taken[0] || taken[1] || taken[0] < '0' || taken[0] > '3')
		return false;
	i = taken[0] - '0';
	if (of->pragma)
		return of->words[i] && !strcasecmp(of->words[i], given);
	return i < 2 && (!strcasecmp(truths[i][0], given) || !strcasecmp(truths[i][1], given) ||
			 !strcasecmp(truths[i][2], given));
}

const struct settings_way_of settings_pragma = {
	.phase = SETTINGS_BEFORE_START,
	.open = open_database,
	.get = get,
	.set = set,
	.commit = commit,
	.same = same,
	.close = close_database,
};
