/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sql.c - the schema of the CPO database, its versions, and every statement on its rows
 *
 * Statements are those that SQLite and PostgreSQL both have. Values are always parameters. Names of
 * tables and columns come from tables.c.
 */
#include "connection.h"
#include "grow.h"

#include <pem/sized.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- the schema --- */

#define SCHEMA_VERSION 1

/*
 * Statements that make version i + 1 of the schema from version i. What a release had stays as it
 * is, and its columns are never renamed. '%' stands for the type of a column that numbers its rows.
 */
static const char *const from_0[] = {
	"CREATE TABLE application (id %, build_id TEXT NOT NULL, name TEXT NOT NULL, "
	"path TEXT NOT NULL, UNIQUE (build_id))",

	"CREATE TABLE machine (id %, fingerprint TEXT NOT NULL, processor TEXT NOT NULL, "
	"kernel TEXT NOT NULL, hypervisor TEXT NOT NULL, facts TEXT NOT NULL, "
	"UNIQUE (fingerprint))",

	"CREATE TABLE run (id %, uuid TEXT NOT NULL, "
	"application BIGINT NOT NULL REFERENCES application (id) ON DELETE CASCADE, "
	"machine BIGINT NOT NULL REFERENCES machine (id) ON DELETE CASCADE, "
	"agent TEXT NOT NULL, workload TEXT NOT NULL, began_ns BIGINT NOT NULL, "
	"wall_ns BIGINT NOT NULL, status BIGINT NOT NULL, UNIQUE (uuid))",

	"CREATE TABLE metric (id %, run BIGINT NOT NULL REFERENCES run (id) ON DELETE CASCADE, "
	"name TEXT NOT NULL, unit TEXT NOT NULL, count BIGINT NOT NULL, "
	"mean DOUBLE PRECISION NOT NULL, spread DOUBLE PRECISION NOT NULL, "
	"minimum DOUBLE PRECISION NOT NULL, maximum DOUBLE PRECISION NOT NULL, "
	"origin BIGINT NOT NULL, UNIQUE (run, name))",

	"CREATE TABLE directive (id %, "
	"application BIGINT NOT NULL REFERENCES application (id) ON DELETE CASCADE, "
	"machine BIGINT NOT NULL REFERENCES machine (id) ON DELETE CASCADE, "
	"agent TEXT NOT NULL, subject TEXT NOT NULL, text TEXT NOT NULL, state BIGINT NOT NULL, "
	"rank BIGINT NOT NULL, predicted DOUBLE PRECISION NOT NULL, "
	"predicted_low DOUBLE PRECISION NOT NULL, predicted_high DOUBLE PRECISION NOT NULL, "
	"gain DOUBLE PRECISION NOT NULL, cost_bytes BIGINT NOT NULL, began_ns BIGINT NOT NULL, "
	"reason TEXT NOT NULL, UNIQUE (application, machine, agent, subject))",

	"CREATE TABLE evidence (id %, "
	"directive BIGINT NOT NULL REFERENCES directive (id) ON DELETE CASCADE, "
	"run BIGINT NOT NULL REFERENCES run (id) ON DELETE CASCADE, "
	"role BIGINT NOT NULL, value DOUBLE PRECISION NOT NULL, UNIQUE (directive, run))",

	"CREATE TABLE validation (id %, "
	"directive BIGINT NOT NULL REFERENCES directive (id) ON DELETE CASCADE, "
	"at_ns BIGINT NOT NULL, verdict BIGINT NOT NULL, gain DOUBLE PRECISION NOT NULL, "
	"gain_low DOUBLE PRECISION NOT NULL, gain_high DOUBLE PRECISION NOT NULL, "
	"treated BIGINT NOT NULL, controls BIGINT NOT NULL, UNIQUE (directive, at_ns))",

	"CREATE TABLE lease (id %, resource TEXT NOT NULL, holder TEXT NOT NULL, "
	"access BIGINT NOT NULL, until_ns BIGINT NOT NULL, UNIQUE (resource, holder))",

	"CREATE INDEX run_application ON run (application)",
	"CREATE INDEX run_machine ON run (machine)",
	"CREATE INDEX evidence_run ON evidence (run)",
	NULL,
};
static const char *const *const steps[SCHEMA_VERSION] = {from_0};

/*
 * Run a statement. One that fails within a transaction ends what a server would do of it, so its
 * error is noted: SQLite would go on.
 */
