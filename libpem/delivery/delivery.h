/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * delivery.h - records on their way to asynchronous callbacks: read behind the producers, queued
 * for the thread
 *
 *	callbacks/callbacks.c	handles, and what was lost
 *	callbacks/thread.c	the thread: when it scans, how it sleeps
 *	delivery/delivery.c	from pools and sources to a batch: copies of records, checked
 *	callbacks/call.c	from a batch to the functions, in order of time
 *
 *	pools ----collect----> incoming --swap--> batch --sort, up to the horizon--> functions
 *	sources --drain------/ (session's mutex)  (the thread's own)                 (no mutex held)
 *
 * Locks: the session's mutex guards collecting, so that drain.c and the thread never meet; the
 * async lock, taken inside of it or alone, guards the handles that the thread calls, and is not
 * held while a function runs. Records wait in 'incoming' while functions run, in as much memory as
 * a pool has; what finds no room there is lost and counted.
 *
 * What is lost is what was produced and not read. That is known for each event and process at any
 * time, whatever it was lost to.
 */
#ifndef PEM_DELIVERY_H
#define PEM_DELIVERY_H

#include "producer/producer.h"
#include "writer/trace_writer.h"
#include "reader/reader.h"

#include <pem/pem.h>

#include <pthread.h>

struct pem_callback;
struct pem_context_table;
struct pem_demand;
struct pem_event_table;
struct pem_found_chunk;
struct pem_producer;
struct pem_session;

#define PEM_ASYNC_MAX 64u /* callbacks of a session: bits of pem_demand.async */

/* A record's copy in a batch, at a multiple of 8. */
struct pem_async_item {
	const struct pem_event *event; /* NULL: records of cpu were lost here */
	struct pem_demand *demand;
	uint32_t pid, tid, cpu, source;
	uint32_t bytes;
	uint32_t reserved;
	uint64_t callbacks; /* bit i: of callback i, which was enabled when it was raised */
	uint8_t data[];
};

/*
 * Ties are broken by what follows the clock: each lane's and CPU's records lie in order, behind
 * what is left of the turn before.
 */
struct pem_async_key {
	uint64_t clock;
	uint64_t fresh : 1; /* read in this turn */
	uint64_t at : 63; /* of the item */
};

struct pem_async_batch {
	uint8_t *bytes;
	size_t used, capacity;
	struct pem_async_key *keys;
	size_t count, key_capacity;
	size_t wanted; /* of the items, for callbacks; others tell contexts */
	bool sorted;
};

/* How far a lane is read. */
struct pem_async_lane {
	uint64_t seq; /* of the chunk in hand, or to come */
	uint64_t clock; /* of the last record read */
	uint32_t index; /* of the chunk in hand */
	uint32_t offset; /* in it, of what comes next; 0: none is in hand */
	uint32_t tid;
	bool gap; /* the next one was not to be found last time */
};

struct pem_async_producer {
	struct pem_async_lane *lanes;
	uint64_t *read; /* records, per event */
	uint64_t *missed; /* produced and not read, as accounted for so far, per event */
	/*
	 * When a log began: number and offset of the chunk of each lane up to which callbacks had
	 * read by then.
	 */
	bool log_began;
	uint64_t *log_skip;
	struct pem_found_chunk *found; /* room for all chunks */
	uint32_t full; /* chunks that were read to their end, and freed, in this turn */
};

struct pem_async_callback {
	struct pem_callback *handle;
	void (*function)(const struct pem_record *record, void *arg);
	void *arg;
	uint64_t max_delay_us;
	bool enabled;
	uint64_t since; /* clock of enabling: what was raised before is not its */
	uint64_t born; /* clock of the first enabling; UINT64_MAX: still to come */
	uint64_t last_clock; /* of the last record that it was called with */
	uint64_t called, late;
	/* in spans that are over; its events' async_lost when this one began */
	uint64_t lost, lost_from;
	unsigned index;
};

