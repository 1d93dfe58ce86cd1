/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread.c - a thread's structure: made at its first event, given back at its end; its lanes
 */
#include "producer/producer.h"
#include "producer/rights.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * heads of threads | struct slab | what else is theirs | nested writers of all: see struct
 * pem_thread for why heads lie apart
 */
struct slab {
	struct slab *next;
	uint64_t used; /* of its structures; the others were never touched */
	uint8_t reserved[48];
};

struct pem_thread pem_thread_none;
__thread struct pem_thread *pem_thread_current __attribute__((tls_model("initial-exec"))) =
	&pem_thread_none;
__thread uint32_t pem_thread_inside __attribute__((tls_model("initial-exec")));
static __thread int starting __attribute__((tls_model("initial-exec")));

/* Under the process lock. */
static struct slab *slabs;
static struct pem_thread_full *free_threads;
static struct slab *reserved; /* for when no more memory is to be had */
static uint32_t structures; /* in all slabs, but for those that no thread ever had */
static uint32_t taken; /* by new threads, since somebody looked for those of dead ones */

/*
 * Of writers without a lane: stubs look at the tag, which is 0 and no action's, and go no further.
 */
static struct pem_cell no_cells[PEM_PROCESS_EVENTS_MAX];

/*
 * The C library keeps the values of so many keys in the thread's own structure. For others it calls
 * calloc.
 */
#define KEYS_WITHOUT_MEMORY 32u

/*
 * Without the key, in a program that took the first ones before any constructor, threads end
 * unnoticed, and what was theirs is taken back from the dead.
 */
static pthread_key_t exit_key;
static bool has_exit_key;

static void clear_writer(struct pem_writer *writer)
{
	memset(writer, 0, sizeof(*writer));
	writer->cells = no_cells;
}

static void release_writer(struct pem_writer *writer, unsigned session_index, bool in_event)
{
	struct pem_ring ring;

	/* Of a session that has left: its pool is no more. */
	if (!writer->lane_index ||
	    !pem_joined__ring(&pem_process.joined[session_index],
			      __atomic_load_n(&writer->incarnation, __ATOMIC_RELAXED), &ring))
		return;
	if (in_event)
		__atomic_fetch_add(&ring.header->cut_short, 1, __ATOMIC_RELAXED);
	pem_ring_retire(&ring, writer);
	/* LA */
	__atomic_store_n(&ring.lanes[writer->lane_index].state, PEM_LANE_FREE, __ATOMIC_RELEASE);
	clear_writer(writer);
}

static void release_writers(struct pem_thread_full *thread)
{
	unsigned session_index, depth;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		release_writer(&thread->shared.writer[session_index], session_index,
			       thread->shared.depth > PEM_DEPTH_IDLE);
		for (depth = 1; thread->has_nested && depth < PEM_DEPTHS; depth++)
			release_writer(&thread->nested[depth - 1][session_index], session_index,
				       thread->shared.depth > PEM_DEPTH_IDLE + depth);
	}
}

/* Lock held. */
static void give_back(struct pem_thread_full *thread)
{
	thread->shared.tid = 0;
	thread->next_free = free_threads;
	free_threads = thread;
}

static void thread_exit(void *arg)
{
	struct pem_thread_full *thread = arg;
	int saved_errno = errno; /* of the thread's other destructors */

	if (!thread->shared.tid) /* this is a child, and raised no event */
		return;
	/*
	 * Signal handlers of this thread see no structure from here on: their events are counted as
	 * lost.
	 */
	starting = 1;
	pem_thread_current = &pem_thread_none;
	release_writers(thread);
	if (pem_process__lock()) {
		give_back(thread);
		pem_process__unlock();
	}
	starting = 0; /* later destructors of this thread may raise events: they begin anew */
	errno = saved_errno;
}

__attribute__((constructor(101))) static void make_exit_key(void)
{
	if (pthread_key_create(&exit_key, thread_exit))
		return;
	has_exit_key = exit_key < KEYS_WITHOUT_MEMORY;
	if (!has_exit_key)
		pthread_key_delete(exit_key);
}

#define BODY_BYTES                                                                                 \
	(sizeof(struct pem_thread_full) - offsetof(struct pem_thread_full, shared.writer))
