// SPDX-License-Identifier: MIT
/* service.c - the rate by blocking: items over time that was not blocked (contract: service.h) */
#include "models/service.h"
#include "student.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define DOUBT 0.05 /* of an interval of confidence */
#define BATCHES_MIN 8u
/* More than this share of intervals lost: the rate is unknown. */
#define LOST_MAX 0.5
#define CORRELATION_MAX 0.8
#define ROUNDING 1e-9
#define ITEMS_MAX (UINT64_C(1) << 62) /* of a series */

/* Join each two batches; an odd last one is left out. Returns the new count. */
static uint32_t join(struct model_sums *batches, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count / 2; i++) {
		batches[i].items = batches[2 * i].items + batches[2 * i + 1].items;
		batches[i].busy_ns = batches[2 * i].busy_ns + batches[2 * i + 1].busy_ns;
	}
	return count / 2;
}

static void add_to_batches(struct model_service *s, double items, double busy_ns)
{
	s->open.items += items;
	s->open.busy_ns += busy_ns;
	if (s->batch_intervals == 0)
		s->batch_intervals = 1;
	if (++s->open_intervals < s->batch_intervals)
		return;
	s->batches[s->batch_count++] = s->open;
	s->open = (struct model_sums){0};
	s->open_intervals = 0;
	if (s->batch_count == MODEL_BATCHES) {
		s->batch_count = join(s->batches, MODEL_BATCHES);
		s->batch_intervals *= 2;
	}
}

int model_service__add(struct model_service *s, uint64_t items, uint64_t busy_ns, bool has_lost)
{
	double of_item, delta;

	/* A counter that went backwards is a loss, and sums never wrap. */
	if (has_lost || items > ITEMS_MAX - s->items) {
		s->lost_intervals++;
		s->lost_ns += (double)busy_ns;
		return 0;
	}
	if (items != 0) {
		of_item = (s->carried_ns + (double)busy_ns) / (double)items;
		if (pem_sketch__add_many(&s->times, of_item, items) < 0)
			return -ENOMEM;
		/* West, Comm. ACM 22, 1979, with the number of items as weight. */
		s->timed_items += items;
		s->timed_intervals++;
		delta = of_item - s->mean_ns;
		s->mean_ns += delta * (double)items / (double)s->timed_items;
		s->squares += (double)items * delta * (of_item - s->mean_ns);
		s->carried_ns = 0;
	} else {
		s->carried_ns += (double)busy_ns;
	}
	s->items += items;
	s->intervals++;
	s->busy_ns += (double)busy_ns;
	add_to_batches(s, (double)items, (double)busy_ns);
	return 0;
}

/* Means of batches, and variances of these means. */
struct moments {
	double items, busy_ns, ratio;
	double items_var, busy_var, covariance;
	double residual_var; /* of items - ratio * busy_ns */
	double correlation; /* of successive residuals */
};

static double residual(const struct model_sums *batch, double ratio)
{
	return batch->items - ratio * batch->busy_ns;
}

static void find_moments(const struct model_sums *batches, uint32_t count, struct moments *m)
{
	double squares = 0, products = 0, scale = 1.0 / count / (count - 1);
	uint32_t i;

	*m = (struct moments){0};
	for (i = 0; i < count; i++) {
		m->items += batches[i].items / count;
		m->busy_ns += batches[i].busy_ns / count;
	}
	m->ratio = m->items / m->busy_ns;
	for (i = 0; i < count; i++) {
		double x = batches[i].items - m->items, y = batches[i].busy_ns - m->busy_ns;
		double r = residual(&batches[i], m->ratio);

		m->items_var += x * x * scale;
		m->busy_var += y * y * scale;
		m->covariance += x * y * scale;
		squares += r * r;
		if (i != 0)
			products += r * residual(&batches[i - 1], m->ratio);
	}
	m->residual_var = squares * scale;
	/* What is left of equal batches is rounded. */
	if (squares > ROUNDING * ROUNDING * m->items * m->items)
		m->correlation = products / squares;
}

