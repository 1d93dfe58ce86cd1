/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * producer.h - the producing side of a process: its providers, the sessions it has joined, its
 * threads
 *
 * The code here runs inside malloc, inside signal handlers and inside programs that know nothing of
 * it. So it does not call malloc and does not print. It blocks on nothing but the process lock.
 *
 *	process ---> providers (control pages, mapped from the control file)
 *	        \--> joined[0..7] ---> session page (what is wanted)
 *	                          \--> pool (made at the process's first event in that session)
 *	thread  ---> writer[session], nested[depth][session]: each with its lane and, while it has
 *		one, its chunk
 *
 * The process lock guards providers, joining, making pools, and the list of thread structures. It
 * is never held while user code runs. A signal handler that finds the lock held by its own thread
 * gives up, and the event is counted as lost.
 *
 * fork holds the lock, so that the child finds nothing half changed. It does not hold it for ever:
 * see acquire() in process.c. The first thread that takes the lock in a child of fork makes the
 * child a process of its own (process.c), whichever function forked. For that the lock and the
 * heads of thread structures lie in memory that the kernel wipes in the child: no event of the
 * child gets past it.
 *
 * joined[i].state is released after everything it promises, and acquired by notify.
 */
#ifndef PEM_PRODUCER_H
#define PEM_PRODUCER_H

#include "pool.h"
#include "producer/gates.h"
#include "producer/pools.h"
#include "producer/notify_quick.h"
#include "producer/seccomp.h"

#include <pem/counted.h>
#include <pem/predicate.h>
#include <pem/stub.h>
#include <pem/trace.h>

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Levels of events in one thread: an event, a second one that interrupts it, and a third one that
 * interrupts the second.
 */
#define PEM_DEPTHS 3u
#define PEM_PROCESS_EVENTS_MAX PEM_EVENT_CAPACITY_DEFAULT
#define PEM_CALLBACKS_MAX 64u

enum pem_joined_state {
	PEM_JOINED_NOT = 0,
	PEM_JOINED_RULES, /* the page is mapped, rules apply, there is no pool yet */
	PEM_JOINED_POOL, /* the ring is mapped */
	PEM_JOINED_FAILED, /* no pool could be made; events are counted in counts->lost */
};

/*
 * What one of several rules asks of an event. Who changes it, under the process lock, first marks
 * the action PEM_ACTION_CHECK and stores the action last: an action seen before and after the rest
 * is one that the rest belongs to.
 */
struct pem_part {
	uint64_t action;
	const struct pem_filter *filter;
	uint32_t event_index;
	uint32_t gates; /* PEM_GATES() of its predicate */
};

struct pem_sync_callback {
	uint32_t event_id;
	uint32_t tid;
	uint32_t cpu;
	uint32_t enabled;
	uint32_t running; /* threads inside function */
	/* Events that a thread raised inside of pem, where the function can't be called. */
	uint64_t missed;
	const struct pem_event *event;
	/* Of its predicate; none: the event is not tested. They stay while the callback is
	 * registered. */
	const struct pem_test *tests;
	uint32_t test_count;
	void (*function)(const struct pem_record *record, void *arg);
	void *arg;
};

/* The file of a pool of this process. The models lie beside it. */
struct pem_pool_file {
	/* The session's folder, or its public folder; NULL: no pool was made. */
	const char *directory;
	bool is_public; /* the folder is the public one: other users have files there, too */
	char name[24]; /* "<pid>-<number>" */
};

/*
 * What this process has made of an entry of its table of sessions. It changes under the process
 * lock. Threads in the middle of an event read it without the lock. So the memory behind ring and
 * page stays mapped for ever (join.c), and a thread copies the whole ring.
 */
struct pem_joined {
	uint32_t state; /* enum pem_joined_state */
	uint32_t full_at; /* value of freed when the pool was last found full */
	uint32_t full;
	/* The pool has had so many lanes that they use half of its chunks. */
	uint32_t crowded;
	/* Tells apart the sessions that had this entry: 1 to 255; 0: no session had it. */
	uint32_t incarnation;
	uint32_t changes; /* odd while page and ring change to another session's */
	/* Word of the table's entry, if this process itself put the session there. */
	uint64_t word;
	struct pem_session_page *page; /* NULL: no session had the entry yet. Read only. */
	/*
	 * Where this process counts: the head of the page, or memory of its own (counts.c). Such
	 * memory has only the head of a page.
	 */
	struct pem_session_page *counts;
	struct pem_ring ring;
	uint64_t pool_bytes; /* 0: no pool */
	struct pem_pool_file pool_file; /* file of the last pool */
	uint64_t checked_at; /* clock when the process last checked that the consumer lives */
	uint32_t ready_lanes; /* lanes, from lane 1 on, that have all their memory */
	uint32_t ready_full_at; /* value of freed when no chunk with memory was found */
	uint32_t open_chunks; /* chunks that the process has access to */
	bool ready_full;
	/*
	 * The process was started in the session, or joined it itself. If not, the session's
	 * targets decide whether it is observed.
	 */
	bool asked;
	/*
	 * An event has, or had, a filter; several rules. Else filter, or own_action and further_of,
	 * are zero and not touched: each of their pages takes a process that joins some
	 * microseconds.
	 */
	bool has_filters, has_parts;
	/* Rules of gates were applied: see gates.c. Changes under the lock, and is read without. */
	bool has_gates;
	uint32_t first_gates; /* bit g: the rules had gate g before the process raised an event */
	uint32_t filter_generation; /* generation of the page's rules that filter is made from */
	uint32_t callback_count;
	uint64_t device, inode; /* of the page's file in directory */
	/*
	 * The folder in which a process without rights to the session's folder makes its pool; "":
	 * none.
	 */
	char public_directory[64];
	/* Bit i: this process is in the page's context i, as found when rules were applied. */
	uint64_t contexts;
	/* Contexts that follow children and that the process which forked this one was in. */
	uint64_t inherited;
	/* With PEM_ACTION_MORE: a bit for each event before which counters are logged. */
	uint64_t counted[PEM_PROCESS_EVENTS_MAX / 64];
	char directory[PATH_MAX - 64];
	const struct pem_filter *filter[PEM_PROCESS_EVENTS_MAX]; /* NULL: none */
	/*
	 * For events with PEM_ACTION_MORE: what the rule of an event's own cell asks for, 0: there
	 * is none, with the filter above; which further cells have rules of the event; and what
	 * these ask for.
	 */
	uint64_t own_action[PEM_PROCESS_EVENTS_MAX];
	uint64_t further_of[PEM_PROCESS_EVENTS_MAX];
	struct pem_part further[PEM_FURTHER_CELLS];
	struct pem_sync_callback callback[PEM_CALLBACKS_MAX]; /* callback_count of them */
};

/* A thread's structure. Stubs know only the first member. */
struct pem_thread_full {
	struct pem_thread shared;
	struct pem_writer (*nested)[PEM_SESSIONS_MAX]; /* [PEM_DEPTHS - 1] */
	/* Its states of gates; NULL: it has changed none. Memory for them, zero until then. */
	pem_gate_words *gates, *gate_memory;
	bool has_nested; /* nested has memory: few threads need it, so it is not touched before */
	bool lacks_clock; /* PR_SET_TSC forbids the clock: events are counted as lost */
	/*
	 * For each level from 1 on: the address on the stack at which its event was begun. Valid
	 * while the level is in use.
	 */
	uintptr_t begun[PEM_DEPTHS];
	/* The callback whose function the thread is in, or NULL. */
	const struct pem_sync_callback *in_callback;
	struct pem_thread_full *next_free;
	struct pem_thread_counters *counters; /* NULL: none (counters.c) */
	struct pem_quick_distribution quick[PEM_QUICK_DISTRIBUTIONS];
	/* Incarnation of the session whose counters a filter may forbid; 0: none */
	uint8_t counters_refused[PEM_SESSIONS_MAX];
};

struct pem_process {
	uint32_t pid;
	uint32_t parent_pid; /* for a restricted child of fork; 0: the kernel is asked */
	uint32_t pid_namespace; /* see pem_process__pid_namespace; 0: not asked for yet */
	/*
	 * The control file's pages are the parent's, because they could not be copied. This process
	 * changes nothing there.
	 */
	bool borrows_pages;
	/*
	 * Bit i: joined[i] has been a session's. All else there is zero and has not been touched,
	 * which a process that starts need not do: each has 23 KB. Set under the lock, before
	 * joined[i].state; read without it, as an older value that the state would show, too.
	 */
	uint32_t ever_joined;
	bool begins; /* It registers its first provider: it has raised no event. Under the lock. */
	struct pem_provider *providers;
	struct pem_control_file *control;
	uint64_t control_bytes;
	uint32_t event_count;
	/* Folder of the control file, if there is one. It lies in one page with all above. */
	char runtime[PATH_MAX - 128];
	char control_path[PATH_MAX];
	uint32_t event_id[PEM_PROCESS_EVENTS_MAX];
	/* Hash of the model text that describes the event; 0: not made yet. */
	uint32_t event_model[PEM_PROCESS_EVENTS_MAX];
	uint8_t event_level[PEM_PROCESS_EVENTS_MAX]; /* enum pem_level; 0: not looked up yet */
	struct pem_joined joined[PEM_SESSIONS_MAX];
};

extern struct pem_process pem_process;
/* Path of a file that is being opened: a signal handler's stack may be small. Lock held. */
extern char pem_process__path[PATH_MAX + 64];

/* Has joined[session_index] been a session's? */
static inline bool pem_process__had_session(unsigned session_index)
{
	return __atomic_load_n(&pem_process.ever_joined, __ATOMIC_RELAXED) >> session_index & 1;
}

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

/* Set a session's ring. Call it between begin_change and end_change. */
static inline void pem_joined__set_ring(struct pem_joined *joined, const struct pem_ring *ring)
{
	const pem_ring_word *from = (const pem_ring_word *)ring;
	pem_ring_word *to = (pem_ring_word *)&joined->ring;
	size_t i;

	for (i = 0; i < sizeof(*ring) / sizeof(*to); i++)
		__atomic_store_n(&to[i], from[i], __ATOMIC_RELAXED);
}

/*
 * Copy the ring that a session has in an incarnation. False: there is none, or it is not that
 * session's any more. Never waits.
 */
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
 * How many of pem's locks this thread holds or is about to take. Events that it raises meanwhile
 * (in malloc, in a signal handler) call no function back. Such a function might use pem, and would
 * then find pem's data half changed, or wait for a thread that waits for this one.
 */
extern __thread uint32_t pem_thread_inside __attribute__((tls_model("initial-exec")));
/* What a thread without a structure uses: depth 0, no writers. */
extern struct pem_thread pem_thread_none;

/*
 * Take the process lock. False: this thread holds it already, or this thread is restricted and did
 * not get it within some 0.1 ms.
 */
bool pem_process__lock(void);
/*
 * Set this thread's type of cancellation to deferred; type is filled with the type before. A
 * thread that another one has begun to cancel asynchronously may end in here, but not later.
 */
void pem_process__defer_cancellation(int *type);
/*
 * Let the kernel wipe pages in children of fork. The pages are private. False: the kernel can't
 * (Linux 4.14 can), or this thread is restricted.
 */
bool pem_wipe_on_fork(void *start, size_t bytes);
void pem_process__unlock(void);
/*
 * The process's id. A restricted process has just started, or is a child of fork. So it has one
 * thread, with the same id.
 */
uint32_t pem_process__id(void);

/*
 * Join the session in a directory: map its page and apply its rules. Returns the session index, or
 * -errno. Takes the lock.
 */
int pem_process__join(const char *directory);
/*
 * Join a session by the value of PEM_SESSION: the path of the session's folder, or that path, a
 * colon and the path of its public folder. The public folder is for processes without rights to the
 * first. Returns the session index, or -errno. Takes the lock.
 */
int pem_process__join_given(const char *value);
/*
 * Forget a session and free its entry. Its shared memory becomes private pages that nobody reads
 * and that stay mapped, because a thread may be in the middle of an event.
 */
void pem_process__leave(unsigned session_index);
/*
 * Join the session that a consumer offers in an entry, if it is not the one joined there. Lock
 * held.
 */
void pem_process__join_offered(unsigned session_index);
/*
 * Join the sessions of the runtime folder that have this process as a target. Lock held; the
 * control file is published already.
 */
void pem_process__search_sessions(void);
/*
 * In the child of a fork: stay in the sessions that the child belongs to. Lock held; the table is
 * private by then.
 */
void pem_process__inherit(void);
/* Leave a session if its consumer is dead. Checks that only now and then. */
void pem_process__check_consumer(unsigned session_index, uint64_t now);
/*
 * Replace shared pages by private ones, for threads that may still use them, and give the shared
 * memory up. If that fails, the shared pages stay: this is better than a thread that finds no
 * memory. Does nothing in a restricted thread.
 */
void pem_make_private(void *mapping, uint64_t bytes);
void pem_joined__make_pool_private(struct pem_joined *joined);
/* Is this process observed by the session, as found when rules were applied? */
bool pem_joined__is_member(const struct pem_joined *joined);
/*
 * apply.c. Lock held. __apply: apply the session's rules to every provider. __apply_to: to one
 * provider. __switch_off: switch all of the session's events off.
 */
void pem_process__apply(unsigned session_index);
/* Apply the rules to every provider, though the entry may be another session's by now. */
void pem_process__apply_rules(unsigned session_index);
void pem_process__apply_to(struct pem_provider *provider, unsigned session_index);
void pem_process__switch_off(unsigned session_index);
/* Write each provider's model text beside a pool, for whatever decodes its records. Lock held. */
void pem_process__write_models(const struct pem_pool_file *pool);
/*
 * Make this process's pool for a session. Lock held. Returns 0, or -errno. Meanwhile the entry may
 * become another session's.
 */
int pem_process__make_pool(unsigned session_index);
/*
 * notify.c: wake the consumer of a session, if it sleeps. Makes one system call for each of its
 * sleeps. Async-signal-safe.
 */
void pem_process__wake(struct pem_session_page *counts);
/*
 * counts.c: make memory in which this process counts for a session whose page it may not write. The
 * memory is a file in the session's folder, which the consumer finds there, or private memory. Lock
 * held.
 */
struct pem_session_page *pem_counts__make(const char *directory);
/*
 * Let the consumer know that this process counts nothing more there. Late threads may still count
 * in the memory. Lock held.
 */
void pem_counts__give_up(struct pem_session_page *counts);
/*
 * The inode number of this process's pid namespace, or 0. Asks the kernel once, which takes as long
 * as making a file. Lock held, or only one thread.
 */
uint32_t pem_process__pid_namespace(void);
/* Make sure that the control file exists and holds the providers' pages. Lock held. */
void pem_process__publish(void);
/*
 * Make sure of that for new providers, and fill the heads of their pages. Sorts them. Lock held.
 */
void pem_process__publish_providers(struct pem_provider *providers[], uint32_t count);
/* Switch off a provider's events; consumers find none of it from now on. Lock held. */
void pem_process__give_up_page(const struct pem_provider *provider);
/* Write the ids of all events to the control file, for consumers. Lock held. */
void pem_process__note_ids(void);
/*
 * After fork, in the child: copy the content of the control file, which is the parent's, to private
 * memory.
 */
void pem_process__unshare_control(void);
/*
 * Return the table of sessions: in the control file, or in private memory while there is no such
 * file.
 */
struct pem_session_entry *pem_process__table(void);
/* Find out where the runtime folder is now. False: there is none. Lock held. */
bool pem_process__find_runtime(void);
/* The folder was found just now, without that function. */
void pem_process__found_runtime(void);

/* Return this thread's structure, made if need be. NULL: that is impossible here and now. */
struct pem_thread_full *pem_thread__get(void);
/* After fork, in the child: forget the structures of the parent's threads. Their memory stays. */
void pem_thread__after_fork(void);
/*
 * Return the thread's writer in a session at a depth, with a lane. NULL: there is no pool or no
 * lane, or the entry is another session's.
 */
struct pem_writer *pem_thread__writer(struct pem_thread_full *thread, unsigned session_index,
				      unsigned depth, uint32_t incarnation);
/* No thread's writer keeps an incarnation that comes again in its entry. Lock held. */
void pem_thread__forget(unsigned session_index, uint32_t incarnation);

/*
 * Copy the ring that a writer's lane is of. False: its session has left, or this is a copy, after
 * fork, of the parent's event.
 */
bool pem_writer__ring(unsigned session_index, const struct pem_writer *writer,
		      struct pem_ring *ring);
/*
 * The clock for a writer's next record: the cycle counter, or the coarse clock of the session that
 * the entry has now. In the moment in which a session leaves that may be another one's.
 */
uint64_t pem_writer__clock(unsigned session_index, const struct pem_writer *writer);
/*
 * As memcpy, but never a call of it: ThreadSanitizer, in a program that was built with it, sees
 * such a call and does not see how threads hand chunks on. It would report a race of ours.
 */
static inline void pem_copy_record(void *to, const void *from, uint32_t bytes)
{
	uint32_t i, whole = bytes & ~(uint32_t)7;

	for (i = 0; i < whole; i += 8) {
		__builtin_memcpy((uint8_t *)to + i, (const uint8_t *)from + i, 8);
		PEM_BARRIER(); /* or the compiler makes a call of the loop */
	}
	for (; i < bytes; i++) {
		((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
		PEM_BARRIER();
	}
}
/* log_record.c: log a record, or count it as discarded. The record's header is written here. */
void pem_log_record(unsigned session_index, struct pem_writer *writer, uint32_t event_index,
		    uint32_t tid, const uint8_t *record, uint32_t bytes);

/*
 * counters.c: log what the thread's counters hold, for an event of this id that is logged next.
 * Opens them at the first such event of the thread.
 */
void pem_counted__log(struct pem_thread_full *thread, unsigned session_index,
		      struct pem_writer *writer, uint64_t action, uint32_t event_id);
/* In a child of fork: its memory of this thread of its parent can be read. */
void pem_counted__after_fork(struct pem_thread_full *thread);
/*
 * What it takes this thread to read these counters once, in cycles of pem_clock. Opens and closes
 * them. Blocks for some tenths of a millisecond.
 */
double pem_counted__reading_cycles(const struct pem_counter *counters, uint32_t count);
/* The thread has ended. */
void pem_counted__close(struct pem_thread_full *thread);

/* accumulate.c: add a record's field to a cell's statistic, as the action says. */
void pem_accumulate(struct pem_cell *cell, uint64_t action, const uint8_t *record, uint32_t bytes);
/*
 * Add the field also to a distribution (PEM_DISTRIBUTION(...)) of a lane. False: there is no memory
 * for it.
 */
bool pem_accumulate_distribution(const struct pem_ring *ring, uint32_t lane, uint32_t distribution,
				 uint64_t action, const uint8_t *record, uint32_t bytes);
/* Does the lane have memory for its further cells? If not, try to get it. */
bool pem_further__exist(const struct pem_ring *ring, uint32_t lane);
/* Does the lane have memory for a distribution? If not, try to get it. */
bool pem_distribution__exists(const struct pem_ring *ring, uint32_t index, uint32_t lane);

/*
 * fold.c: make a lane tid's that other threads had before. Their statistics move to lane 0. False:
 * not now, because this thread holds the process lock, or out of memory.
 */
bool pem_lane__take_over(const struct pem_ring *ring, uint32_t lane, uint32_t tid);
/* lane.c: give a free lane to the thread's writer. False: there is none, or no memory for it. */
bool pem_lane__claim(const struct pem_joined *joined, const struct pem_ring *ring,
		     struct pem_writer *writer, uint32_t tid);

/*
 * notify_quick.c: pem_provider.notify points to this. It handles every event that the inlines of
 * stub.h do not: some quickly, the others by pem_notify_all.
 */
void pem_notify(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes);
/* notify.c: the same, the general way. */
void pem_notify_all(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes);
/* counters_quick.c: the same, of a thread that has counters, in no other event; action: just read
 */
void pem_notify_counted(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes,
			uint64_t action, struct pem_thread_full *thread);

/* --- rights.c: see rights.h --- */

/*
 * The system calls of pem that a filter of this thread, or of all threads, refuses, and whether
 * this thread has syscall user dispatch: PEM_SECCOMP_* (seccomp.h).
 */
extern __thread uint32_t pem_thread_refused __attribute__((tls_model("initial-exec")));
extern uint32_t pem_process_refused;

/*
 * Has a consumer seen that this process has a filter that it was not told of? Returns what is
 * refused then, or 0.
 */
uint32_t pem_process__refused_as_seen(void);

static inline uint32_t pem_refused(void)
{
	uint32_t refused =
		pem_thread_refused | __atomic_load_n(&pem_process_refused, __ATOMIC_RELAXED);

	return refused ? refused : pem_process__refused_as_seen();
}

/* Is pem forbidden to make system calls in this thread? */
static inline bool pem_restricted(void)
{
	return pem_refused() & (PEM_SECCOMP_CALLS | PEM_SECCOMP_DISPATCH);
}

/* Has the process's root folder or mount namespace changed? Paths may lead elsewhere then. */
bool pem_process__has_moved(void);
/*
 * Can the session's folder be reached? If not, a file that is not found there may still exist, and
 * the consumer is not taken for dead. Always true in a process that has not moved; always false in
 * a restricted thread.
 */
bool pem_joined__in_reach(const struct pem_joined *joined);
/* Return how many filters the process may have that let pem's calls pass; ~0: unknown. */
uint32_t pem_process__known_filters(void);
/* Read that number from the variable. Called as the process starts. Makes no system call. */
void pem_process__read_known_filters(void);
/*
 * Restrict the process if it has a filter that nobody knows. Called before any call of pem's that a
 * program's loader does not make.
 */
void pem_process__find_filter(void);
/*
 * Do what must be done once before the process lock is taken. Taking it does so, too. Does nothing
 * the second time.
 */
void pem_process__begin(void);
/* Make this thread's structure, and memory for the structures of other threads. */
void pem_thread__reserve(void);
/*
 * silent: this thread raises no event, so that its clock is not read. Its events are counted as
 * lost. Not silent: it raises events again.
 */
void pem_thread__silence(bool silent);
/*
 * Return the number of events that are under way in the thread. That is the level of an event that
 * is begun now. Events that a signal handler has left by a jump (siglongjmp) do not count. stack:
 * the caller's address on the stack.
 */
unsigned pem_thread__level(struct pem_thread_full *thread, uintptr_t stack);
/*
 * Note that an event of a level begins at stack. Returns what was noted for the level before; note
 * that again when the event has ended. A signal handler may run between this and the change of the
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
 * on false: this thread may not read the clock, and its events are counted as lost. on true: it may
 * again.
 */
void pem_thread__set_clock(bool on);

/* Return the enum pem_level of a provider's event. Lock held. */
unsigned pem_provider__level(const struct pem_provider *provider, uint32_t index);

#endif
