/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * callbacks.h - asynchronous callbacks: handles, the thread that calls them, and calling in order
 * of time
 *
 * Not here: finding records for them (delivery/delivery.h).
 */
#ifndef PEM_CALLBACKS_H
#define PEM_CALLBACKS_H

#include <pem/pem.h>

#include <stdbool.h>

struct pem_async;
struct pem_async_callback;
struct pem_demand;
struct pem_session;

struct pem_callback {
	struct pem_session *session;
	struct pem_callback *next;
	struct pem_async_callback *async; /* NULL: synchronous */
	uint32_t pid; /* the process in whose threads it is called: not a child's */
	bool enabled; /* of a synchronous one */
	size_t count;
	struct {
		struct pem_demand *demand;
		unsigned index; /* in pem_joined.callback */
	} entry[];
};

/* --- callbacks.c --- */

void pem_async__set_enabled(struct pem_callback *callback, bool enabled);
/*
 * End the thread and free everything. No callback is left. If the thread itself calls this, in a
 * callback's function, that happens after the function has returned. NULL is accepted. Takes the
 * session's mutex itself.
 */
void pem_async__free(struct pem_async *async);

/*
 * Disable a callback, wait until its function does not run, and free it. Takes the session's mutex
 * itself.
 */
void pem_async__unregister(struct pem_callback *callback);

void pem_async__counts(struct pem_callback *callback, struct pem_callback_counts *counts);
/* As pem_callback__settle. Takes the session's mutex itself. */
int pem_async__catch_up(struct pem_callback *callback);
/* Free what is left once the thread has ended. */
void pem_async__destroy(struct pem_async *async);

#define PEM_ASYNC_DELAY_US_DEFAULT 1000u

/* --- thread.c --- */

/* Return how long to wait between two scans, so that calls are late by at most max_delay_us. */
uint64_t pem_async__period_ns(uint64_t max_delay_us);

/*
 * How many ticks of the clock a record may be committed, or known, after its time. The session's
 * mutex is held.
 */
uint64_t pem_async__slack(const struct pem_session *session);

int pem_async__start(struct pem_async *async);
void pem_async__stop(struct pem_async *async);

/* --- call.c --- */

/*
 * Move the records that were read into the batch, behind records that are not handed on yet. The
 * session's mutex is held.
 */
void pem_async__swap(struct pem_async *async);

/*
 * Call the functions for all records of the batch up to a clock. Returns the number of records
 * handled.
 */
size_t pem_async__call(struct pem_async *async, uint64_t horizon);

#endif