static int run(struct pem_database *db, const char *statement, const struct pem_db_value *values,
	       size_t count, pem_db_row row, void *arg, struct pem_error *error)
{
	int rc = db->driver->run(db->connection, statement, values, count, row, arg, error);

	if (rc && db->together && !db->failed)
		db->failed = rc;
	return rc;
}

int pem_db__run(struct pem_database *db, const char *statement, struct pem_error *error)
{
	return run(db, statement, NULL, 0, NULL, NULL, error);
}

static int run_step(struct pem_database *db, const char *statement, struct pem_error *error)
{
	const char *type = strchr(statement, '%');
	char text[1024];

	if (type == NULL)
		return pem_db__run(db, statement, error);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(type - statement), statement,
		 db->driver->id_type, type + 1);
	return pem_db__run(db, text, error);
}

/* Make version 'to' of the schema from version 'from'. */
static int make_schema(struct pem_database *db, int from, int to, struct pem_error *error)
{
	const char *const *statement;
	int rc = 0;

	for (; from < to && !rc; from++) {
		for (statement = steps[from]; *statement && !rc; statement++)
			rc = run_step(db, *statement, error);
	}
	return rc;
}

static int64_t upgrade(struct pem_database *db, void *arg)
{
	struct pem_error *error = arg;
	int version = db->driver->version(db->connection, error), rc;

	if (version < 0)
		return version;
	rc = make_schema(db, version, SCHEMA_VERSION, error);
	return rc ? rc : db->driver->set_version(db->connection, SCHEMA_VERSION, error);
}

static int take_text(void *arg, const struct pem_db_value *values, size_t count)
{
	char **text = arg;

	if (count != 1 || values[0].type != PEM_DB_TEXT || *text)
		return -EBADMSG;
	*text = strdup(values[0].text);
	return *text ? 0 : -ENOMEM;
}

/*
 * Is the schema of a file what the statements above make? In place of tables it could have views
 * without end, triggers that write, and columns that are computed.
 */
static int check_schema(struct pem_database *db, int version, struct pem_error *error)
{
	struct pem_database model = {.driver = db->driver};
	char *own = NULL, *right = NULL;
	int rc;

	if (!db->driver->schema)
		return 0;
	model.connection = db->driver->open(db->driver->scratch, false, error);
	if (!model.connection)
		return -errno;
	rc = make_schema(&model, 0, version, error);
	if (!rc)
		rc = run(&model, db->driver->schema, NULL, 0, take_text, &right, error);
	if (!rc)
		rc = run(db, db->driver->schema, NULL, 0, take_text, &own, error);
	if (!rc && strcmp(own ? own : "", right ? right : ""))
		rc = pem_db__fail(error, -EBADMSG,
				  "the tables of %s are not as pem made them: export what can be "
				  "read with another program, and move it away",
				  db->location);
	db->driver->close(model.connection);
	free(own);
	free(right);
	return rc;
}

int pem_db__upgrade(struct pem_database *db, struct pem_error *error)
{
	int version = db->driver->version(db->connection, error);

	if (version > SCHEMA_VERSION)
		return pem_db__fail(error, -EPROTONOSUPPORT,
				    "the database %s has version %d, and this pem knows versions "
				    "up to %d: use the newer pem, or another database (PEM_DB)",
				    db->location, version, SCHEMA_VERSION);
	if (version > 0) {
		int rc = check_schema(db, version, error);

		if (rc || version == SCHEMA_VERSION)
			return rc;
	}
	if (version < 0)
		return version;
	if (db->options.read_only && version == 0)
		return pem_db__fail(error, -ENOENT, "there is no database %s yet", db->location);
	if (db->options.read_only)
		return pem_db__fail(error, -EROFS,
				    "the database %s has the older version %d: open it once for "
				    "writing",
				    db->location, version);
	return (int)pem_database__together(db, upgrade, error, error);
}

/* --- rows --- */

/* A statement while it is put together, and its values. */
struct statement {
	char text[2048];
	size_t used;
	struct pem_db_value values[PEM_DB_COLUMNS_MAX];
	size_t count;
};

static void __attribute__((format(printf, 2, 3))) say(struct statement *s, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (s->used < sizeof(s->text))
		s->used += (size_t)vsnprintf(s->text + s->used, sizeof(s->text) - s->used, format,
					     args);
	va_end(args);
}

