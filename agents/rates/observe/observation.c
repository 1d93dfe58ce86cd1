/* SPDX-License-Identifier: MIT */
/*
 * observation.c - records to threads and stages: what each does, and for how long
 *
 * A pass tells what a thread did when it stops doing it. What a thread does now is in the thread.
 * So after each record the threads that its spans are of, and the one that raised it, are compared
 * with what was known of them. Times of one stage never go back: what is known late counts from
 * when it is known.
 */
#include "observe/observation.h"

#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct rate_observation *rate_observation__new(rate_served *served, void *arg)
{
	struct rate_observation *o = calloc(1, sizeof(*o));

	if (o) {
		o->served = served;
		o->arg = arg;
	}
	return o;
}

void rate_observation__free(struct rate_observation *o)
{
	struct rate_thread *t;
	size_t i;

	if (!o)
		return;
	for (i = 0; i < o->seen.process_count; i++)
		free(o->seen.processes[i]);
	for (i = 0; i < o->file_count; i++)
		rate_pipe__free(o->files[i]);
	while (o->threads) {
		t = o->threads;
		o->threads = t->next;
		free(t);
	}
	free(o->seen.processes);
	free(o->files);
	free(o->seen.stages);
	free(o->seen.queues);
	free(o->sinks);
	free(o);
}

const struct rate_observed *rate_observation__seen(const struct rate_observation *o)
{
	return &o->seen;
}

/* --- stages --- */

static struct rate_process *stage_of(struct rate_observation *o,
				     const struct pem_pass_process *process, uint64_t now_ns)
{
	struct rate_process *stage;

	if (pem_grow_zeros(&o->seen.processes, sizeof(*o->seen.processes), process->number + 1ul,
			   &o->seen.process_count, &o->process_capacity))
		return NULL;
	stage = o->seen.processes[process->number];
	if (stage)
		return stage;
	stage = calloc(1, sizeof(*stage));
	if (!stage)
		return NULL;
	stage->process = process;
	stage->doing = RATE_UNTOLD;
	stage->begin_ns = stage->end_ns = stage->since_ns = now_ns;
	o->seen.processes[process->number] = stage;
	return stage;
}

/* The first of what its threads do; RATE_DOINGS: it has none. */
static enum rate_doing first_doing(const struct rate_process *stage)
{
	unsigned doing = 0;

	while (doing < RATE_DOINGS && !stage->threads[doing])
		doing++;
	return (enum rate_doing)doing;
}

void rate_process__turn(struct rate_observation *o, struct rate_process *stage, uint64_t now_ns)
{
	enum rate_doing doing = first_doing(stage);

	if (now_ns > stage->since_ns) {
		if (!stage->has_ended)
			stage->ns[stage->doing] += now_ns - stage->since_ns;
		stage->since_ns = now_ns;
	}
	if (doing == stage->doing)
		return;
	rate_order__charge(o, now_ns);
	/* No thread is left, or none has been seen yet. */
	stage->doing = doing == RATE_DOINGS ? RATE_UNTOLD : doing;
}

/* --- threads --- */

static struct rate_thread *thread_of(struct rate_observation *o,
				     const struct pem_pass_thread *thread, uint64_t now_ns)
{
	struct rate_thread *t = thread->user;

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->stage = stage_of(o, thread->process, now_ns);
	if (!t->stage) {
		free(t);
		return NULL;
	}
	t->doing = RATE_DOINGS; /* nothing yet */
	t->since_ns = now_ns;
	t->next = o->threads;
	o->threads = t;
	pem_pass_thread__set_user(thread, t);
	return t;
}

/* A read of a disk ends by itself; one of a socket or a terminal may never end. */
static bool ends_by_itself(const struct pem_pass_file *file)
{
	return *file->path == '/' && strncmp(file->path, "/dev/", 5) != 0;
}

/* What a thread that has just blocked waits for. call: the innermost that it is in, or NULL. */
static enum rate_doing blocked_in(struct rate_observation *o, struct rate_thread *t,
				  const struct pem_interval *call)
{
	enum pem_call_kind kind = call ? rate_call__of(o, call) : PEM_CALL_OTHER;
	struct rate_pipe *queue;

	if (kind == PEM_CALL_POLLS || kind == PEM_CALL_SPLICES)
		return RATE_POLLS;
	queue = kind != PEM_CALL_OTHER && call->file ? rate_pipe__of(o, call->file) : NULL;
	if (!queue)
		return call && call->file && ends_by_itself(call->file) ? RATE_WAITS : RATE_SLEEPS;
	t->on = t->stage->on = queue;
	queue->blocks++;
	return kind == PEM_CALL_READS ? RATE_BLOCKED_IN : RATE_BLOCKED_OUT;
}

/* The thread has done what it did until now. */
static void account(struct rate_thread *t, uint64_t now_ns)
{
	uint64_t ns = now_ns > t->since_ns ? now_ns - t->since_ns : 0;

	if (t->doing == RATE_BLOCKED_IN && t->on)
		t->on->read_blocked_ns += ns;
	else if (t->doing == RATE_BLOCKED_OUT && t->on)
		t->on->write_blocked_ns += ns;
	if (now_ns > t->since_ns)
		t->since_ns = now_ns;
}

static void change(struct rate_observation *o, struct rate_thread *t, enum rate_doing doing,
		   uint64_t now_ns)
{
	account(t, now_ns);
	if (doing == t->doing)
		return;
	if (t->doing != RATE_DOINGS)
		t->stage->threads[t->doing]--;
	if (doing != RATE_DOINGS)
		t->stage->threads[doing]++;
	t->doing = doing;
	rate_process__turn(o, t->stage, now_ns);
}

