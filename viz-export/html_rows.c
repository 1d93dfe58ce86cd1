/* SPDX-License-Identifier: MIT */
/* html_rows.c - slices of time in bounded memory (contract: html_rows.h) */
#include "html_rows.h"
#include "html_cells.h"
#include "grow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PER_BIN_AT_FIRST 16384u
#define CAPACITY_MIN 64u

void pem_html_row__init(struct pem_html_row *row, uint32_t kinds)
{
	memset(row, 0, sizeof(*row));
	row->kinds = kinds;
	row->per_bin = PER_BIN_AT_FIRST;
}

void pem_html_row__free(struct pem_html_row *row)
{
	free(row->slice);
	free(row->rest_ns);
	memset(row, 0, sizeof(*row));
}

static uint32_t bin_of(const struct pem_html_rows *rows, uint64_t time_ns)
{
	uint64_t bin = time_ns / rows->bin_ns;

	return bin < rows->bins ? (uint32_t)bin : rows->bins - 1;
}

static int by_begin(const void *a, const void *b)
{
	const struct pem_html_slice *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->end_ns > y->end_ns ? -1 : x->end_ns < y->end_ns;
}

static int by_length_descending(const void *a, const void *b)
{
	const struct pem_html_slice *x = a, *y = b;
	uint64_t m = x->end_ns - x->begin_ns, n = y->end_ns - y->begin_ns;

	if (m != n)
		return m > n ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* How many slices would be left with at most per_bin of each bin. They are sorted by begin. */
static size_t left_with(const struct pem_html_row *row, const struct pem_html_rows *rows,
			uint32_t per_bin)
{
	uint32_t bin = UINT32_MAX, in_bin = 0;
	size_t i, left = 0;

	for (i = 0; i < row->count; i++) {
		uint32_t this = bin_of(rows, row->slice[i].begin_ns);

		in_bin = this == bin ? in_bin + 1 : 1;
		bin = this;
		left += in_bin <= per_bin;
	}
	return left;
}

static void leave_out(struct pem_html_row *row, const struct pem_html_rows *rows,
		      const struct pem_html_slice *slice)
{
	double *rest = row->rest_ns + (size_t)slice->kind * rows->bins;
	uint32_t first = bin_of(rows, slice->begin_ns), last = bin_of(rows, slice->end_ns), i;

	row->left_out++;
	if (first == last) {
		rest[first] += (double)(slice->end_ns - slice->begin_ns);
		return;
	}
	rest[first] += (double)((first + 1ull) * rows->bin_ns - slice->begin_ns);
	for (i = first + 1; i < last; i++)
		rest[i] += (double)rows->bin_ns;
	rest[last] += (double)(slice->end_ns - last * rows->bin_ns);
}

/* Slices are sorted by begin. */
static int keep_longest(struct pem_html_row *row, const struct pem_html_rows *rows)
{
	size_t i, j, used = 0;

	if (!row->rest_ns)
		row->rest_ns = calloc((size_t)row->kinds * rows->bins, sizeof(*row->rest_ns));
	if (!row->rest_ns)
		return -ENOMEM;
	for (i = 0; i < row->count; i = j) {
		uint32_t bin = bin_of(rows, row->slice[i].begin_ns);
		size_t keep;

		for (j = i + 1; j < row->count && bin_of(rows, row->slice[j].begin_ns) == bin; j++)
			;
		keep = j - i < row->per_bin ? j - i : row->per_bin;
		if (keep < j - i)
			qsort(&row->slice[i], j - i, sizeof(*row->slice), by_length_descending);
		memmove(&row->slice[used], &row->slice[i], keep * sizeof(*row->slice));
		used += keep;
		for (i += keep; i < j; i++)
			leave_out(row, rows, &row->slice[i]);
	}
	row->count = used;
	row->is_sorted = 0;
	return 0;
}

/* Make room: half of the row's slices stay, or one of each bin. */
static int reduce(struct pem_html_row *row, const struct pem_html_rows *rows)
{
	pem_html_row__sort(row);
	while (row->per_bin > 1 && left_with(row, rows, row->per_bin) > row->capacity / 2)
		row->per_bin /= 2;
	return keep_longest(row, rows);
}

static int grow(struct pem_html_row *row, struct pem_html_rows *rows)
{
	size_t more = row->capacity ? row->capacity : CAPACITY_MIN;
	int err;

	if (row->capacity >= CAPACITY_MIN &&
	    (row->capacity >= PEM_HTML_ROW_SLICES || rows->room < (int64_t)more)) {
		err = reduce(row, rows);
		if (err || row->count < row->capacity)
			return err;
		/* One of each bin is more than fits: this only grows with the number of bins. */
	}
	err = pem_grow(&row->slice, sizeof(*row->slice), row->capacity + more, &row->capacity);
	if (!err)
		rows->room -= (int64_t)more;
	return err;
}

int pem_html_row__add(struct pem_html_row *row, struct pem_html_rows *rows,
		      const struct pem_html_slice *slice)
{
	int err;

	if (row->count == row->capacity) {
		err = grow(row, rows);
		if (err)
			return err;
	}
	row->slice[row->count++] = *slice;
	row->is_sorted = 0;
	return 0;
}

int pem_html_row__limit(struct pem_html_row *row, const struct pem_html_rows *rows,
			uint32_t per_bin)
{
	if (per_bin < row->per_bin)
		row->per_bin = per_bin;
	if (row->count <= row->per_bin)
		return 0;
	pem_html_row__sort(row);
	if (left_with(row, rows, row->per_bin) == row->count)
		return 0;
	return keep_longest(row, rows);
}

void pem_html_row__sort(struct pem_html_row *row)
{
	if (row->count && !row->is_sorted)
		qsort(row->slice, row->count, sizeof(*row->slice), by_begin);
	row->is_sorted = 1;
}

static void write_index(FILE *out, uint32_t index)
{
	if (index == PEM_HTML_NOTHING)
		fputs(",-1", out);
	else
		fprintf(out, ",%" PRIu32, index);
}

void pem_html_row__write(FILE *out, const struct pem_html_row *row,
			 const struct pem_html_rows *rows)
{
	uint64_t before_ns = 0;
	uint32_t kind;
	size_t i;

	fprintf(out, "{\"left_out\":%" PRIu64 ",\"slices\":[", row->left_out);
	for (i = 0; i < row->count; i++) {
		const struct pem_html_slice *slice = &row->slice[i];

		fprintf(out, "%s%" PRIu64 ",%" PRIu64, i ? "," : "", slice->begin_ns - before_ns,
			slice->end_ns - slice->begin_ns);
		write_index(out, slice->what);
		write_index(out, slice->extra);
		write_index(out, slice->event);
		fprintf(out, ",%" PRIu32, slice->kind);
		before_ns = slice->begin_ns;
	}
	fputs("],\"rest\":[", out);
	for (kind = 0; row->rest_ns && kind < row->kinds; kind++) {
		fputs(kind ? ",{" : "{", out);
		pem_html_times__write(out, "ns", row->rest_ns + (size_t)kind * rows->bins,
				      rows->bins, 1);
		fputc('}', out);
	}
	fputs("]}", out);
}
