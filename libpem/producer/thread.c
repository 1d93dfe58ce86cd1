/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * thread.c - a thread's structure: made at its first event, given back at its end; the thread's
 * lanes
 */
#include "producer/producer.h"
#include "producer/rights.h"
#include "early.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * heads of threads | struct slab | bodies of threads | nested writers of all | gates of all
 *
 * struct pem_thread says why heads lie apart.
 */
struct slab {
	struct slab *next;
	uint64_t used; /* how many of its structures a thread has had; the rest was never touched */
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
static struct slab *reserved; /* for a time when no memory may be allocated */
static uint32_t structures; /* in all slabs, without those that no thread has had */
static uint32_t taken; /* by new threads, since the last search for structures of dead ones */

/*
 * The cells of writers without a lane. A stub looks at the tag, which is 0. No action has this tag,
 * so the stub goes no further.
 */
static struct pem_cell no_cells[PEM_PROCESS_EVENTS_MAX];

/*
 * The C library keeps the values of this many keys in the thread's own structure. For further keys
 * it calls calloc.
 */
#define KEYS_WITHOUT_MEMORY 32u

/*
 * The key whose destructor gives the structure back. There is none where a program took the first
 * keys before any constructor. Then the end of a thread is not noticed, and take_back_from_dead()
 * finds its structure.
 */
static pthread_key_t exit_key PEM_EARLY;
static bool has_exit_key PEM_EARLY;

/*
 * What no event's action is: not 0, which a stub finds where the action has gone since it looked at
 * the enable byte.
 */
#define NO_ACTION (~0ULL)

static void clear_writer(struct pem_writer *writer)
{
	memset(writer, 0, sizeof(*writer));
	writer->cells = no_cells;
}

static void release_writer(struct pem_writer *writer, unsigned session_index, bool in_event)
{
	struct pem_ring ring;

	/* A session that has left has no pool any more. */
	if (!writer->lane_index ||
	    !pem_joined__ring(&pem_process.joined[session_index],
			      __atomic_load_n(&writer->incarnation, __ATOMIC_RELAXED), &ring))
		return;
	if (in_event)
		__atomic_fetch_add(&ring.header->cut_short, 1, __ATOMIC_RELAXED);
	if (writer->coarse && writer->last_clock > ring.lanes[writer->lane_index].coarse_end)
		ring.lanes[writer->lane_index].coarse_end = writer->last_clock;
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

static void end(struct pem_thread_full *thread)
{
	pem_thread_current = &pem_thread_none;
	release_writers(thread);
	pem_counted__close(thread);
}

static void thread_exit(void *arg)
{
	struct pem_thread_full *thread = arg;
	int saved_errno = errno; /* the thread's other destructors may need it */

	if (!thread->shared.tid) /* this is a child that raised no event */
		return;
	/*
	 * A signal handler that comes before or after this, as later destructors, finds a structure
	 * or makes one. In between the lock holds signals back.
	 */
	if (pem_process__lock()) {
		end(thread);
		give_back(thread);
		pem_process__unlock();
	} else {
		starting = 1;
		end(thread);
		starting = 0;
	}
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
/* The distance from one thread's head or body to the next one's. */
#define THREAD_BYTES ((BODY_BYTES + 63) & ~(size_t)63)
#define NESTED_BYTES (sizeof(struct pem_writer[PEM_DEPTHS - 1][PEM_SESSIONS_MAX]))
#define SLAB_THREADS (PEM_THREAD_GAP / THREAD_BYTES)
#define SLAB_BYTES                                                                                 \
	(PEM_THREAD_GAP + sizeof(struct slab) +                                                    \
	 SLAB_THREADS * (THREAD_BYTES + NESTED_BYTES + sizeof(pem_gate_words)))
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

/* A structure that no thread has had before. Returns NULL where there is no memory. Lock held. */
static struct pem_thread_full *take_new(void)
{
	struct pem_thread_full *thread;
	struct slab *slab = slabs;
	uint8_t *after;

	if (!slab || slab->used == SLAB_THREADS) {
		slab = reserved ? reserved : new_slab();
		reserved = NULL;
		if (!slab)
			return NULL;
		slab->next = slabs;
		slabs = slab;
	}
	thread = thread_at(slab, slab->used);
	/* Nested writers and gates follow all structures, in pages of their own. */
	after = (uint8_t *)(slab + 1) + SLAB_THREADS * THREAD_BYTES;
	thread->nested = (void *)(after + slab->used * NESTED_BYTES);
	thread->gate_memory =
		(void *)(after + SLAB_THREADS * NESTED_BYTES + slab->used * sizeof(pem_gate_words));
	slab->used++;
	structures++;
	return thread;
}

/* Make a structure that another thread had as good as new. Lock held. */
static void clear(struct pem_thread_full *thread)
{
	struct pem_writer(*nested)[PEM_SESSIONS_MAX] = thread->nested;
	pem_gate_words *gate_memory = thread->gate_memory;

	if (thread->has_nested)
		memset(nested, 0, NESTED_BYTES);
	if (thread->gates)
		memset(gate_memory, 0, sizeof(*gate_memory));
	memset(&thread->shared.writer, 0, BODY_BYTES);
	thread->nested = nested;
	thread->gate_memory = gate_memory;
}

#define SCAN_PART 8u /* of the structures: after so many new threads the next search is made */

/*
 * Take back the structures of dead threads. A thread may raise events after the last round of its
 * destructors, when the C library frees its data. Then no destructor gives its structure back. The
 * kernel is asked about each thread, so among thousands of threads not every new one may search.
 * Lock held.
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
			pem_counted__close(thread);
			give_back(thread);
		}
	}
}

/*
 * Record nothing in this thread, or record again. The thread looks as if its event were interrupted
 * too often. begun is filled so that no level is ever taken for one that was left.
 */
static void silence(struct pem_thread_full *thread, bool silent)
{
	memset(thread->begun, 0xff, sizeof(thread->begun));
	thread->shared.depth += silent ? PEM_DEPTHS : -PEM_DEPTHS;
}

/*
 * This thread's id. In a child of vfork: that of its parent's thread, which goes on with the
 * structure.
 */
static uint32_t own_id(void)
{
	uint32_t id = 0;

	if (!pem_restricted() && (uint32_t)getpid() != pem_process.pid)
		id = pem_process__first_id();
	return id ? id : pem_rights__thread_id();
}

/* The thread's structure, from those of ended threads if there is one. NULL: no memory. Lock held.
 */
static struct pem_thread_full *take(void)
{
	struct pem_thread_full *thread;

	if (!free_threads && !pem_restricted())
		take_back_from_dead();
	thread = free_threads;
	if (thread) {
		free_threads = thread->next_free;
		clear(thread);
	} else {
		thread = take_new();
	}
	if (thread) { /* under the lock: take_back_from_dead reads it */
		thread->shared.tid = own_id();
		taken++;
	}
	return thread;
}

/* Lock held. */
static void begin(struct pem_thread_full *thread)
{
	unsigned session_index;

	for (session_index = 0; session_index < PEM_SESSIONS_MAX; session_index++)
		clear_writer(&thread->shared.writer[session_index]);
	/* Those of the thread which had the structure before. */
	thread->shared.logged_action = 0;
	thread->shared.coarse_action = NO_ACTION;
	thread->shared.coarse_clock = NULL;
	thread->shared.position[0] = thread->shared.position[1] = NULL;
	thread->shared.depth = PEM_DEPTH_IDLE;
	thread->lacks_clock = !pem_rights__has_clock();
	if (thread->lacks_clock)
		silence(thread, true);
	if (has_exit_key)
		pthread_setspecific(exit_key, thread);
	PEM_BARRIER();
	pem_thread_current = &thread->shared;
}

/*
 * The lock holds signals back until the structure is complete. A handler that came in the middle
 * would have none, and its events would be lost.
 */
struct pem_thread_full *pem_thread__get(void)
{
	struct pem_thread_full *thread = (struct pem_thread_full *)pem_thread_current;

	if (thread->shared.tid)
		return thread;
	if (starting || !pem_process__lock())
		return NULL;
	/* A signal handler since the test above may have made a structure. */
	thread = (struct pem_thread_full *)pem_thread_current;
	if (!thread->shared.tid) {
		thread = take();
		if (thread)
			begin(thread);
	}
	pem_process__unlock();
	return thread;
}

void pem_thread__after_fork(void)
{
	/* The state of a thread that has none is no struct pem_thread_full. */
	if (pem_thread_current != &pem_thread_none)
		pem_counted__after_fork((struct pem_thread_full *)pem_thread_current);
	pem_thread_current = &pem_thread_none;
	starting = 0;
	if (has_exit_key)
		pthread_setspecific(exit_key, NULL);
	/*
	 * The parent's slabs stay mapped: an event that a fork interrupted is still in one of them.
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
 * Does this thread run on its usual stack? A handler on a stack of its own shows nothing about the
 * stack that it interrupted. A filter that lets all other calls of pem pass may refuse this call,
 * so under any filter the answer is false.
 */
static bool on_usual_stack(void)
{
	stack_t now;

	return !pem_restricted() && !prctl(PR_GET_SECCOMP, 0, 0, 0, 0) &&
	       !syscall(SYS_sigaltstack, NULL, &now) && !(now.ss_flags & SS_ONSTACK);
}

/* Give up the events of this level and of all deeper ones: nothing ends them any more. */
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
 * Return the level for a new event, and give up levels that were left by longjmp or the like. An
 * event that is still under way began further up the stack than any event that interrupts it. Where
 * the first level's event began is not known, so the first level stays in use after it was left.
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

	/*
	 * A thread without a structure is in no event. A structure that is made later asks the
	 * kernel.
	 */
	if (!thread || thread->lacks_clock != on)
		return;
	thread->lacks_clock = !on;
	silence(thread, !on);
}

/* Set the incarnation of a thread's writer, also where the thread's stubs look for it first. */
static void set_incarnation(struct pem_thread_full *thread, struct pem_writer *writer,
			    uint32_t incarnation)
{
	uint64_t logged = incarnation ? PEM_ACTION_LOGGED(incarnation) : 0;
	bool is_coarse = incarnation && writer->coarse;

	if (writer == &thread->shared.writer[0]) {
		__atomic_store_n(&thread->shared.logged_action, is_coarse ? NO_ACTION : logged,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&thread->shared.coarse_action, is_coarse ? logged : NO_ACTION,
				 __ATOMIC_RELAXED);
	}
	__atomic_store_n(&writer->incarnation, incarnation, __ATOMIC_RELAXED);
}

/* The page stays mapped after its session has left. */
static void set_clock(struct pem_thread_full *thread, struct pem_writer *writer,
		      const struct pem_joined *joined)
{
	/* jb */
	const struct pem_session_page *page = __atomic_load_n(&joined->page, __ATOMIC_ACQUIRE);

	writer->coarse =
		page && __atomic_load_n(&page->pool_flags, __ATOMIC_RELAXED) & PEM_POOL_COARSE ? 1
											       : 0;
	if (writer == &thread->shared.writer[0])
		thread->shared.coarse_clock = writer->coarse ? &page->coarse_clock : NULL;
}

static void forget(struct pem_thread_full *thread, struct pem_writer *writer, uint32_t incarnation)
{
	if (__atomic_load_n(&writer->incarnation, __ATOMIC_RELAXED) == incarnation)
		set_incarnation(thread, writer, 0);
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
			forget(thread, &thread->shared.writer[session_index], incarnation);
			for (depth = 1; thread->has_nested && depth < PEM_DEPTHS; depth++)
				forget(thread, &thread->nested[depth - 1][session_index],
				       incarnation);
		}
	}
}

/*
 * Has the session left since its ring was copied? Its pool's lanes are all free then, in private
 * memory full of zeros, and two threads would write the same one. In a child that was forked by a
 * handler after the copy, the session is still the same: the child ends its parent's event in that
 * memory, where nobody counts it.
 */
static bool has_left(const struct pem_joined *joined, uint32_t incarnation)
{
	/* je */
	if (__atomic_load_n(&joined->changes, __ATOMIC_ACQUIRE) & 1)
		return true;
	/* ja: a session that this process itself left has its incarnation still */
	return __atomic_load_n(&joined->state, __ATOMIC_ACQUIRE) == PEM_JOINED_NOT ||
	       __atomic_load_n(&joined->incarnation, __ATOMIC_RELAXED) != incarnation;
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
	 * A session without a log never runs out of chunks. So this check notices that its consumer
	 * died.
	 */
	pem_process__check_consumer(session_index, pem_clock());
	if (depth)
		thread->has_nested = true;
	set_incarnation(thread, writer, 0);
	clear_writer(writer);
	if (writer == &thread->shared.writer[0])
		pem_quick_distribution__forget(thread);
	has_ring = pem_joined__ring(joined, incarnation, &ring);
	/* ja */
	if (!has_ring && __atomic_load_n(&joined->state, __ATOMIC_ACQUIRE) == PEM_JOINED_RULES) {
		if (!pem_process__lock())
			return NULL;
		if (joined->incarnation == incarnation)
			pem_process__make_pool(session_index);
		/*
		 * Copied before a signal handler may fork: in the child this would be the parent's
		 * pool, in private memory.
		 */
		has_ring = pem_joined__ring(joined, incarnation, &ring);
		pem_process__unlock();
	}
	if (!has_ring)
		return NULL;
	/* A thread cancelled in pem_lane__claim() would leave a lane without an owner. */
	pem_process__defer_cancellation(&cancel_type);
	has_lane = pem_lane__claim(joined, &ring, writer, thread->shared.tid) &&
		   !has_left(joined, incarnation);
	if (has_lane) {
		set_clock(thread, writer, joined);
		set_incarnation(thread, writer, incarnation);
	}
	pthread_setcanceltype(cancel_type, NULL);
	return has_lane ? writer : NULL;
}