/* Follow a thread. call: what it is in, if it has just blocked. */
static int follow(struct rate_observation *o, const struct pem_pass_thread *thread,
		  const struct pem_interval *call)
{
	uint64_t now_ns = o->now_ns, since_ns = thread->since_ns;
	struct rate_thread *t;
	enum rate_doing doing;

	if (!thread->process)
		return 0;
	t = thread_of(o, thread, now_ns);
	if (!t)
		return -ENOMEM;
	/* Threads may do something else since an earlier time than that of the record. */
	if (since_ns != PEM_TIME_UNKNOWN && since_ns < now_ns && since_ns >= t->since_ns)
		now_ns = since_ns;
	switch (thread->state) {
	case PEM_THREAD_RUNNING:
		doing = RATE_RUNS;
		break;
	case PEM_THREAD_RUNNABLE:
		doing = RATE_FOR_CPU;
		break;
	case PEM_THREAD_BLOCKED:
		/* Why it blocks is told by the record that it blocks with. */
		if (t->doing >= RATE_WAITS && t->doing != RATE_DOINGS)
			return 0;
		doing = blocked_in(o, t, call);
		break;
	case PEM_THREAD_ENDED:
		doing = RATE_DOINGS;
		break;
	default:
		doing = RATE_UNTOLD;
	}
	change(o, t, doing, now_ns);
	return 0;
}

/* --- records --- */

/* What the call that the record ends returned; false: the record ends none. */
static bool result_of(const struct pem_record *record, const struct pem_around *around,
		      const struct pem_ended **ended, int64_t *result)
{
	int field = pem_event__field_by_role(record->event, PEM_ROLE_VALUE);
	size_t i;

	if (field < 0 || record->event->meaning != PEM_MEANS_INTERVAL_END)
		return false;
	for (i = 0; i < around->ended_count; i++) {
		*ended = &around->ended[i];
		if ((*ended)->outcome == PEM_INTERVAL_ENDED &&
		    (*ended)->end_ns == record->time_ns &&
		    (*ended)->interval->thread == around->thread) {
			*result = pem_record__i64(record, (unsigned)field);
			return true;
		}
	}
	return false;
}

static int end_stage(struct rate_observation *o, struct rate_process *stage)
{
	rate_process__turn(o, stage, o->now_ns);
	rate_order__charge(o, o->now_ns);
	stage->has_ended = true;
	return rate_process__finish(o, stage);
}

int rate_observation__take(struct rate_observation *o, const struct pem_record *record,
			   const struct pem_around *around)
{
	const struct pem_pass_thread *thread = around->thread;
	const struct pem_ended *ended;
	struct rate_process *stage;
	int64_t result;
	size_t i;
	int rc = 0;

	o->now_ns = record->time_ns;
	for (i = 0; !rc && i < around->span_count; i++)
		if (around->spans[i].thread != thread)
			rc = follow(o, around->spans[i].thread, NULL);
	if (rc || !thread || !thread->process)
		return rc;
	rc = follow(o, thread, around->interval);
	stage = rc ? NULL : stage_of(o, thread->process, o->now_ns);
	if (!stage)
		return -ENOMEM;
	/* After its end a process is still switched away from. */
	if (!stage->has_ended || thread->state != PEM_THREAD_ENDED)
		stage->end_ns = o->now_ns;
	if (result_of(record, around, &ended, &result))
		rc = rate_pipe__returned(o, stage, ended->interval, result);
	/* A thread that raised nothing before may outlive those that are known. */
	if (stage->has_ended && thread->state != PEM_THREAD_ENDED) {
		stage->has_ended = false;
		o->is_changed = true;
	}
	if (!rc && thread->state == PEM_THREAD_ENDED && !stage->has_ended &&
	    first_doing(stage) == RATE_DOINGS)
		rc = end_stage(o, stage);
	return rc ? rc : rate_order__follow(o);
}

void rate_observation__lose(struct rate_observation *o)
{
	struct rate_thread *t;
	size_t i;

	for (t = o->threads; t; t = t->next)
		if (t->doing != RATE_DOINGS)
			change(o, t, RATE_UNTOLD, o->now_ns);
	/* Also of those that are not arranged as stages yet. */
	for (i = 0; i < o->seen.process_count; i++)
		if (o->seen.processes[i])
			o->seen.processes[i]->has_lost = true;
}

void rate_observation__update(struct rate_observation *o, uint64_t now_ns)
{
	struct rate_thread *t;
	size_t i;

	if (now_ns < o->now_ns)
		return;
	o->now_ns = now_ns;
	for (t = o->threads; t; t = t->next)
		account(t, now_ns);
	for (i = 0; i < o->seen.process_count; i++) {
		if (!o->seen.processes[i] || o->seen.processes[i]->has_ended)
			continue;
		rate_process__turn(o, o->seen.processes[i], now_ns);
		o->seen.processes[i]->end_ns = now_ns;
	}
	rate_order__charge(o, now_ns);
}

uint64_t rate_process__service_ns(const struct rate_process *stage)
{
	return stage->ns[RATE_RUNS] + stage->ns[RATE_WAITS] + stage->ns[RATE_SLEEPS];
}

uint64_t rate_process__held_ns(const struct rate_process *stage)
{
	uint64_t ns = 0;
	unsigned doing;

	for (doing = 0; doing < RATE_DOINGS; doing++)
		ns += stage->held_ns[doing];
	return ns;
}
