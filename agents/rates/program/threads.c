/* SPDX-License-Identifier: MIT */
/* threads.c - stages that are threads, from readings of their queues (contract: threads.h) */
#include "program/threads.h"

#include "grow.h"
#include "processes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEARCH_NS 100000000u /* between two searches for processes */
#define READ_NS 20000000u /* between two readings, or more: */
#define COST_SHARE 50u /* a reading may take this part of the time */
/* A process without queues is asked again after a tenth of the time since it was found. */
#define ASK_MIN_NS 10000000u
#define ASK_MAX_NS 1000000000u
#define PROCESSES_MAX 1024u /* more are not looked at */
#define LEVEL_MAX 64u /* in the order of stages */
#define DEPTH_MAX 32u /* generations that are followed */

struct rates_process {
	uint32_t pid;
	uint32_t number; /* another one for each program that it runs */
	struct pem_streams *streams; /* NULL: it shows no queue, or has ended */
	uint64_t found_ns, ask_ns;
	uint64_t turn; /* of the last search that found it */
	size_t skipped;
};

struct rates_threads *rates_threads__new(const struct rates_request *request)
{
	struct rates_threads *t = calloc(1, sizeof(*t));

	if (t)
		t->request = request;
	return t;
}

void rates_threads__free(struct rates_threads *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->process_count; i++)
		pem_streams__close(t->processes[i].streams);
	for (i = 0; i < t->stage_count; i++) {
		rates_figures__drop(t->stages[i]->rates);
		free(t->stages[i]);
	}
	for (i = 0; i < t->queue_count; i++)
		free(t->queues[i]);
	free(t->processes);
	free(t->stages);
	free(t->queues);
	free(t);
}

/* --- processes --- */

static void ask(struct rates_threads *t, struct rates_process *process)
{
	struct pem_error error = {{0}};

	if (process->streams)
		pem_streams__search(process->streams, NULL);
	else
		process->streams = pem_streams__open(process->pid, &error);
	if (!process->streams && errno == ENODATA)
		t->lacks = error;
	if (process->streams && !process->number)
		process->number = ++t->programs;
	process->ask_ns = cli_now_ns();
	process->ask_ns += (process->ask_ns - process->found_ns) / 10 + ASK_MIN_NS;
	if (process->ask_ns > cli_now_ns() + ASK_MAX_NS)
		process->ask_ns = cli_now_ns() + ASK_MAX_NS;
}

static bool find_process(int pid, void *arg)
{
	struct rates_threads *t = arg;
	size_t i;

	for (i = 0; i < t->process_count; i++)
		if (t->processes[i].pid == (uint32_t)pid)
			break;
	if (pid == getpid() || i == PROCESSES_MAX)
		return true;
	if (i == t->process_count) {
		if (pem_grow(&t->processes, sizeof(*t->processes), i + 1, &t->process_capacity))
			return false;
		t->processes[i] =
			(struct rates_process){.pid = (uint32_t)pid, .found_ns = cli_now_ns()};
		t->process_count++;
	}
	t->processes[i].turn = t->turn;
	if (cli_now_ns() >= t->processes[i].ask_ns)
		ask(t, &t->processes[i]);
	return true;
}

static void search(struct rates_threads *t)
{
	const struct rates_request *request = t->request;
	/* The command is a child of this process. */
	unsigned depth = !request->attach.no_follow ? DEPTH_MAX : request->words[0] != NULL;
	size_t i, kept = 0;

	t->turn++;
	pem_proc__walk(request->roots, request->root_count, depth, find_process, t);
	/* A process that is gone has left nothing if it showed no queue. */
	for (i = 0; i < t->process_count; i++)
		if (t->processes[i].streams || t->processes[i].turn == t->turn)
			t->processes[kept++] = t->processes[i];
	t->process_count = kept;
}

/* --- a reading --- */

/* A thread that has come from other ends under another name is another stage. */
static bool is_stage(const struct rates_threads *t, const struct rates_thread *stage,
		     const struct pem_streams_end *end)
{
	return stage->kept == t->turn || stage->turn == t->turn || !*end->stage ||
	       !strcmp(stage->stage, end->stage);
}