/* A stream of a source: what its last packet said. */
struct pem_async_stream {
	char name[PEM_STREAM_NAME_BYTES];
	uint64_t discarded;
};

struct pem_async {
	struct pem_session *session;
	pthread_t thread;
	pid_t pid; /* of the process whose thread it is: not a child's */
	uint32_t tid;
	bool started;
	/* the thread's own: a function has closed the session, and only this struct is left */
	bool closed;
	/* under the session's mutex */
	bool active; /* some callback is enabled: lanes are followed */
	bool stop;
	bool asleep; /* waits for a wake-up, not for the clock */
	bool follows_sources; /* wants events that can't wake it */
	uint64_t period_ns;
	uint32_t pools_seen;
	uint64_t next_update_ns;
	uint8_t *chunk; /* private copy */
	size_t limit; /* bytes of incoming */
	struct pem_async_batch incoming;
	struct pem_async_stream *streams; /* of the kernel; a CPU may have several */
	size_t stream_count, stream_capacity;
	/* under the async lock */
	pthread_mutex_t lock;
	pthread_cond_t changed; /* enabled or stopped; a function has returned */
	unsigned enabled_count;
	/* one was disabled: what was collected for it until then is to be counted as lost */
	bool left_over;
	struct pem_async_callback *callbacks[PEM_ASYNC_MAX];
	struct pem_async_callback *running;
	/* the thread's own */
	struct pem_async_batch batch;
	size_t batch_done; /* keys handed on */
	size_t batch_left; /* wanted, and not handed on yet; atomic, others look */
	struct pem_context_table *contexts;
	struct pem_event_table events;
	int timer[2];
	unsigned turn; /* which timer is due next */
	uint64_t timer_period_ns; /* that they were set for */
};

static inline void pem_async__lock(struct pem_async *async)
{
	pem_thread_inside++;
	PEM_BARRIER();
	pthread_mutex_lock(&async->lock);
}

static inline void pem_async__unlock(struct pem_async *async)
{
	pthread_mutex_unlock(&async->lock);
	PEM_BARRIER();
	pem_thread_inside--;
}

/*
 * Read what producers committed since. final: it will produce no more, so take what is there as it
 * comes.
 */
void pem_async__collect(struct pem_session *session, struct pem_producer *producer, bool final);

void pem_async__collect_lane(struct pem_session *session, struct pem_producer *producer,
			     uint32_t lane);

void pem_async__collect_all(struct pem_session *session);
/* Read a source's packet, of a stream; content: its records end there. */
void pem_async__take_packet(struct pem_session *session, const char *name,
			    const struct pem_packet *packet, size_t content);

void pem_async_batch__free(struct pem_async_batch *batch);
/* Append a record's copy. False: no room, or no memory. */
bool pem_async_batch__add(struct pem_async_batch *batch, size_t limit, uint64_t clock,
			  const struct pem_async_item *item, const uint8_t *data);

/* Up to which offset of a chunk records were counted as aside before there was a log. */
size_t pem_async__callback_only_before(const struct pem_producer *producer, uint32_t lane,
				       uint64_t seq);

/* A log begins: what is read by now is not its, nor unaccounted for. */
void pem_async__log_begins(struct pem_session *session);

/*
 * Account for what a producer lost of an event up to before, a count of produced that is older than
 * the last look at its lanes: all of it that was not read. Nobody was called back then: what is
 * missing so far is nobody's loss.
 */
void pem_async__settle(struct pem_producer *producer, struct pem_demand *demand,
		       uint32_t event_index, uint64_t before);

/* A producer will produce no more: what it lost is added to what its events' callbacks lost. */
void pem_async__account(struct pem_session *session, struct pem_producer *producer);

/* Wake the thread up, if it sleeps until it is woken. */
void pem_async__kick(struct pem_session *session);

/* Is this its thread, in a function? */
bool pem_async__is_self(const struct pem_async *async);

#endif
