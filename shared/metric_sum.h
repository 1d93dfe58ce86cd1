/* SPDX-License-Identifier: MIT */
/*
 * metric_sum.h - sums that a metric of form 'quotient' divides: '4*HW::A::B.value - HW::C::D.value'
 *
 * Specs and texts of models have them. A term may have a whole factor of 1 to 999, and is an event,
 * or a field of it behind a point. Nothing here allocates or blocks.
 */
#ifndef PEM_METRIC_SUM_H
#define PEM_METRIC_SUM_H

#include <stddef.h>
#include <stdint.h>

#define PEM_METRIC_FACTOR_MAX 999

struct pem_metric_sum_term {
	int32_t factor; /* below 0: it is subtracted */
	const char *name; /* in the text; it ends with its bytes, not with a NUL */
	size_t bytes;
};

/*
 * Take the next term of *text, and move *text behind it. is_first: nothing was taken before, so
 * that no sign is needed. Returns 1; 0: the text has ended; -EINVAL: there is no term.
 */
int pem_metric_sum__next(const char **text, int is_first, struct pem_metric_sum_term *term);

#endif