static void say_value(struct statement *s, const struct pem_db_value *value)
{
	s->values[s->count++] = *value;
	say(s, "$%zu", s->count);
}

static const struct pem_db_layout *layout_of(enum pem_db_table table, struct pem_error *error)
{
	const struct pem_db_layout *layout = pem_database__layout(table);

	if (!layout)
		pem_db__fail(error, -EINVAL, "there is no table %d", (int)table);
	return layout;
}

static int take_id(void *arg, const struct pem_db_value *values, size_t count)
{
	int64_t *id = arg;

	if (count != 1)
		return -EBADMSG;
	*id = values[0].type == PEM_DB_TEXT ? strtoll(values[0].text, NULL, 10) : values[0].integer;
	return 0;
}

/* "UPDATE ... WHERE key ...". */
static void say_update(struct statement *s, const struct pem_db_layout *layout,
		       const struct pem_db_value *values)
{
	const struct pem_db_column *columns = layout->columns;
	const char *word = "";
	size_t i;

	say(s, "UPDATE %s SET ", layout->name);
	for (i = 0; i < layout->column_count; i++) {
		if (columns[i].is_key)
			continue;
		say(s, "%s%s = ", word, columns[i].name);
		say_value(s, &values[i]);
		word = ", ";
	}
	word = " WHERE ";
	for (i = 0; i < layout->column_count && columns[i].is_key; i++) {
		say(s, "%s%s = ", word, columns[i].name);
		say_value(s, &values[i]);
		word = " AND ";
	}
	say(s, " RETURNING id");
}

/* "INSERT ... ON CONFLICT (key) DO UPDATE ...". */
static void say_put(struct statement *s, const struct pem_db_layout *layout,
		    const struct pem_db_value *values)
{
	const struct pem_db_column *columns = layout->columns;
	const char *comma = "";
	size_t i;

	say(s, "INSERT INTO %s (", layout->name);
	for (i = 0; i < layout->column_count; i++)
		say(s, "%s%s", i ? ", " : "", columns[i].name);
	say(s, ") VALUES (");
	for (i = 0; i < layout->column_count; i++) {
		say(s, "%s", i ? ", " : "");
		say_value(s, &values[i]);
	}
	say(s, ") ON CONFLICT (");
	for (i = 0; i < layout->column_count && columns[i].is_key; i++)
		say(s, "%s%s", i ? ", " : "", columns[i].name);
	say(s, ") DO UPDATE SET ");
	for (; i < layout->column_count; i++, comma = ", ")
		say(s, "%s%s = excluded.%s", comma, columns[i].name, columns[i].name);
	say(s, " RETURNING id");
}

int64_t pem_database__put(struct pem_database *db, enum pem_db_table table, const void *row,
			  struct pem_error *error)
{
	const struct pem_db_layout *layout = layout_of(table, error);
	struct pem_db_value values[PEM_DB_COLUMNS_MAX];
	_Alignas(8) uint8_t copy[PEM_DB_ROW_BYTES_MAX];
	struct statement update = {.used = 0}, insert = {.used = 0};
	int64_t id = 0;
	int rc;

	if (!layout)
		return -EINVAL;
	rc = pem_db__to_values(layout, row, copy, values, error);
	if (rc)
		return rc;
	/* An insertion that finds the key there has used up a number: rows would have gaps. */
	say_update(&update, layout, values);
	rc = run(db, update.text, update.values, update.count, take_id, &id, error);
	if (rc || id)
		return rc ? rc : id;
	say_put(&insert, layout, values);
	rc = run(db, insert.text, insert.values, insert.count, take_id, &id, error);
	return rc ? rc : id;
}

static bool is_asked(const struct pem_db_value *value)
{
	return value->type == PEM_DB_INTEGER ? value->integer != 0
					     : value->type == PEM_DB_TEXT && *value->text != '\0';
}

/*
 * "SELECT ... WHERE ...": what is asked of keys and others alike. like has no row's whole rules to
 * keep, so its values are taken as they are.
 */
