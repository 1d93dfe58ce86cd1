// SPDX-License-Identifier: MIT
/*
 * difference.c - compares two sides of runs (contract: difference.h)
 *
 * Several runs on both sides: each is one value, and their spread says how sure a difference is.
 * One run on each side: nothing tells how much runs differ. They are taken to differ as much as
 * blocks of time of one run do, which is more than the average over a run would vary if that were
 * all. So what is claimed are differences that are great beside what happens within a run.
 */
#include "difference.h"
#include "grow.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Few, so that a block is long beside what repeats in a run. */
#define BLOCKS 16u
/* A difference is claimed if the expected share of wrong claims is at most this. */
#define ERROR_MAX 0.05

/* A metric as it is in one run. */
struct of_run {
	bool is_known;
	double value; /* of the whole run: each second, or the mean */
	double seconds; /* of the windows that are known */
	size_t blocks; /* with fewer windows than blocks there are fewer of these */
	double sums[BLOCKS], weights[BLOCKS];
};

/* --- one run --- */

static const struct compare_metric *find(const struct compare_series *s,
					 const struct compare_metric *like)
{
	size_t i;

	for (i = 0; i < s->metric_count; i++)
		if (s->metrics[i].kind == like->kind &&
		    strcmp(s->metrics[i].name, like->name) == 0 &&
		    strcmp(s->metrics[i].origin, like->origin) == 0)
			return &s->metrics[i];
	return NULL;
}

/* Sum and weight of a metric in a window. The weight of an amount is the window's seconds. */
static void of_window(const struct compare_series *s, const struct compare_metric *m, size_t i,
		      double seconds, double *sum, double *weight)
{
	if (m->kind == COMPARE_RATIO) {
		*sum = s->metrics[m->above].sum[i];
		*weight = s->metrics[m->below].sum[i];
		return;
	}
	*sum = m->sum[i];
	*weight = m->weight != NULL ? m->weight[i] : seconds;
}

static double window_seconds(const struct compare_series *s, size_t i)
{
	uint64_t begin = i * s->window_ns, end = begin + s->window_ns;

	if (end > s->end_ns)
		end = s->end_ns;
	return end > begin ? (double)(end - begin) / 1e9 : 0;
}

static bool lacks(const struct compare_series *s, const struct compare_metric *m,
		  enum pem_doubt_source source, size_t window)
{
	return m != NULL ? compare_series__lacks(s, m, window)
			 : compare_series__is_lost(s, source, window);
}

/*
 * Take a metric's blocks out of a run. m NULL: the event was recorded, and never came; source says
 * who would have raised it.
 */
static void take(const struct compare_series *s, const struct compare_metric *m,
		 enum pem_doubt_source source, struct of_run *of)
{
	size_t i, kept = 0, n = 0;
	double sum = 0, weight = 0;

	memset(of, 0, sizeof(*of));
	for (i = 0; i < s->window_count; i++)
		kept += !lacks(s, m, source, i);
	of->blocks = kept < BLOCKS ? kept : BLOCKS;
	for (i = 0; i < s->window_count; i++) {
		double part = 0, part_weight = window_seconds(s, i);
		size_t block;

		if (lacks(s, m, source, i))
			continue;
		block = n++ * of->blocks / kept;
		of->seconds += part_weight;
		if (m != NULL)
			of_window(s, m, i, part_weight, &part, &part_weight);
		of->sums[block] += part;
		of->weights[block] += part_weight;
		sum += part;
		weight += part_weight;
	}
	of->value = weight > 0 ? sum / weight : NAN;
	of->is_known = !isnan(of->value);
}

static bool has_event(const struct compare_series *s, uint32_t id)
{
	return id == 0 || pem_model__by_id(pem_trace__model(s->trace), id) != NULL;
}

/* Did a run record the events that a metric is of? */
static bool is_recorded(const struct compare_series *s, const struct compare_metric *m)
{
	return has_event(s, m->event_id) && has_event(s, m->other_event_id);
}

static const char *partial_event(const struct compare_series *s, uint32_t id)
{
	const struct pem_event *event = pem_model__by_id(pem_trace__model(s->trace), id);
	uint32_t i;

	for (i = 0; event != NULL && i < s->info->reduced_count; i++)
		if (strcmp(s->info->reduced[i].event, event->name) == 0)
			return "reduced";
	for (i = 0; event != NULL && i < s->info->predicate_count; i++)
		if (strcmp(s->info->predicates[i].event, event->name) == 0)
			return s->info->predicates[i].text;
	return "";
}

/*
 * Has a run less of a metric's events than happened: to keep a budget, or because of a predicate?
 */
static const char *partial(const struct compare_series *s, const struct compare_metric *m)
{
	const char *first = partial_event(s, m->event_id);
	const char *other = partial_event(s, m->other_event_id);

	return *first == '\0' || strcmp(other, "reduced") == 0 ? other : first;
}

/* --- rows --- */

