/* SPDX-License-Identifier: MIT */
/* table.h - a space that was measured: a CSV file with a value for each configuration */
#ifndef TRIAL_TABLE_H
#define TRIAL_TABLE_H

#include "trial/space.h"

#define TRIAL_ROWS_MAX 2000000u /* of a table */

/* A space that was measured before. */
struct trial_table {
	struct trial_space *space;
	double *values; /* by number of the configuration */
	char *metric; /* name of the last column */
};

/*
 * Read a CSV file: a line of names, then one line for each configuration; the last column is its
 * value, a finite number. Fields may be in double quotes. Returns 0, or -errno with error, which
 * names line and column: -EINVAL the file is not such a table, -ENOMEM.
 */
int trial_table__read(struct trial_table *table, const char *path, struct pem_error *error);
void trial_table__free(struct trial_table *table);

#endif