/* From one thread's to the next's, of heads and of bodies. */
#define THREAD_BYTES ((BODY_BYTES + 63) & ~(size_t)63)
#define NESTED_BYTES (sizeof(struct pem_writer[PEM_DEPTHS - 1][PEM_SESSIONS_MAX]))
#define SLAB_THREADS (PEM_THREAD_GAP / THREAD_BYTES)
#define SLAB_BYTES                                                                                 \
	(PEM_THREAD_GAP + sizeof(struct slab) + SLAB_THREADS * (THREAD_BYTES + NESTED_BYTES))
PEM_STATIC_ASSERT(sizeof(struct slab) == offsetof(struct pem_thread, gap),
		  "a slab's head takes the place of a thread's in front of the first body");

static struct pem_thread_full *thread_at(struct slab *slab, uint64_t i)
{
	return (struct pem_thread_full *)((uint8_t *)slab - PEM_THREAD_GAP + i * THREAD_BYTES);
}

static struct slab *new_slab(void)
{
	uint8_t *heads;

	if (pem_restricted())
		return NULL;
	heads = mmap(NULL, SLAB_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (heads == MAP_FAILED)
		return NULL;
	pem_wipe_on_fork(heads, PEM_THREAD_GAP);
	return (struct slab *)(heads + PEM_THREAD_GAP);
}

/* A structure that no thread had before; NULL: no memory. Lock held. */
static struct pem_thread_full *take_new(void)
{
	struct pem_thread_full *thread;
	struct slab *slab = slabs;

	if (!slab || slab->used == SLAB_THREADS) {
		slab = reserved ? reserved : new_slab();
		reserved = NULL;
		if (!slab)
			return NULL;
		slab->next = slabs;
		slabs = slab;
	}
	thread = thread_at(slab, slab->used);
	/* Behind all structures, in pages of their own. */
	thread->nested = (void *)((uint8_t *)(slab + 1) + SLAB_THREADS * THREAD_BYTES +
				  slab->used * NESTED_BYTES);
	slab->used++;
	structures++;
	return thread;
}

#define SCAN_PART 8u /* of the structures: so many threads come before somebody looks again */

/*
 * A thread may raise events after the last round of its destructors, when the C library frees what
 * was its own, and then nobody gives its structure back. The kernel is asked about each thread, so
 * that with thousands of them not each new one can pay for that. Lock held.
 */
static void take_back_from_dead(void)
{
	struct pem_thread_full *thread;
	struct slab *slab;
	uint64_t i;

	if (taken < structures / SCAN_PART)
		return;
	taken = 0;
	for (slab = slabs; slab; slab = slab->next) {
		for (i = 0; i < slab->used; i++) {
			thread = thread_at(slab, i);
			if (!thread->shared.tid ||
			    !syscall(SYS_tgkill, pem_process.pid, thread->shared.tid, 0) ||
			    errno != ESRCH)
				continue;
			release_writers(thread);
			give_back(thread);
		}
	}
}

/*
 * As in an event that was interrupted too often: nothing is recorded then. None of those levels is
 * ever taken for left.
 */
static void silence(struct pem_thread_full *thread, bool silent)
{
	memset(thread->begun, 0xff, sizeof(thread->begun));
	thread->shared.depth += silent ? PEM_DEPTHS : -PEM_DEPTHS;
}

struct pem_thread_full *pem_thread__get(void)
{
	struct pem_thread_full *thread = (struct pem_thread_full *)pem_thread_current;
	struct pem_writer(*nested)[PEM_SESSIONS_MAX];
	unsigned session_index;

	if (thread->shared.tid)
		return thread;
	if (starting)
		return NULL;
	starting = 1;
	PEM_BARRIER();
	/* A handler that came since the test above may have made one. */
	thread = (struct pem_thread_full *)pem_thread_current;
	if (thread->shared.tid)
		goto out;
	thread = NULL;
	if (!pem_process__lock())
		goto out;
	if (!free_threads && !pem_restricted())
		take_back_from_dead();
	thread = free_threads;
	if (thread) {
		free_threads = thread->next_free;
		nested = thread->nested;
		if (thread->has_nested)
			memset(nested, 0, NESTED_BYTES);
		memset(&thread->shared.writer, 0, BODY_BYTES);
		thread->nested = nested;
	} else {
		thread = take_new();
	}
	if (thread) { /* under the lock: take_back_from_dead looks at it */
		thread->shared.tid = pem_rights__thread_id();
		taken++;
	}
	pem_process__unlock();
	if (!thread)
		goto out;
	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++)
		clear_writer(&thread->shared.writer[session_index]);
	thread->shared.depth = PEM_DEPTH_IDLE;
	thread->lacks_clock = !pem_rights__has_clock();
	if (thread->lacks_clock)
		silence(thread, true);
	if (has_exit_key)
		pthread_setspecific(exit_key, thread);
	pem_thread_current = &thread->shared;
out:
	starting = 0;
	return thread;
}

