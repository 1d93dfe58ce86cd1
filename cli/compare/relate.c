// SPDX-License-Identifier: MIT
/* relate.c - chooses targets and correlates all metrics with them (contract: relate.h) */
#include "relate.h"
#include "compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is rarer is no target by itself. */
#define INSTANCES_MIN 8u
#define INTERVALS_MIN 100u
/* Windows are joined until so many of them have a value of the target, but not to fewer. */
#define KNOWN_SHARE 0.75
#define WINDOWS_MIN 64u
/* Greatest lags: a share of the series, and at most so many. */
#define LAG_SHARE 8u
#define LAG_WINDOWS 16u
#define LAG_INSTANCES 4u

/* --- targets --- */

static const struct compare_phase *phase_of(const struct compare_series *s, size_t metric)
{
	const struct compare_phase *phases;
	size_t i, count = compare_instances__phases(s, &phases);

	for (i = 0; i < count; i++)
		if (phases[i].metric == metric)
			return &phases[i];
	return NULL;
}

/* Is a metric a target if nobody named one? */
static bool is_usual(const struct compare_series *s, size_t metric)
{
	const struct compare_metric *m = &s->metrics[metric];

	/* Of counters: cycles per instruction. */
	if (m->kind == COMPARE_RATIO)
		return s->metrics[m->above].kind == COMPARE_GROWTH &&
		       s->metrics[m->below].kind == COMPARE_GROWTH;
	if (m->kind != COMPARE_DURATION)
		return false;
	return m->total_weight >= (m->is_phase ? INSTANCES_MIN : INTERVALS_MIN);
}

/* Ratios come first, then phases, then what took longest in all. */
static int by_weight(const void *a, const void *b, void *arg)
{
	const struct compare_series *s = arg;
	const struct compare_metric *x = &s->metrics[*(const size_t *)a];
	const struct compare_metric *y = &s->metrics[*(const size_t *)b];
	int rank_x = x->kind == COMPARE_RATIO ? 2 : x->is_phase;
	int rank_y = y->kind == COMPARE_RATIO ? 2 : y->is_phase;

	if (rank_x != rank_y)
		return rank_y - rank_x;
	return x->total < y->total ? 1 : x->total > y->total ? -1 : 0;
}

static int choose_targets(struct compare_relations *r, const char *with)
{
	struct compare_series *s = &r->series;
	size_t i, n = 0, *order = calloc(s->metric_count + 1, sizeof(*order));

	if (order == NULL)
		return -ENOMEM;
	for (i = 0; i < s->metric_count; i++)
		if (with != NULL ? strstr(s->metrics[i].name, with) != NULL : is_usual(s, i))
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), by_weight, s);
	for (i = 0; i < n && i < COMPARE_TARGETS_MAX; i++) {
		r->targets[i].metric = order[i];
		r->targets[i].phase = s->metrics[order[i]].is_phase ? phase_of(s, order[i]) : NULL;
	}
	r->count = i;
	r->targets_left_out = n - i;
	free(order);
	return 0;
}

/* --- values --- */

static size_t windows_of(const struct compare_series *s, size_t metric, size_t joined,
			 double *values, size_t *known)
{
	size_t i, n = compare_series__values(s, metric, joined, values);

	*known = 0;
	for (i = 0; i < n; i++)
		*known += !isnan(values[i]);
	return n;
}

/* The target's own values. Windows are joined until most have one. */
static size_t target_values(const struct compare_series *s, struct compare_target *t,
			    double *values)
{
	size_t n, i;

	t->joined = 1;
	if (t->phase != NULL) {
		n = compare_phase__values(s, t->phase, SIZE_MAX, values);
		for (i = 0, t->known = 0; i < n; i++)
			t->known += !isnan(values[i]);
	} else {
		n = windows_of(s, t->metric, 1, values, &t->known);
		while ((double)t->known < KNOWN_SHARE * (double)n && n / 2 >= WINDOWS_MIN) {
			t->joined *= 2;
			n = windows_of(s, t->metric, t->joined, values, &t->known);
		}
	}
	t->mean = 0;
	for (i = 0; i < n; i++)
		t->mean += isnan(values[i]) ? 0 : values[i] / (double)t->known;
	return n;
}

