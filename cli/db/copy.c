// SPDX-License-Identifier: MIT
/*
 * copy.c - pem db export, import and merge: rows of another database or of a file into this one
 *
 * A file has a JSON object per line: first what it is, then rows, each behind those that it refers
 * to. Leases are of the moment and are not copied.
 */
#include "db.h"
#include "grow.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT "pem-database"
#define FORMAT_VERSION 1
#define LINE_MAX_BYTES (64u << 10)

/* --- one row --- */

/* Note the number here of a row that had another one elsewhere. */
static int note(struct db_copy *copy, enum pem_db_table table, int64_t from, int64_t to)
{
	uint32_t *at = pem_number_map__at(&copy->index[table - 1], (uint64_t)from);

	if (at == NULL ||
	    pem_grow(&copy->numbers, sizeof(*copy->numbers), copy->count + 1, &copy->capacity) < 0)
		return -ENOMEM;
	*at = (uint32_t)copy->count;
	copy->numbers[copy->count++] = to;
	return 0;
}

static int translate(struct db_copy *copy, const struct pem_db_layout *layout, struct db_row *row,
		     struct pem_error *error)
{
	size_t i;

	for (i = 0; i < layout->column_count; i++) {
		const struct pem_db_column *column = &layout->columns[i];
		int64_t from = db_row__integer(row->bytes, column);
		uint32_t *at;

		if (column->references == 0)
			continue;
		at = pem_number_map__at(&copy->index[column->references - 1], (uint64_t)from);
		if (at == NULL)
			return -ENOMEM;
		if (*at == UINT32_MAX) {
			snprintf(error->text, sizeof(error->text),
				 "its '%s' is %lld, and no such row comes before it", column->name,
				 (long long)from);
			return -EINVAL;
		}
		db_row__set_integer(row->bytes, column, copy->numbers[*at]);
	}
	return 0;
}

/* Is a row of the same key here? Returns its number, 0, or -errno. */
static int64_t find(struct db_copy *copy, enum pem_db_table table, const struct db_row *row,
		    struct pem_error *error)
{
	const struct pem_db_layout *layout = pem_database__layout(table);
	struct db_row like;
	size_t i;
	int rc;

	db_row__begin(&like, layout);
	for (i = 0; i < layout->column_count && layout->columns[i].is_key; i++)
		memcpy(like.bytes + layout->columns[i].offset,
		       row->bytes + layout->columns[i].offset, layout->columns[i].bytes);
	rc = pem_database__find(copy->to, table, like.bytes, like.bytes, error);
	return rc <= 0 ? rc : db_row__id(like.bytes);
}

int db_copy__row(struct db_copy *copy, enum pem_db_table table, struct db_row *row,
		 struct pem_error *error)
{
	int64_t from = db_row__id(row->bytes), id;
	int rc = translate(copy, pem_database__layout(table), row, error);

	if (rc < 0)
		return rc;
	id = find(copy, table, row, error);
	if (id > 0)
		copy->known++;
	else if (id == 0) {
		id = pem_database__put(copy->to, table, row->bytes, error);
		copy->added += id > 0;
	}
	return id < 0 ? (int)id : note(copy, table, from, id);
}

void db_copy__free(struct db_copy *copy)
{
	size_t i;

	for (i = 0; i < PEM_DB_TABLES; i++)
		pem_number_map__free(&copy->index[i]);
	free(copy->numbers);
}

static int say_copied(const struct db_copy *copy, const char *from)
{
	cli_say("%s rows of %s were added to %s, and %s were there already", cli_count(copy->added),
		from, pem_database__location(copy->to), cli_count(copy->known));
	return CLI_DONE;
}

/* --- export --- */

struct writing {
	FILE *out;
	enum pem_db_table table;
	struct pem_error error;
};

static int write_row(const void *row, void *arg)
{
	const struct writing *w = arg;
	const struct pem_db_layout *layout = pem_database__layout(w->table);
	struct json_object *object = db_json__of_row(layout, row);

	cli_json__text(object, "table", layout->name);
	cli_json__print(object, w->out, true);
	return ferror(w->out) ? -EIO : 0;
}

