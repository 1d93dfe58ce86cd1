/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* sqlite.c - a connection to a database in a file */
#include "connection.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "PEM1": what the header of a file says whose it is. */
#define APPLICATION_ID 0x50454d31
/* No text of pem's is as long. SQLite reads a value whole, up to this. */
#define VALUE_BYTES_MAX (1 << 20)

struct pem_db_connection {
	sqlite3 *sqlite;
	char *path;
};

/* A result of SQLite as -errno, with a sentence that says what would mend it. */
static int fail(struct pem_db_connection *c, int result, struct pem_error *error)
{
	switch (result & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return pem_db__fail(error, -EBUSY,
				    "another process has written to %s for %u seconds: try again",
				    c->path, PEM_DB_WAIT_MS / 1000);
	case SQLITE_FULL:
		return pem_db__fail(error, -ENOSPC, "no room is left on the disk of %s", c->path);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return pem_db__fail(error, -EBADMSG,
				    "%s is damaged or no database (%s): move it away, and pem "
				    "begins a new one; 'sqlite3 FILE .recover' may save rows",
				    c->path, sqlite3_errmsg(c->sqlite));
	case SQLITE_READONLY:
		return pem_db__fail(error, -EROFS, "%s can't be written", c->path);
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return pem_db__fail(error, -EACCES, "%s can't be opened: %s", c->path,
				    sqlite3_errmsg(c->sqlite));
	case SQLITE_TOOBIG:
		return pem_db__fail(error, -EBADMSG,
				    "%s has a value that is longer than pem writes any", c->path);
	case SQLITE_CONSTRAINT:
		return pem_db__fail(
			error, -ENOENT,
			"a row that another one refers to is not in %s (%s): if another "
			"process removed it, run the command again",
			c->path, sqlite3_errmsg(c->sqlite));
	case SQLITE_NOMEM:
		return pem_db__fail(error, -ENOMEM, "out of memory");
	case SQLITE_IOERR:
		return pem_db__fail(error, -EIO, "%s can't be read or written: %s", c->path,
				    sqlite3_errmsg(c->sqlite));
	default: /* a table or a column is missing, which nobody but others took away */
		return pem_db__fail(error, -EBADMSG, "%s has not pem's tables: %s", c->path,
				    sqlite3_errmsg(c->sqlite));
	}
}

static int bind(sqlite3_stmt *statement, int i, const struct pem_db_value *value)
{
	if (value->type == PEM_DB_INTEGER)
		return sqlite3_bind_int64(statement, i, value->integer);
	if (value->type == PEM_DB_REAL)
		return sqlite3_bind_double(statement, i, value->real);
	return sqlite3_bind_text(statement, i, value->text, -1, SQLITE_STATIC);
}

/* Columns of another type than a number or a text become a text that is not one of pem's. */
static void read_columns(sqlite3_stmt *statement, struct pem_db_value *values, int count)
{
	const char *text;
	int i;

	for (i = 0; i < count; i++) {
		values[i] = (struct pem_db_value){.type = PEM_DB_TEXT, .text = "\x01"};
		switch (sqlite3_column_type(statement, i)) {
		case SQLITE_INTEGER:
			values[i].type = PEM_DB_INTEGER;
			values[i].integer = sqlite3_column_int64(statement, i);
			break;
		case SQLITE_FLOAT:
			values[i].type = PEM_DB_REAL;
			values[i].real = sqlite3_column_double(statement, i);
			break;
		case SQLITE_TEXT:
			text = (const char *)sqlite3_column_text(statement, i);
			/* A NUL inside of a text would hide the rest. */
			if (text && strlen(text) == (size_t)sqlite3_column_bytes(statement, i))
				values[i].text = text;
			break;
		}
	}
}

static int run(struct pem_db_connection *c, const char *text, const struct pem_db_value *values,
	       size_t count, pem_db_row row, void *arg, struct pem_error *error)
{
	struct pem_db_value columns[PEM_DB_COLUMNS_MAX];
	sqlite3_stmt *statement;
	int result, width, rc = 0;
	size_t i;

	result = sqlite3_prepare_v2(c->sqlite, text, -1, &statement, NULL);
	if (result != SQLITE_OK)
		return fail(c, result, error);
	for (i = 0; i < count && !rc; i++) {
		result = bind(statement, (int)i + 1, &values[i]);
		rc = result == SQLITE_OK ? 0 : fail(c, result, error);
	}
	width = sqlite3_column_count(statement);
	while (!rc && (result = sqlite3_step(statement)) == SQLITE_ROW) {
		if (!row)
			continue;
		if ((size_t)width > PEM_DB_COLUMNS_MAX) {
			rc = pem_db__fail(error, -EBADMSG, "%s has not pem's tables", c->path);
			break;
		}
		read_columns(statement, columns, width);
		rc = row(arg, columns, (size_t)width);
		if (rc)
			pem_db__fail(error, rc, "%s", strerror(-rc));
	}
	if (!rc && result != SQLITE_DONE)
		rc = fail(c, result, error);
	sqlite3_finalize(statement);
	return rc;
}

static int take_number(void *arg, const struct pem_db_value *values, size_t count)
{
	int64_t *number = arg;

	*number = count == 1 && values[0].type == PEM_DB_INTEGER ? values[0].integer : -1;
	return 0;
}

static int number_of(struct pem_db_connection *c, const char *statement, int64_t *number,
		     struct pem_error *error)
{
	*number = -1;
	return run(c, statement, NULL, 0, take_number, number, error);
}