void pem_thread__after_fork(void)
{
	pem_thread_current = &pem_thread_none;
	starting = 0;
	if (has_exit_key)
		pthread_setspecific(exit_key, NULL);
	/*
	 * The parent's slabs stay mapped: an event that a fork interrupted goes on in one of them.
	 */
	free_threads = NULL;
	if (!pem_restricted()) {
		slabs = NULL;
		reserved = NULL;
		structures = taken = 0;
	}
}

void pem_thread__reserve(void)
{
	pem_thread__get();
	if (!pem_process__lock())
		return;
	if (!reserved)
		reserved = new_slab();
	pem_process__unlock();
}

void pem_thread__silence(bool silent)
{
	struct pem_thread_full *thread = pem_thread__get();

	if (thread)
		silence(thread, silent);
	else
		starting = silent;
}

/*
 * Handlers on a stack of their own say nothing of the one that they interrupted. A filter that lets
 * all other calls of pem's pass may refuse this one.
 */
static bool on_usual_stack(void)
{
	stack_t now;

	return !pem_restricted() && !prctl(PR_GET_SECCOMP, 0, 0, 0, 0) &&
	       !syscall(SYS_sigaltstack, NULL, &now) && !(now.ss_flags & SS_ONSTACK);
}

/* What the levels from this one on had begun is not ended any more. */
static void abandon(struct pem_thread_full *thread, unsigned level)
{
	unsigned session_index, depth;
	struct pem_writer *w;
	struct pem_ring ring;

	thread->shared.depth = PEM_DEPTH_IDLE + level;
	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++) {
		for (depth = level; thread->has_nested && depth < PEM_DEPTHS; depth++) {
			w = &thread->nested[depth - 1][session_index];
			if (w->lane_index &&
			    pem_joined__ring(&pem_process.joined[session_index],
					     __atomic_load_n(&w->incarnation, __ATOMIC_RELAXED),
					     &ring))
				__atomic_fetch_add(&ring.header->cut_short, 1, __ATOMIC_RELAXED);
		}
	}
}

/*
 * An event that is under way lies further up the stack than whatever interrupts it. The first level
 * has nobody who says where its event was begun, so that it stays in use once it has been left.
 */
unsigned pem_thread__level(struct pem_thread_full *thread, uintptr_t stack)
{
	unsigned levels = thread->shared.depth - PEM_DEPTH_IDLE, level;

	for (level = 1; level < levels && level < PEM_DEPTHS; level++) {
		if (thread->begun[level] <= stack) {
			if (on_usual_stack())
				abandon(thread, level);
			break;
		}
	}
	return thread->shared.depth - PEM_DEPTH_IDLE;
}

void pem_thread__set_clock(bool on)
{
	struct pem_thread_full *thread = pem_thread__get();

	/* Without a structure it has no event: one that is made later asks the kernel. */
	if (!thread || thread->lacks_clock != on)
		return;
	thread->lacks_clock = !on;
	silence(thread, !on);
}

/*
 * Has a lane memory, in a restricted thread that gets none? A thread that had it before saw to it.
 */
static bool is_ready(const struct pem_joined *joined, const struct pem_lane *lane, uint32_t i)
{
	uint32_t before = __atomic_load_n(&lane->tid, __ATOMIC_RELAXED);

	return i <= joined->ready_lanes || (before && before != PEM_LANE_NO_MEMORY);
}

static bool claim_lane(const struct pem_joined *joined, const struct pem_ring *ring,
		       struct pem_writer *writer, uint32_t tid)
{
	bool restricted = pem_restricted();
	struct pem_cell *cells;
	uint32_t i, state;

