// SPDX-License-Identifier: MIT
/* show.c - pem db list and show: tables for people, JSON for programs */
#include "db.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* --- list: a line per application --- */

/* What is known of an application. */
struct summary {
	uint64_t runs, kept, tried, withdrawn;
	int64_t last_ns;
	/*
	 * The greatest of a kept directive. Those of several are not added: each is a share of
	 * another time, and they may be of different machines.
	 */
	double gain;
};

struct listing {
	struct pem_database *database;
	struct cli_table *table;
	struct json_object *array;
	struct pem_error error;
	size_t count;
};

static int add_run(const void *row, void *arg)
{
	const struct pem_db_run *run = row;
	struct summary *sum = arg;

	sum->runs++;
	if (run->began_ns > sum->last_ns)
		sum->last_ns = run->began_ns;
	return 0;
}

static int add_directive(const void *row, void *arg)
{
	const struct pem_db_directive *d = row;
	struct summary *sum = arg;

	sum->kept += d->state == PEM_DB_KEPT;
	sum->tried += d->state == PEM_DB_PROPOSED || d->state == PEM_DB_ON_TRIAL;
	sum->withdrawn += d->state == PEM_DB_WITHDRAWN;
	if (d->state == PEM_DB_KEPT && (sum->kept == 1 || d->gain > sum->gain))
		sum->gain = d->gain;
	return 0;
}

/* "2026-11-23 20:04", in local time; "" for no time. */
static const char *time_text(int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm parts;
	char text[32];

	if (ns <= 0 || localtime_r(&seconds, &parts) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &parts) == 0)
		return "";
	return cli_format("%s", text);
}

static void add_object(struct json_object *array, const struct pem_db_application *app,
		       const struct summary *sum)
{
	struct json_object *object = json_object_new_object();

	cli_json__text(object, "application", app->name);
	cli_json__text(object, "build_id", app->build_id);
	cli_json__text(object, "path", app->path);
	cli_json__count(object, "runs", sum->runs);
	json_object_object_add(object, "last_run_ns", json_object_new_int64(sum->last_ns));
	cli_json__count(object, "kept", sum->kept);
	cli_json__count(object, "tried", sum->tried);
	cli_json__count(object, "withdrawn", sum->withdrawn);
	cli_json__real(object, "gain", sum->gain);
	json_object_array_add(array, object);
}

static int add_application(const void *row, void *arg)
{
	const struct pem_db_application *app = row;
	struct listing *l = arg;
	struct pem_db_run run = {.size = sizeof(run), .application = app->id};
	struct pem_db_directive d = {.size = sizeof(d), .application = app->id};
	struct summary sum = {.runs = 0};
	int64_t rc = pem_database__each(l->database, PEM_DB_RUN, &run, add_run, &sum, &l->error);

	if (rc >= 0)
		rc = pem_database__each(l->database, PEM_DB_DIRECTIVE, &d, add_directive, &sum,
					&l->error);
	if (rc < 0)
		return (int)rc;
	l->count++;
	if (l->array != NULL) {
		add_object(l->array, app, &sum);
		return 0;
	}
	cli_table__row(l->table, CLI_PLAIN);
	cli_table__cell(l->table, app->name);
	cli_table__cell(l->table, cli_format("%.12s", app->build_id));
	cli_table__cell(l->table, cli_count(sum.runs));
	cli_table__cell(l->table, time_text(sum.last_ns));
	cli_table__cell(l->table, cli_count(sum.kept));
	cli_table__cell(l->table, cli_count(sum.tried));
	cli_table__cell(l->table, cli_count(sum.withdrawn));
	cli_table__cell(l->table, sum.kept != 0 ? cli_format("%.1f %%", sum.gain) : "");
	cli_table__cell(l->table, app->path);
	return 0;
}