/* Would a relation of the metric to the target say no more than that both are of one thing? */
static bool is_own(const struct compare_series *s, const struct compare_target *t, size_t metric)
{
	const struct compare_metric *m = &s->metrics[metric], *target = &s->metrics[t->metric];

	if (metric == t->metric)
		return true;
	if ((target->kind == COMPARE_RATIO || target->kind == COMPARE_DIFFERENCE) &&
	    (metric == target->above || metric == target->below))
		return true;
	return (m->kind == COMPARE_COUNT || m->kind == COMPARE_SUM ||
		target->kind == COMPARE_COUNT) &&
	       strcmp(m->origin, target->origin) == 0;
}

/* --- relating --- */

static unsigned int lag_max(const struct compare_target *t, size_t n)
{
	size_t most = t->phase != NULL ? LAG_INSTANCES : LAG_WINDOWS;

	return (unsigned int)(n / LAG_SHARE < most ? n / LAG_SHARE : most);
}

/* Divide amounts by the duration of their instance. */
static int relate_rate(const struct compare_sequence *target, double *values, size_t n,
		       struct compare_correlation *result)
{
	struct compare_sequence rate;
	size_t i;
	int rc;

	for (i = 0; i < n; i++)
		values[i] = target->value[i] > 0 ? values[i] / target->value[i] : NAN;
	rc = compare_sequence__set(&rate, values, n);
	if (rc < 0)
		return rc;
	compare__correlate(&rate, target, 0, result);
	compare_sequence__clear(&rate);
	return 0;
}

/* Relate one metric to a target. A metric that is constant has no relation. */
static int relate(struct compare_relations *r, struct compare_target *t,
		  const struct compare_sequence *target, size_t metric)
{
	struct compare_relation *relation = &t->relations[t->count];
	const struct compare_series *s = &r->series;
	double values[COMPARE_INSTANCES_MAX];
	struct compare_sequence sequence;
	size_t n;
	int rc;

	n = t->phase != NULL ? compare_phase__values(s, t->phase, metric, values)
			     : compare_series__values(s, metric, t->joined, values);
	rc = compare_sequence__set(&sequence, values, n);
	if (rc < 0)
		return rc;
	memset(relation, 0, sizeof(*relation));
	relation->metric = metric;
	relation->rate.p = 1;
	compare__correlate(&sequence, target, lag_max(t, n), &relation->of);
	if (!sequence.is_constant && !isnan(relation->of.rho)) {
		t->count++;
		if (t->phase != NULL && !compare_metric__is_mean(&s->metrics[metric]))
			rc = relate_rate(target, values, n, &relation->rate);
	}
	compare_sequence__clear(&sequence);
	return rc;
}

static int relate_all(struct compare_relations *r, struct compare_target *t)
{
	struct compare_series *s = &r->series;
	double values[COMPARE_INSTANCES_MAX];
	struct compare_sequence target;
	size_t i, n = target_values(s, t, values);
	int rc = compare_sequence__set(&target, values, n);

	if (rc < 0)
		return rc;
	t->relations = calloc(s->metric_count + 1, sizeof(*t->relations));
	rc = t->relations != NULL ? 0 : -ENOMEM;
	for (i = 0; rc == 0 && !target.is_constant && i < s->metric_count; i++)
		if (!is_own(s, t, i))
			rc = relate(r, t, &target, i);
	for (i = 0; i < t->count; i++)
		t->independent = fmax(t->independent, t->relations[i].of.independent);
	compare_sequence__clear(&target);
	return rc;
}