static int read_version(struct pem_db_connection *c, struct pem_error *error)
{
	int64_t id, number, tables;
	int rc = number_of(c, "PRAGMA application_id", &id, error);

	if (!rc)
		rc = number_of(c, "PRAGMA user_version", &number, error);
	if (!rc)
		rc = number_of(c, "SELECT count(*) FROM sqlite_schema", &tables, error);
	if (rc)
		return rc;
	if (id == 0 && number == 0 && tables == 0)
		return 0;
	if (id != APPLICATION_ID || number < 1 || number > INT32_MAX)
		return pem_db__fail(error, -EBADMSG,
				    "%s is the database of another program: name another file in "
				    "PEM_DB",
				    c->path);
	return (int)number;
}

/* Read in one transaction: another process may be making the tables. */
static int version(struct pem_db_connection *c, struct pem_error *error)
{
	bool own = sqlite3_get_autocommit(c->sqlite);
	int rc = own ? run(c, "BEGIN", NULL, 0, NULL, NULL, error) : 0;

	if (rc)
		return rc;
	rc = read_version(c, error);
	if (own)
		run(c, "ROLLBACK", NULL, 0, NULL, NULL, NULL);
	return rc;
}

static int set_version(struct pem_db_connection *c, int number, struct pem_error *error)
{
	char text[64];
	int rc;

	snprintf(text, sizeof(text), "PRAGMA application_id = %d", APPLICATION_ID);
	rc = run(c, text, NULL, 0, NULL, NULL, error);
	if (rc)
		return rc;
	snprintf(text, sizeof(text), "PRAGMA user_version = %d", number);
	return run(c, text, NULL, 0, NULL, NULL, error);
}

static void close_file(struct pem_db_connection *c)
{
	sqlite3_close(c->sqlite);
	free(c->path);
	free(c);
}

/*
 * Keep changes in a write-ahead log. Where it can't be had, as on network file systems, the file
 * keeps its rollback journal. SQLite does not wait for others here if two switch at once; the one
 * that is refused does without until the next open.
 */
static int use_log(struct pem_db_connection *c, struct pem_error *error)
{
	int rc = run(c, "PRAGMA journal_mode = WAL", NULL, 0, NULL, NULL, error);

	return rc == -EBUSY ? 0 : rc;
}

/*
 * What a file says of itself is not trusted: nothing in its schema may call functions with effects,
 * and its pages are checked when they are read.
 */
static int set_up(struct pem_db_connection *c, bool read_only, struct pem_error *error)
{
	static const char *const pragmas[] = {
		"PRAGMA trusted_schema = OFF",
		"PRAGMA cell_size_check = ON",
		"PRAGMA foreign_keys = ON",
		"PRAGMA synchronous = NORMAL",
	};
	size_t i;
	int rc = 0, number;

	sqlite3_limit(c->sqlite, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
	sqlite3_busy_timeout(c->sqlite, PEM_DB_WAIT_MS);
	sqlite3_extended_result_codes(c->sqlite, 1);
	sqlite3_db_config(c->sqlite, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	for (i = 0; i < PEM_DB_COUNT(pragmas) && !rc; i++)
		rc = run(c, pragmas[i], NULL, 0, NULL, NULL, error);
	if (rc)
		return rc;
	/* Nothing of another program's database is changed, not even its journal. */
	number = version(c, error);
	if (number < 0)
		return number;
	return read_only ? 0 : use_log(c, error);
}

static struct pem_db_connection *open_file(const char *path, bool read_only,
					   struct pem_error *error)
{
	int flags = read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE, result, rc;
	struct pem_db_connection *c = calloc(1, sizeof(*c));

	if (c)
		c->path = strdup(path);
	if (!c || !c->path) {
		free(c);
		errno = -pem_db__fail(error, -ENOMEM, "out of memory");
		return NULL;
	}
	result = sqlite3_open_v2(path, &c->sqlite, flags | SQLITE_OPEN_NOMUTEX, NULL);
	rc = result == SQLITE_OK ? set_up(c, read_only, error) : fail(c, result, error);
	if (!rc)
		return c;
	close_file(c);
	errno = -rc;
	return NULL;
}

static int take_word(void *arg, const struct pem_db_value *values, size_t count)
{
	char *word = arg;

	/* The first of the sentences that the check has. */
	if (!*word && count == 1 && values[0].type == PEM_DB_TEXT)
		snprintf(word, 128, "%s", values[0].text);
	return 0;
}

static int vacuum(struct pem_db_connection *c, struct pem_error *error)
{
	char word[128] = "";
	int rc = run(c, "PRAGMA integrity_check", NULL, 0, take_word, word, error);

	if (!rc && strcmp(word, "ok"))
		return pem_db__fail(error, -EBADMSG,
				    "%s is damaged (%s): export what can be read, and move it away",
				    c->path, word);
	return rc ? rc : run(c, "VACUUM", NULL, 0, NULL, NULL, error);
}

const struct pem_db_driver pem_db_sqlite = {
	/* AUTOINCREMENT: a number is never given twice, so events name one row for ever. */
	.id_type = "INTEGER PRIMARY KEY AUTOINCREMENT",
	.begin = "BEGIN IMMEDIATE",
	.begin_read = "BEGIN",
	/* Indices without a statement are those that a table's statement makes. */
	.schema = "SELECT group_concat(quote(type) || quote(name) || quote(tbl_name) || "
		  "quote(sql), ';') FROM (SELECT * FROM sqlite_schema WHERE sql IS NOT NULL "
		  "ORDER BY type, name)",
	.scratch = ":memory:",
	.open = open_file,
	.close = close_file,
	.run = run,
	.version = version,
	.set_version = set_version,
	.vacuum = vacuum,
};
