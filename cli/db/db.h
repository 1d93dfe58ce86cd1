/* SPDX-License-Identifier: MIT */
/*
 * db.h - pem db, in parts
 *
 *	db.c		the verb
 *	show.c		tables for people, JSON for programs
 *	json.c		rows to and from JSON, by the columns of their tables
 *	copy.c		rows of another database or of a file into this one
 */
#ifndef PEM_CLI_DB_H
#define PEM_CLI_DB_H

#include "cli.h"

#include <pem/database.h>

/* A row of whatever table, with room for each. */
struct db_row {
	_Alignas(8) uint8_t bytes[4096];
};

/* Make an empty row of a table. */
void db_row__begin(struct db_row *row, const struct pem_db_layout *layout);
int64_t db_row__id(const void *row);
int64_t db_row__integer(const void *row, const struct pem_db_column *column);
void db_row__set_integer(void *row, const struct pem_db_column *column, int64_t value);
double db_row__real(const void *row, const struct pem_db_column *column);

/* The table of a name; 0: there is none. */
enum pem_db_table db_table_of(const char *name);

/* A row as a JSON object: its number, and its members. NULL: out of memory. */
struct json_object *db_json__of_row(const struct pem_db_layout *layout, const void *row);
/*
 * Read a row from a JSON object. All members of the table have to be there, with their types, and
 * no others. Returns 0, or -EINVAL with error.
 */
int db_json__to_row(const struct pem_db_layout *layout, struct json_object *object,
		    struct db_row *row, struct pem_error *error);

/* Rows by the numbers that they had elsewhere. All zero: none yet. */
struct db_copy {
	struct pem_database *to;
	struct pem_number_map
		index[PEM_DB_TABLES]; /* from a number elsewhere to an index of numbers */
	int64_t *numbers; /* here */
	size_t count, capacity;
	uint64_t added, known; /* rows that were not here, and that were */
};
/*
 * Copy a row of another database. Its references are translated, so rows that it refers to come
 * first. A row of the same key that is here already stays as it is. Returns 0 or -errno with error.
 */
int db_copy__row(struct db_copy *copy, enum pem_db_table table, struct db_row *row,
		 struct pem_error *error);
void db_copy__free(struct db_copy *copy);

/* The parts of the verb. Each returns a status. */
int db_list(struct pem_database *database, bool json);
int db_show(struct pem_database *database, const char *table, const char *id, bool json);
int db_export(struct pem_database *database, const char *path);
int db_import(struct pem_database *database, const char *path);
int db_merge(struct pem_database *database, const char *other);

#endif