/* --- judging --- */

static enum compare_verdict judge(const struct compare_relation *relation)
{
	const struct compare_correlation *c = &relation->of;

	if (c->independent < COMPARE_INDEPENDENT_MIN)
		return COMPARE_SHORT;
	if (relation->q_turns <= COMPARE_ERROR)
		return COMPARE_SOMETIMES;
	if (!(relation->q <= COMPARE_ERROR))
		return COMPARE_NONE;
	return c->rho < 0 ? COMPARE_AGAINST : COMPARE_WITH;
}

static int by_strength(const void *a, const void *b)
{
	const struct compare_relation *x = a, *y = b;
	bool none_x = x->verdict <= COMPARE_NONE, none_y = y->verdict <= COMPARE_NONE;
	double rx = fabs(x->of.rho), ry = fabs(y->of.rho);

	if (none_x != none_y)
		return none_x ? 1 : -1;
	return rx < ry ? 1 : rx > ry ? -1 : 0;
}

/*
 * Correct for the number of claims that could be made, of all targets together, and judge each
 * relation: that it holds, and that it turns.
 */
static int judge_all(struct compare_relations *r)
{
	double *p, *q;
	size_t i, k, n = 0;
	int rc;

	for (i = 0; i < r->count; i++)
		r->tried += r->targets[i].count;
	p = calloc(2 * r->tried + 1, sizeof(*p));
	q = calloc(2 * r->tried + 1, sizeof(*q));
	rc = p != NULL && q != NULL ? 0 : -ENOMEM;
	for (i = 0; rc == 0 && i < r->count; i++)
		for (k = 0; k < r->targets[i].count; k++) {
			p[n++] = r->targets[i].relations[k].of.p;
			p[n++] = r->targets[i].relations[k].of.p_turns;
		}
	if (rc == 0)
		rc = compare__correct_each(p, q, n);
	for (i = 0, n = 0; rc == 0 && i < r->count; i++) {
		struct compare_target *t = &r->targets[i];

		for (k = 0; k < t->count; k++) {
			t->relations[k].q = q[n++];
			t->relations[k].q_turns = q[n++];
			t->relations[k].verdict = judge(&t->relations[k]);
		}
		qsort(t->relations, t->count, sizeof(*t->relations), by_strength);
	}
	free(p);
	free(q);
	return rc;
}

int compare_relations__find(struct compare_relations *r, const char *with)
{
	size_t i;
	int rc = choose_targets(r, with);

	for (i = 0; rc == 0 && i < r->count; i++)
		rc = relate_all(r, &r->targets[i]);
	return rc == 0 ? judge_all(r) : rc;
}

void compare_relations__free(struct compare_relations *r)
{
	size_t i;

	for (i = 0; i < r->count; i++)
		free(r->targets[i].relations);
	compare_series__free(&r->series);
}

int compare__print_correlation(const char *directory, const char *with, bool json)
{
	struct compare_relations r = {.count = 0};
	int rc, status = compare_series__read(&r.series, directory);

	if (status == CLI_DONE) {
		rc = compare_relations__find(&r, with);
		if (rc < 0)
			status = cli_error(CLI_FAILED, "no memory to correlate the metrics of %s",
					   directory);
		else if (with != NULL && r.count == 0)
			status = cli_error(CLI_WRONG_INPUT,
					   "%s has no metric whose name contains '%s'; pem report "
					   "--correlate --json lists those there are",
					   directory, with);
	}
	if (status == CLI_DONE) {
		if (json)
			cli_json__print(compare_relations__json(&r), stdout, false);
		else
			compare_relations__print(&r);
		status = cli_finish_output(CLI_DONE);
		if (status == CLI_DONE && !r.series.balanced)
			status = cli_error(CLI_UNACCOUNTED,
					   "%s: events are unaccounted for; pem report says which",
					   directory);
	}
	compare_relations__free(&r);
	return status;
}
