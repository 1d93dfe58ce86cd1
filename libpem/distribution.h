/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * distribution.h - adding up distributions
 *
 * A producer adds up those of threads that have ended, a consumer those of all lanes that it reads.
 */
#ifndef PEM_DISTRIBUTION_MERGE_H
#define PEM_DISTRIBUTION_MERGE_H

#include <pem/distribution.h>

/*
 * Add one part's variance and histogram to another's. Both are private copies with one tag. A 'to'
 * with tag 0 is empty. top is neither read nor changed.
 */
void pem_distribution__add(struct pem_distribution *to, const struct pem_distribution *from);

/*
 * Add a part's most frequent values to the merged list 'to'. The list has the greatest counts
 * first; free entries have count 0. Bounds stay true: if one side is full, a value that it lacks
 * may have come there as often as its least frequent value (Agarwal et al., Mergeable summaries,
 * PODS 2012). missed: how often a value that 'to' lacks may have come; 0 at first.
 */
#define PEM_TOP_MERGED 64u
void pem_distribution__add_top(struct pem_distribution_top to[PEM_TOP_MERGED], uint64_t *missed,
			       const struct pem_distribution_top from[PEM_DISTRIBUTION_TOP]);

/*
 * Add from_count entries to the merged list, as above. A value that 'from' lacks may have come
 * from_missed times there.
 */
void pem_distribution__merge_top(struct pem_distribution_top to[PEM_TOP_MERGED], uint64_t *missed,
				 const struct pem_distribution_top *from, uint32_t from_count,
				 uint64_t from_missed);

/* The sum of several parts. All zero: no part was added yet. */
struct pem_distribution_total {
	struct pem_distribution sum; /* its top is unused */
	struct pem_distribution_top top[PEM_TOP_MERGED];
	uint64_t missed;
};
static inline void pem_distribution_total__add(struct pem_distribution_total *to,
					       const struct pem_distribution *from)
{
	pem_distribution__add(&to->sum, from);
	pem_distribution__add_top(to->top, &to->missed, from->top);
}

/* Return the variance of all values. For integers the computation is exact until the last step. */
double pem_distribution__variance(const struct pem_distribution *distribution);

#endif
