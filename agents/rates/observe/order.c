/* SPDX-License-Identifier: MIT */
/* order.c - which processes are stages, in which order, and what the last ones wait for */
#include "observe/observation.h"

#include "grow.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* --- stages and queues --- */

static int find_queues(struct rate_observation *o)
{
	size_t i, k;

	for (i = 0; i < o->process_count; i++)
		if (o->processes[i])
			o->processes[i]->feeds = 0;
	o->queue_count = 0;
	for (i = 0; i < o->file_count; i++) {
		struct rate_pipe *queue = o->files[i];

		if (!queue || !rate_pipe__is_stream(queue))
			continue;
		if (pem_grow(&o->queues, sizeof(*o->queues), o->queue_count + 1,
			     &o->queue_capacity))
			return -ENOMEM;
		o->queues[o->queue_count++] = queue;
		for (k = 0; k < queue->writer_count; k++)
			queue->writers[k]->feeds++;
	}
	return 0;
}

static bool is_one_of(struct rate_process *const *stages, size_t count,
		      const struct rate_process *s)
{
	while (count > 0)
		if (stages[--count] == s)
			return true;
	return false;
}

/* Does the stage read what one that is not in order yet writes? */
static bool waits_for_another(const struct rate_observation *o, const struct rate_process *stage)
{
	size_t i, k;

	for (i = 0; i < o->queue_count; i++) {
		const struct rate_pipe *queue = o->queues[i];

		if (!is_one_of(queue->readers, queue->reader_count, stage))
			continue;
		for (k = 0; k < queue->writer_count; k++)
			if (!is_one_of(o->stages, o->stage_count, queue->writers[k]))
				return true;
	}
	return false;
}

static bool is_in_a_queue(const struct rate_observation *o, const struct rate_process *stage)
{
	size_t i;

	for (i = 0; i < o->queue_count; i++)
		if (is_one_of(o->queues[i]->readers, o->queues[i]->reader_count, stage) ||
		    is_one_of(o->queues[i]->writers, o->queues[i]->writer_count, stage))
			return true;
	return false;
}

/* The next stage in order; of a cycle, the first one that the pass met. NULL: there is no more. */
static struct rate_process *next_stage(const struct rate_observation *o)
{
	struct rate_process *any = NULL;
	size_t i;

	for (i = 0; i < o->process_count; i++) {
		struct rate_process *stage = o->processes[i];

		if (!stage || !is_in_a_queue(o, stage) ||
		    is_one_of(o->stages, o->stage_count, stage))
			continue;
		if (!waits_for_another(o, stage))
			return stage;
		if (!any)
			any = stage;
	}
	return any;
}

/* Several stages may run one program. */
static void name_stages(struct rate_observation *o)
{
	size_t i, k, same;

	for (i = 0; i < o->stage_count; i++) {
		const struct pem_pass_process *process = o->stages[i]->process;

		same = 1;
		for (k = 0; k < i; k++)
			same += !strcmp(o->stages[k]->process->name, process->name);
		if (!*process->name)
			snprintf(o->stages[i]->name, sizeof(o->stages[i]->name), "%u",
				 process->pid);
		else if (same > 1)
			snprintf(o->stages[i]->name, sizeof(o->stages[i]->name), "%s#%zu",
				 process->name, same);
		else
			snprintf(o->stages[i]->name, sizeof(o->stages[i]->name), "%s",
				 process->name);
	}
}

int rate_observation__arrange(struct rate_observation *o)
{
	struct rate_process *stage;

	if (o->is_changed) {
		if (find_queues(o))
			return -ENOMEM;
		o->stage_count = 0;
		while ((stage = next_stage(o))) {
			if (pem_grow(&o->stages, sizeof(*o->stages), o->stage_count + 1,
				     &o->stage_capacity))
				return -ENOMEM;
			o->stages[o->stage_count++] = stage;
		}
		o->is_changed = false;
	}
	name_stages(o);
	return 0;
}

size_t rate_observation__process_count(const struct rate_observation *o)
{
	return o->process_count;
}

struct rate_process *rate_observation__process(const struct rate_observation *o, size_t i)
{
	return i < o->process_count ? o->processes[i] : NULL;
}

size_t rate_observation__stage_count(const struct rate_observation *o)
{
	return o->stage_count;
}

struct rate_process *rate_observation__stage(const struct rate_observation *o, size_t i)
{
	return i < o->stage_count ? o->stages[i] : NULL;
}

size_t rate_observation__queue_count(const struct rate_observation *o)
{
	return o->queue_count;
}

struct rate_pipe *rate_observation__queue(const struct rate_observation *o, size_t i)
{
	return i < o->queue_count ? o->queues[i] : NULL;
}

/* --- what the last stages wait for --- */

uint64_t rate_observation__outside_ns(const struct rate_observation *o)
{
	return o->outside_ns;
}

/* One that uses this end of the queue and has not ended; one that is not blocked, if there is. */
static struct rate_process *live(struct rate_process *const *stages, size_t count)
{
	struct rate_process *any = NULL;

	while (count-- > 0) {
		if (stages[count]->has_ended)
			continue;
		any = stages[count];
		if (any->doing != RATE_BLOCKED_IN && any->doing != RATE_BLOCKED_OUT)
			break;
	}
	return any;
}

/* The stage that another one waits for; NULL: it waits for none. */
static struct rate_process *waits_for(const struct rate_observation *o,
				      const struct rate_process *stage)
{
	size_t i;

	if (stage->doing == RATE_BLOCKED_IN && stage->on)
		return live(stage->on->writers, stage->on->writer_count);
	if (stage->doing == RATE_BLOCKED_OUT && stage->on)
		return live(stage->on->readers, stage->on->reader_count);
	/* One that polls most often waits for its input. */
	for (i = 0; stage->doing == RATE_POLLS && i < o->queue_count; i++)
		if (is_one_of(o->queues[i]->readers, o->queues[i]->reader_count, stage))
			return live(o->queues[i]->writers, o->queues[i]->writer_count);
	return NULL;
}

void rate_order__charge(struct rate_observation *o, uint64_t now_ns)
{
	uint64_t ns = now_ns > o->held_ns ? now_ns - o->held_ns : 0;
	struct rate_process *stage, *next;
	size_t i, steps;

	if (!ns)
		return;
	o->held_ns = now_ns;
	for (i = 0; i < o->stage_count; i++) {
		stage = o->stages[i];
		if (stage->has_ended || stage->feeds || !stage->inputs)
			continue;
		/* In a cycle there may be no end of it. */
		for (steps = 0; steps <= o->stage_count && (next = waits_for(o, stage)); steps++)
			stage = next;
		if (stage->doing == RATE_BLOCKED_IN || stage->doing == RATE_BLOCKED_OUT)
			o->outside_ns += ns;
		else
			stage->held_ns[stage->doing] += ns;
	}
}