static int64_t write_all(struct pem_database *database, void *arg)
{
	struct writing *w = arg;
	int64_t rc = 0;

	for (w->table = 1; w->table <= PEM_DB_TABLES && rc >= 0; w->table++)
		if (w->table != PEM_DB_LEASE)
			rc = pem_database__each(database, w->table, NULL, write_row, w, &w->error);
	return rc < 0 ? rc : 0;
}

int db_export(struct pem_database *database, const char *path)
{
	struct writing w = {.out = path == NULL ? stdout : fopen(path, "wxe")};
	struct json_object *head;
	int64_t rc;

	if (w.out == NULL)
		return cli_error(CLI_WRONG_INPUT, "cannot make %s: %s", path, strerror(errno));
	head = json_object_new_object();
	cli_json__count(head, FORMAT, FORMAT_VERSION);
	cli_json__print(head, w.out, true);
	/* In one transaction, so that no row refers to one that came later. */
	rc = pem_database__together(database, write_all, &w, &w.error);
	if (path == NULL)
		return rc < 0 && rc != -EIO ? cli_fail((int)rc, &w.error)
					    : cli_finish_output(CLI_DONE);
	if (fclose(w.out) != 0 && rc >= 0)
		rc = -errno;
	if (rc >= 0)
		return CLI_DONE;
	unlink(path);
	if (*w.error.text != '\0')
		return cli_fail((int)rc, &w.error);
	return cli_error(CLI_FAILED, "%s is not written: %s", path, strerror((int)-rc));
}

/* --- import --- */

struct reading {
	struct db_copy copy;
	const char *path;
	FILE *in;
	struct json_tokener *tokener;
	char *line; /* LINE_MAX_BYTES */
	unsigned long number;
	struct pem_error error;
};

static int64_t wrong_line(struct reading *r, const char *what)
{
	cli_error(CLI_WRONG_INPUT, "%s:%lu: %s; nothing was imported", r->path, r->number, what);
	return -EINVAL;
}

static int64_t take_head(struct reading *r, struct json_object *object)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, FORMAT, &value))
		return wrong_line(r, "this is no file of pem db export");
	if (json_object_get_int64(value) != FORMAT_VERSION)
		return wrong_line(r, "it was written by another version of pem than 1 to 1");
	return 0;
}

static int64_t take_line(struct reading *r, struct json_object *object)
{
	struct json_object *name = NULL;
	enum pem_db_table table = 0;
	struct db_row row;
	int rc;

	if (json_object_get_type(object) != json_type_object)
		return wrong_line(r, "it is no JSON object");
	if (r->number == 1)
		return take_head(r, object);
	if (json_object_object_get_ex(object, "table", &name) &&
	    json_object_get_type(name) == json_type_string)
		table = db_table_of(json_object_get_string(name));
	if (table == 0 || table == PEM_DB_LEASE)
		return wrong_line(r, "it names no table whose rows are imported");
	rc = db_json__to_row(pem_database__layout(table), object, &row, &r->error);
	if (rc == 0)
		rc = db_copy__row(&r->copy, table, &row, &r->error);
	/* Only a wrong row is the fault of the line. */
	return rc == -EINVAL ? wrong_line(r, r->error.text) : rc;
}

/*
 * Read the next line without its end. Returns its bytes, LINE_MAX_BYTES if it is longer than a line
 * may be, or -1 at the end of the file.
 */
static ssize_t read_line(struct reading *r)
{
	size_t n = 0;
	int c;

	while ((c = getc(r->in)) != EOF && c != '\n' && n < LINE_MAX_BYTES)
		r->line[n++] = (char)c;
	return n == 0 && c == EOF ? -1 : (ssize_t)n;
}

static int64_t import_line(struct reading *r, size_t bytes)
{
	struct json_object *object;
	int64_t rc;

	if (bytes == LINE_MAX_BYTES || memchr(r->line, '\0', bytes) != NULL)
		return wrong_line(r, "the line is too long, or has a NUL");
	r->line[bytes] = '\0';
	json_tokener_reset(r->tokener);
	/* With its NUL, which ends a number, too. */
	object = json_tokener_parse_ex(r->tokener, r->line, (int)bytes + 1);
	rc = object == NULL ? wrong_line(r, "it is no JSON object") : take_line(r, object);
	json_object_put(object);
	return rc;
}