int db_list(struct pem_database *database, bool json)
{
	static const struct {
		const char *title;
		enum cli_align align;
	} columns[] = {
		{"APPLICATION", CLI_LEFT}, {"BUILD", CLI_LEFT}, {"RUNS", CLI_RIGHT},
		{"LAST RUN", CLI_LEFT},    {"KEPT", CLI_RIGHT}, {"TRIED", CLI_RIGHT},
		{"WITHDRAWN", CLI_RIGHT},  {"GAIN", CLI_RIGHT}, {"PATH", CLI_LEFT},
	};
	struct listing l = {.database = database,
			    .table = cli_table__new(stdout),
			    .array = json ? json_object_new_array() : NULL};
	int64_t rc;
	size_t i;

	for (i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		cli_table__column(l.table, columns[i].title, columns[i].align);
	rc = pem_database__each(database, PEM_DB_APPLICATION, NULL, add_application, &l, &l.error);
	if (rc >= 0 && !json && l.count == 0)
		cli_say("%s knows no application yet: an agent puts those in that it works on",
			pem_database__location(database));
	/* Printing also frees it. Nothing was added if there is JSON. */
	cli_table__print(l.table);
	if (rc < 0) {
		json_object_put(l.array);
		return cli_fail((int)rc, &l.error);
	}
	if (json)
		cli_json__print(l.array, stdout, false);
	return cli_finish_output(CLI_DONE);
}

/* --- show: the rows of a table --- */

/* A value as text for people. The name of a column says its unit. */
static const char *value_text(const struct pem_db_column *column, const void *row)
{
	int64_t value = column->type == PEM_DB_INTEGER ? db_row__integer(row, column) : 0;

	if (column->type == PEM_DB_TEXT)
		return (const char *)row + column->offset;
	if (column->type == PEM_DB_REAL)
		return cli_format("%.6g", db_row__real(row, column));
	if (column->labels != 0)
		return column->label[value];
	if (strcmp(column->name, "began_ns") == 0 || strcmp(column->name, "at_ns") == 0 ||
	    strcmp(column->name, "until_ns") == 0)
		return time_text(value);
	if (strcmp(column->name, "wall_ns") == 0)
		return cli_duration((uint64_t)value);
	if (strcmp(column->name, "cost_bytes") == 0)
		return cli_bytes((uint64_t)value);
	return cli_format("%" PRId64, value);
}

struct showing {
	const struct pem_db_layout *layout;
	struct cli_table *table;
	struct json_object *array;
	size_t count;
	bool one; /* a row alone: a line per column */
};

/* Columns of the table, after the number. Those that people seldom need are in the row alone. */
static bool is_shown(const struct pem_db_column *column)
{
	static const char *const left_out[] = {"facts",      "predicted_low", "predicted_high",
					       "gain_low",   "gain_high",     "minimum",
					       "maximum",    "uuid",          "rank",
					       "cost_bytes", "machine",       "began_ns"};
	size_t i;

	for (i = 0; i < sizeof(left_out) / sizeof(left_out[0]); i++)
		if (strcmp(column->name, left_out[i]) == 0)
			return false;
	return true;
}

static int add_row(const void *row, void *arg)
{
	struct showing *s = arg;
	size_t i;

	s->count++;
	if (s->array != NULL) {
		json_object_array_add(s->array, db_json__of_row(s->layout, row));
		return 0;
	}
	if (!s->one) {
		cli_table__row(s->table, CLI_PLAIN);
		cli_table__cell(s->table, cli_format("%" PRId64, db_row__id(row)));
	}
	for (i = 0; i < s->layout->column_count; i++) {
		const struct pem_db_column *column = &s->layout->columns[i];

		if (s->one) {
			cli_table__row(s->table, CLI_PLAIN);
			cli_table__cell(s->table, column->name);
		} else if (!is_shown(column)) {
			continue;
		}
		cli_table__cell(s->table, value_text(column, row));
	}
	return 0;
}

static void add_titles(const struct showing *s)
{
	size_t i;

	cli_table__column(s->table, s->one ? s->layout->name : "id", s->one ? CLI_LEFT : CLI_RIGHT);
	if (s->one)
		cli_table__column(s->table, "", CLI_LEFT);
	for (i = 0; i < s->layout->column_count && !s->one; i++)
		if (is_shown(&s->layout->columns[i]))
			cli_table__column(s->table, s->layout->columns[i].name,
					  s->layout->columns[i].type == PEM_DB_TEXT ||
							  s->layout->columns[i].labels != 0
						  ? CLI_LEFT
						  : CLI_RIGHT);
}

int db_show(struct pem_database *database, const char *name, const char *id, bool json)
{
	enum pem_db_table table = db_table_of(name);
	struct showing s = {.layout = pem_database__layout(table), .one = id != NULL};
	struct pem_error error;
	struct db_row like;
	uint64_t number = 0;
	int64_t rc;

	if (s.layout == NULL)
		return cli_error(CLI_WRONG_INPUT,
				 "there is no table '%s': there are application, machine, run, "
				 "metric, directive, evidence, validation and lease",
				 name);
	if (id != NULL && cli_parse_number(id, INT64_MAX, &number) < 0)
		return cli_error(CLI_WRONG_INPUT, "'%s' is no number of a row", id);
	db_row__begin(&like, s.layout);
	memcpy(like.bytes + sizeof(size_t), &number, sizeof(number));
	s.table = cli_table__new(stdout);
	s.array = json ? json_object_new_array() : NULL;
	add_titles(&s);
	rc = pem_database__each(database, table, like.bytes, add_row, &s, &error);
	cli_table__print(s.table);
	if (rc < 0 || (id != NULL && s.count == 0)) {
		json_object_put(s.array);
		return rc < 0 ? cli_fail((int)rc, &error)
			      : cli_error(CLI_WRONG_INPUT, "there is no %s %s in %s", name, id,
					  pem_database__location(database));
	}
	if (json)
		cli_json__print(s.array, stdout, false);
	else if (s.count == 0)
		cli_say("%s has no %s yet", pem_database__location(database), name);
	return cli_finish_output(CLI_DONE);
}
