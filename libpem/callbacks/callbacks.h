/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * callbacks.h - asynchronous callbacks: handles, the thread that calls them, calling in order of
 * time
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
	uint32_t pid; /* of the process whose threads it is called in: not a child's */
	size_t count;
	struct {
		struct pem_demand *demand;
		unsigned index; /* in pem_joined.callback */
	} entry[];
};

/* --- callbacks.c --- */

void pem_async__set_enabled(struct pem_callback *callback, bool enabled);
/*
 * End the thread and free all; no callback is left. On the thread itself, in a function, it does so
 * once that returns. NULL is accepted; takes the session's mutex itself.
 */
void pem_async__free(struct pem_async *async);

/* Disable a callback, wait until its function does not run, free it. Takes the mutex itself. */
void pem_async__unregister(struct pem_callback *callback);

void pem_async__counts(struct pem_callback *callback, struct pem_callback_counts *counts);
/* What is left once the thread has ended. */
void pem_async__destroy(struct pem_async *async);

#define PEM_ASYNC_DELAY_US_DEFAULT 1000u

/* --- thread.c --- */

/* How long to wait between two looks, to be late by at most so much. */
uint64_t pem_async__period_ns(uint64_t max_delay_us);

int pem_async__start(struct pem_async *async);
void pem_async__stop(struct pem_async *async);

/* --- call.c --- */

/* Take what is read, behind what of the batch is not handed on yet. The session's mutex is held. */
void pem_async__swap(struct pem_async *async);

/* Call the functions for all of the batch up to a clock. Returns records looked at. */
size_t pem_async__call(struct pem_async *async, uint64_t horizon);

#endif