static struct compare_difference *add_row(struct compare_differences *d, const char *name,
					  const char *unit, bool is_mean)
{
	struct compare_difference *row;

	if (pem_grow(&d->rows, sizeof(*d->rows), d->count + 1, &d->capacity) < 0)
		return NULL;
	row = &d->rows[d->count++];
	memset(row, 0, sizeof(*row));
	snprintf(row->name, sizeof(row->name), "%s", name);
	snprintf(row->unit, sizeof(row->unit), "%s", unit);
	row->is_mean = is_mean;
	return row;
}

/* Compare one value of each run. */
static void fill_of_runs(const struct compare_differences *d, struct compare_difference *row,
			 double values[SIDES][COMPARE_RUNS_MAX], bool is_count)
{
	struct compare_estimate e[SIDES];
	unsigned int side;

	for (side = 0; side < SIDES; side++) {
		e[side] = compare__of_runs(values[side], d->sides[side].count, is_count);
		row->value[side] = e[side].value;
	}
	row->change = compare__change(&e[SIDE_A], &e[SIDE_B]);
}

/* Compare one run on each side by its blocks. */
static void fill_of_blocks(struct compare_difference *row, const struct of_run *a,
			   const struct of_run *b, bool are_totals)
{
	const struct of_run *of[SIDES] = {a, b};
	struct compare_estimate e[SIDES];
	unsigned int side;

	for (side = 0; side < SIDES; side++) {
		e[side] = compare__of_blocks(of[side]->sums, of[side]->weights, of[side]->blocks);
		/* From the error of the mean back to the deviation of one block. */
		e[side].error *= sqrt((double)of[side]->blocks);
		if (are_totals) {
			e[side].value *= of[side]->seconds;
			e[side].error *= of[side]->seconds;
		}
		row->value[side] = e[side].value;
	}
	row->change = compare__change(&e[SIDE_A], &e[SIDE_B]);
}

/* Is a metric of use in all runs? The others are counted. */
static bool is_comparable(struct compare_differences *d, const struct compare_metric *m)
{
	const char *first = NULL;
	unsigned int side;
	size_t i;

	for (side = 0; side < SIDES; side++)
		for (i = 0; i < d->sides[side].count; i++) {
			const struct compare_series *s = &d->sides[side].runs[i];
			const char *text = partial(s, m);

			if (!is_recorded(s, m)) {
				d->one_sided++;
				return false;
			}
			first = first != NULL ? first : text;
			if (strcmp(text, "reduced") == 0 || strcmp(text, first) != 0) {
				d->reduced++;
				return false;
			}
		}
	return true;
}

static int compare_metric(struct compare_differences *d, const struct compare_metric *m)
{
	bool is_mean = compare_metric__is_mean(m), are_totals = !is_mean && !d->are_rates;
	bool single = d->sides[SIDE_A].count == 1 && d->sides[SIDE_B].count == 1, known = true;
	double values[SIDES][COMPARE_RUNS_MAX];
	struct compare_difference *row;
	struct of_run of[SIDES];
	unsigned int side;
	size_t i;

	for (side = 0; side < SIDES; side++)
		for (i = 0; i < d->sides[side].count; i++) {
			const struct compare_series *s = &d->sides[side].runs[i];
			const struct compare_metric *same = find(s, m);

			take(s, same, m->source, &of[side]);
			if (same == NULL && is_mean)
				of[side].is_known = false;
			known &= of[side].is_known;
			values[side][i] =
				are_totals ? of[side].value * of[side].seconds : of[side].value;
		}
	if (!known)
		return 0;
	row = add_row(d, m->name, m->unit, is_mean);
	if (row == NULL)
		return -ENOMEM;
	if (single)
		fill_of_blocks(row, &of[SIDE_A], &of[SIDE_B], are_totals);
	else
		fill_of_runs(d, row, values, are_totals && m->kind == COMPARE_COUNT);
	return 0;
}

/*
 * A percentile, which a mean hides. With one run nothing says how it varies. It is that of the
 * intervals that ended, or of a gauge's values.
 */
static int compare_percentile(struct compare_differences *d, const struct compare_metric *m,
			      const char *title, unsigned int per_mille)
{
	double values[SIDES][COMPARE_RUNS_MAX];
	struct compare_difference *row;
	unsigned int side;
	char name[208];
	size_t i;

	for (side = 0; side < SIDES; side++)
		for (i = 0; i < d->sides[side].count; i++) {
			const struct compare_series *s = &d->sides[side].runs[i];
			const struct compare_metric *same = find(s, m);

			/* Of fewer values it is their maximum. */
			if (same == NULL || same->sketch.count < 1000 / (1000 - per_mille) ||
			    s->has_losses)
				return 0;
			values[side][i] = pem_sketch__percentile(&same->sketch, per_mille);
		}
	snprintf(name, sizeof(name), "%.190s, %s", m->name, title);
	row = add_row(d, name, m->unit, true);
	if (row == NULL)
		return -ENOMEM;
	fill_of_runs(d, row, values, false);
	return 0;
}

