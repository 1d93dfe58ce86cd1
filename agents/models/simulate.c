// SPDX-License-Identifier: MIT
/*
 * simulate.c - a pipeline whose stages take as long as was measured (contract: pipeline.h)
 *
 * Each simulation resamples blocks of successive intervals (Kuensch, Ann. Stat. 17, 1989): so that
 * correlation stays, and results differ by what the sample leaves open. A copy that has a batch
 * waits for a CPU, in order, and keeps it until its service ends.
 */
#include "models/models.h"
#include "models/pipeline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A queue without limit holds this many batches. */
#define UNLIMITED 1024
#define WARM_SHARE 0.2 /* of services, not counted */
/* Amounts are sums of fractions: less than this of a unit is nothing. */
#define LEAST 1e-6

enum state { WAITS_FOR_ITEMS, WAITS_FOR_CPU, SERVES, GIVES };

struct copy {
	uint32_t stage;
	enum state state;
	double items; /* of the batch */
	double until_ns; /* when it SERVES */
	uint64_t ready; /* order of those that wait for a CPU */
	uint32_t block, in_block; /* position in the resampled intervals */
	double used; /* items of this interval that were served */
};

/* A stage's intervals, resampled. */
struct resample {
	uint32_t *blocks; /* first intervals */
	uint32_t block_count, block_length;
	double scale; /* of times */
};

struct simulation {
	const struct model_pipeline *pipeline;
	struct resample resamples[MODEL_STAGES_MAX];
	double capacity[MODEL_QUEUES_MAX], amount[MODEL_QUEUES_MAX];
	double pending[MODEL_COPIES_MAX][MODEL_QUEUES_MAX];
	struct copy copies[MODEL_COPIES_MAX];
	uint32_t copy_count, running;
	uint64_t random, readied;
	double now_ns, served; /* items of the measured stage */
};

/* --- service times --- */

static const struct model_sums *interval_of(const struct simulation *s, const struct copy *copy)
{
	const struct model_stage *stage = &s->pipeline->stages[copy->stage];
	const struct resample *r = &s->resamples[copy->stage];

	return &stage->sample[(r->blocks[copy->block] + copy->in_block) % stage->sample_count];
}

static void next_interval(const struct simulation *s, struct copy *copy)
{
	const struct resample *r = &s->resamples[copy->stage];

	copy->used = 0;
	if (++copy->in_block < r->block_length)
		return;
	copy->in_block = 0;
	copy->block = (copy->block + 1) % r->block_count;
}

/* The time of items, as the next intervals of the copy's stage had it. */
static double service_time(const struct simulation *s, struct copy *copy, double items)
{
	double time = 0, left = items;

	while (left > LEAST) {
		const struct model_sums *interval = interval_of(s, copy);
		double part = fmin(interval->items - copy->used, left);

		time += interval->items > 0 ? interval->busy_ns * part / interval->items
					    : interval->busy_ns;
		copy->used += part;
		left -= part;
		if (copy->used >= interval->items - LEAST)
			next_interval(s, copy);
	}
	return time * s->resamples[copy->stage].scale;
}

/*
 * Draw blocks of a stage's intervals. Their mean becomes the rate of all intervals, as far as that
 * is known.
 */
static int resample(struct simulation *s, uint32_t stage_index)
{
	const struct model_stage *stage = &s->pipeline->stages[stage_index];
	struct resample *r = &s->resamples[stage_index];
	double items = 0, busy_ns = 0, normal = 0;
	uint32_t i, k, n = stage->sample_count;

	r->block_length = (uint32_t)ceil(2 * cbrt(n));
	r->block_count = (n + r->block_length - 1) / r->block_length;
	r->blocks = calloc(r->block_count, sizeof(*r->blocks));
	if (!r->blocks)
		return -ENOMEM;
	for (i = 0; i < r->block_count; i++) {
		r->blocks[i] = (uint32_t)model_random__below(&s->random, n);
		for (k = 0; k < r->block_length; k++) {
			items += stage->sample[(r->blocks[i] + k) % n].items;
			busy_ns += stage->sample[(r->blocks[i] + k) % n].busy_ns;
		}
	}
	/* Blocks without any item would be served for ever: take the sample as it is. */
	for (i = 0; !(items > 0) && i < r->block_count; i++)
		r->blocks[i] = i * r->block_length;
	r->scale = 1;
	if (!(stage->range.rate > 0 && items > 0 && busy_ns > 0))
		return 0;
	/* A sum of 12 uniform numbers is as good as normal here. */
	for (i = 0; i < 12; i++)
		normal += model_random__share(&s->random) - 0.5;
	r->scale = 1e9 * items / busy_ns / stage->range.rate *
		   exp(normal * model_range__error(&stage->range));
	return 0;
}

/* --- events --- */

/* Give what fits into queues. Returns whether all was given, and notes progress. */
static bool give(struct simulation *s, uint32_t index, bool *progress)
{
	const struct model_pipeline *p = s->pipeline;
	bool is_done = true;
	uint32_t q;

	for (q = 0; q < p->queue_count; q++) {
		double *pending = &s->pending[index][q];
		double part = fmin(*pending, s->capacity[q] - s->amount[q]);

		if (p->queues[q].from != s->copies[index].stage || *pending <= 0)
			continue;
		if (part > 0) {
			*pending = *pending - part <= LEAST ? 0 : *pending - part;
			s->amount[q] += part;
			*progress = true;
		}
		is_done &= *pending <= 0;
	}
	return is_done;
}

