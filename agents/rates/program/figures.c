/* SPDX-License-Identifier: MIT */
/* figures.c - what is told of a stage and of the pipeline, in numbers */
#include "program/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A service is known if it can't be longer by more than this part of it. */
#define DOUBT_SHARE 10u

/* What a stage has of this program. */
struct stage_rates {
	struct model_service service;
	struct model_change change;
	struct model_sums
		sample[RATES_SAMPLE]; /* the last intervals, of bytes: interval i at i % */
	uint64_t sampled;
	uint64_t left_bytes; /* that are no whole block yet */
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

int rates_figures__add(void **user, uint64_t items, uint64_t service_ns, bool has_lost)
{
	struct stage_rates *rates = rates_of(user);

	if (!rates || model_service__add(&rates->service, items, service_ns, has_lost))
		return -ENOMEM;
	if (!has_lost)
		model_change__add(&rates->change, items, service_ns);
	return 0;
}

int rates_figures__served(void *arg, struct rate_process *stage, uint64_t bytes,
			  uint64_t service_ns, bool has_lost)
{
	struct rates_run *run = arg;
	struct stage_rates *rates = rates_of(&stage->user);

	if (!rates)
		return -ENOMEM;
	rates->sample[rates->sampled++ % RATES_SAMPLE] =
		(struct model_sums){.items = (double)bytes, .busy_ns = (double)service_ns};
	return rates_figures__add(&stage->user, items_of(run->request, rates, bytes), service_ns,
				  has_lost);
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

static void show_process(const struct rates_run *run, struct rate_process *p, struct rates_stage *s)
{
	s->process = p;
	s->name = p->name;
	s->own_name = p->process->name;
	s->pid = p->process->pid;
	s->level = p->level;
	s->has_bytes = run->request->items == RATES_BYTES;
	s->items = rates_figures__items(run->request, p);
	s->has_items = true;
	s->lifetime_ns = p->end_ns - p->begin_ns;
	s->service_ns = s->service_max_ns = rate_process__service_ns(p);
	s->runs_ns = p->ns[RATE_RUNS];
	s->for_cpu_ns = p->ns[RATE_FOR_CPU];
	s->blocked_in_ns = p->ns[RATE_BLOCKED_IN] + p->polled_in_ns;
	s->blocked_out_ns = p->ns[RATE_BLOCKED_OUT] + p->polled_out_ns;
	/* What it polled for last is not known either. */
	s->unknown_ns = p->ns[RATE_UNTOLD] + p->ns[RATE_POLLS] - p->polled_in_ns - p->polled_out_ns;
	s->held = run->held_ns ? (double)rate_process__held_ns(p) / (double)run->held_ns : 0;
	s->rates = p->user;
}

static void show_thread(const struct rates_run *run, struct rates_thread *t, struct rates_stage *s)
{
	const struct pem_streams_service *did = &t->did;

	s->name = t->name;
	s->own_name = t->stage;
	s->pid = t->pid;
	s->tid = t->tid;
	s->level = t->level;
	s->items = t->moved[t->takes];
	s->has_items = !t->is_short;
	s->lifetime_ns = did->wall_ns + t->unknown_ns;
	s->service_ns = did->busy_ns;
	s->service_max_ns = did->high_ns;
	/* A thread also runs while it spins for a queue. */
	s->runs_ns = did->run_ns < did->busy_ns ? did->run_ns : did->busy_ns;
	s->for_cpu_ns = did->for_cpu_ns;
	s->blocked_in_ns = did->blocked_in_ns;
	s->blocked_out_ns = did->blocked_out_ns;
	s->unknown_ns = t->unknown_ns;
	s->held = rates_threads__held(run->threads, t);
	s->rates = t->rates;
}

size_t rates_stage__count(const struct rates_run *run)
{
	return run->seen->stage_count + run->threads->stage_count;
}

void rates_stage__get(const struct rates_run *run, size_t i, struct rates_stage *s)
{
	size_t processes = run->seen->stage_count;

	memset(s, 0, sizeof(*s));
	if (i < processes)
		show_process(run, run->seen->stages[i], s);
	else
		show_thread(run, run->threads->stages[i - processes], s);
}

static void name_stages(struct rates_run *run)
{
	struct rates_stage s, other;
	size_t i, k, same;

	for (i = 0; i < rates_stage__count(run); i++) {
		rates_stage__get(run, i, &s);
		for (k = same = 0; k < i; k++) {
			rates_stage__get(run, k, &other);
			same += !strcmp(other.own_name, s.own_name);
		}
		if (!*s.own_name)
			snprintf(s.name, RATE_STAGE_BYTES, "%u", s.tid ? s.tid : s.pid);
		else
			snprintf(s.name, RATE_STAGE_BYTES, same ? "%s#%zu" : "%s", s.own_name,
				 same + 1);
	}
}

int rates_figures__refresh(struct rates_run *run)
{
	int rc = rate_observation__arrange(run->observation);

	rates_threads__arrange(run->threads);
	name_stages(run);
	run->held_ns = all_held(run);
	return rc;
}

void rates_figures__estimate(const void *user, struct model_estimate *e)
{
	const struct stage_rates *rates = user;

	memset(e, 0, sizeof(*e));
	if (rates)
		model_service__estimate(&rates->service, e);
}

void rates_stage__rate(const struct rates_stage *s, struct rates_rate *rate)
{
	const struct stage_rates *rates = s->rates;
	struct model_estimate *e = &rate->estimate;
	uint64_t before;

	rates_figures__estimate(rates, e);
	rate->phase_count = rates ? model_change__phases(&rates->change, rate->phases, &before) : 0;
	if (s->service_max_ns)
		e->range.low *= (double)s->service_ns / (double)s->service_max_ns;
	if ((s->service_max_ns - s->service_ns) * DOUBT_SHARE > s->service_ns) {
		e->has_rate = e->known = false;
		rate->phase_count = 0;
	}
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
	double longest_ns = (double)run->seen->outside_ns;

	if (slow) {
		thread = rates_threads__bottleneck(run->threads, slow->process->pid);
		longest_ns = (double)rate_process__held_ns(slow);
	}
	if (thread)
		return thread;
	thread = rates_threads__bottleneck(run->threads, 0);
	return thread && rates_threads__held(run->threads, thread) *
					       (double)(thread->did.wall_ns + thread->unknown_ns) >
				       2 * longest_ns
		       ? thread
		       : NULL;
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
