/* SPDX-License-Identifier: MIT */
/*
 * html_rows.h - slices of time in bounded memory: the longest of each bin, and the time of the rest
 *
 * A row keeps all its slices as long as they are few. Then it keeps the longest that begin in each
 * bin, as many of each bin as there is room for, and adds up the time of the others by bin and
 * kind. As the longest of a part and of the whole agree, the order of reductions changes nothing.
 */
#ifndef PEM_HTML_ROWS_H
#define PEM_HTML_ROWS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define PEM_HTML_KINDS_MAX 3u
#define PEM_HTML_ROW_SLICES 32768u
#define PEM_HTML_NOTHING UINT32_MAX

struct pem_html_slice {
	uint64_t begin_ns, end_ns;
	uint32_t what; /* An index, of the caller. */
	uint32_t extra; /* Another; PEM_HTML_NOTHING: none */
	uint32_t event; /* A third; PEM_HTML_NOTHING: none */
	uint32_t kind; /* Less than the row's kinds. */
};

/* What all rows of a page share. */
struct pem_html_rows {
	uint32_t bins;
	uint32_t reserved;
	uint64_t bin_ns;
	/* Slices there is still memory for. Without, a row keeps to the memory that it has. */
	int64_t room; /* less than 0: rows have the least that they need */
};

struct pem_html_row {
	struct pem_html_slice *slice;
	size_t count, capacity;
	uint32_t kinds;
	uint32_t per_bin; /* most slices of a bin that are kept */
	uint32_t is_sorted;
	uint32_t reserved;
	uint64_t left_out;
	double *rest_ns; /* of those that are left out: kinds x bins; NULL: none is */
};

void pem_html_row__init(struct pem_html_row *row, uint32_t kinds);
void pem_html_row__free(struct pem_html_row *row);
/* Add a slice. Returns 0 or -ENOMEM. */
int pem_html_row__add(struct pem_html_row *row, struct pem_html_rows *rows,
		      const struct pem_html_slice *slice);
/* Keep at most so many slices of each bin. Returns 0 or -ENOMEM. */
int pem_html_row__limit(struct pem_html_row *row, const struct pem_html_rows *rows,
			uint32_t per_bin);
/* Sort by begin, longer ones first. After the last slice. */
void pem_html_row__sort(struct pem_html_row *row);
/*
 * Write {"left_out":n,"slices":[...],"rest":[[...],...]}. A slice is: time since the begin of the
 * one before, length, what, extra (-1: nothing), event (-1), kind.
 */
void pem_html_row__write(FILE *out, const struct pem_html_row *row,
			 const struct pem_html_rows *rows);

#endif
