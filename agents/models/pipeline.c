// SPDX-License-Identifier: MIT
/* pipeline.c - throughput by formulas if they hold, or by simulation (contract: pipeline.h) */
#include "models/models.h"
#include "models/pipeline.h"
#include "student.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DOUBT 0.05
#define SERVICES_DEFAULT 40000u
#define SIMULATIONS_DEFAULT 12u
#define SIMULATIONS_MAX 64u
#define SAMPLE_MIN 16u
#define SAMPLE_OF_A_KIND 50u /* a test of its distribution needs */
#define EQUAL 1e-9
#define DETERMINISTIC_CV 0.02
/* Of 100 exponential samples, one has a greater statistic of Anderson and Darling; or correlation.
 */
#define ANDERSON_DARLING 1.959
#define Z_99 2.575829
#define STATES_MAX 65536.0

/* What formulas need to know. */
struct view {
	const struct model_pipeline *pipeline;
	double visits[MODEL_STAGES_MAX]; /* items of a stage for one of the measured stage */
	double rates[MODEL_STAGES_MAX], errors[MODEL_STAGES_MAX]; /* error: of the logarithm */
};

/* --- is the input in order? --- */

static bool is_positive(double value)
{
	return value > 0 && isfinite(value);
}

static bool is_valid(const struct model_pipeline *p)
{
	uint32_t i, k, copies = 0;

	if (p->stage_count == 0 || p->stage_count > MODEL_STAGES_MAX ||
	    p->queue_count > MODEL_QUEUES_MAX || p->measured >= p->stage_count)
		return false;
	for (i = 0; i < p->queue_count; i++) {
		const struct model_queue *q = &p->queues[i];

		if (q->from >= p->stage_count || q->to >= p->stage_count || !(q->capacity > 0) ||
		    !is_positive(q->given) || !is_positive(q->taken))
			return false;
	}
	for (i = 0; i < p->stage_count; i++) {
		const struct model_stage *stage = &p->stages[i];

		if (stage->copies == 0 || stage->copies > MODEL_COPIES_MAX - copies ||
		    !is_positive(stage->batch) || stage->range.rate < 0 ||
		    (stage->range.rate > 0 &&
		     !(is_positive(stage->range.low) && is_positive(stage->range.high))))
			return false;
		copies += stage->copies;
		for (k = 0; k < stage->sample_count; k++)
			if (!(stage->sample[k].items >= 0 && stage->sample[k].busy_ns >= 0))
				return false;
	}
	return true;
}

/* Visits of all stages, by the queues that join them. Returns whether they are joined and agree. */
static bool find_visits(struct view *v)
{
	const struct model_pipeline *p = v->pipeline;
	uint32_t round, q, known = 1;

	v->visits[p->measured] = 1;
	for (round = 0; round < p->stage_count; round++)
		for (q = 0; q < p->queue_count; q++) {
			const struct model_queue *queue = &p->queues[q];
			double *from = &v->visits[queue->from], *to = &v->visits[queue->to];

			if (*from > 0 && *to > 0) {
				if (fabs(*from * queue->given / (*to * queue->taken) - 1) > 1e-6)
					return false;
				continue;
			}
			known += *from > 0 || *to > 0;
			if (*from > 0)
				*to = *from * queue->given / queue->taken;
			else if (*to > 0)
				*from = *to * queue->taken / queue->given;
		}
	return known == p->stage_count;
}

/* Rates of stages, by all intervals or by the sample. Returns false if one is not known. */
static bool find_rates(struct view *v)
{
	const struct model_pipeline *p = v->pipeline;
	uint32_t i, k;

	for (i = 0; i < p->stage_count; i++) {
		const struct model_stage *stage = &p->stages[i];
		double items = 0, busy_ns = 0, squares = 0;

		for (k = 0; k < stage->sample_count; k++) {
			items += stage->sample[k].items;
			busy_ns += stage->sample[k].busy_ns;
		}
		if (stage->sample_count < SAMPLE_MIN || !is_positive(items) ||
		    !is_positive(busy_ns))
			return false;
		if (stage->range.rate > 0) {
			v->rates[i] = stage->range.rate;
			v->errors[i] = model_range__error(&stage->range);
			continue;
		}
		v->rates[i] = 1e9 * items / busy_ns;
		for (k = 0; k < stage->sample_count; k++) {
			double r =
				stage->sample[k].items / items - stage->sample[k].busy_ns / busy_ns;

			squares += r * r;
		}
		v->errors[i] = sqrt(squares);
	}
	return true;
}

/* --- are the assumptions of formulas true? --- */

