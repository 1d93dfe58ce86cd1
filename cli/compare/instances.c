// SPDX-License-Identifier: MIT
/*
 * instances.c - what each metric came to in each instance of a phase (contract: series.h)
 *
 * A begin saves the totals of all metrics, and its end takes the difference. So an instance takes
 * time at its two ends only.
 */
#include "series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct compare_instances {
	struct compare_phase phases[COMPARE_PHASES_MAX];
	size_t count;
};

struct open_instance {
	size_t metric; /* the duration's */
	uint64_t begin_ns;
	struct compare_phase *phase; /* NULL: the instance is not kept */
	size_t count; /* metrics that there were at the begin */
	struct {
		double total, weight;
	} at[];
};

struct compare_instances *compare_instances__new(void)
{
	return calloc(1, sizeof(struct compare_instances));
}

void compare_instances__free(struct compare_instances *instances)
{
	size_t i, k;

	if (instances == NULL)
		return;
	for (i = 0; i < instances->count; i++) {
		struct compare_phase *p = &instances->phases[i];

		for (k = 0; k < p->column_count; k++)
			free(p->columns[k]);
		free(p->columns);
		free(p->kept);
	}
	free(instances);
}

static struct compare_phase *phase_of(struct compare_instances *instances, size_t metric)
{
	struct compare_phase *p;
	size_t i;

	for (i = 0; i < instances->count; i++)
		if (instances->phases[i].metric == metric)
			return &instances->phases[i];
	if (i == COMPARE_PHASES_MAX)
		return NULL;
	p = &instances->phases[i];
	p->kept = calloc(COMPARE_INSTANCES_MAX, sizeof(*p->kept));
	p->columns = calloc(COMPARE_METRICS_MAX, sizeof(*p->columns));
	p->column_count = COMPARE_METRICS_MAX;
	p->metric = metric;
	p->stride = 1;
	if (p->kept == NULL || p->columns == NULL) {
		free(p->kept);
		free(p->columns);
		return NULL;
	}
	instances->count++;
	return p;
}

void *compare_instances__begin(struct compare_series *s, size_t metric, uint64_t time_ns)
{
	struct compare_phase *phase = NULL;
	struct open_instance *open;
	size_t i, count = 0;

	if (s->metrics[metric].is_phase)
		phase = phase_of(s->instances, metric);
	if (phase != NULL && phase->begun++ % phase->stride != 0)
		phase = NULL;
	if (phase != NULL)
		count = s->metric_count;
	open = malloc(sizeof(*open) + count * sizeof(open->at[0]));
	if (open == NULL)
		return NULL;
	open->metric = metric;
	open->begin_ns = time_ns;
	open->phase = phase;
	open->count = count;
	for (i = 0; i < count; i++) {
		open->at[i].total = s->metrics[i].total;
		open->at[i].weight = s->metrics[i].total_weight;
	}
	return open;
}

/* Keep every second instance. */
static void thin(struct compare_phase *p)
{
	size_t i, k;

	for (i = 0; i < p->count / 2; i++)
		p->kept[i] = p->kept[2 * i];
	for (k = 0; k < p->column_count; k++)
		for (i = 0; p->columns[k] != NULL && i < p->count / 2; i++)
			p->columns[k][i] = p->columns[k][2 * i];
	p->count /= 2;
	p->stride *= 2;
}

/* Set a metric's value in the newest instance. A column appears with the first value. */
static int set(struct compare_phase *p, const struct compare_metric *m, size_t metric, double total,
	       double weight)
{
	double none = compare_metric__is_mean(m) ? NAN : 0;
	double **column = &p->columns[metric];
	size_t i;

	if (*column == NULL && !(weight > 0))
		return 0;
	if (*column == NULL) {
		*column = calloc(COMPARE_INSTANCES_MAX, sizeof(**column));
		if (*column == NULL)
			return -ENOMEM;
		for (i = 0; i < p->count; i++)
			(*column)[i] = none;
	}
	if (!(weight > 0))
		(*column)[p->count] = none;
	else
		(*column)[p->count] = compare_metric__is_mean(m) ? total / weight : total;
	return 0;
}

static int keep(struct compare_series *s, const struct open_instance *open, uint64_t time_ns)
{
	struct compare_phase *p = open->phase;
	size_t i;
	int rc = 0;

	if (p->count == COMPARE_INSTANCES_MAX)
		thin(p);
	for (i = 0; rc == 0 && i < s->metric_count; i++) {
		const struct compare_metric *m = &s->metrics[i];
		double total = m->total, weight = m->total_weight;

		if (i < open->count) {
			total -= open->at[i].total;
			weight -= open->at[i].weight;
		}
		if (m->kind != COMPARE_RATIO)
			rc = set(p, m, i, total, weight);
	}
	p->kept[p->count++] = (struct compare_instance){open->begin_ns, time_ns};
	return rc;
}

int compare_instances__end(struct compare_series *s, void *data, uint64_t time_ns)
{
	struct open_instance *open = data;
	int rc = open->phase != NULL ? keep(s, open, time_ns) : 0;

	free(open);
	return rc;
}

void compare_instances__forget(void *data)
{
	free(data);
}

size_t compare_instances__metric(const void *data)
{
	return ((const struct open_instance *)data)->metric;
}

uint64_t compare_instances__begin_ns(const void *data)
{
	return ((const struct open_instance *)data)->begin_ns;
}

size_t compare_instances__phases(const struct compare_series *s,
				 const struct compare_phase **phases)
{
	*phases = s->instances->phases;
	return s->instances->count;
}

static double value_of(const struct compare_series *s, const struct compare_phase *p, size_t metric,
		       size_t i)
{
	const struct compare_metric *m;

	if (metric == SIZE_MAX)
		return (double)(p->kept[i].end_ns - p->kept[i].begin_ns);
	m = &s->metrics[metric];
	if (m->kind == COMPARE_RATIO) {
		double below = value_of(s, p, m->below, i);

		return below > 0 ? value_of(s, p, m->above, i) / below : NAN;
	}
	if (m->kind == COMPARE_DIFFERENCE)
		return value_of(s, p, m->above, i) - value_of(s, p, m->below, i);
	if (metric >= p->column_count || p->columns[metric] == NULL)
		return compare_metric__is_mean(m) ? NAN : 0;
	return p->columns[metric][i];
}

size_t compare_phase__values(const struct compare_series *s, const struct compare_phase *p,
			     size_t metric, double *values)
{
	const struct compare_metric *own = &s->metrics[p->metric];
	const struct compare_metric *of = metric != SIZE_MAX ? &s->metrics[metric] : own;
	size_t i, w;

	for (i = 0; i < p->count; i++) {
		bool lost = false;

		for (w = p->kept[i].begin_ns / s->window_ns;
		     w <= p->kept[i].end_ns / s->window_ns && w < COMPARE_WINDOWS; w++)
			lost |= compare_series__lacks(s, own, w) || compare_series__lacks(s, of, w);
		values[i] = lost ? NAN : value_of(s, p, metric, i);
	}
	return p->count;
}
