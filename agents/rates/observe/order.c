/* SPDX-License-Identifier: MIT */
/* order.c - which processes are stages, in which order, and what the last ones wait for */
#include "observe/observation.h"

#include "grow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- stages and queues --- */

#define ROUNDS_MAX 64u /* stages in a row whose order is told */
/* Pipes come and go; which of them join processes is looked at as often as this. */
#define ARRANGE_NS 1000000u
#define ARRANGE_EACH_NS 1000u /* more for each process and file */

static int add_stage(struct rate_observation *o, struct rate_process *process)
{
	if (process->is_listed)
		return 0;
	if (pem_grow(&o->seen.stages, sizeof(*o->seen.stages), o->seen.stage_count + 1,
		     &o->stage_capacity))
		return -ENOMEM;
	process->is_listed = true;
	process->level = 0;
	o->seen.stages[o->seen.stage_count++] = process;
	return 0;
}

static int add_queue(struct rate_observation *o, struct rate_pipe *queue)
{
	size_t i;
	int rc = 0;

	if (pem_grow(&o->seen.queues, sizeof(*o->seen.queues), o->seen.queue_count + 1,
		     &o->queue_capacity))
		return -ENOMEM;
	o->seen.queues[o->seen.queue_count++] = queue;
	for (i = 0; !rc && i < queue->writers.count; i++) {
		queue->writers.list[i].stage->feeds++;
		rc = add_stage(o, queue->writers.list[i].stage);
	}
	for (i = 0; !rc && i < queue->readers.count; i++)
		rc = add_stage(o, queue->readers.list[i].stage);
	return rc;
}

/* Stages that give nothing on: what they wait for holds up the pipeline. */
static int find_sinks(struct rate_observation *o)
{
	size_t i;

	o->sink_count = 0;
	for (i = 0; i < o->seen.stage_count; i++) {
		if (o->seen.stages[i]->has_ended || o->seen.stages[i]->feeds ||
		    !o->seen.stages[i]->inputs)
			continue;
		if (pem_grow(&o->sinks, sizeof(*o->sinks), o->sink_count + 1, &o->sink_capacity))
			return -ENOMEM;
		o->sinks[o->sink_count++] = o->seen.stages[i];
	}
	return 0;
}

static int find_queues(struct rate_observation *o)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < o->seen.process_count; i++)
		if (o->seen.processes[i]) {
			o->seen.processes[i]->feeds = 0;
			o->seen.processes[i]->is_listed = false;
		}
	o->seen.queue_count = o->seen.stage_count = 0;
	for (i = 0; !rc && i < o->file_count; i++)
		if (o->files[i] && rate_pipe__is_stream(o->files[i]))
			rc = add_queue(o, o->files[i]);
	return rc;
}

/* A stage's level is one more than the highest of those whose output it reads. */
static bool raise_levels(const struct rate_pipe *queue)
{
	uint32_t level = 0;
	bool is_raised = false;
	size_t i;

	for (i = 0; i < queue->writers.count; i++)
		if (queue->writers.list[i].stage->level >= level)
			level = queue->writers.list[i].stage->level + 1;
	for (i = 0; i < queue->readers.count; i++)
		if (queue->readers.list[i].stage->level < level) {
			queue->readers.list[i].stage->level = level;
			is_raised = true;
		}
	return is_raised;
}

static int by_level(const void *a, const void *b)
{
	const struct rate_process *one = *(struct rate_process *const *)a;
	const struct rate_process *other = *(struct rate_process *const *)b;

	if (one->level != other->level)
		return one->level < other->level ? -1 : 1;
	return one->process->number < other->process->number ? -1 : 1;
}

/* In a cycle levels rise for ever: then the order is that of the first rounds. */
static void sort_stages(struct rate_observation *o)
{
	bool is_raised = true;
	size_t i, round;

	for (round = 0; is_raised && round < ROUNDS_MAX; round++) {
		is_raised = false;
		for (i = 0; i < o->seen.queue_count; i++)
			is_raised |= raise_levels(o->seen.queues[i]);
	}
	if (o->seen.stage_count)
		qsort(o->seen.stages, o->seen.stage_count, sizeof(*o->seen.stages), by_level);
}

