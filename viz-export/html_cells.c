/* SPDX-License-Identifier: MIT */
/* html_cells.c - values over time, and how the page gets them (contract: html_cells.h) */
#include "html_cells.h"
#include "html_json.h"

#include <inttypes.h>

void pem_html_cell__add(struct pem_html_cell *cell, double value)
{
	float near = (float)value;

	if (cell->count == 0)
		cell->least = cell->greatest = near;
	else if (near < cell->least)
		cell->least = near;
	else if (near > cell->greatest)
		cell->greatest = near;
	cell->sum += value;
	if (cell->count < UINT32_MAX)
		cell->count++;
}

static struct pem_html_cell folded(const struct pem_html_cell *cells, uint32_t count,
				   uint32_t first, uint32_t fold)
{
	struct pem_html_cell all = {0};
	uint32_t i;

	for (i = first; i < count && i - first < fold; i++) {
		const struct pem_html_cell *cell = &cells[i];

		if (cell->count == 0)
			continue;
		if (all.count == 0 || cell->least < all.least)
			all.least = cell->least;
		if (all.count == 0 || cell->greatest > all.greatest)
			all.greatest = cell->greatest;
		all.sum += cell->sum;
		all.count += cell->count;
	}
	return all;
}

uint64_t pem_html_cells__used(const struct pem_html_cell *cells, uint32_t count, uint32_t fold)
{
	uint64_t used = 0;
	uint32_t i;

	for (i = 0; i < count; i += fold)
		used += folded(cells, count, i, fold).count != 0;
	return used;
}

static void write_value(FILE *out, double value, int is_whole)
{
	fputc(',', out);
	if (is_whole && value >= 0 && value < 1e15)
		fprintf(out, "%.0f", value);
	else
		pem_json__number(out, value);
}

void pem_html_cells__write(FILE *out, const char *key, const struct pem_html_cell *cells,
			   uint32_t count, uint32_t fold, int is_whole)
{
	uint32_t i, empty = 0;
	int more = 0;

	fprintf(out, "\"%s\":[", key);
	for (i = 0; i < count; i += fold) {
		struct pem_html_cell cell = folded(cells, count, i, fold);

		if (cell.count == 0) {
			empty++;
			continue;
		}
		fprintf(out, "%s%" PRIu32 ",%" PRIu32, more++ ? "," : "", empty, cell.count);
		write_value(out, cell.sum, is_whole);
		write_value(out, cell.least, is_whole);
		write_value(out, cell.greatest, is_whole);
		empty = 0;
	}
	fputc(']', out);
}

void pem_html_times__write(FILE *out, const char *key, const double *ns, uint32_t count,
			   uint32_t fold)
{
	uint32_t i, j, empty = 0;
	int more = 0;

	fprintf(out, "\"%s\":[", key);
	for (i = 0; i < count; i += fold) {
		double sum = 0;

		for (j = i; j < count && j - i < fold; j++)
			sum += ns[j];
		if (sum < 0.5) {
			empty++;
			continue;
		}
		fprintf(out, "%s%" PRIu32 ",%.0f", more++ ? "," : "", empty, sum);
		empty = 0;
	}
	fputc(']', out);
}
