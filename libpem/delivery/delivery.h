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
 * Locks: the session's mutex guards collecting, so that drain.c and the thread never collect at the
 * same time. The async lock guards the handles that the thread calls. A thread takes it inside the
 * session's mutex or alone. It is not held while a function runs.
 *
 * Records wait in incoming while functions run. incoming has as much memory as a pool has. A record
 * that finds no room there is lost and counted.
 *
 * A record is lost if it was produced and not read. That number is known for each event and process
 * at any time, whatever the reason for the loss.
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
	const struct pem_event *event; /* NULL: records of this cpu were lost here */
	struct pem_demand *demand;
	uint32_t pid, tid, cpu, source;
	uint32_t bytes;
	uint32_t reserved;
	/* Bit i: the record is for callback i, which was enabled when the record was raised. */
	uint64_t callbacks;
	uint8_t data[];
};

/*
 * Sort key of an item. If clocks are equal, the members after clock decide: items left over from an
 * earlier turn come first, then the order in the batch. Each lane's and CPU's records lie in order.
 */
struct pem_async_key {
	uint64_t clock;
	uint64_t fresh : 1; /* the item was read in this turn */
	uint64_t at : 63; /* offset of the item in the batch */
};

struct pem_async_batch {
	uint8_t *bytes;
	size_t used, capacity;
	struct pem_async_key *keys;
	size_t count, key_capacity;
	/* Number of items that are for callbacks. The other items tell contexts. */
	size_t wanted;
	bool sorted;
};

/* How far a lane has been read. A chunk is in hand while it is being read. */
struct pem_async_lane {
	uint64_t seq; /* sequence number of the chunk in hand, or of the next one */
	uint64_t clock; /* clock of the last record read */
	uint32_t index; /* index of the chunk in hand */
	uint32_t offset; /* offset in it of the next record; 0: no chunk is in hand */
	uint32_t tid;
	bool gap; /* the next chunk was not found last time */
};

struct pem_async_producer {
	struct pem_async_lane *lanes;
	uint64_t *read; /* records read, per event */
	uint64_t *missed; /* records produced and not read that are accounted for, per event */
	/*
	 * When a log began: for each lane, the sequence number and the offset of the chunk up to
	 * which callbacks had read by then.
	 */
	bool log_began;
	uint64_t *log_skip;
	struct pem_found_chunk *found; /* room for all chunks */
	uint32_t full; /* chunks that were read to their end and freed in this turn */
};

struct pem_async_callback {
	struct pem_callback *handle;
	void (*function)(const struct pem_record *record, void *arg);
	void *arg;
	uint64_t max_delay_us;
	bool enabled;
	/* Clock of enabling. The callback gets nothing that was raised before. */
	uint64_t since;
	uint64_t born; /* clock of the first enabling; UINT64_MAX: not enabled yet */
	uint64_t last_clock; /* clock of the last record that it was called with */
	uint64_t called, late;
	/*
	 * lost: events lost in earlier spans of being enabled. lost_from: the sum of its events'
	 * async_lost when the current span began.
	 */
	uint64_t lost, lost_from;
	unsigned index;
};

/* A stream of a source, with the count that its last packet stated. */
struct pem_async_stream {
	char name[PEM_STREAM_FILE_BYTES];
	uint64_t discarded;
};

struct pem_async {
	struct pem_session *session;
	pthread_t thread;
	pid_t pid; /* the process that the thread belongs to: not a child's */
	uint32_t tid;
	bool started;
	/* The thread's own: a function has closed the session. Only this struct is left. */
	bool closed;
	/*
	 * The following members are under the session's mutex. active: some callback is enabled,
	 * and the thread follows the lanes.
	 */
	bool active;
	bool stop;
	bool asleep; /* the thread waits for a wake-up, not for the clock */
	bool follows_sources; /* some callback wants events that can't wake the thread */
	uint64_t period_ns;
	uint32_t pools_seen;
	uint64_t next_update_ns;
	uint8_t *chunk; /* private copy */
	size_t limit; /* most bytes of incoming */
	struct pem_async_batch incoming;
	struct pem_async_stream *streams; /* streams of the kernel; a CPU may have several */
	size_t stream_count, stream_capacity;
	/* The following members are under the async lock. */
	pthread_mutex_t lock;
	/*
	 * Signalled when a callback was enabled, when the thread is to stop, and when a function
	 * returned.
	 */
	pthread_cond_t changed;
	unsigned enabled_count;
	/* A callback was disabled: records that were collected for it are to be counted as lost. */
	bool left_over;
	struct pem_async_callback *callbacks[PEM_ASYNC_MAX];
	struct pem_async_callback *running;
	/* The following members are the thread's own. */
	struct pem_async_batch batch;
	size_t batch_done; /* keys that were handed on */
	/* Wanted items that are not handed on yet. Atomic, because other threads read it. */
	size_t batch_left;
	/* Records before this clock have been handed on. Atomic, because other threads read it. */
	uint64_t called_before;
	struct pem_context_table *contexts;
	struct pem_event_table events;
	int timer[2];
	unsigned turn; /* index of the timer that is due next */
	uint64_t timer_period_ns; /* the period that the timers were set for */
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
 * Read what a producer has committed since the last call. final: the producer will produce no more,
 * so chunks are taken in any case, also after a gap.
 */
void pem_async__collect(struct pem_session *session, struct pem_producer *producer, bool final);

void pem_async__collect_lane(struct pem_session *session, struct pem_producer *producer,
			     uint32_t lane);

void pem_async__collect_all(struct pem_session *session);
/*
 * Read a packet of a source's stream. instance: index of the source's instance that delivers it;
 * content: offset of the end of its records.
 */
void pem_async__take_packet(struct pem_session *session, const char *name, int instance,
			    const struct pem_packet *packet, size_t content);

void pem_async_batch__free(struct pem_async_batch *batch);
/*
 * Append a record's copy to a batch of at most limit bytes. False: there is no room, or out of
 * memory.
 */
bool pem_async_batch__add(struct pem_async_batch *batch, size_t limit, uint64_t clock,
			  const struct pem_async_item *item, const uint8_t *data);

/*
 * Return the offset in a chunk up to which its records were counted as callback-only before there
 * was a log; 0: none of its records was.
 */
size_t pem_async__callback_only_before(const struct pem_producer *producer, uint32_t lane,
				       uint64_t seq);

/* A log begins. What callbacks have read by now is not for the log, and is accounted for. */
void pem_async__log_begins(struct pem_session *session);

/*
 * Account for what a producer lost of an event. before: a count of produced records that is older
 * than the last reading of the lanes. All of these that were not read are lost. If no callback is
 * enabled for the event, nobody is charged with the loss.
 */
void pem_async__settle(struct pem_producer *producer, struct pem_demand *demand,
		       uint32_t event_index, uint64_t before);

/* A producer will produce no more: add what it lost to the async_lost of its events' demands. */
void pem_async__account(struct pem_session *session, struct pem_producer *producer);

/* Wake the thread, if it sleeps until something wakes it. */
void pem_async__kick(struct pem_session *session);

/* Is the calling thread the callbacks' thread (in a callback's function)? */
bool pem_async__is_self(const struct pem_async *async);

#endif
