/* SPDX-License-Identifier: MIT */
/*
 * space.h - configurations: parameters, their levels, the configurations that are allowed
 *
 * A space is built by one thread, and then only read.
 */
#ifndef TRIAL_SPACE_H
#define TRIAL_SPACE_H

#include <pem/explore.h>
#include <pem/pem.h>

#include <stdbool.h>

#define TRIAL_PARAMETERS_MAX 256u
#define TRIAL_LEVELS_MAX 65536u /* of one parameter */

struct trial_space {
	struct pem_explore_space view; /* for policies: its arg is this struct */
	struct pem_explore_parameter parameters[TRIAL_PARAMETERS_MAX];
	/* Configurations in the order of their numbers, parameter_count levels each. NULL: all. */
	uint32_t *rows;
	uint64_t row_count;
	uint64_t *sorted; /* numbers of rows, sorted by their levels */
	bool (*is_allowed)(void *arg, uint32_t *levels); /* NULL: all are */
	void *arg;
};

/* Make an empty space. NULL: no memory. */
struct trial_space *trial_space__new(void);
void trial_space__free(struct trial_space *space);

/*
 * Add a parameter with the texts of its values, which are copied. If all are different finite
 * numbers, they become levels in ascending order; else levels in the order given. log: its scale is
 * logarithmic. Returns 0, or -EINVAL with error: two values are equal, there are too many, or a
 * logarithmic scale has a value of 0 or less. -ENOMEM. level_of: filled with the level of each
 * value; may be NULL.
 */
int trial_space__add(struct trial_space *space, const char *name, const char *const *values,
		     size_t count, bool log, uint32_t *level_of, struct pem_error *error);

/*
 * Allow only configurations for which is_allowed returns true. It may set levels that mean nothing
 * to 0, and then returns the same as for the levels that it wrote. Call it before finish.
 */
void trial_space__allow(struct trial_space *space, bool (*is_allowed)(void *arg, uint32_t *levels),
			void *arg);

/*
 * All parameters were added: number the configurations. rows, which become the space's, lists those
 * that are allowed; NULL: all are. Returns 0, or -EINVAL with error: two rows are equal. -ENOMEM.
 */
int trial_space__finish(struct trial_space *space, uint32_t *rows, uint64_t row_count,
			struct pem_error *error);

/* The number of a configuration, or UINT64_MAX: the space does not have it. */
uint64_t trial_space__number(const struct trial_space *space, const uint32_t *levels);

#endif
