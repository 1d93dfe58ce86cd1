/* SPDX-License-Identifier: MIT */
/* front.c - the Pareto front: trials that no other trial beats in all metrics */
#include "models/effects.h"

#include <math.h>

/* How many metrics have an aim. */
static size_t aims_of(const struct explore_results *r)
{
	return r->aims ? r->aims : r->metric_count;
}

/* Is a trial at least as good as another one in each metric, and better in one? */
static bool beats(const struct explore_results *r, const double *values, const double *others)
{
	bool better = false;
	size_t i;

	for (i = 0; i < aims_of(r); i++) {
		double sign = r->metrics[i].greater_is_better ? 1 : -1;

		if (!(sign * (values[i] - others[i]) >= 0))
			return false;
		better |= values[i] != others[i];
	}
	return better;
}

bool explore_effects__is_on_front(const struct explore_effects *e, size_t trial)
{
	const struct explore_result *trials = e->results->trials, *own = &trials[trial], *other;
	size_t i;

	if (own->outcome != PEM_EXPLORE_MEASURED || !own->values || aims_of(e->results) < 2)
		return false;
	for (i = 0; i < aims_of(e->results); i++) {
		if (!isfinite(own->values[i]))
			return false;
	}
	for (i = 0; i < e->measured_count; i++) {
		other = &trials[e->measured[i]];
		if (other->outcome == PEM_EXPLORE_MEASURED &&
		    beats(e->results, other->values, own->values))
			return false;
	}
	return true;
}
