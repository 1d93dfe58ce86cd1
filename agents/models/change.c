// SPDX-License-Identifier: MIT
/* change.c - phases of different rates in one series (contract: change.h) */
#include "models/change.h"

#include <math.h>
#include <string.h>

#define Z_95 1.959964
#define SETTLED_AFTER 64u /* intervals */
#define PAIRS_MIN 16u /* of one scale */
#define SCALES_KNOWN 4u /* before a test */
#define CORRELATION_MAX 0.97
/* The least relative variance: two readings of a clock are no better than this. */
#define VARIANCE_MIN 1e-6

static struct model_phase *open_phase(struct model_change *c)
{
	return &c->phases[(c->phase_count - 1) % MODEL_PHASES];
}

void model_change__begin(struct model_change *c)
{
	memset(c, 0, sizeof(*c));
	c->phase_count = 1;
}

/* --- the variance of an item's time, relative to the square of its mean --- */

/* Take a sum. tau: the phase's mean time of an item; keep: the weight of the pairs before. */
static bool take_sum(struct model_scale *s, struct model_sums sum, double tau, double keep)
{
	double difference, each;

	if (++s->summed % 2 == 0 && s->last.items > 0) {
		/* Of two means of x and y items, the variance of the difference is that of one
		 * item times 1 / x + 1 / y. */
		difference = sum.busy_ns / sum.items - s->last.busy_ns / s->last.items;
		each = 1 / sum.items + 1 / s->last.items;
		s->variance = s->variance * keep + difference * difference / each / tau / tau;
		s->weight = s->weight * keep + 1;
		s->pairs++;
	}
	s->last = sum;
	return s->summed % 2 == 0;
}

/* Take an interval. Sums of two of a scale are one sum of the next. */
static void take_scales(struct model_change *c, struct model_sums sum, double tau)
{
	uint32_t i;

	for (i = 0; i < MODEL_SCALES; i++) {
		struct model_sums before = c->scales[i].last;

		if (!take_sum(&c->scales[i], sum, tau, 1 - 1.0 / (i < SCALES_KNOWN ? 512 : 64)))
			return;
		sum.items += before.items;
		sum.busy_ns += before.busy_ns;
	}
}

/*
 * Take all intervals below end. An interval waits until a large change in front of it would have
 * been found: the difference between two phases is no variance.
 */
static void settle(struct model_change *c, uint64_t end)
{
	double tau = fmax(c->sum.busy_ns, 1) / c->sum.items;

	for (; c->settled < end; c->settled++)
		take_scales(c, c->recent[c->settled % MODEL_RECENT], tau);
}

/*
 * The variance that sums would have if intervals were autoregressive of order 1, by how it grows
 * from one scale to the next: the scales of long sums are known late. For a coefficient a, the
 * difference of successive intervals has the variance 1 - a, and of sums of two (1 - a)(1 + a)
 * (2 + a) / 2; that of long sums is (1 + a) / (1 - a).
 */
static double extrapolate(double variance, double growth)
{
	double a = (sqrt(1 + 8 * fmax(growth, 1)) - 3) / 2;

	a = fmin(a, CORRELATION_MAX);
	return variance * (1 + a) / ((1 - a) * (1 - a));
}

/* The greatest of all scales that are known; 0: too few are. */
static double variance_of(const struct model_change *c)
{
	double most = 0, last = 0, variance, doubt;
	uint32_t i;

	for (i = 0; i < MODEL_SCALES && c->scales[i].pairs >= PAIRS_MIN; i++) {
		const struct model_scale *s = &c->scales[i];

		variance = fmax(s->variance / s->weight, VARIANCE_MIN);
		doubt = sqrt(2 / s->weight);
		/*
		 * Few pairs tell little: they may hide some of the variance, or of its growth. Of
		 * the later scales, which always have few pairs, the excess counts that is sure.
		 */
		if (i >= SCALES_KNOWN)
			most = fmax(most, variance / (1 + doubt));
		else if (i != 0)
			most = fmax(most, extrapolate(last, variance / last - doubt));
		if (i < SCALES_KNOWN)
			most = fmax(most, variance * (1 + doubt));
		last = variance;
	}
	return i >= SCALES_KNOWN ? most : 0;
}

/* --- candidates --- */

/* Keep the two intervals whose time exceeds that of their items most. */
static void keep_greatest(struct model_sums greatest[2], const struct model_sums *one, double tau)
{
	double excess[3];
	int i;

	for (i = 0; i < 2; i++)
		excess[i] = greatest[i].busy_ns - tau * greatest[i].items;
	excess[2] = one->busy_ns - tau * one->items;
	if (excess[2] > excess[0]) {
		greatest[1] = greatest[0];
		greatest[0] = *one;
	} else if (excess[2] > excess[1]) {
		greatest[1] = *one;
	}
}

