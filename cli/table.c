// SPDX-License-Identifier: MIT
/*
 * table.c - aligned tables as wide as the terminal: the last column wraps, some are cut, some are
 * left out, and columns that still do not fit go onto the next line, those of each row alike
 *
 * Cells may hold text of a trace, which any program may have written. So control characters are
 * shown as '?'.
 */
#include "cli.h"
#include "grow.h"

#include <stdlib.h>
#include <string.h>

#define GAP 2
#define WRAP_LEAST 16 /* a last column narrower than this is not wrapped */
#define CUT_LEAST 12 /* another column is not made narrower than this */
#define CUT_FAIR 24 /* and not narrower than this if columns can be left out instead */
#define FOLD_INDENT 8 /* of the columns that go onto a row's next line */

struct row {
	enum cli_colour colour;
	unsigned int count;
	char *cell[CLI_COLUMNS_MAX];
};

struct cli_table {
	FILE *out;
	unsigned int column_count;
	const char *title[CLI_COLUMNS_MAX];
	enum cli_align align[CLI_COLUMNS_MAX];
	struct row *rows;
	size_t row_count;
	size_t row_capacity;
	bool failed; /* no memory: the present rows are printed, and the last row tells it */
};

struct cli_table *cli_table__new(FILE *out)
{
	struct cli_table *table = calloc(1, sizeof(*table));

	if (table == NULL) {
		cli_error(0, "no memory for a table");
		exit(CLI_FAILED);
	}
	table->out = out;
	return table;
}

void cli_table__column(struct cli_table *table, const char *title, enum cli_align align)
{
	if (table->column_count == CLI_COLUMNS_MAX)
		return;
	table->title[table->column_count] = title;
	table->align[table->column_count] = align;
	table->column_count++;
}

void cli_table__row(struct cli_table *table, enum cli_colour colour)
{
	if (pem_grow(&table->rows, sizeof(*table->rows), table->row_count + 1,
		     &table->row_capacity) < 0) {
		table->failed = true;
		return;
	}
	memset(&table->rows[table->row_count], 0, sizeof(*table->rows));
	table->rows[table->row_count++].colour = colour;
}

void cli_table__cell(struct cli_table *table, const char *text)
{
	struct row *row;

	if (table->failed || table->row_count == 0)
		return;
	row = &table->rows[table->row_count - 1];
	if (row->count == table->column_count)
		return;
	row->cell[row->count] = strdup(text);
	if (row->cell[row->count] == NULL) {
		table->failed = true;
		return;
	}
	pem_printable(row->cell[row->count]);
	row->count++;
}

/* The byte at which a text's column begins. */
static size_t byte_of(const char *text, size_t column)
{
	size_t at = 0;

	for (; text[at] != '\0'; at++)
		if (((unsigned char)text[at] & 0xc0) != 0x80 && column-- == 0)
			break;
	return at;
}

/* Print a text; of one that is too long only the begin and the end. */
static void put_cut(FILE *out, const char *text, size_t width)
{
	const size_t n = cli_columns(text), begin = (width - 2) / 2, end = width - 2 - begin;

	if (n <= width)
		fputs(text, out);
	else
		fprintf(out, "%.*s..%s", (int)byte_of(text, begin), text,
			text + byte_of(text, n - end));
}

static void pad(FILE *out, size_t n)
{
	fprintf(out, "%*s", (int)n, "");
}

static bool is_right(const struct cli_table *table, unsigned int column)
{
	return table->align[column] == CLI_RIGHT || table->align[column] == CLI_SPARE;
}

static bool wraps(const struct cli_table *table, unsigned int column)
{
	return column == table->column_count - 1 && !is_right(table, column);
}

/* Columns of a line up to the next column's first. A column that does not fit begins a new line. */
static size_t go_on(const struct cli_table *table, const size_t *widths, unsigned int i, size_t at)
{
	size_t least = wraps(table, i) && widths[i] > WRAP_LEAST ? WRAP_LEAST : widths[i];

	if (at == 0)
		return 0;
	if (cli_has_width(table->out) && at + GAP + least > cli_width(table->out)) {
		fputc('\n', table->out);
		pad(table->out, FOLD_INDENT);
		return FOLD_INDENT;
	}
	pad(table->out, GAP);
	return at + GAP;
}

static void print_row(const struct cli_table *table, const char *const *cells, const size_t *widths,
		      enum cli_colour colour)
{
	unsigned int i, last = 0;
	size_t column = 0, room;

