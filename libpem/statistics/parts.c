/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * parts.c - read statistics from a producer's cells: of all its threads together, or of each
 *
 * Cells are hostile: a cell may hold any value, and is copied once. A thread that takes over
 * another thread's lane moves the statistics of that thread to lane 0 (pem_pool_header.fold). A
 * reader that reads at this time begins again.
 */
#include "core/binding.h"
#include "core/core.h"
#include "core/demand.h"
#include "processes/processes.h"
#include "statistics/statistics.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CELL_TRIES 1000
/*
 * After so many tries the last result is taken: the producer may have been killed or stopped in the
 * middle of a fold.
 */
#define FOLD_TRIES 116
#define FOLD_YIELDS 16 /* the first tries yield; each later one waits */
#define FOLD_PAUSE_NS 1000000

static double key_to_double(uint64_t key)
{
	uint64_t bits = key >> 63 ? key ^ (1ull << 63) : ~key;
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static void cell_to_statistic(const struct pem_cell *cell, const struct pem_demand *demand,
			      struct pem_statistic *s)
{
	enum pem_type type = PEM_TYPE_NONE;

	memset(s, 0, sizeof(*s));
	s->count = cell->stat_end;
	if (demand->field == PEM_NO_FIELD || !s->count)
		return;
	type = (enum pem_type)demand->event->fields[demand->field].type;
	if (type == PEM_TYPE_FLOAT32 || type == PEM_TYPE_FLOAT64) {
		s->is_float = 1;
		memcpy(&s->sum_f, &cell->sum, sizeof(s->sum_f));
		s->min_f = key_to_double(cell->min);
		s->max_f = key_to_double(cell->max);
		return;
	}
	s->is_signed = type >= PEM_TYPE_INT8 && type <= PEM_TYPE_INT64;
	s->sum = cell->sum;
	s->min = s->is_signed ? cell->min ^ (1ull << 63) : cell->min;
	s->max = s->is_signed ? cell->max ^ (1ull << 63) : cell->max;
}

/*
 * The cell of a demand's statistic. NULL: the lane has no memory for it. cell is the index of the
 * event's own cell.
 */
static const struct pem_cell *cell_of(const struct pem_producer *p, const struct pem_demand *demand,
				      uint32_t lane, uint32_t cell)
{
	if (!demand->cell)
		return &p->ring.cells[(uint64_t)lane * p->ring.event_capacity + cell];
	/* lc */
	if (!p->ring.further || !__atomic_load_n(&p->ring.lanes[lane].further, __ATOMIC_ACQUIRE))
		return NULL;
	return pem_pool__further(&p->ring, lane, demand->cell - 1u);
}

/* Read a cell's statistic in the demand's epoch. Returns false where there is none. */
static bool read_cell(const struct pem_producer *p, const struct pem_demand *demand, uint32_t lane,
		      uint32_t cell, struct pem_statistic *s)
{
	uint64_t action =
		PEM_ACTION_OF_INCARNATION(PEM_ACTION(0, 0, 0, 0, demand->epoch), p->incarnation);
	const struct pem_cell *from = cell_of(p, demand, lane, cell);
	uint64_t undecided = 0;
	struct pem_cell copy;

	memset(s, 0, sizeof(*s));
	if (!from)
		return false;
	/* se */
	if (pem_predicate__gates(demand->predicate) &&
	    __atomic_load_n(&from->discarded, __ATOMIC_ACQUIRE) == PEM_ACTION_TAG(action))
		undecided = __atomic_load_n(&from->produced, __ATOMIC_RELAXED);
	if ((pem_cell_read(from, &copy, CELL_TRIES) || copy.stat_begin != ~0ULL) &&
	    (uint32_t)copy.tag == PEM_ACTION_TAG(action))
		cell_to_statistic(&copy, demand, s);
	s->undecided = undecided;
	return s->count || undecided;
}

/*
 * The statistic of one thread, or, with tid 0, of all threads that gave their lane to another one.
 */
struct part {
	uint32_t tid;
	struct pem_statistic statistic;
};

struct parts {
	const struct pem_demand *demand;
	bool together; /* only their sum is kept */
	struct pem_statistic sum;
	struct part *part;
	size_t count, capacity;
};

static bool add_part(struct parts *parts, uint32_t tid, const struct pem_statistic *s)
{
	size_t capacity = parts->capacity ? 2 * parts->capacity : 16;
	struct part *grown;

	if (parts->together) {
		pem_statistic__add(&parts->sum, s);
		return true;
	}
	if (parts->count == parts->capacity) {
		grown = realloc(parts->part, capacity * sizeof(*grown));
		if (!grown)
			return false;
		parts->part = grown;
		parts->capacity = capacity;
	}
	parts->part[parts->count++] = (struct part){tid, *s};
	return true;
}

static void add_variance(const struct pem_producer *p, const struct pem_demand *demand,
			 uint32_t lane, struct pem_statistic *s)
{
	uint64_t action =
		PEM_ACTION_OF_INCARNATION(PEM_ACTION(0, 0, 0, 0, demand->epoch), p->incarnation);
	uint64_t tag = PEM_DISTRIBUTION_TAG(demand->distribution, action) |
		       (s->is_float ? PEM_CELL_FLOAT : 0);
	uint32_t index = PEM_DISTRIBUTION_INDEX(demand->distribution);
	struct pem_distribution copy;

	/* lc */
	if (__atomic_load_n(&p->ring.lanes[lane].distributions, __ATOMIC_ACQUIRE) >> index & 1 &&
	    pem_distribution_read(pem_pool__distribution(&p->ring, index, lane), &copy, tag,
				  CELL_TRIES))
		s->variance = pem_distribution__variance(&copy);
}

static int read_parts(struct pem_producer *p, uint32_t cell, void *arg)
{
	struct parts *parts = arg;
	struct pem_statistic one;
	uint32_t lane, tid;

	parts->count = 0;
	memset(&parts->sum, 0, sizeof(parts->sum));
	for (lane = 0; lane < p->ring.lane_count; lane = pem_producer__next_lane(p, lane)) {
		/* lb */
		tid = lane ? __atomic_load_n(&p->ring.lanes[lane].tid, __ATOMIC_ACQUIRE) : 0;
		if (!read_cell(p, parts->demand, lane, cell, &one))
			continue;
		if (PEM_DISTRIBUTION_KEEP(parts->demand->distribution) & PEM_DISTRIBUTION_VARIANCE)
			add_variance(p, parts->demand, lane, &one);
		if (!add_part(parts, tid, &one))
			return -ENOMEM;
	}
	return 0;
}

/*
 * Wait for a thread that moves statistics. It takes a moment, unless the machine is busy. Returns
 * true where the wait was long.
 */
static bool wait_for_fold(unsigned tries)
{
	const struct timespec pause = {.tv_nsec = FOLD_PAUSE_NS};

	if (tries < FOLD_YIELDS)
		sched_yield();
	else
		nanosleep(&pause, NULL);
	return tries >= FOLD_YIELDS;
}

int pem_producer__steady(struct pem_producer *p, const struct pem_demand *demand,
			 int (*read)(struct pem_producer *producer, uint32_t cell, void *arg),
			 void *arg)
{
	const struct pem_event_entry *entry = pem_producer__entry_of(p, demand->event);
	const uint32_t *fold = &p->ring.header->fold;
	bool steady = false, paused = false;
	unsigned tries;
	int result = 0;
	uint32_t seen;

	if (!entry)
		return 0;
	for (tries = 0;; tries++) {
		/* le */
		seen = __atomic_load_n(fold, __ATOMIC_ACQUIRE);
		if (seen & 1 && !p->fold_unfinished && tries < FOLD_TRIES) {
			paused |= wait_for_fold(tries);
			continue;
		}
		result = read(p, entry->event_index, arg);
		/* ld */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		steady = __atomic_load_n(fold, __ATOMIC_RELAXED) == seen;
		if (result || tries >= FOLD_TRIES || steady)
			break;
	}
	if (steady && !(seen & 1))
		p->fold_unfinished = false;
	else if (paused && tries >= FOLD_TRIES)
		p->fold_unfinished = true;
	return result;
}

void pem_producer__statistic(struct pem_producer *p, const struct pem_demand *demand,
			     struct pem_statistic *s)
{
	struct parts parts = {.demand = demand, .together = true};

	pem_producer__steady(p, demand, read_parts, &parts);
	pem_statistic__add(s, &parts.sum);
}

static int by_tid(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

int pem_producer__parts(struct pem_producer *p, const struct pem_demand *demand,
			void (*function)(const struct pem_statistic *part, uint32_t tid, void *arg),
			void *arg)
{
	struct parts parts = {.demand = demand};
	int result = pem_producer__steady(p, demand, read_parts, &parts), count = 0;
	struct pem_statistic sum;
	size_t i, k;

	if (parts.count)
		qsort(parts.part, parts.count, sizeof(parts.part[0]), by_tid);
	/* A thread has a lane for each depth of nested events. */
	for (i = 0; !result && i < parts.count; i = k) {
		sum = parts.part[i].statistic;
		for (k = i + 1; k < parts.count && parts.part[k].tid == parts.part[i].tid; k++)
			pem_statistic__add(&sum, &parts.part[k].statistic);
		pem_statistic__finish(&sum, demand);
		function(&sum, parts.part[i].tid, arg);
		count++;
	}
	free(parts.part);
	return result ? result : count;
}