/* Do intervals have a batch each, so that the sample shows how services vary? */
static bool shows_services(const struct model_stage *stage)
{
	uint32_t i;

	for (i = 0; i < stage->sample_count; i++)
		if (fabs(stage->sample[i].items / stage->batch - 1) > EQUAL)
			return false;
	return stage->sample_count >= SAMPLE_OF_A_KIND;
}

/* The coefficient of variation of a sample of services, and the correlation of successive ones. */
static double variation(const struct model_stage *stage, double *correlation)
{
	double mean = 0, squares = 0, products = 0, last = 0;
	uint32_t i, n = stage->sample_count;

	for (i = 0; i < n; i++)
		mean += stage->sample[i].busy_ns / n;
	for (i = 0; i < n; i++) {
		double x = stage->sample[i].busy_ns - mean;

		squares += x * x;
		products += x * last;
		last = x;
	}
	*correlation = squares > 0 ? products / squares : 0;
	return sqrt(squares / (n - 1)) / mean;
}

/*
 * Are services exponential and independent? Anderson and Darling's test with the mean estimated
 * (Stephens, J. Am. Stat. Assoc. 69, 1974), and the first correlation. 1: yes; 0: no; -ENOMEM.
 */
static int is_exponential(const struct model_stage *stage)
{
	double mean = 0, sum = 0, correlation, *x;
	uint32_t i, n = stage->sample_count;

	if (!shows_services(stage))
		return 0;
	variation(stage, &correlation);
	if (fabs(correlation) > Z_99 / sqrt(n))
		return 0;
	x = malloc(n * sizeof(*x));
	if (!x)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		x[i] = fmax(stage->sample[i].busy_ns, 0.5);
		mean += x[i] / n;
	}
	model_sort(x, n);
	for (i = 0; i < n; i++)
		sum += (2.0 * i + 1) * (log(-expm1(-x[i] / mean)) - x[n - 1 - i] / mean);
	free(x);
	return (-(double)n - sum / n) * (1 + 0.6 / n) < ANDERSON_DARLING;
}

static bool is_deterministic(const struct model_pipeline *p)
{
	double correlation;
	uint32_t i;

	for (i = 0; i < p->stage_count; i++)
		if (p->stages[i].copies != 1 || !shows_services(&p->stages[i]) ||
		    variation(&p->stages[i], &correlation) > DETERMINISTIC_CV)
			return false;
	for (i = 0; i < p->queue_count; i++) {
		const struct model_queue *q = &p->queues[i];
		double given = q->given * p->stages[q->from].batch;

		if (fabs(q->taken * p->stages[q->to].batch / given - 1) > EQUAL ||
		    q->capacity < given)
			return false;
	}
	return true;
}

/* Two stages with a queue of single items between them. 1: yes; 0: no; -ENOMEM. */
static int is_markov(const struct model_pipeline *p)
{
	const struct model_queue *q = p->queues;
	int first;

	if (p->stage_count != 2 || p->queue_count != 1 || q->from == q->to || q->given != 1 ||
	    q->taken != 1 || p->stages[0].batch != 1 || p->stages[1].batch != 1 ||
	    q->capacity != floor(q->capacity) || q->capacity > STATES_MAX)
		return 0;
	first = is_exponential(&p->stages[0]);
	return first == 1 ? is_exponential(&p->stages[1]) : first;
}

static bool has_cpus(const struct model_pipeline *p)
{
	uint32_t i, copies = 0;

	for (i = 0; i < p->stage_count; i++)
		copies += p->stages[i].copies;
	return p->cpus == 0 || p->cpus >= copies;
}

static bool is_unlimited(const struct model_pipeline *p)
{
	uint32_t q;

	for (q = 0; q < p->queue_count; q++)
		if (isfinite(p->queues[q].capacity))
			return false;
	return true;
}

/* --- formulas --- */

/* The slowest stage, or the CPUs. */
static double slowest(const struct view *v, uint32_t *bottleneck)
{
	const struct model_pipeline *p = v->pipeline;
	double least = INFINITY, work = 0;
	uint32_t i;

	for (i = 0; i < p->stage_count; i++) {
		double rate = p->stages[i].copies * v->rates[i] / v->visits[i];

		work += v->visits[i] / v->rates[i];
		if (rate < least) {
			least = rate;
			*bottleneck = i;
		}
	}
	if (p->cpus == 0 || p->cpus / work >= least)
		return least;
	*bottleneck = UINT32_MAX;
	return p->cpus / work;
}