	for (i = 0; i < table->column_count; i++)
		if (widths[i] != 0 && cells[i] != NULL && *cells[i] != '\0')
			last = i;
	if (colour != CLI_PLAIN)
		fputs(cli_colour(table->out, colour), table->out);
	for (i = 0; i <= last; i++) {
		const char *text = cells[i] != NULL ? cells[i] : "";
		size_t n = cli_columns(text);

		n = n < widths[i] ? n : widths[i];
		if (widths[i] == 0)
			continue;
		column = go_on(table, widths, i, column);
		if (wraps(table, i) && cli_has_width(table->out) &&
		    column + WRAP_LEAST <= cli_width(table->out)) {
			room = cli_width(table->out) - column;
			if (table->align[i] == CLI_CUT && strcspn(text, " ") > room) {
				put_cut(table->out, text, room);
				break;
			}
			cli_wrap(table->out, text, (unsigned int)column, (unsigned int)column,
				 cli_width(table->out));
			goto end;
		}
		if (is_right(table, i))
			pad(table->out, widths[i] - n);
		put_cut(table->out, text, widths[i]);
		if (!is_right(table, i) && i != last)
			pad(table->out, widths[i] - n);
		column += widths[i];
	}
	fputc('\n', table->out);
end:
	if (colour != CLI_PLAIN)
		fputs(cli_colour(table->out, CLI_PLAIN), table->out);
}

static void measure(const struct cli_table *table, size_t *widths)
{
	unsigned int i;
	size_t r, n;

	for (i = 0; i < table->column_count; i++)
		widths[i] = 0;
	for (r = 0; r < table->row_count; r++)
		for (i = 0; i < table->rows[r].count; i++) {
			n = cli_columns(table->rows[r].cell[i]);
			if (n > widths[i])
				widths[i] = n;
		}
	for (i = 0; i < table->column_count; i++) {
		n = cli_columns(table->title[i]);
		if (widths[i] != 0 && n > widths[i])
			widths[i] = n;
	}
}

/*
 * Make columns that may be cut narrower, the widest first and none below a width, until a row fits
 * into the terminal. Does it?
 */
static bool cut(const struct cli_table *table, size_t *widths, size_t least)
{
	for (;;) {
		size_t total = 0, most = least;
		unsigned int i, widest = table->column_count;

		for (i = 0; i < table->column_count; i++) {
			size_t width =
				wraps(table, i) && widths[i] > WRAP_LEAST ? WRAP_LEAST : widths[i];

			total += width != 0 ? width + (total != 0 ? GAP : 0) : 0;
			if (table->align[i] == CLI_CUT && !wraps(table, i) && width > most) {
				most = width;
				widest = i;
			}
		}
		if (total <= cli_width(table->out))
			return true;
		if (widest == table->column_count)
			return false;
		widths[widest]--;
	}
}

/* Make a row fit into the terminal: leave columns out, then cut the others as far as it takes. */
static void fit(const struct cli_table *table, size_t *widths)
{
	unsigned int i = table->column_count;
	size_t fitting[CLI_COLUMNS_MAX];

	if (!cli_has_width(table->out))
		return;
	for (;;) {
		memcpy(fitting, widths, sizeof(fitting));
		if (cut(table, fitting, CUT_FAIR))
			break;
		while (i > 0 && (table->align[i - 1] != CLI_SPARE || widths[i - 1] == 0))
			i--;
		if (i == 0) {
			cut(table, fitting, CUT_LEAST);
			break;
		}
		widths[i - 1] = 0;
	}
	memcpy(widths, fitting, sizeof(fitting));
}

void cli_table__print(struct cli_table *table)
{
	size_t widths[CLI_COLUMNS_MAX], r;
	unsigned int i;
	bool titles = false;

	measure(table, widths);
	fit(table, widths);
	for (i = 0; i < table->column_count; i++)
		titles |= *table->title[i] != '\0';
	if (titles && table->row_count != 0)
		print_row(table, table->title, widths, CLI_DIM);
	for (r = 0; r < table->row_count; r++)
		print_row(table, (const char *const *)table->rows[r].cell, widths,
			  table->rows[r].colour);
	if (table->failed)
		fprintf(table->out, "(no memory for the rest)\n");
	for (r = 0; r < table->row_count; r++)
		for (i = 0; i < table->rows[r].count; i++)
			free(table->rows[r].cell[i]);
	free(table->rows);
	free(table);
}