static void say_select(struct statement *s, const struct pem_database *db,
		       const struct pem_db_layout *layout, const uint8_t *like)
{
	const struct pem_db_column *column;
	const char *word = " WHERE ";
	struct pem_db_value value = {.type = PEM_DB_INTEGER};
	size_t i;

	say(s, "SELECT id");
	for (i = 0; i < layout->column_count; i++) {
		column = &layout->columns[i];
		/* A text that is as long as its member has bytes is too long already. */
		if (db->driver->shortens && column->type == PEM_DB_TEXT)
			say(s, ", left(%s, %u)", column->name, column->bytes);
		else
			say(s, ", %s", column->name);
	}
	say(s, " FROM %s", layout->name);
	memcpy(&value.integer, like + sizeof(size_t), sizeof(value.integer));
	if (value.integer) {
		say(s, "%sid = ", word);
		say_value(s, &value);
		word = " AND ";
	}
	for (i = 0; i < layout->column_count; i++) {
		column = &layout->columns[i];
		value = (struct pem_db_value){.type = (enum pem_db_type)column->type};
		if (column->type == PEM_DB_TEXT)
			value.text = (const char *)like + column->offset;
		else
			memcpy(&value.integer, like + column->offset, sizeof(value.integer));
		if (!is_asked(&value))
			continue;
		say(s, "%s%s = ", word, column->name);
		say_value(s, &value);
		word = " AND ";
	}
	say(s, " ORDER BY id");
}

/* Rows of a result, copied. */
struct rows {
	struct pem_database *db;
	const struct pem_db_layout *layout;
	uint8_t *bytes;
	size_t count, capacity;
	int64_t last; /* number of the last row that was read */
	bool is_damaged; /* it did not rise */
};

static void say_left_out(struct rows *rows, const uint8_t *row, const char *why)
{
	const struct pem_database_options *options = &rows->db->options;
	char text[PATH_MAX + 640];
	int64_t id;

	if (!options->log)
		return;
	memcpy(&id, row + sizeof(size_t), sizeof(id));
	snprintf(text, sizeof(text), "row %" PRId64 " of %s is left out: %s", id,
		 rows->db->location, why);
	options->log(PEM_LOG_WARNING, text, options->arg);
}

static int take_row(void *arg, const struct pem_db_value *values, size_t count)
{
	struct rows *rows = arg;
	size_t bytes = rows->layout->row_bytes;
	struct pem_error why;
	uint8_t *row;
	int64_t id;

	if (pem_grow(&rows->bytes, bytes, rows->count + 1, &rows->capacity))
		return -ENOMEM;
	row = rows->bytes + rows->count * bytes;
	if (pem_db__to_row(rows->layout, values, count, row, &why))
		say_left_out(rows, row, why.text);
	else
		rows->count++;
	/* Pages that name each other would have no end. */
	memcpy(&id, row + sizeof(size_t), sizeof(id));
	rows->is_damaged = rows->last && id <= rows->last;
	rows->last = id;
	return rows->is_damaged ? -EBADMSG : 0;
}

int64_t pem_database__each(struct pem_database *db, enum pem_db_table table, const void *like,
			   int (*visit)(const void *row, void *arg), void *arg,
			   struct pem_error *error)
{
	struct rows rows = {.db = db, .layout = layout_of(table, error)};
	_Alignas(8) uint8_t copy[PEM_DB_ROW_BYTES_MAX] = {0};
	struct statement s = {.used = 0};
	int64_t visited = 0;
	int rc = 0;

	if (!rows.layout)
		return -EINVAL;
	if (like)
		rc = pem_sized__read(copy, rows.layout->row_bytes, like, rows.layout->row_bytes);
	if (rc)
		return pem_db__fail(error, rc, "a row of %s has a size that no version of it has",
				    rows.layout->name);
	rc = pem_db__check_texts(rows.layout, copy, error);
	if (rc)
		return rc;
	say_select(&s, db, rows.layout, copy);
	rc = run(db, s.text, s.values, s.count, take_row, &rows, error);
	if (rows.is_damaged)
		pem_db__fail(error, rc, "%s is damaged: a row of %s comes more than once",
			     db->location, rows.layout->name);
	while (!rc && (size_t)visited < rows.count)
		rc = visit(rows.bytes + (size_t)visited++ * rows.layout->row_bytes, arg);
	free(rows.bytes);
	return rc < 0 ? rc : visited;
}

struct search {
	void *room;
	bool found;
};

static int take_first(const void *row, void *arg)
{
	struct search *search = arg;
	size_t bytes;

	memcpy(&bytes, row, sizeof(bytes));
	pem_sized__write(search->room, 0, row, bytes);
	search->found = true;
	return 1;
}