int rate_observation__arrange(struct rate_observation *o)
{
	int rc = o->is_changed ? find_queues(o) : 0;

	if (rc)
		return rc;
	if (o->is_changed) {
		sort_stages(o);
		rc = find_sinks(o);
	}
	o->is_changed = false;
	o->arranged_ns = o->now_ns;
	return rc;
}

int rate_order__follow(struct rate_observation *o)
{
	/* The more there is to be looked at, the more seldom. */
	uint64_t pause_ns = ARRANGE_NS + (o->seen.process_count + o->file_count) * ARRANGE_EACH_NS;
	bool is_due = o->is_changed && o->now_ns - o->arranged_ns >= pause_ns;

	return is_due ? rate_observation__arrange(o) : 0;
}

/* --- what the last stages wait for --- */

/* One that uses this end of the queue and has not ended; one that is not blocked, if there is. */
static struct rate_process *live(const struct rate_ends *ends)
{
	struct rate_process *any = NULL;
	size_t count = ends->count;

	while (count-- > 0) {
		if (ends->list[count].stage->has_ended)
			continue;
		any = ends->list[count].stage;
		if (any->doing != RATE_BLOCKED_IN && any->doing != RATE_BLOCKED_OUT)
			break;
	}
	return any;
}

/*
 * What a stage that polls waits for: its input, unless that is there, since the one that writes it
 * waits for this stage to read; then the one of its readers that has something to do.
 */
static struct rate_process *polls_for(const struct rate_observation *o,
				      const struct rate_process *stage)
{
	struct rate_process *before = NULL, *after = NULL, *other;
	size_t i;

	for (i = 0; i < o->seen.queue_count; i++) {
		if (!before && rate_ends__find(&o->seen.queues[i]->readers, stage)) {
			before = live(&o->seen.queues[i]->writers);
		} else if (rate_ends__find(&o->seen.queues[i]->writers, stage)) {
			other = live(&o->seen.queues[i]->readers);
			if (other && (!after || after->doing == RATE_BLOCKED_IN))
				after = other;
		}
	}
	if (before && before->doing != RATE_BLOCKED_OUT)
		return before;
	return after ? after : before;
}

/* The stage that another one waits for; NULL: it waits for none. */
static struct rate_process *waits_for(const struct rate_observation *o,
				      const struct rate_process *stage)
{
	if (stage->doing == RATE_BLOCKED_IN && stage->on)
		return live(&stage->on->writers);
	if (stage->doing == RATE_BLOCKED_OUT && stage->on)
		return live(&stage->on->readers);
	return stage->doing == RATE_POLLS ? polls_for(o, stage) : NULL;
}

static void charge(struct rate_observation *o, struct rate_process *stage, uint64_t ns)
{
	struct rate_process *next = waits_for(o, stage);
	size_t steps;

	for (steps = 0; next && steps <= o->seen.stage_count; steps++) {
		stage = next;
		next = waits_for(o, stage);
	}
	/* Unknown: they wait for each other in a circle, or records were lost. */
	if (next || (stage->doing == RATE_UNTOLD && !stage->feeds))
		return;
	if (stage->doing == RATE_BLOCKED_IN || stage->doing == RATE_BLOCKED_OUT)
		o->seen.outside_ns += ns;
	else
		stage->held_ns[stage->doing] += ns;
}

void rate_order__charge(struct rate_observation *o, uint64_t now_ns)
{
	uint64_t ns = now_ns > o->held_ns ? now_ns - o->held_ns : 0;
	size_t i, kept = 0;

	if (!ns)
		return;
	o->held_ns = now_ns;
	for (i = 0; i < o->sink_count; i++) {
		if (o->sinks[i]->has_ended)
			continue;
		charge(o, o->sinks[i], ns);
		o->sinks[kept++] = o->sinks[i];
	}
	o->sink_count = kept;
}