static struct rates_thread *stage_of(struct rates_threads *t, const struct rates_process *process,
				     const struct pem_streams_end *end)
{
	struct rates_thread *stage;
	size_t i;

	for (i = t->stage_count; i-- > 0;)
		if (t->stages[i]->tid == end->tid && t->stages[i]->number == process->number)
			break;
	if (i == SIZE_MAX || !is_stage(t, t->stages[i], end)) {
		stage = calloc(1, sizeof(*stage));
		if (!stage || pem_grow(&t->stages, sizeof(*t->stages), t->stage_count + 1,
				       &t->stage_capacity)) {
			free(stage);
			t->error = -ENOMEM;
			return NULL;
		}
		stage->did.size = sizeof(stage->did);
		stage->pid = process->pid;
		stage->number = process->number;
		stage->tid = end->tid;
		i = t->stage_count++;
		t->stages[i] = stage;
	}
	stage = t->stages[i];
	snprintf(stage->stage, sizeof(stage->stage), "%s", end->stage);
	return stage;
}

static struct rates_queue *queue_of(struct rates_threads *t, const struct rates_process *process,
				    const struct pem_streams_queue *seen)
{
	struct rates_queue *queue;
	size_t i;

	for (i = t->queue_count; i-- > 0;) {
		queue = t->queues[i];
		if (queue->id == seen->id && queue->number == process->number &&
		    queue->part == seen->part)
			return queue;
	}
	queue = calloc(1, sizeof(*queue));
	if (!queue ||
	    pem_grow(&t->queues, sizeof(*t->queues), t->queue_count + 1, &t->queue_capacity)) {
		free(queue);
		t->error = -ENOMEM;
		return NULL;
	}
	queue->number = process->number;
	queue->part = seen->part;
	queue->id = seen->id;
	memcpy(queue->name, seen->name, sizeof(queue->name));
	return t->queues[t->queue_count++] = queue;
}

/* The thread at an end, as it is now. NULL: no thread uses it. */
static struct rates_thread *take_end(struct rates_threads *t, const struct rates_process *process,
				     const struct pem_streams_end *end, uint64_t at_ns)
{
	struct rates_thread *stage = end->tid ? stage_of(t, process, end) : NULL;

	if (!stage || stage->turn == t->turn)
		return stage;
	/* What it did since the last reading is unknown, unless the service is known. */
	stage->unknown_ns += stage->turn ? at_ns - stage->at_ns : 0;
	stage->turn = t->turn;
	stage->at_ns = at_ns;
	stage->is_blocked = stage->is_served = false;
	stage->waits_for = NULL;
	stage->inputs = stage->feeds = 0;
	return stage;
}

static void block(struct rates_thread *stage, const struct pem_streams_end *end,
		  struct rates_thread *other)
{
	if (!stage || !end->since_ns)
		return;
	stage->is_blocked = true;
	stage->waits_for = other;
}

/* From now on, measure a stage by the items that it takes, or by those that it gives. */
static void measure_by(struct rates_thread *stage, bool takes)
{
	if (stage->takes == takes)
		return;
	stage->takes = takes;
	rates_figures__drop(stage->rates);
	stage->rates = NULL;
}

/* Charge the items that passed an end to the threads that used it. now: NULL: none does. */
static void charge(struct rates_end *end, const struct pem_streams_end *seen,
		   struct rates_thread *now, bool pops)
{
	bool is_told = seen->threads == end->threads + 1 && seen->before != UINT64_MAX;

	if (end->thread && seen->threads == end->threads)
		end->thread->moved[pops] += seen->items - end->items;
	else if (end->thread && is_told)
		end->thread->moved[pops] += seen->before - end->items;
	else if (end->thread)
		end->thread->is_short = true;
	if (seen->threads != end->threads) {
		end->thread = now;
		if (now && seen->before != UINT64_MAX)
			now->moved[pops] += seen->items - seen->before;
		else if (now)
			now->is_short = true;
	}
	end->threads = seen->threads;
	end->items = seen->items;
	end->blocked_ns = seen->blocked_ns;
}

