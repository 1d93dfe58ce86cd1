/* SPDX-License-Identifier: MIT */
/*
 * streams.h - the queues of pem/stream.h in a running process, read and limited from outside
 *
 * The process is observed by memory that it shows (pem/stream_page.h) and by its threads' times in
 * /proc. Nothing is sent to it, and it does not notice. An ordinary user observes the processes
 * that the kernel lets the user inspect, which are usually the user's own; root observes all.
 *
 * Everything in that memory may be false, if the process is hostile or was overwritten. Counts are
 * then wrong, and nothing else: each value is loaded once and checked.
 *
 * The functions block for files of /proc only. A struct rate_streams is used by one thread at a
 * time. Functions return 0 or -errno, with a sentence in error.
 *
 * Not here: rates, which agents/rates/estimate finds from these numbers.
 */
#ifndef RATE_STREAMS_H
#define RATE_STREAMS_H

#include <pem/pem.h>
#include <pem/stream_page.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* An end of a queue at one moment. Times are in ns. */
struct rate_stream_end {
	uint64_t items; /* pushed or popped; counts modulo 2^64 */
	/* The thread that used the end last, as /proc here knows it; 0: none, or it has ended. */
	pid_t tid;
	char stage[PEM_STREAM_NAME_BYTES]; /* its stage, or the thread's name; "": unknown */
	uint64_t blocks; /* times that the end was blocked */
	uint64_t blocked_ns; /* with the block that goes on */
	uint64_t since_ns; /* begin of the block that goes on (CLOCK_MONOTONIC); 0: none */
	uint64_t sleeps; /* blocks, or parts of them, in which the thread slept */
	uint64_t late_ns; /* part of blocked_ns in which the thread was ready and had no CPU */
	uint64_t refused; /* calls of try_push or try_pop in vain */
	/* At the end of the last block: time, items, and all blocked and late time of the thread.
	 */
	uint64_t stamp_ns; /* 0: there was none */
	uint64_t stamp_items, stamp_blocked_ns, stamp_late_ns;
	/* The thread's time on a CPU, and ready without one. has_times: they are known. */
	bool has_times;
	uint64_t run_ns, wait_ns;
};

/* A queue at one moment. */
struct rate_stream {
	uint32_t id; /* unique in the memory of one program or library of the process */
	uint32_t part; /* which of these: with id it identifies the queue while it is observed */
	uint32_t entry; /* where rate_streams__limit finds it */
	uint32_t item_bytes;
	uint64_t capacity; /* items */
	uint64_t limit; /* items with which the queue counts as full: 1 to capacity */
	uint64_t queued; /* items in the queue */
	char name[PEM_STREAM_NAME_BYTES]; /* printable ASCII; other bytes are '?' */
	uint64_t at_ns; /* when it was read (CLOCK_MONOTONIC) */
	struct rate_stream_end push, pop;
};

struct rate_streams;

/*
 * Begin to observe a process. error: filled on failure. Returns what rate_streams__close releases;
 * NULL: errno is ESRCH (there is no such process), EACCES (another user's), ENOENT (it shows no
 * queue) or ENOMEM.
 */
struct rate_streams *rate_streams__open(pid_t pid, struct pem_error *error);
void rate_streams__close(struct rate_streams *streams);

/*
 * Look again for memory that the process shows, such as that of a library loaded since. It has
 * memory from its first queue on. Returns how many of them are known now, or -errno as open does.
 */
int rate_streams__look(struct rate_streams *streams, struct pem_error *error);

/*
 * Read all queues. *list: an array that belongs to streams, until the next call with it. *skipped:
 * queues that could not be read consistently, being changed all the time, and those for which the
 * process had no space to show them. Returns the number of queues in the list, or -ENOMEM. A
 * process that has ended leaves its last numbers, with tid 0.
 */
ptrdiff_t rate_streams__read(struct rate_streams *streams, const struct rate_stream **list,
			     size_t *skipped);

/*
 * Let a queue count as full with fewer items, or more again, from 1 to its capacity. The producer
 * follows when it next finds no space, and at once when it is blocked and space comes. Returns 0;
 * -EINVAL: the number is out of range; -ESTALE: the queue is gone; -EACCES: the memory can be read
 * and not written.
 */
int rate_streams__limit(struct rate_streams *streams, const struct rate_stream *stream,
			uint64_t limit, struct pem_error *error);

/* Time in which a thread worked on items, between two readings. */
struct rate_service {
	uint64_t items;
	uint64_t busy_ns; /* neither blocked in a queue, nor ready without a CPU */
	/*
	 * busy_ns is at least low_ns, and at most high_ns. They differ by the time that the thread
	 * waited for a CPU, part of which may have been in blocks.
	 */
	uint64_t low_ns, high_ns;
};

/*
 * What the thread at one end of a queue did from one reading to the next. lists: the two readings,
 * copied by the caller, with their lengths; the end is that of (*before)[index], the one that pops
 * or the one that pushes. Blocks of the thread in all queues of both lists are taken off. Returns
 * false if the readings do not tell: the queue or its thread is another one, or none, or no time
 * has passed. Pure.
 */
bool rate_streams__service(const struct rate_stream *before, size_t before_count,
			   const struct rate_stream *after, size_t after_count, size_t index,
			   bool pops, struct rate_service *service);

#endif
