/* SPDX-License-Identifier: MIT */
/*
 * space.h - the configurations of an exploration: parameters, their levels, which are allowed
 *
 *	space.c		parameters and their levels; configurations by number
 *	table.c		a space that was measured: a CSV file with a value for each configuration
 *
 * A space is built by one thread, and then only read.
 */
#ifndef EXPLORE_SPACE_H
#define EXPLORE_SPACE_H

#include <pem/explore.h>
#include <pem/pem.h>

#include <stdbool.h>

#define EXPLORE_PARAMETERS_MAX 256u
#define EXPLORE_LEVELS_MAX 65536u /* of one parameter */
#define EXPLORE_ROWS_MAX 2000000u /* of a table */

struct explore_space {
	struct pem_explore_space view; /* for policies: its arg is this struct */
	struct pem_explore_parameter parameters[EXPLORE_PARAMETERS_MAX];
	/* Configurations in the order of their numbers, parameter_count levels each. NULL: all. */
	uint32_t *rows;
	uint64_t row_count;
	uint64_t *sorted; /* numbers of rows, sorted by their levels */
	bool (*is_allowed)(void *arg, uint32_t *levels); /* NULL: all are */
	void *arg;
};

/* Make an empty space. NULL: no memory. */
struct explore_space *explore_space__new(void);
void explore_space__free(struct explore_space *space);

/*
 * Add a parameter with the texts of its values, which are copied. If all are different finite
 * numbers, they become levels in ascending order; else levels in the order given. log: its scale is
 * logarithmic. Returns 0, or -EINVAL with error: two values are equal, there are too many, or a
 * logarithmic scale has a value of 0 or less. -ENOMEM. level_of: filled with the level of each
 * value; may be NULL.
 */
int explore_space__add(struct explore_space *space, const char *name, const char *const *values,
		       size_t count, bool log, uint32_t *level_of, struct pem_error *error);

/*
 * Allow only configurations for which is_allowed returns true. It may set levels that mean nothing
 * to 0, and then returns the same as for the levels that it wrote. Call it before finish.
 */
void explore_space__allow(struct explore_space *space,
			  bool (*is_allowed)(void *arg, uint32_t *levels), void *arg);

/*
 * All parameters were added: number the configurations. rows, which become the space's, lists those
 * that are allowed; NULL: all are. Returns 0, or -EINVAL with error: two rows are equal. -ENOMEM.
 */
int explore_space__finish(struct explore_space *space, uint32_t *rows, uint64_t row_count,
			  struct pem_error *error);

/* The number of a configuration, or UINT64_MAX: the space does not have it. */
uint64_t explore_space__number(const struct explore_space *space, const uint32_t *levels);

/* --- table.c --- */

/* A space that was measured before. */
struct explore_table {
	struct explore_space *space;
	double *values; /* by number of the configuration */
	char *metric; /* name of the last column */
};

/*
 * Read a CSV file: a line of names, then one line for each configuration; the last column is its
 * value, a finite number. Fields may be in double quotes. Returns 0, or -errno with error, which
 * names line and column: -EINVAL the file is not such a table, -ENOMEM.
 */
int explore_table__read(struct explore_table *table, const char *path, struct pem_error *error);
void explore_table__free(struct explore_table *table);

#endif
