/* SPDX-License-Identifier: MIT */
/* table.c - a space that was measured: a CSV file with a value for each configuration */
#include "trial/table.h"

#include "grow.h"
#include "hash.h"
#include "number_map.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COLUMNS_MAX (TRIAL_PARAMETERS_MAX + 1)

/* The different texts of a column, in the order in which they appear. */
struct column {
	char **texts;
	size_t count, capacity;
	struct pem_number_map known; /* their indexes, by their hashes */
};

struct reading {
	const char *path;
	FILE *file;
	char *line;
	size_t line_bytes;
	unsigned long long line_number;
	char *fields[COLUMNS_MAX]; /* of the line */
	size_t field_count;
	char *names[COLUMNS_MAX];
	size_t column_count;
	struct column columns[TRIAL_PARAMETERS_MAX];
	uint32_t *rows; /* indexes of texts */
	size_t row_count, row_capacity;
	double *values;
	size_t value_capacity;
	struct pem_error *error;
};

static int refuse(struct reading *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A sentence after the file's name and the line. */
static int refuse(struct reading *r, const char *format, ...)
{
	char sentence[256];
	va_list args;

	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	snprintf(r->error->text, sizeof(r->error->text), "%.200s, line %llu: %s", r->path,
		 r->line_number, sentence);
	return -EINVAL;
}

/* Take one field from *text, and end it there. Returns 1: another one follows; 0; or -EINVAL. */
static int take_field(struct reading *r, char **text)
{
	char *from = *text, *to = from, separator;
	bool quoted = *from == '"';

	if (r->field_count == COLUMNS_MAX)
		return refuse(r, "there are more than %u columns", COLUMNS_MAX);
	r->fields[r->field_count++] = from;
	for (from += quoted; *from && (quoted || *from != ','); from++) {
		if (quoted && *from == '"') {
			if (from[1] != '"')
				break;
			from++;
		}
		*to++ = *from;
	}
	if (quoted && *from++ != '"')
		return refuse(r, "column %zu begins with a quote that does not end",
			      r->field_count);
	separator = *from;
	if (separator && separator != ',')
		return refuse(r, "column %zu goes on after its quote", r->field_count);
	*to = '\0';
	*text = from + 1;
	return separator == ',';
}

/* Read the next line into fields. Returns 1, 0 at the end, or -errno. */
static int next_line(struct reading *r)
{
	ssize_t bytes;
	char *text;
	int rc;

	do {
		errno = 0;
		bytes = getline(&r->line, &r->line_bytes, r->file);
		if (bytes < 0 && errno)
			return -errno;
		if (bytes < 0)
			return 0;
		r->line_number++;
		if (strlen(r->line) != (size_t)bytes)
			return refuse(r, "it has a byte of 0: this is not a text file");
		r->line[strcspn(r->line, "\r\n")] = '\0';
	} while (!*r->line);
	r->field_count = 0;
	text = r->line;
	do {
		rc = take_field(r, &text);
	} while (rc == 1);
	return rc < 0 ? rc : 1;
}

static int take_names(struct reading *r)
{
	int rc = next_line(r);
	size_t i, k;

	if (rc < 0)
		return rc;
	if (!rc || r->field_count < 2)
		return refuse(r,
			      "a table has a column for each parameter, and the value last: "
			      "there are %s",
			      rc ? "fewer than two columns" : "no lines");
	for (i = 0; i < r->field_count; i++) {
		if (!*r->fields[i])
			return refuse(r, "column %zu has no name", i + 1);
		for (k = 0; k < i; k++) {
			if (!strcmp(r->names[k], r->fields[i]))
				return refuse(r, "columns %zu and %zu have one name, '%.100s'",
					      k + 1, i + 1, r->names[k]);
		}
		r->names[i] = strdup(r->fields[i]);
		if (!r->names[i])
			return -ENOMEM;
		r->column_count++;
	}
	return 0;
}

/* The index of a column's text. */
static int index_of(struct reading *r, size_t column_number, const char *text, uint32_t *index)
{
	struct column *column = &r->columns[column_number];
	uint64_t key = pem_hash__text(PEM_HASH_START, text);
	uint32_t *known;

	/* Other texts of this hash have the next keys. */
	do {
		known = pem_number_map__at(&column->known, key++);
	} while (known && *known != UINT32_MAX && strcmp(column->texts[*known], text));
	if (known && *known == UINT32_MAX) {
		if (column->count == TRIAL_LEVELS_MAX)
			return refuse(r, "column %zu has more than %u values: a setting has fewer",
				      column_number + 1, TRIAL_LEVELS_MAX);
		if (pem_grow(&column->texts, sizeof(*column->texts), column->count + 1,
			     &column->capacity))
			return -ENOMEM;
		column->texts[column->count] = strdup(text);
		if (!column->texts[column->count])
			return -ENOMEM;
		*known = (uint32_t)column->count++;
	}
	*index = known ? *known : 0;
	return known ? 0 : -ENOMEM;
}

static int take_row(struct reading *r)
{
	size_t parameters = r->column_count - 1, i;
	const char *text;
	char *end;
	int rc = 0;

	if (r->field_count != r->column_count)
		return refuse(r, "it has %zu columns, and the first line %zu", r->field_count,
			      r->column_count);
	if (r->row_count == TRIAL_ROWS_MAX)
		return refuse(r, "there are more than %u configurations", TRIAL_ROWS_MAX);
	if (pem_grow(&r->rows, sizeof(*r->rows) * parameters, r->row_count + 1, &r->row_capacity) ||
	    pem_grow(&r->values, sizeof(*r->values), r->row_count + 1, &r->value_capacity))
		return -ENOMEM;
	for (i = 0; i < parameters && !rc; i++) {
		if (!*r->fields[i])
			return refuse(r, "column %zu is empty", i + 1);
		rc = index_of(r, i, r->fields[i], &r->rows[r->row_count * parameters + i]);
	}
	text = r->fields[parameters];
	r->values[r->row_count] = strtod(text, &end);
	if (!rc && (end == text || *end || !isfinite(r->values[r->row_count])))
		rc = refuse(r, "column %zu, the value, is '%.100s' and not a number",
			    parameters + 1, text);
	if (!rc)
		r->row_count++;
	return rc;
}

static int take_rows(struct reading *r)
{
	int rc;

	while ((rc = next_line(r)) == 1) {
		rc = take_row(r);
		if (rc)
			return rc;
	}
	if (rc < 0)
		return rc;
	return r->row_count ? 0 : refuse(r, "no configuration follows the names");
}

/* Make parameters of the columns, and levels of the indexes. */
static int make_space(struct reading *r, struct trial_space *space)
{
	size_t parameters = r->column_count - 1, i, k;

	for (i = 0; i < parameters; i++) {
		struct column *column = &r->columns[i];
		uint32_t *level_of = calloc(column->count, sizeof(*level_of));
		int rc = level_of ? trial_space__add(space, r->names[i],
						     (const char *const *)column->texts,
						     column->count, false, level_of, r->error)
				  : -ENOMEM;

		for (k = 0; !rc && k < r->row_count; k++)
			r->rows[k * parameters + i] = level_of[r->rows[k * parameters + i]];
		free(level_of);
		if (rc)
			return rc;
	}
	i = r->row_count;
	space->rows = r->rows; /* the space's from here on */
	r->rows = NULL;
	return trial_space__finish(space, space->rows, i, r->error);
}

/* Put the file's name before a sentence of the space. */
static void name_file(struct reading *r)
{
	char sentence[256];

	snprintf(sentence, sizeof(sentence), "%.255s", r->error->text);
	if (*sentence)
		snprintf(r->error->text, sizeof(r->error->text), "%.200s: %s", r->path, sentence);
}

static void end_reading(struct reading *r)
{
	size_t i, k;

	for (i = 0; i < TRIAL_PARAMETERS_MAX; i++) {
		pem_number_map__free(&r->columns[i].known);
		for (k = 0; k < r->columns[i].count; k++)
			free(r->columns[i].texts[k]);
		free(r->columns[i].texts);
	}
	for (i = 0; i < r->column_count; i++)
		free(r->names[i]);
	free(r->line);
	free(r->rows);
	free(r->values);
	if (r->file)
		fclose(r->file);
	free(r);
}

static int read_table(struct reading *r, struct trial_table *table)
{
	struct stat status;
	int rc;

	r->file = fopen(r->path, "re");
	if (!r->file)
		return -errno;
	if (fstat(fileno(r->file), &status))
		return -errno;
	if (S_ISDIR(status.st_mode))
		return -EISDIR;
	rc = take_names(r);
	if (!rc)
		rc = take_rows(r);
	table->space = rc ? NULL : trial_space__new();
	if (rc)
		return rc;
	rc = table->space ? make_space(r, table->space) : -ENOMEM;
	if (rc) {
		name_file(r);
		return rc;
	}
	table->values = r->values;
	table->metric = r->names[r->column_count - 1];
	r->values = NULL;
	r->column_count--;
	return 0;
}

int trial_table__read(struct trial_table *table, const char *path, struct pem_error *error)
{
	struct reading *r = calloc(1, sizeof(*r));
	int rc = -ENOMEM;

	*table = (struct trial_table){0};
	error->text[0] = '\0';
	if (r) {
		r->path = path;
		r->error = error;
		rc = read_table(r, table);
		end_reading(r);
	}
	if (rc)
		trial_table__free(table);
	if (rc && !error->text[0])
		snprintf(error->text, sizeof(error->text), "cannot read %.200s: %s", path,
			 strerror(-rc));
	return rc;
}

void trial_table__free(struct trial_table *table)
{
	trial_space__free(table->space);
	free(table->values);
	free(table->metric);
	*table = (struct trial_table){0};
}