/* Above 0: the third point lies to the left of the line through the first two. */
static double turn(const struct model_sums *a, const struct model_sums *b,
		   const struct model_sums *c)
{
	return (b->items - a->items) * (c->busy_ns - a->busy_ns) -
	       (b->busy_ns - a->busy_ns) * (c->items - a->items);
}

/* Add a corner; sign 1: to the lower hull, after whose corners times are longer, -1: the upper. */
static void add_split(struct model_hull *hull, const struct model_split *split, double sign)
{
	uint32_t n = hull->count, i, kept;

	while (n >= 2 &&
	       sign * turn(&hull->splits[n - 2].at, &hull->splits[n - 1].at, &split->at) <= 0)
		n--;
	if (n == MODEL_SPLITS) {
		/* A slow drift: keep every other one of the older half. */
		for (i = kept = 0; i < n; i++)
			if (i >= n / 2 || i % 2 == 0)
				hull->splits[kept++] = hull->splits[i];
		n = kept;
	}
	hull->splits[n] = *split;
	hull->count = n + 1;
}

static void note_excess(struct model_hull *hull, const struct model_sums *one, double tau)
{
	uint32_t i;

	for (i = 0; i < hull->count; i++)
		keep_greatest(hull->splits[i].after, one, tau);
}

/* The logarithm of the greatest likelihood of a segment, negated, for shape 1. */
static double unlikelihood(const struct model_sums *sum)
{
	return sum->items * log(fmax(sum->busy_ns, 1) / sum->items);
}

/* The newest split moves on by one interval, and is a candidate if its phase is long enough. */
static void move_newest(struct model_change *c, uint64_t last, double tau)
{
	const struct model_sums *one = &c->recent[c->newest.interval % MODEL_RECENT];
	struct model_split *split = &c->newest;
	uint64_t i;

	split->at.items += one->items;
	split->at.busy_ns += one->busy_ns;
	keep_greatest(split->before, one, tau);
	split->interval++;
	if (split->interval - open_phase(c)->first_interval < MODEL_CHANGE_LEAST)
		return;
	memset(split->after, 0, sizeof(split->after));
	for (i = split->interval; i <= last; i++)
		keep_greatest(split->after, &c->recent[i % MODEL_RECENT], tau);
	split->unlikelihood = unlikelihood(&split->at);
	add_split(&c->slower, split, 1);
	add_split(&c->faster, split, -1);
}

/* Interval i, which is among the recent ones, becomes part of the open phase. */
static void extend_phase(struct model_change *c, uint64_t i)
{
	const struct model_sums *one = &c->recent[i % MODEL_RECENT];
	double tau;

	c->sum.items += one->items;
	c->sum.busy_ns += one->busy_ns;
	tau = c->sum.busy_ns / c->sum.items;
	note_excess(&c->slower, one, tau);
	note_excess(&c->faster, one, tau);
	if (i + 1 - c->newest.interval > MODEL_CHANGE_LEAST)
		move_newest(c, i, tau);
}

/* --- the test --- */

static struct model_sums without(struct model_sums sum, const struct model_sums greatest[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		sum.items -= greatest[i].items;
		sum.busy_ns -= greatest[i].busy_ns;
	}
	return sum;
}

/* The logarithm of the likelihood ratio for shape 1 without the greatest excesses. */
static double trimmed(const struct model_change *c, const struct model_split *split)
{
	struct model_sums after = {c->sum.items - split->at.items,
				   c->sum.busy_ns - split->at.busy_ns};
	struct model_sums before = without(split->at, split->before), all;

	after = without(after, split->after);
	all = (struct model_sums){before.items + after.items, before.busy_ns + after.busy_ns};
	if (!(before.items > 0 && after.items > 0))
		return 0;
	return unlikelihood(&all) - unlikelihood(&before) - unlikelihood(&after);
}

/* The split of most likelihood ratio, if that exceeds the threshold with each of its parts. */
static void find_best(const struct model_change *c, const struct model_hull *hull, double threshold,
		      double *most, const struct model_split **best)
{
	double all = unlikelihood(&c->sum), score;
	struct model_sums after;
	uint32_t i;

	for (i = 0; i < hull->count; i++) {
		const struct model_split *split = &hull->splits[i];

		after.items = c->sum.items - split->at.items;
		after.busy_ns = c->sum.busy_ns - split->at.busy_ns;
		score = all - split->unlikelihood - unlikelihood(&after);
		if (score > *most && trimmed(c, split) > threshold) {
			*most = score;
			*best = split;
		}
	}
}