static int64_t import_lines(struct pem_database *database, void *arg)
{
	struct reading *r = arg;
	int64_t rc = 0;
	ssize_t n;

	(void)database;
	while (rc >= 0 && (n = read_line(r)) >= 0) {
		r->number++;
		rc = import_line(r, (size_t)n);
	}
	if (rc >= 0 && ferror(r->in)) {
		snprintf(r->error.text, sizeof(r->error.text),
			 "%s can't be read: %s; nothing was imported", r->path, strerror(errno));
		return -EIO;
	}
	if (rc >= 0 && r->number == 0)
		return wrong_line(r, "the file is empty");
	return rc;
}

int db_import(struct pem_database *database, const char *path)
{
	struct reading r = {.copy.to = database,
			    .path = path,
			    .in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re")};
	int status;
	int64_t rc;

	if (r.in == NULL)
		return cli_error(CLI_WRONG_INPUT, "cannot read %s: %s", path, strerror(errno));
	r.line = malloc(LINE_MAX_BYTES);
	r.tokener = json_tokener_new();
	if (r.line == NULL || r.tokener == NULL) {
		snprintf(r.error.text, sizeof(r.error.text), "out of memory");
		rc = -ENOMEM;
	} else {
		/* Nothing behind an object, and no number that would be cut. */
		json_tokener_set_flags(r.tokener, JSON_TOKENER_STRICT);
		rc = pem_database__together(database, import_lines, &r, &r.error);
	}
	if (rc >= 0)
		status = say_copied(&r.copy, path);
	else
		status = rc == -EINVAL ? CLI_WRONG_INPUT : cli_fail((int)rc, &r.error);
	if (r.in != stdin)
		fclose(r.in);
	if (r.tokener != NULL)
		json_tokener_free(r.tokener);
	free(r.line);
	db_copy__free(&r.copy);
	return status;
}

/* --- merge --- */

struct merging {
	struct db_copy copy;
	struct pem_database *from;
	enum pem_db_table table;
	struct pem_error error;
};

static int merge_row(const void *bytes, void *arg)
{
	struct merging *m = arg;
	const struct pem_db_layout *layout = pem_database__layout(m->table);
	struct db_row row;
	int rc;

	db_row__begin(&row, layout);
	memcpy(row.bytes, bytes, layout->row_bytes);
	rc = db_copy__row(&m->copy, m->table, &row, &m->error);
	if (rc != -EINVAL)
		return rc;
	/* What it refers to was left out, because it is damaged. */
	cli_say("%s %lld of %s is left out: %s", layout->name, (long long)db_row__id(bytes),
		pem_database__location(m->from), m->error.text);
	return 0;
}

static int64_t merge_rows(struct pem_database *to, void *arg)
{
	struct merging *m = arg;
	int64_t rc = 0;

	(void)to;
	for (m->table = 1; m->table <= PEM_DB_TABLES && rc >= 0; m->table++)
		if (m->table != PEM_DB_LEASE)
			rc = pem_database__each(m->from, m->table, NULL, merge_row, m, &m->error);
	return rc;
}

static void say_left_out(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	cli_say("%s", text);
}

int db_merge(struct pem_database *database, const char *other)
{
	const struct pem_database_options options = {
		.size = sizeof(options), .log = say_left_out, .read_only = 1};
	struct merging m = {.copy.to = database};
	int status;
	int64_t rc;

	m.from = pem_database__open(other, &options, &m.error);
	if (m.from == NULL)
		return cli_fail(-errno, &m.error);
	rc = pem_database__together(database, merge_rows, &m, &m.error);
	status = rc < 0 ? cli_fail((int)rc, &m.error)
			: say_copied(&m.copy, pem_database__location(m.from));
	pem_database__close(m.from);
	db_copy__free(&m.copy);
	return status;
}
