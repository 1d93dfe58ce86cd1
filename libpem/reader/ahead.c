/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ahead.c - a thread that reads and merges a trace's streams while the caller handles records
 *
 * Records come in batches, which go round between the two. A batch has copies of its records, since
 * the merge leaves a stream's buffer behind. What the caller may ask of the trace (names of
 * processes and threads, losses) must be as of the record that it was handed last. So this keeps
 * them anew on the caller's side, from what the batches tell.
 *
 *	                 thread                        caller
 *	streams --merge--> batch, batch, batch --take--> record
 *	                   <------ empty batches ------
 *
 * filled and taken count batches and run free. Batch i is the thread's while i >= filled, and the
 * caller's while taken <= i < filled. The lock protects both counts, so a batch's content needs no
 * other order. A side that waits is woken when half of the batches are its own: a wake-up for each
 * batch would take longer than the batch.
 *
 * Where a thread can't be had, the caller fills each batch itself.
 */
#include "reader.h"
#include "grow.h"
#include "util.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 16u
#define BATCH_BYTES (192u << 10)
#define PREFETCH_BYTES 512

/*
 * A record of a batch, with its data behind it. It is as short as can be: what passes from one
 * CPU's cache to another's takes most of the time.
 */
struct entry {
	uint64_t clock, time_ns;
	uint32_t event; /* index in the trace's event table */
	uint32_t pid, tid, cpu, stream;
	uint16_t bytes; /* of data */
	uint8_t source;
	uint8_t tells; /* a loss, or something about names */
	uint8_t data[];
};

/* The longest record, as events have lengths of 16 bits. */
#define ENTRY_BYTES_MOST (sizeof(struct entry) + 65536)
_Static_assert(ENTRY_BYTES_MOST <= BATCH_BYTES, "a batch takes any record");
_Static_assert(sizeof(struct entry) % 8 == 0, "data is aligned as in the trace");

struct known_loss {
	struct pem_loss loss;
	size_t at; /* offset of the entry at which it is known first, or of the entries' end */
};

struct batch {
	size_t bytes; /* of entries */
	int rc; /* of the merge behind the last record; 1: the batch is full */
	struct pem_error error; /* of rc */
	uint64_t torn; /* torn packets, if rc is not 1 */
	struct known_loss *losses; /* that became known in this batch */
	size_t loss_count, loss_capacity;
	uint8_t entries[BATCH_BYTES] __attribute__((aligned(8)));
};

struct pem_ahead {
	struct pem_trace *trace;
	/* the thread's; the caller's where there is none */
	size_t losses_passed; /* losses of the merge that batches have */
	/* of both, under the lock */
	pthread_mutex_t lock;
	pthread_cond_t can_fill, can_take;
	uint64_t filled, taken;
	bool stop;
	/* the caller's */
	pthread_t thread;
	bool has_begun, has_thread;
	struct batch *batch; /* that it takes records from; NULL: none */
	size_t at; /* offset of its next entry */
	size_t losses_taken; /* of it */
	struct pem_told told;
	struct pem_losses losses;
	uint32_t event;
	uint64_t torn;
	struct batch batches[BATCHES];
};

/* --- filling --- */

/* Give the batch the losses that have become known. Returns 0 or -ENOMEM. */
static int pass_losses(struct pem_ahead *ahead, struct batch *batch)
{
	const struct pem_losses *known = &ahead->trace->losses;
	size_t more = known->count - ahead->losses_passed;

	if (PEM_LIKELY(!more))
		return 0;
	if (pem_grow(&batch->losses, sizeof(*batch->losses), batch->loss_count + more,
		     &batch->loss_capacity))
		return -ENOMEM;
	for (; ahead->losses_passed < known->count; ahead->losses_passed++)
		batch->losses[batch->loss_count++] =
			(struct known_loss){known->windows[ahead->losses_passed], batch->bytes};
	return 0;
}

static void add_entry(struct batch *batch, const struct pem_record *record, uint32_t event,
		      bool tells)
{
	struct entry *e = (struct entry *)(void *)(batch->entries + batch->bytes);

	*e = (struct entry){.clock = record->clock,
			    .time_ns = record->time_ns,
			    .event = event,
			    .pid = record->pid,
			    .tid = record->tid,
			    .cpu = record->cpu,
			    .stream = record->stream,
			    .bytes = (uint16_t)record->bytes,
			    .source = (uint8_t)record->source,
			    .tells = tells};
	memcpy(e->data, record->data, record->bytes);
	batch->bytes += sizeof(*e) + ((record->bytes + 7) & ~7u);
}

