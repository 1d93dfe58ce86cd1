/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * producer.h - the producing side of a process: its providers, the sessions it has joined, its threads
 *
 * Nothing here allocates with malloc, prints, or blocks beyond the process lock, because it runs inside malloc,
 * inside signal handlers and inside programs that know nothing of it.
 *
 *	process ---> providers (control pages, mapped from the control file)
 *	        \--> joined[0..7] ---> session page (what is wanted)
 *	                          \--> pool (made at the process's first event in that session)
 *	thread  ---> writer[session], nested[depth][session]: each with its lane and, while it has one, its chunk
 *
 * Synchronization:
 *	process lock: providers, joining, making pools, the list of thread structures. Never held while user code runs.
 *	A signal handler that finds it held by its own thread gives up (the event is counted as lost).
 *	joined[i].state is released after everything it promises, and acquired by notify.
 */
#ifndef PEM_PRODUCER_H
#define PEM_PRODUCER_H

#include "pool.h"

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
	PEM_JOINED_FAILED, /* no pool could be made; events are counted in page->lost */
};

struct pem_sync_callback {
	uint32_t event_id;
	uint32_t tid;
	uint32_t cpu;
	uint32_t enabled;
	uint32_t running; /* threads inside function */
	const struct pem_event *event;
	void (*function)(const struct pem_record *record, void *arg);
	void *arg;
};

struct pem_joined {
	uint32_t state; /* enum pem_joined_state */
	uint32_t full_at; /* value of freed when the pool was last found full */
	uint32_t full;
	uint32_t incarnation; /* 1 to 255: which of the sessions that had this slot */
	struct pem_session_page *page;
	struct pem_ring ring;
	uint64_t pool_bytes;
	uint32_t *populated; /* bitmap: chunks whose memory exists */
	uint64_t populated_bytes;
	char directory[PATH_MAX];
	uint64_t
		contexts; /* bit i: this process is in the page's context i, as found when rules were applied */
	uint64_t
		inherited; /* those that follow children, and that the process which forked this one was in */
	uint32_t filter_generation; /* of the page's rules that filter is of */
	const struct pem_filter *filter[PEM_PROCESS_EVENTS_MAX]; /* NULL: none */
	struct pem_sync_callback callback[PEM_CALLBACKS_MAX];
	uint32_t callback_count;
};

/* A thread's structure; stubs see the first member. */
struct pem_thread_full {
	struct pem_thread shared;
	struct pem_writer nested[PEM_DEPTHS - 1][PEM_SESSIONS_MAX];
	const struct pem_sync_callback *in_callback; /* the one it is inside of, or NULL */
	struct pem_thread_full *next_free;
};

struct pem_process {
	uint32_t lock; /* tid of the holder, 0: free */
	uint32_t pid;
	struct pem_provider *providers;
	uint32_t event_count;
	uint32_t event_id[PEM_PROCESS_EVENTS_MAX];
	uint32_t event_model
		[PEM_PROCESS_EVENTS_MAX]; /* hash of the model text that describes it; 0: not made yet */
	uint8_t event_level[PEM_PROCESS_EVENTS_MAX]; /* enum pem_level; 0: not looked up yet */
	struct pem_control_file *control;
	uint64_t control_bytes;
	char control_path[PATH_MAX];
	struct pem_joined joined[PEM_SESSIONS_MAX];
};

extern struct pem_process pem_process;
extern __thread struct pem_thread *pem_thread_current __attribute__((tls_model("initial-exec")));
extern struct pem_thread
	pem_thread_none; /* what a thread without a structure sees: depth 1, no writers */

/* Take the process lock; false when this thread holds it already. */
bool pem_process__lock(void);
void pem_process__unlock(void);

/* Join the session in a directory: map its page and apply its rules. Slot, or -errno. Takes the lock. */
int pem_process__join(const char *directory);
/*
 * Forget a session and free its slot. A thread may be in the middle of an event still: what was shared memory stays
 * mapped, as private pages that nobody reads.
 */
void pem_process__leave(unsigned slot);
/* apply.c: apply the session's rules to every provider, to one, or switch all of a session's events off. Lock held. */
void pem_process__apply(unsigned slot);
void pem_process__apply_to(struct pem_provider *provider, unsigned slot);
void pem_process__switch_off(unsigned slot);
/* Leave each provider's model text in a session's folder, for whoever decodes the records. Lock held. */
void pem_process__write_models(const char *directory);
/* Make this process's pool for a session. Lock held. 0, or -errno; the state says so too. */
int pem_process__make_pool(unsigned slot);
/* Make sure that the control file exists and the providers' pages lie in it. Lock held. */
void pem_process__publish(void);

/* This thread's structure, made if need be; NULL when that is impossible here and now. */
struct pem_thread_full *pem_thread__get(void);
/* After fork, in the child: no thread structure of the parent is this thread's, but their memory stays. */
void pem_thread__after_fork(void);
/* The thread's writer in a session at a depth, with a lane; NULL: no pool or no lane. */
struct pem_writer *pem_thread__writer(struct pem_thread_full *thread, unsigned slot,
				      unsigned depth);

/*
 * fold.c: a lane that other threads had becomes tid's; their statistics move to lane 0. false: not now, because this thread
 * holds the process lock.
 */
bool pem_lane__take_over(const struct pem_ring *ring, uint32_t lane, uint32_t tid);

/* What pem_provider.notify points to: every event that the inlines of stub.h decline. */
void pem_notify(struct pem_provider *provider, uint32_t index, void *record, uint32_t bytes);

/* May this process make a file so large? Beyond RLIMIT_FSIZE the kernel would raise SIGXFSZ in the program. */
bool pem_file_size_allowed(uint64_t bytes);

/* Make the memory of a range of a pool exist; false: the file system is full (touching it would raise SIGBUS). */
bool pem_populate(void *start, uint64_t bytes);

/* The enum pem_level of a provider's event. Lock held. */
unsigned pem_provider__level(const struct pem_provider *provider, uint32_t index);

#endif