int pem_database__find(struct pem_database *db, enum pem_db_table table, const void *like,
		       void *room, struct pem_error *error)
{
	struct search search = {.room = room};
	int64_t rc;

	if (pem_sized__check(room))
		return pem_db__fail(error, -EINVAL, "the room for a row has no size");
	rc = pem_database__each(db, table, like, take_first, &search, error);
	return rc < 0 ? (int)rc : search.found;
}

int pem_database__remove(struct pem_database *db, enum pem_db_table table, int64_t id,
			 struct pem_error *error)
{
	const struct pem_db_layout *layout = layout_of(table, error);
	const struct pem_db_value value = {.type = PEM_DB_INTEGER, .integer = id};
	struct statement s = {.used = 0};
	int64_t removed = 0;
	int rc;

	if (!layout)
		return -EINVAL;
	say(&s, "DELETE FROM %s WHERE id = ", layout->name);
	say_value(&s, &value);
	say(&s, " RETURNING id");
	rc = run(db, s.text, s.values, s.count, take_id, &removed, error);
	return rc ? rc : removed != 0;
}

/* --- several statements --- */

int64_t pem_database__together(struct pem_database *db,
			       int64_t (*body)(struct pem_database *db, void *arg), void *arg,
			       struct pem_error *error)
{
	int64_t result;
	int rc;

	if (db->together)
		return pem_db__fail(error, -EDEADLK, "a transaction is open already");
	result = pem_db__run(db, db->options.read_only ? db->driver->begin_read : db->driver->begin,
			     error);
	if (!result) {
		db->together = true;
		db->failed = 0;
		result = body(db, arg);
		db->together = false;
		if (result >= 0 && db->failed)
			result = pem_db__fail(error, db->failed,
					      "a statement failed (%s), and so did all that was to "
					      "be done together with it",
					      strerror(-db->failed));
	}
	if (result >= 0) {
		rc = pem_db__run(db, "COMMIT", error);
		if (!rc)
			return result;
		result = rc;
	}
	/* The error told is the one before this. A server may have begun, although it failed. */
	pem_db__run(db, "ROLLBACK", NULL);
	return result;
}

struct taking {
	struct pem_db_lease *lease, wanted;
	struct pem_error *error;
	int64_t now_ns;
	bool taken; /* by another holder */
};

static int see_lease(const void *row, void *arg)
{
	const struct pem_db_lease *other = row;
	struct taking *t = arg;

	if (other->until_ns <= t->now_ns || !strcmp(other->holder, t->wanted.holder) ||
	    (!other->access && !t->wanted.access))
		return 0;
	pem_sized__write(t->lease, 0, other, sizeof(*other));
	t->taken = true;
	return 1;
}

static int64_t take_lease(struct pem_database *db, void *arg)
{
	struct taking *t = arg;
	struct pem_db_lease like = {.size = sizeof(like)};
	int64_t rc;

	memcpy(like.resource, t->wanted.resource, sizeof(like.resource));
	rc = pem_database__each(db, PEM_DB_LEASE, &like, see_lease, t, t->error);
	if (rc < 0 || t->taken)
		return rc < 0 ? rc : 0;
	rc = pem_database__put(db, PEM_DB_LEASE, &t->wanted, t->error);
	if (rc < 0)
		return rc;
	t->wanted.id = rc;
	pem_sized__write(t->lease, 0, &t->wanted, sizeof(t->wanted));
	return 1;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int pem_database__lease(struct pem_database *db, struct pem_db_lease *lease,
			struct pem_error *error)
{
	struct taking t = {.lease = lease, .error = error, .now_ns = now_ns()};

	if (pem_sized__check(lease) ||
	    pem_sized__read(&t.wanted, sizeof(t.wanted), lease, sizeof(t.wanted)))
		return pem_db__fail(error, -EINVAL, "a lease has a size that no version of it has");
	return (int)pem_database__together(db, take_lease, &t, error);
}

int pem_database__vacuum(struct pem_database *db, struct pem_error *error)
{
	const struct pem_db_value now = {.type = PEM_DB_INTEGER, .integer = now_ns()};
	int rc;

	if (db->together)
		return pem_db__fail(error, -EDEADLK, "a transaction is open");
	rc = run(db, "DELETE FROM lease WHERE until_ns <= $1", &now, 1, NULL, NULL, error);
	return rc ? rc : db->driver->vacuum(db->connection, error);
}
