/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * connection.h - what statements need of SQLite and of PostgreSQL
 *
 *	open.c		which database, and may it be used
 *	sql.c		the schema and every statement on it; connections know only what differs
 *	rows.c		rows to and from values, checked
 *	tables.c	columns
 *	sqlite.c, postgresql.c	connections; the second is a plugin, so that nobody loads libpq for
 *			a file
 */
#ifndef PEM_CONNECTION_H
#define PEM_CONNECTION_H

#include <pem/database.h>

#include <limits.h>
#include <stdbool.h>

#define PEM_DB_COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define PEM_DB_WAIT_MS 5000 /* how long another process that writes is waited for */
#define PEM_DB_COLUMNS_MAX 16u /* with the id */
#define PEM_DB_ROW_BYTES_MAX 4096u

struct pem_db_value {
	enum pem_db_type type;
	int64_t integer;
	double real;
	const char *text; /* of rows that are read: lives until the next row */
};

/*
 * Called with each row of a result. Values have the types that the database gave them; a number may
 * come as text. Returns 0 to go on, or -errno, which ends the statement and is its result.
 */
typedef int (*pem_db_row)(void *arg, const struct pem_db_value *values, size_t count);

struct pem_db_connection;

/* A kind of database. Functions return 0 or -errno with error. */
struct pem_db_driver {
	/* Type of a column that numbers its rows. */
	const char *id_type;
	/* Begins a transaction in which nobody else writes; one that only reads, from one moment.
	 */
	const char *begin, *begin_read;
	/*
	 * Selects one text that stands for the whole schema, and what opens an empty database that
	 * nobody else sees. NULL: the schema is not checked, because a server guards it.
	 */
	const char *schema, *scratch;
	/* It has texts of any length: no more of them is asked for than pem needs to refuse them.
	 */
	bool shortens;
	struct pem_db_connection *(*open)(const char *url, bool read_only, struct pem_error *error);
	void (*close)(struct pem_db_connection *connection);
	/*
	 * Run one statement with values for $1, $2 and so on. Parameters come in this order in the
	 * text. row may be NULL.
	 */
	int (*run)(struct pem_db_connection *connection, const char *statement,
		   const struct pem_db_value *values, size_t count, pem_db_row row, void *arg,
		   struct pem_error *error);
	/*
	 * Whose database is it? Returns the schema's version, 0: it is empty, or -EBADMSG: others
	 * made it.
	 */
	int (*version)(struct pem_db_connection *connection, struct pem_error *error);
	/* Note the schema's version, inside of the transaction that makes it so. */
	int (*set_version)(struct pem_db_connection *connection, int version,
			   struct pem_error *error);
	/* Give back unused room, and check all. */
	int (*vacuum)(struct pem_db_connection *connection, struct pem_error *error);
};

extern const struct pem_db_driver pem_db_sqlite;

struct pem_database {
	const struct pem_db_driver *driver;
	struct pem_db_connection *connection;
	void *plugin; /* that the driver is in, or NULL */
	char location[PATH_MAX];
	struct pem_database_options options;
	bool together; /* a transaction is open */
	int failed; /* -errno of its first statement that failed, or 0 */
};

/* Write a sentence into error, if there is one, and return code. */
int pem_db__fail(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Bring the schema to this version of it, in one transaction. */
int pem_db__upgrade(struct pem_database *database, struct pem_error *error);
/* Run a statement without values and rows. */
int pem_db__run(struct pem_database *database, const char *statement, struct pem_error *error);

/*
 * Make the values of a row's columns, id not among them. -EINVAL with error: the row breaks the
 * rules of pem/database.h. Texts point into copy, which gets the row in its full length.
 */
int pem_db__to_values(const struct pem_db_layout *layout, const void *row, void *copy,
		      struct pem_db_value *values, struct pem_error *error);
/* Are the texts of a row that is searched for such as a row can have? Returns 0 or -EINVAL. */
int pem_db__check_texts(const struct pem_db_layout *layout, const void *row,
			struct pem_error *error);
/*
 * Make a row of its id and its columns' values. -EBADMSG with error: they can't be a row of pem's.
 */
int pem_db__to_row(const struct pem_db_layout *layout, const struct pem_db_value *values,
		   size_t count, void *row, struct pem_error *error);

#endif