/*
 * Join batches until they hardly correlate. *widened: what is left of their correlation multiplies
 * variances by this.
 */
static uint32_t uncorrelated(struct model_sums *batches, uint32_t count, struct moments *m,
			     double *widened)
{
	double r;

	find_moments(batches, count, m);
	while (count >= 2 * BATCHES_MIN && m->correlation > 0.5 / sqrt(count)) {
		count = join(batches, count);
		find_moments(batches, count, m);
	}
	/* The correlation that is found of few batches is some 1 / count too low. */
	r = fmin(m->correlation + 1.0 / count, CORRELATION_MAX);
	*widened = r > 0 ? (1 + r) / (1 - r) : 1;
	return count;
}

/* Fieller's interval, in items per ns. Returns false if it has no end. */
static bool find_interval(const struct model_sums *batches, uint32_t count, double *low,
			  double *high)
{
	struct model_sums joined[MODEL_BATCHES];
	double widened, t2, g, middle, half;
	struct moments m;

	memcpy(joined, batches, count * sizeof(*batches));
	count = uncorrelated(joined, count, &m, &widened);
	t2 = pem_student__quantile(DOUBT, count - 1);
	t2 *= t2 * widened / (m.busy_ns * m.busy_ns);
	g = t2 * m.busy_var;
	if (g >= 1)
		return false;
	middle = m.ratio - t2 * m.covariance;
	half = m.residual_var - t2 * (m.items_var * m.busy_var - m.covariance * m.covariance);
	half = sqrt(fmax(half, 0) * t2);
	*low = fmax(middle - half, 0) / (1 - g);
	*high = (middle + half) / (1 - g);
	return true;
}

static void widen_by_loss(const struct model_service *s, double share, struct model_range *range)
{
	double least = INFINITY, most = 0;
	uint32_t i;

	for (i = 0; i < s->batch_count; i++) {
		double rate = 1e9 * s->batches[i].items / fmax(s->batches[i].busy_ns, 1);

		least = fmin(least, rate);
		most = fmax(most, rate);
	}
	range->low = fmin((1 - share) * range->low + share * least, range->rate);
	range->high = fmax((1 - share) * range->high + share * most, range->rate);
}

static double lost_share(const struct model_service *s)
{
	double intervals = (double)s->lost_intervals, ns = s->lost_ns;

	if (s->lost_intervals == 0)
		return 0;
	return fmax(intervals / (intervals + (double)s->intervals), ns / (ns + s->busy_ns));
}

void model_service__estimate(const struct model_service *s, struct model_estimate *e)
{
	double share = lost_share(s), low, high;

	*e = (struct model_estimate){.items = s->items,
				     .intervals = s->intervals,
				     .lost_intervals = s->lost_intervals,
				     .busy_ns = s->busy_ns};
	e->has_rate = s->items && s->busy_ns > 0 && s->intervals >= MODEL_INTERVALS_MIN;
	if (e->has_rate)
		e->range.rate = 1e9 * (double)s->items / s->busy_ns;
	if (s->batch_count < MODEL_INTERVALS_MIN || s->items == 0 || !(s->busy_ns > 0) ||
	    share > LOST_MAX || !find_interval(s->batches, s->batch_count, &low, &high))
		return;
	e->known = true;
	e->range.low = fmin(1e9 * low, e->range.rate);
	e->range.high = fmax(1e9 * high, e->range.rate);
	if (share > 0)
		widen_by_loss(s, share, &e->range);
	e->mean_ns = s->busy_ns / (double)s->items;
	if (s->timed_intervals > 1)
		e->deviation_ns = sqrt(s->squares / (double)(s->timed_intervals - 1));
	e->p50_ns = pem_sketch__percentile(&s->times, 500);
	e->p90_ns = pem_sketch__percentile(&s->times, 900);
	e->p99_ns = pem_sketch__percentile(&s->times, 990);
}

void model_service__free(struct model_service *s)
{
	pem_sketch__free(&s->times);
}