static void fill_batch(struct pem_ahead *ahead, struct batch *batch)
{
	struct pem_trace *trace = ahead->trace;
	struct pem_record record = {.size = sizeof(record)};
	size_t losses, images;

	batch->bytes = batch->loss_count = 0;
	batch->rc = 1;
	while (batch->bytes + ENTRY_BYTES_MOST <= BATCH_BYTES &&
	       !__atomic_load_n(&ahead->stop, __ATOMIC_RELAXED)) {
		const struct pem_event_info *info;

		losses = batch->loss_count;
		images = trace->told.next_image;
		batch->rc = pem_trace__merge(trace, &record, &batch->error);
		if (PEM_UNLIKELY(pass_losses(ahead, batch)))
			batch->rc = pem_error__set(&batch->error, -ENOMEM,
						   "no memory to keep where records were lost");
		if (PEM_UNLIKELY(batch->rc != 1)) {
			batch->torn = pem_trace__count_torn(trace);
			return;
		}
		info = trace->current->info;
		add_entry(batch, &record, (uint32_t)(info - trace->events.entries),
			  batch->loss_count != losses || trace->told.next_image != images ||
				  pem_event_info__tells_names(info));
	}
}

/* --- between the two --- */

/* The next batch to fill. NULL: to stop. */
static struct batch *wait_for_empty(struct pem_ahead *ahead)
{
	struct batch *batch = NULL;

	pthread_mutex_lock(&ahead->lock);
	while (!ahead->stop && ahead->filled - ahead->taken == BATCHES)
		pthread_cond_wait(&ahead->can_fill, &ahead->lock);
	if (!ahead->stop)
		batch = &ahead->batches[ahead->filled % BATCHES];
	pthread_mutex_unlock(&ahead->lock);
	return batch;
}

/* Hand a batch to the caller. is_last: no other one follows it soon. */
static void hand_over(struct pem_ahead *ahead, bool is_last)
{
	pthread_mutex_lock(&ahead->lock);
	ahead->filled++;
	if (is_last || ahead->filled - ahead->taken >= BATCHES / 2)
		pthread_cond_signal(&ahead->can_take);
	pthread_mutex_unlock(&ahead->lock);
}

static void *read_ahead(void *arg)
{
	struct pem_ahead *ahead = arg;
	struct batch *batch;
	int rc = 1;

	/* Behind damage the merge goes on; behind the end it does not. */
	while (rc != 0 && (batch = wait_for_empty(ahead))) {
		fill_batch(ahead, batch);
		rc = batch->rc; /* The batch is the caller's from here on. */
		hand_over(ahead, rc != 1);
	}
	return NULL;
}

/* The next batch with records, or with what is behind the last one. */
static struct batch *take_batch(struct pem_ahead *ahead)
{
	struct batch *batch = &ahead->batches[ahead->taken % BATCHES];
	int cancelled;

	if (!ahead->has_thread) {
		fill_batch(ahead, batch);
		return batch;
	}
	/* A caller that is cancelled here would keep the lock, which closing the trace needs. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelled);
	pthread_mutex_lock(&ahead->lock);
	while (ahead->filled == ahead->taken)
		pthread_cond_wait(&ahead->can_take, &ahead->lock);
	pthread_mutex_unlock(&ahead->lock);
	pthread_setcancelstate(cancelled, NULL);
	return batch;
}

static void give_back_batch(struct pem_ahead *ahead)
{
	ahead->batch = NULL;
	if (!ahead->has_thread)
		return;
	pthread_mutex_lock(&ahead->lock);
	ahead->taken++;
	if (ahead->filled - ahead->taken <= BATCHES / 2)
		pthread_cond_signal(&ahead->can_fill);
	pthread_mutex_unlock(&ahead->lock);
}

/* Signals are for the program's own threads. */
static void start_thread(struct pem_ahead *ahead)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ahead->stop = false;
	ahead->has_thread = !pthread_create(&ahead->thread, NULL, read_ahead, ahead);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	ahead->has_begun = true;
}

static void stop_thread(struct pem_ahead *ahead)
{
	if (!ahead->has_thread)
		return;
	pthread_mutex_lock(&ahead->lock);
	__atomic_store_n(&ahead->stop, true, __ATOMIC_RELAXED);
	pthread_cond_signal(&ahead->can_fill);
	pthread_mutex_unlock(&ahead->lock);
	pthread_join(ahead->thread, NULL);
	ahead->has_thread = false;
}

/* --- taking --- */

/* Learn of the losses that are known at an entry. Returns 0 or -ENOMEM. */
static int take_losses(struct pem_ahead *ahead, size_t at)
{
	struct pem_losses *known = &ahead->losses;
	const struct batch *batch = ahead->batch;

	for (; ahead->losses_taken < batch->loss_count; ahead->losses_taken++) {
		const struct known_loss *loss = &batch->losses[ahead->losses_taken];

		if (loss->at > at)
			break;
		if (pem_grow(&known->windows, sizeof(*known->windows), known->count + 1,
			     &known->capacity))
			return -ENOMEM;
		known->windows[known->count++] = loss->loss;
	}
	return 0;
}

/* Learn what a record tells of losses and names. Returns 0 or -ENOMEM. */
static int learn(struct pem_ahead *ahead, size_t at, const struct pem_record *record)
{
	const struct pem_event_info *info = &ahead->trace->events.entries[ahead->event];
	int rc = take_losses(ahead, at);

	if (!rc && record->clock >= ahead->told.next_image_clock)
		rc = pem_told__images(&ahead->told, ahead->trace, record->clock);
	if (!rc && pem_event_info__tells_names(info))
		rc = pem_context_table__learn_names(ahead->told.context, info, record);
	return rc;
}

