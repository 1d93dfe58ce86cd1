/* SPDX-License-Identifier: MIT */
/*
 * observe.h - from records to a pipeline: its stages, its queues, who waited for whom
 *
 *	pass (pem/context.h) --record, around--> observation --intervals of service--> caller
 *	                                              |
 *	                                              +--> stages, queues, what each waited for
 *
 * A stage is a process that reads from or writes to a queue, with all of its threads. A queue is a
 * pipe, a FIFO or a pair of sockets that one process writes and another one reads. What a stage
 * does at a time follows from what its threads do: it runs if one of them runs, it is blocked if
 * all others wait and one waits for a queue (rate_doing, the first that a thread does).
 *
 * A stage's service is the time in which it ran, or waited for something else than its queues and a
 * CPU: a disk, a network, a clock, a child. An interval of service is that time from the end of one
 * operation on its queues to the end of the next.
 *
 * Not here: rates from such intervals (models/service.h); records (pem/context.h); reports
 * (program/).
 */
#ifndef PEM_RATES_OBSERVE_H
#define PEM_RATES_OBSERVE_H

#include <pem/context.h>

#include <stdbool.h>

/* What a thread does; of a stage, the first of these that one of its threads does. */
enum rate_doing {
	RATE_RUNS,
	RATE_FOR_CPU, /* it could run, and waits for a CPU */
	RATE_UNTOLD, /* records were lost, or none has come yet */
	RATE_WAITS, /* in a call on a file on a disk */
	RATE_BLOCKED_OUT, /* in a write to a queue that is full */
	RATE_BLOCKED_IN, /* in a read from a queue that is empty */
	RATE_POLLS, /* for one or more of its descriptors, until one is ready */
	RATE_SLEEPS, /* for a lock, a time, a child, a network */
	RATE_DOINGS
};

#define RATE_STAGE_BYTES 96u /* of a stage's name */

struct rate_process;

/* Processes that use one end of a pipe; more than these are no stages by it. */
#define RATE_ENDS_MAX 256u

struct rate_end {
	struct rate_process *stage;
	/* Written to standard error before a stage read it: so far these are messages. */
	uint64_t message_bytes, messages;
};

struct rate_ends {
	struct rate_end *list;
	size_t count, capacity;
};

struct rate_pipe {
	const struct pem_pass_file *file;
	struct rate_ends writers, readers;
	uint64_t bytes_written, bytes_read;
	/* Sums over threads that were blocked in a write to it, or a read from it */
	uint64_t write_blocked_ns, read_blocked_ns;
	uint64_t blocks; /* how often one was */
};

struct rate_process {
	const struct pem_pass_process *process;
	/* The caller's: a name that is unique among stages. */
	char name[RATE_STAGE_BYTES];
	uint64_t begin_ns, end_ns; /* of its first record, and of its last */
	bool has_ended;
	uint64_t ns[RATE_DOINGS]; /* how long it did what, until since_ns */
	enum rate_doing doing;
	uint64_t since_ns;
	struct rate_pipe *on; /* the queue that its last blocked thread waits for */
	uint32_t threads[RATE_DOINGS]; /* how many of its threads do what */
	/* Parts of ns[RATE_POLLS] that an operation on a queue showed to be for it */
	uint64_t polled_in_ns, polled_out_ns;
	uint64_t polled_seen_ns; /* of ns[RATE_POLLS]: until the last operation */
	uint64_t bytes_in, bytes_out, reads, writes;
	size_t inputs; /* pipes that it reads, also those that come from outside */
	size_t feeds; /* queues that other stages read from it */
	uint64_t served_ns; /* service until the last operation; 0: there was none */
	bool is_serving; /* there was an operation */
	uint64_t last_items; /* of the last read, which the service from then on is for */
	/*
	 * How long it was what the last stages of the pipeline waited for, themselves or through
	 * others.
	 */
	uint64_t held_ns[RATE_DOINGS];
	uint32_t level; /* in the order of stages */
	bool is_listed; /* among the stages */
	bool has_lost; /* records, since the last interval of service that was complete */
	void *user; /* the caller's; NULL at first */
};

/*
 * An interval of service of a stage: it dealt with bytes in one read or write, and took service_ns
 * for it. bytes 0: work without an operation, such as that after the end of the input. has_lost:
 * records were lost, so that both may be wrong. Returns 0 or -ENOMEM, which
 * rate_observation__take returns.
 */
typedef int rate_served(void *arg, struct rate_process *stage, uint64_t bytes, uint64_t service_ns,
			bool has_lost);

struct rate_observation;

/* What was observed so far. The observation owns it, and changes it. */
struct rate_observed {
	/* By pem_pass_process.number, also those that are not stages. NULL: nothing is known. */
	struct rate_process **processes;
	/*
	 * As rate_observation__arrange found them. Stages are in the order of the pipeline, each
	 * after those whose output it reads; queues in the order in which they were first used.
	 */
	struct rate_process **stages;
	struct rate_pipe **queues;
	size_t process_count, stage_count, queue_count;
	/*
	 * How long the last stages waited, themselves or through others, for a pipe whose other end
	 * is not a stage: for what feeds the pipeline, or takes its output.
	 */
	uint64_t outside_ns;
};

/*
 * Begin to observe. served is called for each interval of service, during rate_observation__take.
 * NULL: no memory. The caller frees the observation, before the pass whose records it takes.
 */
struct rate_observation *rate_observation__new(rate_served *served, void *arg);
/* NULL is accepted. */
void rate_observation__free(struct rate_observation *o);

/*
 * Take the next record of a pass, and what is around it. Returns 0, or -ENOMEM: the observation
 * can't go on. Does not block.
 */
int rate_observation__take(struct rate_observation *o, const struct pem_record *record,
			   const struct pem_around *around);
const struct rate_observed *rate_observation__seen(const struct rate_observation *o);
/*
 * Records were lost: what stages do is unknown, until records tell again, and intervals of service
 * that are open may be wrong.
 */
void rate_observation__lose(struct rate_observation *o);
/* Bring the times of all stages up to now_ns, a time of the pass. */
void rate_observation__update(struct rate_observation *o, uint64_t now_ns);

/* Work out which processes are stages, and their order. Returns 0 or -ENOMEM. */
int rate_observation__arrange(struct rate_observation *o);

/* The inode of a pipe; 0: it has a name (a FIFO). */
uint64_t rate_pipe__inode(const struct rate_pipe *pipe);
/* The time that the stage spent on service so far. */
uint64_t rate_process__service_ns(const struct rate_process *stage);
/* How long the last stages waited for it, whatever it did. */
uint64_t rate_process__held_ns(const struct rate_process *stage);
#endif