/* In a cycle levels rise until they are as high as can be. */
static void put_after(const struct rates_thread *from, struct rates_thread *to)
{
	if (from && to && to->level <= from->level && from->level < LEVEL_MAX)
		to->level = from->level + 1;
}

/* Note a thread that has kept an end since the last reading. */
static void keep(struct rates_threads *t, const struct rates_end *end,
		 const struct pem_streams_end *seen)
{
	if (end->thread && seen->tid && seen->threads == end->threads)
		end->thread->kept = t->turn;
}

static void take_queue(struct rates_threads *t, const struct rates_process *process,
		       const struct pem_streams_queue *seen)
{
	struct rates_queue *queue = queue_of(t, process, seen);
	struct rates_thread *from, *to;

	if (!queue)
		return;
	from = take_end(t, process, &seen->push, seen->at_ns);
	to = take_end(t, process, &seen->pop, seen->at_ns);
	charge(&queue->from, &seen->push, from, false);
	charge(&queue->to, &seen->pop, to, true);
	put_after(queue->from.thread, queue->to.thread);
	queue->capacity = seen->capacity;
	queue->is_known = true;
	queue->is_gone = seen->is_gone;
	if (from)
		from->feeds++;
	if (to) {
		to->inputs++;
		measure_by(to, true);
	}
	/* A thread that could go on, and has not yet, waits for a CPU. It sleeps until half is
	 * free. */
	if (seen->queued > seen->limit / 2)
		block(from, &seen->push, to);
	if (!seen->queued)
		block(to, &seen->pop, from);
}

/* Add what a thread did since the reading before, seen from one of its ends. */
static int serve(struct rates_thread *stage, const struct pem_streams *streams, size_t i, bool pops)
{
	const struct pem_streams_service was = stage->did;
	uint64_t wall_ns, pushed, popped;

	if (pem_streams__service(streams, i, pops, &stage->did) != 1)
		return 0;
	stage->is_served = true;
	wall_ns = stage->did.wall_ns - was.wall_ns;
	pushed = stage->did.pushed - was.pushed;
	popped = stage->did.popped - was.popped;
	stage->unknown_ns -= wall_ns < stage->unknown_ns ? wall_ns : stage->unknown_ns;
	/* It took from a queue that is gone. Is it the source of another one? */
	if (!stage->inputs && stage->takes) {
		if (!pushed)
			return 0;
		measure_by(stage, false);
	}
	return rates_figures__add(&stage->rates, stage->takes ? popped : pushed,
				  stage->did.busy_ns - was.busy_ns, false);
}

static void serve_all(struct rates_threads *t, const struct rates_process *process, size_t count)
{
	const struct rates_queue *queue;
	struct rates_thread *stage;
	size_t i;
	int pops;

	for (i = 0; i < count; i++) {
		queue = queue_of(t, process, pem_streams__queue(process->streams, i));
		for (pops = 0; queue && pops < 2; pops++) {
			stage = pops ? queue->to.thread : queue->from.thread;
			if (stage && stage->turn == t->turn && !stage->is_served &&
			    serve(stage, process->streams, i, pops))
				t->error = -ENOMEM;
		}
	}
}

static void read_process(struct rates_threads *t, struct rates_process *process)
{
	ptrdiff_t i, count = pem_streams__read(process->streams, &process->skipped);
	const struct pem_streams_queue *seen;
	const struct rates_queue *queue;

	if (count < 0)
		t->error = -ENOMEM;
	for (i = 0; i < (ptrdiff_t)t->queue_count; i++)
		if (t->queues[i]->number == process->number)
			t->queues[i]->is_known = t->queues[i]->is_gone;
	for (i = 0; i < count; i++) {
		seen = pem_streams__queue(process->streams, (size_t)i);
		queue = queue_of(t, process, seen);
		if (!queue)
			return;
		keep(t, &queue->from, &seen->push);
		keep(t, &queue->to, &seen->pop);
	}
	for (i = 0; i < count; i++)
		take_queue(t, process, pem_streams__queue(process->streams, (size_t)i));
	if (count > 0)
		serve_all(t, process, (size_t)count);
	t->skipped += process->skipped;
	if (!pem_streams__has_ended(process->streams))
		return;
	pem_streams__close(process->streams);
	process->streams = NULL;
	process->number = 0;
	process->ask_ns = 0;
}

