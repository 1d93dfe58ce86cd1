// SPDX-License-Identifier: MIT
/* series.c - windows of time and metrics in them (contract: series.h) */
#include "series.h"
#include "grow.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_weighted(enum compare_kind kind)
{
	return kind == COMPARE_LEVEL || kind == COMPARE_DURATION;
}

static int allocate(struct compare_metric *m)
{
	if (m->kind == COMPARE_RATIO)
		return 0;
	m->sum = calloc(COMPARE_WINDOWS, sizeof(*m->sum));
	if (is_weighted(m->kind))
		m->weight = calloc(COMPARE_WINDOWS, sizeof(*m->weight));
	if (m->sum != NULL && (m->weight != NULL || !is_weighted(m->kind)))
		return 0;
	free(m->sum);
	free(m->weight);
	return -ENOMEM;
}

long compare_series__metric(struct compare_series *s, const char *name, enum compare_kind kind,
			    const char *unit, const char *origin)
{
	struct compare_metric *m;
	size_t i;

	for (i = 0; i < s->metric_count; i++)
		if (s->metrics[i].kind == kind && strcmp(s->metrics[i].name, name) == 0 &&
		    strcmp(s->metrics[i].origin, origin) == 0)
			return (long)i;
	if (s->metric_count == COMPARE_METRICS_MAX) {
		s->metrics_left_out++;
		return -ENOSPC;
	}
	if (pem_grow(&s->metrics, sizeof(*s->metrics), s->metric_count + 1, &s->metric_capacity) <
	    0)
		return -ENOMEM;
	m = &s->metrics[s->metric_count];
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	snprintf(m->name, sizeof(m->name), "%s", name);
	pem_printable(m->name);
	snprintf(m->unit, sizeof(m->unit), "%s",
		 strcmp(unit, "none") != 0 && strcmp(unit, "count") != 0 ? unit : "");
	snprintf(m->origin, sizeof(m->origin), "%s", origin);
	if (allocate(m) < 0)
		return -ENOMEM;
	return (long)s->metric_count++;
}

/* Make each two windows one, so that the windows reach twice as far. */
static void join_pairs(struct compare_series *s)
{
	size_t i, k;

	for (i = 0; i < s->metric_count; i++) {
		double *arrays[] = {s->metrics[i].sum, s->metrics[i].weight};
		size_t a;

		for (a = 0; a < 2; a++)
			for (k = 0; arrays[a] != NULL && k < COMPARE_WINDOWS; k++)
				arrays[a][k] = k < COMPARE_WINDOWS / 2
						       ? arrays[a][2 * k] + arrays[a][2 * k + 1]
						       : 0;
	}
	for (i = 0; i < PEM_DOUBT_SOURCES; i++)
		for (k = 0; k < COMPARE_WINDOWS; k++)
			s->lost[i][k] = k < COMPARE_WINDOWS / 2 &&
					(s->lost[i][2 * k] || s->lost[i][2 * k + 1]);
	s->window_ns *= 2;
}

void compare_series__reach(struct compare_series *s, uint64_t time_ns)
{
	while (time_ns / s->window_ns >= COMPARE_WINDOWS)
		join_pairs(s);
	if (time_ns > s->end_ns)
		s->end_ns = time_ns;
	s->window_count = s->end_ns / s->window_ns + 1;
}

void compare_series__add(struct compare_series *s, size_t metric, uint64_t time_ns, double value)
{
	struct compare_metric *m = &s->metrics[metric];
	size_t window;

	/* A field may hold anything, and one value that is no number would spoil all sums. */
	if (!isfinite(value))
		return;
	compare_series__reach(s, time_ns);
	window = time_ns / s->window_ns;
	m->sum[window] += value;
	m->total += value;
	m->total_weight += 1;
	if (m->weight == NULL)
		return;
	m->weight[window] += 1;
	s->has_failed |= pem_sketch__add(&m->sketch, value) < 0;
}

void compare_series__spread(struct compare_series *s, size_t metric, uint64_t begin_ns,
			    uint64_t end_ns, double amount)
{
	struct compare_metric *m = &s->metrics[metric];
	uint64_t at = begin_ns, to;

	if (end_ns <= begin_ns || !isfinite(amount)) {
		compare_series__add(s, metric, end_ns, amount);
		return;
	}
	compare_series__reach(s, end_ns);
	m->total += amount;
	m->total_weight += 1;
	for (; at < end_ns; at = to) {
		to = end_ns - at > s->window_ns - at % s->window_ns
			     ? at + (s->window_ns - at % s->window_ns)
			     : end_ns;
		m->sum[at / s->window_ns] +=
			amount * ((double)(to - at) / (double)(end_ns - begin_ns));
	}
}

void compare_series__lose(struct compare_series *s, enum pem_doubt_source source, uint64_t begin_ns,
			  uint64_t end_ns)
{
	size_t i, last;

	/* Of a loss up to the end, what is behind the end is not looked at. */
	if (end_ns > s->end_ns)
		end_ns = s->end_ns;
	last = end_ns / s->window_ns;
	s->has_losses = true;
	for (i = begin_ns / s->window_ns; i <= last && i < COMPARE_WINDOWS; i++)
		s->lost[source][i] = true;
}

/* Sum of a metric's windows from begin on; *weight: number of values. */
static double sum_of(const struct compare_metric *m, size_t begin, size_t end, double *weight)
{
	double sum = 0;
	size_t i;

	*weight = 0;
	for (i = begin; i < end; i++) {
		sum += m->sum[i];
		*weight += m->weight != NULL ? m->weight[i] : 0;
	}
	return sum;
}

size_t compare_series__values(const struct compare_series *s, size_t metric, size_t joined,
			      double *values)
{
	const struct compare_metric *m = &s->metrics[metric];
	size_t whole = s->window_count > 1 ? s->window_count - 1 : 0, i, k, n = 0;

	for (i = 0; i + joined <= whole; i += joined, n++) {
		double sum, weight = 0;
		bool lost = false;

		for (k = i; k < i + joined; k++)
			lost |= compare_series__lacks(s, m, k);
		if (m->kind == COMPARE_RATIO) {
			sum = sum_of(&s->metrics[m->above], i, i + joined, &weight);
			weight = sum_of(&s->metrics[m->below], i, i + joined, &(double){0});
		} else {
			sum = sum_of(m, i, i + joined, &weight);
		}
		if (compare_metric__is_mean(m))
			sum = weight > 0 ? sum / weight : NAN;
		values[n] = lost ? NAN : sum;
	}
	return n;
}
