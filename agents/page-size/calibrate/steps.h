/* SPDX-License-Identifier: MIT */
/*
 * steps.h - finds the steps of a curve: how many pages fit before each access costs more
 *
 * Not here: how the curve is measured.
 */
#ifndef PAGE_SIZE_STEPS_H
#define PAGE_SIZE_STEPS_H

#include <stddef.h>

#define STEP_POINTS_MAX 64u
#define STEPS_MAX 2u

struct step {
	double at; /* how many pages fit before the step */
	double below, above; /* the time of an access before and after it */
};

/*
 * Find at most STEPS_MAX steps of count points, by ascending pages; ns are above 0. A step is a
 * rise by a quarter or more that lasts for two points or more. Returns how many were found; steps
 * has room for STEPS_MAX. More than STEP_POINTS_MAX points: the later ones are ignored.
 */
size_t steps__find(const double *pages, const double *ns, size_t count, struct step *steps);

#endif