/* What is behind the records of the batch: damage, the end, or no memory. */
static int leave_batch(struct pem_ahead *ahead, struct pem_error *error)
{
	struct batch *batch = ahead->batch;
	int rc = batch->rc;

	ahead->torn = batch->torn;
	if (take_losses(ahead, batch->bytes))
		return pem_error__set(error, -ENOMEM, "no memory to keep where records were lost");
	if (rc < 0) {
		if (error)
			*error = batch->error;
		give_back_batch(ahead);
	}
	return rc;
}

int pem_ahead__next(struct pem_ahead *ahead, struct pem_record *record, struct pem_error *error)
{
	const struct entry *e;
	size_t at;

	if (PEM_UNLIKELY(!ahead->has_begun))
		start_thread(ahead);
	while (PEM_UNLIKELY(!ahead->batch || ahead->at == ahead->batch->bytes)) {
		if (ahead->batch && ahead->batch->rc != 1)
			return leave_batch(ahead, error);
		if (ahead->batch)
			give_back_batch(ahead);
		ahead->batch = take_batch(ahead);
		ahead->at = ahead->losses_taken = 0;
	}
	at = ahead->at;
	e = (const struct entry *)(const void *)(ahead->batch->entries + at);
	__builtin_prefetch((const uint8_t *)e + PREFETCH_BYTES);
	ahead->at += sizeof(*e) + ((e->bytes + 7u) & ~7u);
	ahead->event = e->event;
	record->clock = e->clock;
	record->time_ns = e->time_ns;
	record->event = ahead->trace->events.entries[e->event].event;
	record->data = e->data;
	record->bytes = e->bytes;
	record->pid = e->pid;
	record->tid = e->tid;
	record->cpu = e->cpu;
	record->stream = e->stream;
	record->source = e->source;
	if (PEM_UNLIKELY(e->tells) && learn(ahead, at, record))
		return pem_error__set(error, -ENOMEM, "no memory to follow processes");
	return 1;
}

/* --- life --- */

/* The kernel refuses a set that lacks room for all CPUs that there may be. */
static bool has_one_cpu(void)
{
	cpu_set_t *set;
	int cpus, count = 0;

	for (cpus = 1024; !count && cpus <= 1 << 20; cpus *= 2) {
		set = CPU_ALLOC((size_t)cpus);
		if (!set)
			return true;
		if (!sched_getaffinity(0, CPU_ALLOC_SIZE((size_t)cpus), set))
			count = CPU_COUNT_S(CPU_ALLOC_SIZE((size_t)cpus), set);
		CPU_FREE(set);
	}
	return count < 2;
}

int pem_trace__read_ahead(struct pem_trace *trace)
{
	struct pem_ahead *ahead;
	int rc;

	if (!trace)
		return -EINVAL;
	if (trace->started || trace->is_followed)
		return -EBUSY;
	if (trace->ahead || has_one_cpu())
		return trace->ahead != NULL;
	ahead = calloc(1, sizeof(*ahead));
	if (!ahead)
		return -ENOMEM;
	ahead->trace = trace;
	pthread_mutex_init(&ahead->lock, NULL);
	pthread_cond_init(&ahead->can_fill, NULL);
	pthread_cond_init(&ahead->can_take, NULL);
	ahead->told.context = pem_context_table__new();
	rc = ahead->told.context ? pem_told__begin(&ahead->told, trace) : -ENOMEM;
	if (rc) {
		pem_ahead__free(ahead);
		return rc;
	}
	trace->ahead = ahead;
	return 1;
}

int pem_ahead__rewind(struct pem_ahead *ahead)
{
	stop_thread(ahead);
	ahead->has_begun = false;
	ahead->batch = NULL;
	ahead->filled = ahead->taken = 0;
	ahead->losses_passed = 0;
	pem_losses__reset(&ahead->losses);
	return pem_told__begin(&ahead->told, ahead->trace);
}

void pem_ahead__free(struct pem_ahead *ahead)
{
	size_t i;

	if (!ahead)
		return;
	stop_thread(ahead);
	for (i = 0; i < BATCHES; i++)
		free(ahead->batches[i].losses);
	pthread_mutex_destroy(&ahead->lock);
	pthread_cond_destroy(&ahead->can_fill);
	pthread_cond_destroy(&ahead->can_take);
	pem_losses__free(&ahead->losses);
	pem_context_table__free(ahead->told.context);
	free(ahead);
}

/* --- what the caller's position knows --- */

const struct pem_told *pem_ahead__told(const struct pem_ahead *ahead)
{
	return &ahead->told;
}

const struct pem_losses *pem_ahead__losses(const struct pem_ahead *ahead)
{
	return &ahead->losses;
}

size_t pem_ahead__event_entry(const struct pem_ahead *ahead)
{
	return ahead->event;
}

uint64_t pem_ahead__torn(const struct pem_ahead *ahead)
{
	return ahead->torn;
}
