/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * distribution.h - adding up what distributions keep: of threads that are gone (producer), of all
 * that are read (consumer)
 */
#ifndef PEM_DISTRIBUTION_MERGE_H
#define PEM_DISTRIBUTION_MERGE_H

#include <pem/distribution.h>

/*
 * Add one part's variance and histogram to another's; both are private copies of one tag, or to's
 * tag is 0: it is empty. Nothing of top is looked at.
 */
void pem_distribution__add(struct pem_distribution *to, const struct pem_distribution *from);

/*
 * Add a part's most frequent values to those of others, the greater first, free ones with count 0.
 * Bounds stay true: a value that one side lacks may have come there as often as its least frequent
 * one, if it is full (Agarwal et al., Mergeable summaries, PODS 2012). missed: how often a value
 * may have come that 'to' lacks; 0 at first.
 */
#define PEM_TOP_MERGED 64u
void pem_distribution__add_top(struct pem_distribution_top to[PEM_TOP_MERGED], uint64_t *missed,
			       const struct pem_distribution_top from[PEM_DISTRIBUTION_TOP]);

/* The same of from_count entries, which may lack a value that came from_missed times. */
void pem_distribution__merge_top(struct pem_distribution_top to[PEM_TOP_MERGED], uint64_t *missed,
				 const struct pem_distribution_top *from, uint32_t from_count,
				 uint64_t from_missed);

/* What parts add up to; all zero: nothing yet. */
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

/* Variance of the whole: exact until the last step for integers. */
double pem_distribution__variance(const struct pem_distribution *distribution);

#endif