/* Follow each last stage to the one that it waits for, itself or through others. */
static void sample(struct rates_threads *t)
{
	struct rates_thread *stage;
	size_t i, steps;

	for (i = 0; i < t->stage_count; i++) {
		stage = t->stages[i];
		if (stage->turn != t->turn || stage->feeds || !stage->inputs)
			continue;
		t->samples++;
		for (steps = 0; stage && stage->is_blocked && steps < t->stage_count; steps++)
			stage = stage->waits_for;
		if (stage && !stage->is_blocked)
			stage->held++;
	}
}

int rates_threads__read(struct rates_threads *t)
{
	uint64_t begin_ns = cli_now_ns(), cost_ns;
	size_t i;

	t->turn++;
	t->skipped = 0;
	for (i = 0; i < t->process_count; i++)
		if (t->processes[i].streams)
			read_process(t, &t->processes[i]);
	sample(t);
	cost_ns = cli_now_ns() - begin_ns;
	t->read_ns = begin_ns + (cost_ns * COST_SHARE > READ_NS ? cost_ns * COST_SHARE : READ_NS);
	return t->error;
}

int rates_threads__tick(struct rates_threads *t)
{
	uint64_t now_ns = cli_now_ns();

	if (now_ns >= t->search_ns) {
		search(t);
		t->search_ns = now_ns + (t->stage_count ? SEARCH_NS : ASK_MIN_NS);
	}
	return cli_now_ns() >= t->read_ns ? rates_threads__read(t) : t->error;
}

const char *rates_threads__why_none(const struct rates_threads *t)
{
	if (t->stage_count)
		return NULL;
	if (t->programs)
		return "no thread of the program used a queue; a pipeline of GStreamer without "
		       "queue elements is one thread, so its elements can't be told apart";
	return *t->lacks.text ? t->lacks.text : NULL;
}

/* --- results --- */

static int by_level(const void *a, const void *b)
{
	const struct rates_thread *one = *(struct rates_thread *const *)a;
	const struct rates_thread *other = *(struct rates_thread *const *)b;

	if (one->number != other->number)
		return one->number < other->number ? -1 : 1;
	if (one->level != other->level)
		return one->level < other->level ? -1 : 1;
	return one->tid < other->tid ? -1 : one->tid > other->tid;
}

/* An end was not read for a last time. So the number of its thread's items is unknown. */
static void lose(const struct rates_end *end)
{
	if (end->thread)
		end->thread->is_short = true;
}

void rates_threads__arrange(struct rates_threads *t)
{
	size_t i, round;

	for (round = 0; round < LEVEL_MAX; round++)
		for (i = 0; i < t->queue_count; i++)
			put_after(t->queues[i]->from.thread, t->queues[i]->to.thread);
	if (t->stage_count)
		qsort(t->stages, t->stage_count, sizeof(*t->stages), by_level);
	for (i = 0; i < t->queue_count; i++) {
		if (t->queues[i]->is_known)
			continue;
		lose(&t->queues[i]->from);
		lose(&t->queues[i]->to);
	}
}

const struct rates_thread *rates_threads__bottleneck(const struct rates_threads *t, uint32_t pid)
{
	const struct rates_thread *most = NULL;
	uint64_t second = 0, difference;
	size_t i;

	for (i = 0; i < t->stage_count; i++) {
		const struct rates_thread *stage = t->stages[i];

		if (pid && stage->pid != pid)
			continue;
		if (!most || stage->held > most->held) {
			second = most ? most->held : 0;
			most = stage;
		} else if (stage->held > second) {
			second = stage->held;
		}
	}
	/* Two counts differ by chance by up to two roots of their sum. */
	difference = most ? most->held - second : 0;
	return most && difference * difference > 4 * (most->held + second) ? most : NULL;
}

double rates_threads__held(const struct rates_threads *t, const struct rates_thread *stage)
{
	return t->samples ? (double)stage->held / (double)t->samples : 0;
}
