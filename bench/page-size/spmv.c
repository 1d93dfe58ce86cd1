// SPDX-License-Identifier: MIT
/*
 * spmv.c - a sparse matrix in compressed rows, times a vector: spmv [THOUSAND_ROWS [PASSES]]
 *
 * Each row has eight values. Half of them lie near the diagonal, the others anywhere.
 */
#include "program.h"

#define PER_ROW 8u
#define NEAR 1024u

int main(int argc, char **argv)
{
	uint64_t rows = program_argument(argc, argv, 1, 4000) * 1000;
	uint64_t passes = program_argument(argc, argv, 2, 12), i, k, pass, seed = 2, sum = 0;
	uint32_t *first = program_array(rows + 1, sizeof(*first));
	uint32_t *columns = program_array(rows * PER_ROW, sizeof(*columns));
	double *values = program_array(rows * PER_ROW, sizeof(*values));
	double *x = program_array(rows, sizeof(*x));
	double *y = program_array(rows, sizeof(*y));
	double *swap;

	for (i = 0; i < rows; i++) {
		first[i] = i * PER_ROW;
		for (k = i * PER_ROW; k < (i + 1) * PER_ROW; k++) {
			columns[k] = k % 2 ? program_below(&seed, rows)
					   : (i + program_below(&seed, NEAR)) % rows;
			values[k] = (double)(program_random(&seed) >> 40) / (1 << 24) / PER_ROW;
		}
		x[i] = 1.0 + (double)(i % 7);
	}
	first[rows] = rows * PER_ROW;
	for (pass = 0; pass < passes; pass++) {
		for (i = 0; i < rows; i++) {
			double total = 0;

			for (k = first[i]; k < first[i + 1]; k++)
				total += values[k] * x[columns[k]];
			y[i] = total;
		}
		swap = x;
		x = y;
		y = swap;
	}
	for (i = 0; i < rows; i++)
		sum += (uint64_t)(x[i] * 1e6);
	return program_end("spmv", sum);
}
