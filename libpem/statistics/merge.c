/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* merge.c - add up statistics of several threads, processes and sources */
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "util.h"

#include <math.h>
#include <string.h>

static double mean_of(const struct pem_statistic *s)
{
	return (s->is_float    ? s->sum_f
		: s->is_signed ? (double)(int64_t)s->sum
			       : (double)s->sum) /
	       (double)s->count;
}

/*
 * Merge two variances. Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for
 * computing sample variances, 1979.
 */
static void add_variance(struct pem_statistic *to, const struct pem_statistic *from)
{
	double n = (double)to->count, m = (double)from->count, distance;

	distance = mean_of(from) - mean_of(to);
	to->variance = (to->variance * n + from->variance * m) / (n + m) +
		       distance * distance * n * m / ((n + m) * (n + m));
}

void pem_statistic__add(struct pem_statistic *to, const struct pem_statistic *from)
{
	uint64_t undecided = to->undecided + from->undecided;

	to->undecided = undecided;
	if (!from->count)
		return;
	if (!to->count) {
		const struct pem_event *event = to->event;

		*to = *from;
		to->event = event;
		to->undecided = undecided;
		return;
	}
	add_variance(to, from);
	to->count += from->count;
	to->sum += from->sum;
	to->sum_f += from->sum_f;
	if (from->is_float) {
		to->min_f = from->min_f < to->min_f ? from->min_f : to->min_f;
		to->max_f = from->max_f > to->max_f ? from->max_f : to->max_f;
	} else if (from->is_signed) {
		to->min = (int64_t)from->min < (int64_t)to->min ? from->min : to->min;
		to->max = (int64_t)from->max > (int64_t)to->max ? from->max : to->max;
	} else {
		to->min = from->min < to->min ? from->min : to->min;
		to->max = from->max > to->max ? from->max : to->max;
	}
}

static uint64_t magnitude(uint64_t value)
{
	return (int64_t)value < 0 ? 0 - value : value;
}

bool pem_statistic__may_overflow(const struct pem_statistic *s, uint64_t min, uint64_t max)
{
	uint64_t most = max, limit = UINT64_MAX;

	if (s->is_float || s->count < 2)
		return false;
	if (s->is_signed) {
		most = magnitude(min) > magnitude(max) ? magnitude(min) : magnitude(max);
		limit = INT64_MAX;
	}
	return most > limit / s->count;
}

void pem_statistic__finish(struct pem_statistic *value, const struct pem_demand *demand)
{
	value->size = sizeof(*value);
	value->event = demand->event;
	if (!(PEM_DISTRIBUTION_KEEP(demand->distribution) & PEM_DISTRIBUTION_VARIANCE))
		value->variance = 0;
	value->may_have_overflowed |= pem_statistic__may_overflow(value, value->min, value->max);
	if (value->count)
		value->mean = value->may_have_overflowed ? NAN : mean_of(value);
}
