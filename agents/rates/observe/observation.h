/* SPDX-License-Identifier: MIT */
/*
 * observation.h - what the files of this room share
 *
 *	observation.c	records to threads, stages and their times
 *	queues.c	calls on pipes: queues, and intervals of service
 *	order.c		which processes are stages, their order, and who holds up whom
 */
#ifndef PEM_RATES_OBSERVATION_H
#define PEM_RATES_OBSERVATION_H

#include "observe/observe.h"

#include "call_kinds.h"

#define RATE_CALLS_MAX 1024u /* numbers of system calls */

struct rate_thread {
	struct rate_process *stage;
	enum rate_doing doing;
	uint64_t since_ns;
	struct rate_pipe *on; /* of RATE_BLOCKED_IN and _OUT */
	struct rate_thread *next; /* of all */
};

struct rate_observation {
	rate_served *served;
	void *arg;
	struct rate_observed seen;
	size_t process_capacity, stage_capacity, queue_capacity;
	struct rate_pipe **files; /* by pem_pass_file.number; NULL: not a queue */
	size_t file_count, file_capacity;
	struct rate_thread *threads;
	uint8_t calls[RATE_CALLS_MAX]; /* by number: 1 + enum pem_call_kind; 0: not known yet */
	uint64_t now_ns;
	uint64_t held_ns; /* until when rate_process.held_ns counts */
	uint64_t arranged_ns;
	struct rate_process **sinks; /* stages that give nothing on, and have not ended */
	size_t sink_count, sink_capacity;
	bool is_changed; /* a queue got a reader or a writer since */
};

/* --- observation.c --- */

/* The stage's threads do something else from now on, or it ended. */
void rate_process__turn(struct rate_observation *o, struct rate_process *stage, uint64_t now_ns);

/* --- queues.c --- */

enum pem_call_kind rate_call__of(struct rate_observation *o, const struct pem_interval *call);
/* The queue that a file is; made for a read or a write of it. NULL: it is none, or no memory. */
struct rate_pipe *rate_pipe__of(struct rate_observation *o, const struct pem_pass_file *file);
/* A system call of a stage has returned. Returns 0 or -ENOMEM. */
int rate_pipe__returned(struct rate_observation *o, struct rate_process *stage,
			const struct pem_interval *call, int64_t result);
/* The stage ends: its last interval of service. Returns 0 or -ENOMEM. */
int rate_process__finish(struct rate_observation *o, struct rate_process *stage);
void rate_pipe__free(struct rate_pipe *queue);
/* NULL: the stage does not use this end. */
struct rate_end *rate_ends__find(const struct rate_ends *ends, const struct rate_process *stage);
/* Do different processes write and read it, and does none do both? */
bool rate_pipe__is_stream(const struct rate_pipe *queue);

/* --- order.c --- */

/* Arrange stages again if that is due. Returns 0 or -ENOMEM. */
int rate_order__follow(struct rate_observation *o);
/* Charge the time since the last call to what held up the last stages. */
void rate_order__charge(struct rate_observation *o, uint64_t now_ns);

#endif