static int compare_percentiles(struct compare_differences *d, const struct compare_metric *m)
{
	int rc = compare_percentile(d, m, "p50", 500);

	rc = rc == 0 ? compare_percentile(d, m, "p90", 900) : rc;
	rc = rc == 0 ? compare_percentile(d, m, "p99", 990) : rc;
	return rc == 0 ? compare_percentile(d, m, "p99.9", 999) : rc;
}

/* Times of whole runs. A flight recorder's snapshot is no whole run. */
static int compare_times(struct compare_differences *d)
{
	static const char *const names[] = {"run time", "CPU time"};
	double values[SIDES][COMPARE_RUNS_MAX];
	struct compare_difference *row;
	unsigned int which, side;
	size_t i;

	for (which = 0; which < 2; which++) {
		bool known = true;

		for (side = 0; side < SIDES; side++)
			for (i = 0; i < d->sides[side].count; i++) {
				const struct compare_series *s = &d->sides[side].runs[i];
				uint64_t ns =
					which == 0 ? s->info->duration_ns : s->info->program_cpu_ns;

				known &= ns != 0 && *s->info->snapshot == '\0' &&
					 s->info->ran_ns == 0;
				values[side][i] = (double)ns;
			}
		if (!known)
			continue;
		row = add_row(d, names[which], "ns", true);
		if (row == NULL)
			return -ENOMEM;
		fill_of_runs(d, row, values, false);
	}
	return 0;
}

/* --- all of them --- */

/* Must amounts be compared for each second? Why, or NULL. */
static const char *why_rates(const struct compare_differences *d)
{
	unsigned int side;
	size_t i;

	for (side = 0; side < SIDES; side++)
		for (i = 0; i < d->sides[side].count; i++) {
			const struct compare_series *s = &d->sides[side].runs[i];

			if (*s->info->snapshot != '\0' || s->info->ran_ns != 0)
				return "a snapshot is no whole run";
			if (s->has_losses)
				return "records of a run were lost";
		}
	return NULL;
}

static int judge(struct compare_differences *d)
{
	double *p = calloc(d->count + 1, sizeof(*p)), *q = calloc(d->count + 1, sizeof(*q));
	int rc = p != NULL && q != NULL ? 0 : -ENOMEM;
	size_t i;

	for (i = 0; rc == 0 && i < d->count; i++)
		p[i] = d->rows[i].change.p;
	if (rc == 0)
		rc = compare__correct(p, q, d->count);
	for (i = 0; rc == 0 && i < d->count; i++) {
		struct compare_difference *row = &d->rows[i];

		row->q = q[i];
		if (isnan(q[i]))
			row->verdict = COMPARE_UNSURE;
		else
			row->verdict = q[i] <= ERROR_MAX ? COMPARE_DIFFERS : COMPARE_ALIKE;
	}
	free(p);
	free(q);
	return rc;
}

/* Was the metric seen in a run before this one? */
static bool is_seen(const struct compare_differences *d, unsigned int side, size_t run,
		    const struct compare_metric *m)
{
	unsigned int s;
	size_t i;

	for (s = 0; s <= side; s++)
		for (i = 0; i < (s == side ? run : d->sides[s].count); i++)
			if (find(&d->sides[s].runs[i], m) != NULL)
				return true;
	return false;
}

int compare_differences__find(struct compare_differences *d, const char *only)
{
	const char *why = why_rates(d);
	unsigned int side;
	size_t run, i;
	int rc;

	d->why_rates = why != NULL ? why : "";
	d->are_rates |= why != NULL;
	rc = compare_times(d);
	for (side = 0; side < SIDES; side++)
		for (run = 0; run < d->sides[side].count; run++) {
			const struct compare_series *s = &d->sides[side].runs[run];

			for (i = 0; rc == 0 && i < s->metric_count; i++) {
				const struct compare_metric *m = &s->metrics[i];

				/* Of events that nobody asked for, all of the machine is in. */
				if (m->is_context || is_seen(d, side, run, m) ||
				    !is_comparable(d, m))
					continue;
				rc = compare_metric(d, m);
				if (rc == 0 && m->weight != NULL)
					rc = compare_percentiles(d, m);
			}
		}
	/* The names are cut to what was asked for before the correction for their number. */
	for (i = 0, run = 0; i < d->count; i++)
		if (only == NULL || strstr(d->rows[i].name, only) != NULL)
			d->rows[run++] = d->rows[i];
	d->count = run;
	return rc == 0 ? judge(d) : rc;
}

void compare_differences__free(struct compare_differences *d)
{
	unsigned int side;
	size_t i;

	for (side = 0; side < SIDES; side++) {
		for (i = 0; i < d->sides[side].count; i++)
			compare_series__free(&d->sides[side].runs[i]);
		free(d->sides[side].runs);
	}
	free(d->rows);
}