/*
 * A birth-death process: n items are in the queue, with the second stage's copies, or block the
 * first stage's. Those of the first that are not blocked bear items, those of the second that have
 * one end them. (Kleinrock, Queueing Systems 1, 3.5 and 3.6.)
 */
static double birth_death(const struct view *v)
{
	const struct model_pipeline *p = v->pipeline;
	uint32_t from = p->queues[0].from, to = p->queues[0].to;
	double births = p->stages[from].copies, servers = p->stages[to].copies;
	double space = p->queues[0].capacity + servers, share = 1, shares = 1, served = 0, n;

	for (n = 1; n <= space + births; n++) {
		double bearing = births - fmax(n - 1 - space, 0);

		share *= bearing * v->rates[from] / (fmin(n, servers) * v->rates[to]);
		shares += share;
		served += share * fmin(n, servers) * v->rates[to];
		if (shares > 1e200) {
			share /= 1e200;
			shares /= 1e200;
			served /= 1e200;
		}
	}
	return served / shares;
}

static double formula(const struct view *v, enum model_method method)
{
	uint32_t bottleneck;

	return method == MODEL_MARKOV ? birth_death(v) : slowest(v, &bottleneck);
}

/* The formula's value, and its interval by how it changes with each rate. */
static void by_formula(struct view *v, struct model_prediction *prediction)
{
	double rate = formula(v, prediction->method), variance = 0;
	uint32_t i;

	for (i = 0; i < v->pipeline->stage_count; i++) {
		const double step = 1e-3;
		double kept = v->rates[i], slope;

		v->rates[i] = kept * exp(step);
		slope = log(formula(v, prediction->method) / rate);
		v->rates[i] = kept * exp(-step);
		slope -= log(formula(v, prediction->method) / rate);
		v->rates[i] = kept;
		slope *= v->errors[i] / (2 * step);
		variance += slope * slope;
	}
	prediction->range.rate = rate;
	prediction->range.low = rate * exp(-MODEL_Z_95 * sqrt(variance));
	prediction->range.high = rate * exp(MODEL_Z_95 * sqrt(variance));
}

static int by_simulation(const struct view *v, const struct model_predict_options *options,
			 struct model_prediction *prediction)
{
	double rates[SIMULATIONS_MAX], mean = 0, squares = 0, half;
	uint32_t i, n = options->simulations;
	int rc = model_simulate(v->pipeline, options, rates);

	if (rc < 0)
		return rc;
	for (i = 0; i < n; i++) {
		if (!(rates[i] > 0)) {
			prediction->method = MODEL_UNKNOWN;
			return 0;
		}
		mean += rates[i] / n;
	}
	for (i = 0; i < n; i++)
		squares += (rates[i] - mean) * (rates[i] - mean);
	/* Each simulation is of a sample as likely as ours: their deviation is our error. */
	half = pem_student__quantile(DOUBT, n - 1) * sqrt(squares / (n - 1));
	prediction->range = (struct model_range){mean, fmax(mean - half, 0), mean + half};
	return 0;
}

/* Which formula holds, or MODEL_SIMULATED; -ENOMEM. */
static int choose_method(const struct model_pipeline *p, bool always_simulate)
{
	int rc;

	if (always_simulate)
		return MODEL_SIMULATED;
	if (is_unlimited(p))
		return MODEL_UNLIMITED;
	if (!has_cpus(p))
		return MODEL_SIMULATED;
	if (is_deterministic(p))
		return MODEL_DETERMINISTIC;
	rc = is_markov(p);
	if (rc < 0)
		return rc;
	return rc ? MODEL_MARKOV : MODEL_SIMULATED;
}

int model_predict(const struct model_pipeline *pipeline,
		  const struct model_predict_options *options, struct model_prediction *prediction)
{
	struct model_predict_options o = *options;
	struct model_prediction found = {0};
	struct view view = {.pipeline = pipeline};
	int rc;

	o.services = o.services != 0 ? o.services : SERVICES_DEFAULT;
	o.simulations = o.simulations != 0 ? o.simulations : SIMULATIONS_DEFAULT;
	if (o.simulations < 3 || o.simulations > SIMULATIONS_MAX || !is_valid(pipeline) ||
	    !find_visits(&view))
		return -EINVAL;
	if (find_rates(&view)) {
		slowest(&view, &found.bottleneck);
		rc = choose_method(pipeline, o.always_simulate);
		if (rc < 0)
			return rc;
		found.method = (enum model_method)rc;
		if (found.method != MODEL_SIMULATED)
			by_formula(&view, &found);
		else if ((rc = by_simulation(&view, &o, &found)) < 0)
			return rc;
	}
	*prediction = found;
	return 0;
}
