/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * producer.h - the producing side of a process: its providers, the sessions it has joined, its
 * threads
 *
 * Nothing here allocates with malloc, prints, or blocks beyond the process lock, because it runs
 * inside malloc, inside signal handlers and inside programs that know nothing of it.
 *
 *	process ---> providers (control pages, mapped from the control file)
 *	        \--> joined[0..7] ---> session page (what is wanted)
 *	                          \--> pool (made at the process's first event in that session)
 *	thread  ---> writer[session], nested[depth][session]: each with its lane and, while it has
 *		one, its chunk
 *
 * Synchronization:
 *	process lock: providers, joining, making pools, the list of thread structures. Never held
 *	while user code runs. A signal handler that finds it held by its own thread gives up (the
 *	event is counted as lost). fork holds it, so that the child finds nothing half changed, but
 *	not for ever: see acquire() in process.c. Whoever takes it first in a child of fork makes
 *	the child a process of its own (process.c), however it was forked: the lock and the heads of
 *	thread structures lie in memory that the kernel wipes there, so that no event of the child
 *	gets past it. joined[i].state is released after everything it promises, and acquired by
 *	notify.
 */
#ifndef PEM_PRODUCER_H
#define PEM_PRODUCER_H

#include "pool.h"
#include "producer/seccomp.h"

#include <pem/predicate.h>
#include <pem/stub.h>
#include <pem/trace.h>

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define PEM_DEPTHS 3u /* an event, and two that interrupt one another */
#define PEM_PROCESS_EVENTS_MAX PEM_EVENT_CAPACITY_DEFAULT
#define PEM_CALLBACKS_MAX 64u

enum pem_joined_state {
	PEM_JOINED_NOT = 0,
	PEM_JOINED_RULES, /* page is mapped, rules apply, no pool yet */
	PEM_JOINED_POOL, /* ring is mapped */
	PEM_JOINED_FAILED, /* no pool could be made; events are counted in counts->lost */
};

struct pem_sync_callback {
	uint32_t event_id;
	uint32_t tid;
	uint32_t cpu;
	uint32_t enabled;
	uint32_t running; /* threads inside function */
	/* events that a thread raised inside of pem, where no function can be called */
	uint64_t missed;
	const struct pem_event *event;
	void (*function)(const struct pem_record *record, void *arg);
	void *arg;
};

/* A pool of this process, by its name; its models lie beside it. */
struct pem_pool_file {
	const char *directory; /* of the session, or its public one; NULL: no pool was made */
	bool is_public; /* so the folder has files of other users, too */
	char name[24]; /* "<pid>-<number>" */
};

/*
 * What this process has made of an entry of its table. It changes under the process lock; threads
 * in the middle of an event read it without: what lies behind ring and page stays mapped for them
 * for ever (join.c), and ring is copied whole.
 */
struct pem_joined {
	uint32_t state; /* enum pem_joined_state */
	uint32_t full_at; /* value of freed when the pool was last found full */
	uint32_t full;
	uint32_t crowded; /* the pool has had so many lanes that they use half of their chunks */
	uint32_t incarnation; /* 1 to 255: which of the sessions that had this entry; 0: none had */
	uint32_t changes; /* odd while page and ring become another session's */
	uint64_t word; /* of the table's entry, if this process has offered it to itself */
	struct pem_session_page *page; /* NULL: none had the entry yet. Read only. */
	/*
	 * Where this process counts, in the head: the page, or memory of its own (counts.c). What
	 * lies behind the head of that does not exist.
	 */
	struct pem_session_page *counts;
	struct pem_ring ring;
	uint64_t pool_bytes; /* 0: no pool */
	struct pem_pool_file pool_file; /* of the last one */
	uint64_t checked_at; /* clock when the consumer was last asked for */
	uint32_t ready_lanes; /* so many, from lane 1 on, have memory for all that they hold */
	uint32_t ready_full_at; /* value of freed when no chunk was found that has memory */
	bool ready_full;
	/* the process was started in the session, or joined it itself; else its targets decide */
	bool asked;
	char directory[PATH_MAX - 64];
	uint64_t device, inode; /* of the page's file in it */
	/* Where a process without rights to the folder makes its pool; "": nowhere. */
	char public_directory[64];
	/* bit i: this process is in the page's context i, as found when rules were applied */
	uint64_t contexts;
	/* those that follow children, and that the process which forked this one was in */
	uint64_t inherited;
	uint32_t filter_generation; /* of the page's rules that filter is of */
	const struct pem_filter *filter[PEM_PROCESS_EVENTS_MAX]; /* NULL: none */
	struct pem_sync_callback callback[PEM_CALLBACKS_MAX];
	uint32_t callback_count;
};

/* A thread's structure; stubs see the first member. */
struct pem_thread_full {
	struct pem_thread shared;
	struct pem_writer (*nested)[PEM_SESSIONS_MAX]; /* [PEM_DEPTHS - 1] */
	bool has_nested; /* memory that few threads need is not touched before */
	bool lacks_clock; /* PR_SET_TSC: its events are counted as lost */
	/*
	 * By level from 1 on: where on the stack its event was begun. Valid while the level is in
	 * use.
	 */
	uintptr_t begun[PEM_DEPTHS];
	const struct pem_sync_callback *in_callback; /* the one it is inside of, or NULL */
	struct pem_thread_full *next_free;
};

struct pem_process {
	uint32_t pid;
	uint32_t parent_pid; /* of a child of fork that is restricted; 0: the kernel is asked */
	/*
	 * The control file's pages are the parent's, which could not be copied: nothing is to be
	 * changed there.
	 */
	bool borrows_pages;
	struct pem_provider *providers;
	uint32_t event_count;
	uint32_t event_id[PEM_PROCESS_EVENTS_MAX];
	/* hash of the model text that describes it; 0: not made yet */
	uint32_t event_model[PEM_PROCESS_EVENTS_MAX];
	uint8_t event_level[PEM_PROCESS_EVENTS_MAX]; /* enum pem_level; 0: not looked up yet */
	char runtime[PATH_MAX - 128]; /* folder of the control file, if there is one */
	struct pem_control_file *control;
	uint64_t control_bytes;
	char control_path[PATH_MAX];
	struct pem_joined joined[PEM_SESSIONS_MAX];
};

extern struct pem_process pem_process;

static inline void pem_joined__begin_change(struct pem_joined *joined)
{
	__atomic_store_n(&joined->changes, joined->changes + 1, __ATOMIC_RELAXED);
	/* JD */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static inline void pem_joined__end_change(struct pem_joined *joined)
{
	/* JE */
	__atomic_store_n(&joined->changes, joined->changes + 1, __ATOMIC_RELEASE);
}

typedef uint64_t __attribute__((may_alias)) pem_ring_word;

/* Between begin_change and end_change. */
static inline void pem_joined__set_ring(struct pem_joined *joined, const struct pem_ring *ring)
{
	const pem_ring_word *from = (const pem_ring_word *)ring;
	pem_ring_word *to = (pem_ring_word *)&joined->ring;
	size_t i;

	for (i = 0; i < sizeof(*ring) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

/* Copy the ring that a session has in an incarnation; false: none, or not any more. Never waits. */
static inline bool pem_joined__ring(const struct pem_joined *joined, uint32_t incarnation,
				    struct pem_ring *ring)
{
	const pem_ring_word *from = (const pem_ring_word *)&joined->ring;
	pem_ring_word *to = (pem_ring_word *)ring;
	/* je */
	uint32_t changes = __atomic_load_n(&joined->changes, __ATOMIC_ACQUIRE);
	size_t i;

	/* ja */
	if (changes & 1 || __atomic_load_n(&joined->state, __ATOMIC_ACQUIRE) != PEM_JOINED_POOL ||
	    __atomic_load_n(&joined->incarnation, __ATOMIC_RELAXED) != incarnation)
		return false;
	for (i = 0; i < sizeof(*ring) / sizeof(*to); i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	/* jd */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&joined->changes, __ATOMIC_RELAXED) == changes;
}
PEM_STATIC_ASSERT(sizeof(struct pem_ring) % 8 == 0, "a ring is copied in words");
extern __thread struct pem_thread *pem_thread_current __attribute__((tls_model("initial-exec")));
/*
 * How many of pem's locks this thread holds, or is about to: what it raises in there (in malloc, in
 * a signal handler) calls nobody back, because a function that used pem would find its data half
 * changed, or wait for who waits for this thread.
 */
extern __thread uint32_t pem_thread_inside __attribute__((tls_model("initial-exec")));
/* what a thread without a structure sees: depth 0, no writers */
extern struct pem_thread pem_thread_none;

/* Take the process lock; false when this thread holds it already. */
bool pem_process__lock(void);
/*
 * Let the kernel wipe pages, which are private, in children of fork. false: it can't (Linux 4.14
 * can).
 */
bool pem_wipe_on_fork(void *start, size_t bytes);
void pem_process__unlock(void);

/*
 * Join the session in a directory: map its page and apply its rules. Slot, or -errno. Takes the
 * lock.
 */
int pem_process__join(const char *directory);
/*
 * The same with the value of PEM_SESSION: the path of a session's folder, or of one and, after a
 * colon, of its public one, for whoever has no right to the first.
 */
int pem_process__join_given(const char *value);
/*
 * Forget a session and free its entry. A thread may be in the middle of an event still: what was
 * shared memory stays mapped, as private pages that nobody reads.
 */
void pem_process__leave(unsigned session_index);
/*
 * Join what a consumer offers in an entry, if it is another session than the one joined there. Lock
 * held.
 */
void pem_process__join_offered(unsigned session_index);
/*
 * Join the sessions of the runtime folder that this process is a target of. Lock held, once
 * published.
 */
void pem_process__search_sessions(void);
/*
 * In the child of a fork: go on in the sessions that it belongs to. Lock held; the table is private
 * by then.
 */
void pem_process__inherit(void);
/* Leave a session whose consumer is dead; looked for now and then only. */
void pem_process__check_consumer(unsigned session_index, uint64_t now);
/*
 * Private pages in the place of shared ones, for threads that are late; the shared memory itself is
 * given up. Where that can't be had it stays: memory that is shared too long is better than a
 * thread that finds none.
 */
void pem_make_private(void *mapping, uint64_t bytes);
void pem_joined__make_pool_private(struct pem_joined *joined);
/* Is this process to be observed by the session, as found when rules were applied? */
bool pem_joined__is_member(const struct pem_joined *joined);
/*
 * apply.c: apply the session's rules to every provider, to one, or switch all of a session's events
 * off. Lock held.
 */
void pem_process__apply(unsigned session_index);
/* the session may have left its entry to another */
void pem_process__apply_rules(unsigned session_index);
void pem_process__apply_to(struct pem_provider *provider, unsigned session_index);
void pem_process__switch_off(unsigned session_index);
/* Leave each provider's model text beside a pool, for whoever decodes the records. Lock held. */
void pem_process__write_models(const struct pem_pool_file *pool);
/*
 * Make this process's pool for a session. Lock held. 0, or -errno; the entry may have become
 * another session's meanwhile.
 */
int pem_process__make_pool(unsigned session_index);
/*
 * notify.c: wake the consumer of a session up, if it sleeps. One system call for each of its
 * sleeps. Async-signal-safe.
 */
void pem_process__wake(struct pem_session_page *counts);
/*
 * counts.c: memory of this process to count in, for a session whose page it may not write: a file
 * in the session's folder that the consumer finds there, or private memory. Lock held.
 */
struct pem_session_page *pem_counts__make(const char *directory);
/*
 * Let the consumer know that nothing more is counted there. Late threads may still do so. Lock
 * held.
 */
void pem_counts__give_up(struct pem_session_page *counts);
/* Make sure that the control file exists and the providers' pages lie in it. Lock held. */
void pem_process__publish(void);
/* The same for one provider that has come. Lock held. */
void pem_process__publish_provider(struct pem_provider *provider);
/* Let consumers know the ids of all events. Lock held. */
void pem_process__note_ids(void);
/*
 * After fork, in the child: the control file is the parent's, so what it says is copied to private
 * memory.
 */
void pem_process__unshare_control(void);
/* The table of sessions: in the control file, in private memory while there is none. */
struct pem_session_entry *pem_process__table(void);
/* Find out where the runtime folder is now; false: there is none. Lock held. */
bool pem_process__find_runtime(void);

/* This thread's structure, made if need be; NULL when that is impossible here and now. */
struct pem_thread_full *pem_thread__get(void);
/*
 * After fork, in the child: no thread structure of the parent is this thread's, but their memory
 * stays.
 */
void pem_thread__after_fork(void);
/*
 * The thread's writer in a session at a depth, with a lane; NULL: no pool or no lane, or the entry
 * is another session's.
 */
struct pem_writer *pem_thread__writer(struct pem_thread_full *thread, unsigned session_index,
				      unsigned depth, uint32_t incarnation);
/* No thread's lane in an entry is of this incarnation: it came again. Lock held. */
void pem_thread__forget(unsigned session_index, uint32_t incarnation);

/* accumulate.c: add a record's field, as the action says, to a cell's statistic. */
void pem_accumulate(struct pem_cell *session_index, uint64_t action, const uint8_t *record,
		    uint32_t bytes);
/*
 * And to what a distribution keeps, PEM_DISTRIBUTION(...), in a lane. false: there is no memory for
 * it.
 */
bool pem_accumulate_distribution(const struct pem_ring *ring, uint32_t lane, uint32_t distribution,
				 uint64_t action, const uint8_t *record, uint32_t bytes);
/* Has the lane memory for a distribution, or does it get some now? */
bool pem_distribution__exists(const struct pem_ring *ring, uint32_t index, uint32_t lane);

/*
 * fold.c: a lane that other threads had becomes tid's; their statistics move to lane 0. false: not
 * now, because this thread holds the process lock, or for want of memory.
 */
bool pem_lane__take_over(const struct pem_ring *ring, uint32_t lane, uint32_t tid);

/* What pem_provider.notify points to: every event that the inlines of stub.h decline. */
void pem_notify(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes);

/*
 * May this process make a file so large? Beyond RLIMIT_FSIZE the kernel would raise SIGXFSZ in the
 * program.
 */
bool pem_file_size_allowed(uint64_t bytes);

/*
 * Open a new file "<kind>-<pid>-<number>" in a session's folder; its path is left in path. numbers:
 * counted up for each name; NULL: they come from the clock, and nobody knows them before.
 * Descriptor, or -errno.
 */
int pem_create_file(const char *directory, const char *kind, uint32_t *numbers, char *path,
		    size_t bytes);

/*
 * Make the memory of a range of a pool exist; false: the file system is full (touching it would
 * raise SIGBUS).
 */
bool pem_populate(void *start, uint64_t bytes);

/* --- rights.c: see rights.h --- */

/*
 * Which of pem's system calls a filter of this thread, or of all threads, refuses: PEM_SECCOMP_*
 * (seccomp.h).
 */
extern __thread uint32_t pem_thread_refused __attribute__((tls_model("initial-exec")));
extern uint32_t pem_process_refused;

/* Has a consumer seen that this process has a filter which it has not told of? */
uint32_t pem_process__refused_as_seen(void);

static inline uint32_t pem_refused(void)
{
	uint32_t refused =
		pem_thread_refused | __atomic_load_n(&pem_process_refused, __ATOMIC_RELAXED);

	return refused ? refused : pem_process__refused_as_seen();
}

/* May pem make no system call in this thread? */
static inline bool pem_restricted(void)
{
	return pem_refused() & PEM_SECCOMP_CALLS;
}

/* Has its root folder or mount namespace been changed? Then paths may lead elsewhere. */
bool pem_process__has_moved(void);
/*
 * Can the session's folder be reached? If not, what is not found there may be where it was: its
 * consumer is not taken for dead. Looked for only in a process that has moved or is restricted.
 */
bool pem_joined__in_reach(const struct pem_joined *joined);
/* How many filters it may have that let pem's calls pass; ~0: unknown. */
uint32_t pem_process__known_filters(void);
/*
 * As the process starts, before any other call: restrict it if it has a filter that nobody knows.
 */
void pem_process__find_filter(void);
/*
 * What a pool of this process is to have before more of it can't be had. spares: pools for children
 * (restricted ones, or such as can't make a file); ready: memory for threads and chunks to come.
 * Lock held; the session has a pool.
 */
void pem_process__reserve(unsigned session_index, bool spares, bool ready);
/*
 * Give this process a pool that its parent reserved for a child. Lock held. 0, or -errno: there is
 * none left.
 */
int pem_process__take_spare(unsigned session_index);
/* Make this thread's structure, and memory for those of others. */
void pem_thread__reserve(void);
/*
 * This thread raises no event, so that its clock is not read: they are counted as lost; or it does
 * again.
 */
void pem_thread__silence(bool silent);
/*
 * The levels of events under way in the thread, without those that a signal handler has left by a
 * jump (siglongjmp). stack: where on it the caller is. Returns their number, which is the level of
 * an event that is begun now.
 */
unsigned pem_thread__level(struct pem_thread_full *thread, uintptr_t stack);
/*
 * An event of a level is begun there; returns what was said of the level before, which is to be
 * said again once the event has ended: a handler may run between this and the change of the
 * thread's depth, and begin an event of the same level.
 */
static inline uintptr_t pem_thread__begin(struct pem_thread_full *thread, unsigned level,
					  uintptr_t stack)
{
	uintptr_t before = 0;

	if (level < PEM_DEPTHS) {
		before = thread->begun[level];
		thread->begun[level] = stack;
	}
	return before;
}
/*
 * on: false: this thread may not read the clock, and its events are counted as lost; true: it may
 * again.
 */
void pem_thread__set_clock(bool on);

/* The enum pem_level of a provider's event. Lock held. */
unsigned pem_provider__level(const struct pem_provider *provider, uint32_t index);

#endif