	for (i = 1; i < ring->lane_count; i++) {
		struct pem_lane *lane = &ring->lanes[i];

		/*
		 * Consumers look one lane further than those in use. One that is in use has had
		 * this done.
		 */
		if (restricted && !is_ready(joined, lane, i))
			return false;
		if (__atomic_load_n(&lane->state, __ATOMIC_RELAXED) != PEM_LANE_FREE)
			continue;
		if (!restricted && ((uintptr_t)(lane + 1) & 4095) == 0 &&
		    !pem_populate(lane + 1, sizeof(*lane)))
			return false;
		state = PEM_LANE_FREE;
		/* la */
		if (!__atomic_compare_exchange_n(&lane->state, &state, PEM_LANE_OWNED, 0,
						 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			continue;
		cells = &ring->cells[(uint64_t)i * ring->event_capacity];
		if (!restricted && !pem_populate(cells, pem_process.event_count * sizeof(*cells))) {
			/*
			 * A lane that had a thread keeps its number: consumers read what was
			 * counted there.
			 */
			if (!__atomic_load_n(&lane->tid, __ATOMIC_RELAXED))
				__atomic_store_n(&lane->tid, PEM_LANE_NO_MEMORY, __ATOMIC_RELAXED);
			/* LA */
			__atomic_store_n(&lane->state, PEM_LANE_FREE, __ATOMIC_RELEASE);
			return false;
		}
		if (!pem_lane__take_over(ring, i, tid)) {
			/* LA */
			__atomic_store_n(&lane->state, PEM_LANE_FREE, __ATOMIC_RELEASE);
			continue;
		}
		writer->lane_index = i;
		writer->cells = cells;
		return true;
	}
	return false;
}

static void forget(struct pem_writer *writer, uint32_t incarnation)
{
	if (__atomic_load_n(&writer->incarnation, __ATOMIC_RELAXED) == incarnation)
		__atomic_store_n(&writer->incarnation, 0, __ATOMIC_RELAXED);
}

void pem_thread__forget(unsigned session_index, uint32_t incarnation)
{
	struct pem_thread_full *thread;
	struct slab *slab;
	unsigned depth;
	uint64_t i;

	for (slab = slabs; slab; slab = slab->next) {
		for (i = 0; i < slab->used; i++) {
			thread = thread_at(slab, i);
			forget(&thread->shared.writer[session_index], incarnation);
			for (depth = 1; thread->has_nested && depth < PEM_DEPTHS; depth++)
				forget(&thread->nested[depth - 1][session_index], incarnation);
		}
	}
}

struct pem_writer *pem_thread__writer(struct pem_thread_full *thread, unsigned session_index,
				      unsigned depth, uint32_t incarnation)
{
	struct pem_writer *writer = depth ? &thread->nested[depth - 1][session_index]
					  : &thread->shared.writer[session_index];
	struct pem_joined *joined = &pem_process.joined[session_index];
	bool has_ring, has_lane;
	struct pem_ring ring;
	int cancel_type;

	if (writer->lane_index &&
	    __atomic_load_n(&writer->incarnation, __ATOMIC_RELAXED) == incarnation)
		return writer;
	/*
	 * A session without a log never runs out of chunks: here a dead consumer's is noticed all
	 * the same.
	 */
	pem_process__check_consumer(session_index, pem_clock());
	if (depth)
		thread->has_nested = true;
	clear_writer(writer);
	has_ring = pem_joined__ring(joined, incarnation, &ring);
	/* ja */
	if (!has_ring && __atomic_load_n(&joined->state, __ATOMIC_ACQUIRE) == PEM_JOINED_RULES) {
		if (!pem_process__lock())
			return NULL;
		if (joined->incarnation == incarnation)
			pem_process__make_pool(session_index);
		/*
		 * Before a handler may fork: in the child it would be the parent's, in private
		 * memory.
		 */
		has_ring = pem_joined__ring(joined, incarnation, &ring);
		pem_process__unlock();
	}
	if (!has_ring)
		return NULL;
	/* A thread cancelled in there would leave a lane that is nobody's. */
	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
	has_lane = claim_lane(joined, &ring, writer, thread->shared.tid);
	if (has_lane)
		__atomic_store_n(&writer->incarnation, incarnation, __ATOMIC_RELAXED);
	pthread_setcanceltype(cancel_type, NULL);
	return has_lane ? writer : NULL;
}
