/* SPDX-License-Identifier: MIT */
/*
 * threads.h - stages that are threads: the ends of the queues of pem/stream.h in running processes
 *
 * They are found in the observed processes and all that descend from these, and read some fifty
 * times a second (pem/streams.h). Nothing else is needed: neither the kernel's events nor root.
 * What a stage does between two readings is an interval of its service.
 *
 * Whom the last stages wait for is sampled at each reading. So shares of the time are estimates,
 * and a stage is called the bottleneck only if chance is no explanation.
 */
#ifndef PEM_RATES_THREADS_H
#define PEM_RATES_THREADS_H

#include "program/program.h"

#include <pem/streams.h>

struct rates_thread {
	char name[RATE_STAGE_BYTES]; /* unique among all stages: see rates_figures__refresh */
	char stage[32]; /* its stage, or the thread's name */
	uint32_t pid, tid;
	uint32_t number; /* of its program, of those with queues */
	uint64_t moved[2]; /* items given to its queues, and taken from them */
	bool is_short; /* it moved more items; their number is unknown */
	bool takes; /* its items are those that it takes; else it takes from no queue */
	struct pem_streams_service did;
	uint64_t unknown_ns; /* the rest of its time */
	uint64_t held; /* readings in which the last stages waited for it, or it was one and worked
			*/
	void *rates; /* see rates_figures__add */
	/* Of the last reading in which it was there: */
	size_t inputs, feeds; /* queues from which it takes, and to which it gives */
	uint64_t turn, at_ns;
	uint64_t kept; /* the last reading in which it had an end as in the one before */
	struct rates_thread
		*waits_for; /* the other end of the queue that blocks it; NULL: nobody */
	bool is_blocked, is_served;
	uint32_t level; /* in the order of stages */
};

/* An end of a queue, as it was last read. */
struct rates_end {
	struct rates_thread *thread; /* the last that used it; NULL: unknown */
	uint64_t threads, items; /* as in struct pem_streams_end */
	uint64_t blocked_ns;
};

struct rates_queue {
	uint32_t number, part, id; /* of its program; as in struct pem_streams_queue */
	char name[32];
	uint64_t capacity;
	bool is_known, is_gone; /* are these its last numbers; was it freed */
	struct rates_end from, to;
};

struct rates_process;

/* Stages and queues of all processes. Stages are as they were last arranged. */
struct rates_threads {
	struct rates_thread **stages;
	struct rates_queue **queues;
	size_t stage_count, queue_count;
	size_t skipped; /* queues that could not be read, or that processes could not show */
	uint64_t samples; /* readings that show whom the last stages waited for */
	uint32_t programs; /* that have shown queues, or that they have none */
	/* For threads.c alone: */
	const struct rates_request *request;
	struct rates_process *processes;
	size_t process_count, process_capacity, stage_capacity, queue_capacity;
	uint64_t search_ns, read_ns; /* when it is time again */
	uint64_t turn; /* of readings and searches */
	struct pem_error lacks; /* why a program shows no queues */
	int error;
};

/* NULL: no memory. request: of which processes; used until rates_threads__free. */
struct rates_threads *rates_threads__new(const struct rates_request *request);
/* NULL is accepted. */
void rates_threads__free(struct rates_threads *t);
/* Search and read, as far as it is time. Returns 0 or -ENOMEM. */
int rates_threads__tick(struct rates_threads *t);
/* The reason, as a sentence, if no stage was found. NULL: there are stages, or it is unknown. */
const char *rates_threads__why_none(const struct rates_threads *t);
/* Read, whether it is time or not. Returns 0 or -ENOMEM. */
int rates_threads__read(struct rates_threads *t);

/* Sort stages. */
void rates_threads__arrange(struct rates_threads *t);
/* The stage that holds up the others, of all processes, or of one. NULL: unknown. */
const struct rates_thread *rates_threads__bottleneck(const struct rates_threads *t, uint32_t pid);
/* The share of readings in which the last stages waited for a stage. */
double rates_threads__held(const struct rates_threads *t, const struct rates_thread *stage);

#endif
