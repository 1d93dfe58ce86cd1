/* SPDX-License-Identifier: MIT */
/*
 * html_cells.h - values over time: count, sum, least and greatest of each bin
 *
 * Not here: which values, and how wide a bin is.
 */
#ifndef PEM_HTML_CELLS_H
#define PEM_HTML_CELLS_H

#include <stdint.h>
#include <stdio.h>

struct pem_html_cell {
	double sum;
	float least, greatest; /* as one digit in ten million; 0 if count is 0 */
	uint32_t count;
	uint32_t reserved;
};

/* Add a value, which is finite. */
void pem_html_cell__add(struct pem_html_cell *cell, double value);
/* Count the cells that are not empty if each stands for fold successive ones. */
uint64_t pem_html_cells__used(const struct pem_html_cell *cells, uint32_t count, uint32_t fold);
/*
 * Write "key":[...]: for each cell that is not empty the number of empty ones before it, count,
 * sum, least, greatest. Each cell stands for fold of the array. is_whole: values are whole numbers.
 */
void pem_html_cells__write(FILE *out, const char *key, const struct pem_html_cell *cells,
			   uint32_t count, uint32_t fold, int is_whole);
/* Write "key":[...] of times in ns: for each that is not 0 the number of zeros before it, and it.
 */
void pem_html_times__write(FILE *out, const char *key, const double *ns, uint32_t count,
			   uint32_t fold);

#endif
