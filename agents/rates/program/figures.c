/* SPDX-License-Identifier: MIT */
/* figures.c - what is told of a stage and of the pipeline, in numbers */
#include "program/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a stage has of this program. */
struct stage_rates {
	struct model_service service;
	struct model_change change;
	struct model_sums
		sample[RATES_SAMPLE]; /* the last intervals, of bytes: interval i at i % */
	uint64_t sampled;
	uint64_t left_bytes; /* that are no whole block yet */
	bool has_lost;
};

static struct stage_rates *rates_of(void **user)
{
	struct stage_rates *rates = *user;

	if (rates)
		return rates;
	rates = calloc(1, sizeof(*rates));
	if (rates)
		model_change__begin(&rates->change);
	*user = rates;
	return rates;
}

static uint64_t items_of(const struct rates_request *request, struct stage_rates *rates,
			 uint64_t bytes)
{
	uint64_t items;

	if (request->items == RATES_BYTES)
		return bytes;
	if (request->items == RATES_OPERATIONS)
		return bytes > 0;
	rates->left_bytes += bytes;
	items = rates->left_bytes / request->block_bytes;
	rates->left_bytes %= request->block_bytes;
	return items;
}

uint64_t rates_figures__items(const struct rates_request *request, const struct rate_process *stage)
{
	uint64_t bytes = stage->inputs ? stage->bytes_in : stage->bytes_out;

	if (request->items == RATES_OPERATIONS)
		return stage->inputs ? stage->reads : stage->writes;
	return request->items == RATES_BYTES ? bytes : bytes / request->block_bytes;
}

int rates_figures__add(void **user, uint64_t items, uint64_t service_ns)
{
	struct stage_rates *rates = rates_of(user);

	if (!rates || model_service__add(&rates->service, items, service_ns, rates->has_lost))
		return -ENOMEM;
	if (!rates->has_lost)
		model_change__add(&rates->change, items, service_ns);
	rates->has_lost = false;
	return 0;
}

int rates_figures__served(void *arg, struct rate_process *stage, uint64_t bytes,
			  uint64_t service_ns)
{
	struct rates_run *run = arg;
	struct stage_rates *rates = rates_of(&stage->user);

	if (!rates)
		return -ENOMEM;
	rates->sample[rates->sampled++ % RATES_SAMPLE] =
		(struct model_sums){.items = (double)bytes, .busy_ns = (double)service_ns};
	return rates_figures__add(&stage->user, items_of(run->request, rates, bytes), service_ns);
}

void rates_figures__lose(struct rates_run *run)
{
	size_t i;

	/* Also those that are not arranged as stages yet. */
	for (i = 0; i < run->seen->process_count; i++) {
		const struct rate_process *stage = run->seen->processes[i];

		if (stage && stage->user)
			((struct stage_rates *)stage->user)->has_lost = true;
	}
}

void rates_figures__drop(void *user)
{
	struct stage_rates *rates = user;

	if (rates)
		model_service__free(&rates->service);
	free(rates);
}

void rates_figures__free(struct rates_run *run)
{
	size_t i;

	for (i = 0; run->seen && i < run->seen->process_count; i++)
		if (run->seen->processes[i])
			rates_figures__drop(run->seen->processes[i]->user);
}

uint32_t rates_figures__sample(const struct rate_process *stage, const struct model_sums **sample)
{
	const struct stage_rates *rates = stage->user;

	*sample = rates ? rates->sample : NULL;
	if (!rates)
		return 0;
	return rates->sampled < RATES_SAMPLE ? (uint32_t)rates->sampled : RATES_SAMPLE;
}

/* How long the last stages waited for any, or worked themselves. */
static uint64_t all_held(const struct rates_run *run)
{
	uint64_t sum = run->seen->outside_ns;
	size_t i;

	for (i = 0; i < run->seen->stage_count; i++)
		sum += rate_process__held_ns(run->seen->stages[i]);
	return sum;
}

int rates_figures__refresh(struct rates_run *run)
{
	int rc = rate_observation__arrange(run->observation);

	rates_threads__arrange(run->threads, run->seen);
	run->held_ns = all_held(run);
	return rc;
}

void rates_figures__estimate(const void *user, struct rates_figures *f)
{
	const struct stage_rates *rates = user;
	uint64_t before;

	if (!rates)
		return;
	model_service__estimate(&rates->service, &f->estimate);
	f->is_rate_known = rates->service.items && rates->service.intervals >= MODEL_INTERVALS_MIN;
	if (f->is_rate_known && !f->estimate.known) {
		f->estimate.items = rates->service.items;
		f->estimate.range.rate =
			(double)rates->service.items * 1e9 / rates->service.busy_ns;
	}
	f->phase_count = model_change__phases(&rates->change, f->phases, &before);
}

void rates_figures__of(const struct rates_run *run, const struct rate_process *stage,
		       struct rates_figures *f)
{
	uint64_t all = run->held_ns;

	memset(f, 0, sizeof(*f));
	f->lifetime_ns = stage->end_ns - stage->begin_ns;
	f->service_ns = rate_process__service_ns(stage);
	f->runs_ns = stage->ns[RATE_RUNS];
	f->waits_ns = stage->ns[RATE_WAITS] + stage->ns[RATE_SLEEPS];
	f->for_cpu_ns = stage->ns[RATE_FOR_CPU];
	f->blocked_in_ns = rate_process__blocked_in_ns(stage);
	f->blocked_out_ns = rate_process__blocked_out_ns(stage);
	/* What it polled for last is not known either. */
	f->unknown_ns = stage->ns[RATE_UNTOLD] + stage->ns[RATE_POLLS] - stage->polled_in_ns -
			stage->polled_out_ns;
	f->held = all ? (double)rate_process__held_ns(stage) / (double)all : 0;
	rates_figures__estimate(stage->user, f);
}

const struct rate_process *rates_figures__bottleneck(const struct rates_run *run)
{
	const struct rate_process *most = NULL;
	uint64_t longest = run->seen->outside_ns;
	size_t i;

	for (i = 0; i < run->seen->stage_count; i++) {
		const struct rate_process *stage = run->seen->stages[i];

		if (rate_process__held_ns(stage) > longest) {
			longest = rate_process__held_ns(stage);
			most = stage;
		}
	}
	return most;
}

const struct rates_thread *rates_figures__slow_thread(const struct rates_run *run)
{
	const struct rate_process *slow = rates_figures__bottleneck(run);
	const struct rates_thread *thread = NULL;
	struct rates_figures f;
	double longest = (double)run->seen->outside_ns;

	if (slow) {
		thread = rates_threads__bottleneck(run->threads, slow->process->pid);
		longest = (double)rate_process__held_ns(slow);
	}
	if (thread)
		return thread;
	thread = rates_threads__bottleneck(run->threads, 0);
	if (thread)
		rates_threads__figures(run->threads, thread, &f);
	return thread && f.held * (double)f.lifetime_ns > 2 * longest ? thread : NULL;
}

const char *rates_figures__unit(const struct rates_request *request)
{
	switch (request->items) {
	case RATES_BYTES:
		return "bytes";
	case RATES_OPERATIONS:
		return "operations";
	default:
		return cli_format("blocks of %s", cli_bytes(request->block_bytes));
	}
}