/* Items that a copy can take now; 0: it waits. */
static double items_there(const struct simulation *s, uint32_t stage)
{
	const struct model_pipeline *p = s->pipeline;
	double items = p->stages[stage].batch;
	uint32_t q;

	for (q = 0; q < p->queue_count; q++) {
		const struct model_queue *queue = &p->queues[q];
		double there = s->amount[q] / queue->taken;

		if (queue->to != stage)
			continue;
		/* A batch may be larger than its queue. */
		if (!queue->has_bytes &&
		    s->amount[q] + LEAST < fmin(items * queue->taken, s->capacity[q]))
			return 0;
		items = fmin(items, there);
	}
	return items > LEAST ? items : 0;
}

static bool take(struct simulation *s, struct copy *copy)
{
	const struct model_pipeline *p = s->pipeline;
	uint32_t q;

	copy->items = items_there(s, copy->stage);
	if (copy->items == 0)
		return false;
	for (q = 0; q < p->queue_count; q++)
		if (p->queues[q].to == copy->stage) {
			s->amount[q] -= copy->items * p->queues[q].taken;
			if (s->amount[q] < LEAST)
				s->amount[q] = 0;
		}
	copy->state = WAITS_FOR_CPU;
	copy->ready = s->readied++;
	return true;
}

/* Let copies give and take until nothing moves. Later stages come first, they make space. */
static void move_items(struct simulation *s)
{
	bool progress = true;
	uint32_t i;

	while (progress) {
		progress = false;
		for (i = s->copy_count; i-- != 0;) {
			struct copy *copy = &s->copies[i];

			if (copy->state == GIVES && give(s, i, &progress)) {
				copy->state = WAITS_FOR_ITEMS;
				progress = true;
			}
			if (copy->state == WAITS_FOR_ITEMS)
				progress |= take(s, copy);
		}
	}
}

/* Those that have waited longest get the free CPUs. */
static void start_services(struct simulation *s)
{
	uint32_t cpus = s->pipeline->cpus != 0 ? s->pipeline->cpus : UINT32_MAX, i;

	while (s->running < cpus) {
		struct copy *first = NULL;

		for (i = 0; i < s->copy_count; i++)
			if (s->copies[i].state == WAITS_FOR_CPU &&
			    (!first || s->copies[i].ready < first->ready))
				first = &s->copies[i];
		if (!first)
			return;
		first->state = SERVES;
		first->until_ns = s->now_ns + service_time(s, first, first->items);
		s->running++;
	}
}

/* Go on to the end of the next service. Returns false if there is none. */
static bool end_service(struct simulation *s)
{
	const struct model_pipeline *p = s->pipeline;
	struct copy *next = NULL;
	uint32_t i, q;

	for (i = 0; i < s->copy_count; i++)
		if (s->copies[i].state == SERVES &&
		    (!next || s->copies[i].until_ns < next->until_ns))
			next = &s->copies[i];
	if (!next)
		return false;
	s->now_ns = next->until_ns;
	s->running--;
	next->state = GIVES;
	for (q = 0; q < p->queue_count; q++)
		if (p->queues[q].from == next->stage)
			s->pending[next - s->copies][q] = next->items * p->queues[q].given;
	if (next->stage == p->measured)
		s->served += next->items;
	return true;
}

/* --- a simulation --- */

static void set_up_copies(struct simulation *s)
{
	const struct model_pipeline *p = s->pipeline;
	uint32_t i, k;

	for (i = 0; i < p->stage_count; i++)
		for (k = 0; k < p->stages[i].copies; k++) {
			struct copy *copy = &s->copies[s->copy_count++];

			*copy = (struct copy){.stage = i};
			copy->block = (uint32_t)model_random__below(&s->random,
								    s->resamples[i].block_count);
		}
}

static void set_up_queues(struct simulation *s)
{
	const struct model_pipeline *p = s->pipeline;
	uint32_t q;

	for (q = 0; q < p->queue_count; q++) {
		const struct model_queue *queue = &p->queues[q];
		double batch = fmax(queue->given * p->stages[queue->from].batch,
				    queue->taken * p->stages[queue->to].batch);

		s->capacity[q] = fmin(queue->capacity, UNLIMITED * batch);
	}
}

static double simulate_once(struct simulation *s, uint32_t services)
{
	double warm_ns = 0, warm_served = 0;
	uint32_t i;

	set_up_queues(s);
	set_up_copies(s);
	for (i = 0; i < services; i++) {
		move_items(s);
		start_services(s);
		if (!end_service(s))
			return 0;
		if (i == (uint32_t)(WARM_SHARE * services)) {
			warm_ns = s->now_ns;
			warm_served = s->served;
		}
	}
	return s->now_ns > warm_ns ? 1e9 * (s->served - warm_served) / (s->now_ns - warm_ns) : 0;
}

int model_simulate(const struct model_pipeline *pipeline,
		   const struct model_predict_options *options, double *rates)
{
	struct simulation *s = malloc(sizeof(*s));
	uint32_t i, k;
	int rc = 0;

	if (!s)
		return -ENOMEM;
	for (i = 0; rc == 0 && i < options->simulations; i++) {
		memset(s, 0, sizeof(*s));
		s->pipeline = pipeline;
		s->random = options->seed + i;
		for (k = 0; rc == 0 && k < pipeline->stage_count; k++)
			rc = resample(s, k);
		if (rc == 0)
			rates[i] = simulate_once(s, options->services);
		for (k = 0; k < pipeline->stage_count; k++)
			free(s->resamples[k].blocks);
	}
	free(s);
	return rc;
}