/* The variance of single intervals from one on, which are recent: it may be new, too. */
static double variance_after(const struct model_change *c, uint64_t first)
{
	double squares = 0, tau;
	struct model_sums sum = {0};
	uint64_t i;

	for (i = first; i < c->intervals; i++) {
		sum.items += c->recent[i % MODEL_RECENT].items;
		sum.busy_ns += c->recent[i % MODEL_RECENT].busy_ns;
	}
	tau = sum.busy_ns / sum.items;
	for (i = first + 1; i < c->intervals; i++) {
		const struct model_sums *a = &c->recent[(i - 1) % MODEL_RECENT];
		const struct model_sums *b = &c->recent[i % MODEL_RECENT];
		double difference = a->busy_ns / a->items - b->busy_ns / b->items;

		squares += difference * difference / (1 / a->items + 1 / b->items);
	}
	return squares / (double)(c->intervals - first - 1) / (tau * tau);
}

static bool is_large(const struct model_change *c, const struct model_split *split)
{
	double before = split->at.busy_ns / split->at.items;
	double after = (c->sum.busy_ns - split->at.busy_ns) / (c->sum.items - split->at.items);

	return fabs(log(fmax(after, 1e-9) / fmax(before, 1e-9))) >= MODEL_CHANGE_SMALLEST;
}

static const struct model_split *find_change(const struct model_change *c)
{
	const struct model_split *best = NULL;
	double variance = variance_of(c), threshold, most;

	if (variance == 0)
		return NULL;
	most = threshold = MODEL_CHANGE_THRESHOLD * variance;
	find_best(c, &c->slower, threshold, &most, &best);
	find_best(c, &c->faster, threshold, &most, &best);
	/* The newest candidate is best while the change itself is still too new to be one. */
	if (!best || best->interval == c->newest.interval || !is_large(c, best))
		return NULL;
	if (c->intervals - best->interval > MODEL_RECENT)
		return best;
	variance = fmax(variance, variance_after(c, best->interval));
	return trimmed(c, best) > MODEL_CHANGE_THRESHOLD * variance ? best : NULL;
}

/* --- phases --- */

static void finish_phase(const struct model_change *c, const struct model_sums *sum,
			 uint64_t intervals, struct model_phase *phase)
{
	double variance = variance_of(c), ratio = INFINITY;

	phase->items = (uint64_t)sum->items;
	phase->intervals = intervals;
	phase->busy_ns = sum->busy_ns;
	phase->range = (struct model_range){.high = INFINITY};
	if (!(sum->items > 0))
		return;
	if (variance > 0)
		ratio = exp(Z_95 * sqrt(variance / sum->items));
	phase->range.rate = 1e9 * sum->items / fmax(sum->busy_ns, 1);
	phase->range.low = phase->range.rate / ratio;
	phase->range.high = phase->range.rate * ratio;
}

static void begin_phase(struct model_change *c, const struct model_split *at)
{
	struct model_phase *old = open_phase(c), *new;
	struct model_split split = *at; /* it lies in a hull */
	uint64_t i;

	if (c->settled < split.interval)
		settle(c, split.interval);
	finish_phase(c, &split.at, split.interval - old->first_interval, old);
	c->phase_count++;
	new = open_phase(c);
	*new = (struct model_phase){.first_interval = split.interval,
				    .first_item = old->first_item + old->items};
	c->slower.count = c->faster.count = 0;
	for (i = 0; i < MODEL_SCALES; i++) {
		c->scales[i].summed = 0;
		c->scales[i].last = (struct model_sums){0};
	}
	c->sum.items -= split.at.items;
	c->sum.busy_ns -= split.at.busy_ns;
	c->newest = (struct model_split){.interval = c->intervals};
	if (c->intervals - split.interval > MODEL_RECENT) {
		c->newest.at = c->sum;
		return;
	}
	c->sum = (struct model_sums){0};
	c->newest.interval = split.interval;
	for (i = split.interval; i < c->intervals; i++)
		extend_phase(c, i);
}

bool model_change__add(struct model_change *c, uint64_t items, uint64_t busy_ns)
{
	struct model_sums one = {.items = (double)items,
				 .busy_ns = (double)busy_ns + c->carried_ns};
	const struct model_split *best;

	if (items == 0) {
		c->carried_ns = one.busy_ns;
		return false;
	}
	c->carried_ns = 0;
	c->recent[c->intervals % MODEL_RECENT] = one;
	extend_phase(c, c->intervals++);
	if (c->intervals > c->settled + SETTLED_AFTER)
		settle(c, c->settled + 1);
	best = find_change(c);
	if (best)
		begin_phase(c, best);
	return best;
}

uint32_t model_change__phases(const struct model_change *c, struct model_phase *phases,
			      uint64_t *before)
{
	uint32_t count = c->phase_count < MODEL_PHASES ? (uint32_t)c->phase_count : MODEL_PHASES, i;
	struct model_phase *last;

	*before = c->phase_count - count;
	for (i = 0; i < count; i++)
		phases[i] = c->phases[(*before + i) % MODEL_PHASES];
	last = &phases[count - 1];
	finish_phase(c, &c->sum, c->intervals - last->first_interval, last);
	return count;
}
