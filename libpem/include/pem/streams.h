/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * streams.h - the queues of pem/stream.h in a running process, read and limited from outside
 *
 *	struct pem_streams *streams = pem_streams__open(pid, &error);
 *	ptrdiff_t count = pem_streams__read(streams, NULL);
 *
 *	for (i = 0; i < count; i++) {
 *		queue = pem_streams__queue(streams, (size_t)i);
 *		printf("%s: %" PRIu64 " items passed\n", queue->name, queue->pop.items);
 *	}
 *	pem_streams__close(streams);
 *
 * The process is observed by memory that it shows (pem/stream_page.h) and by its threads' times in
 * /proc. Nothing is sent to it, and it does not notice. An ordinary user observes the processes
 * that the kernel lets the user inspect, which are usually the user's own; root observes all.
 *
 * Everything in that memory may be false, if the process is hostile or was overwritten. Counts are
 * then wrong, and nothing else: each value is loaded once and checked.
 *
 * A program for which a struct here was shorter goes on: structs grow at their end.
 *
 * The functions block for files of /proc only. A struct pem_streams is used by one thread at a
 * time. Functions return 0 or a count, or -errno with a sentence in error, which may be NULL. They
 * fail with -EINVAL if streams or what else they need is NULL. None is async-signal-safe.
 */
#ifndef PEM_STREAMS_H
#define PEM_STREAMS_H

#include <pem/model.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PEM_STREAMS_NAME_BYTES 32u /* with the terminating NUL */

/* An end of a queue at one moment. Times are in ns. */
struct pem_streams_end {
	uint64_t items; /* pushed or popped; counts modulo 2^64 */
	/*
	 * The thread that used the end last, as /proc here knows it; 0: none, or it has ended, or
	 * several use the end at once.
	 */
	uint32_t tid;
	uint32_t has_times; /* run_ns and wait_ns are known */
	char stage[PEM_STREAMS_NAME_BYTES]; /* its stage, or the thread's name; "": unknown */
	uint64_t blocks; /* times that the end was blocked */
	uint64_t blocked_ns; /* with the block that goes on */
	uint64_t since_ns; /* begin of the block that goes on (CLOCK_MONOTONIC); 0: none */
	uint64_t sleeps; /* blocks, or parts of them, in which the thread slept */
	uint64_t late_ns; /* part of blocked_ns in which the thread was ready and had no CPU */
	uint64_t refused; /* calls of try_push or try_pop in vain */
	/* The thread's time on a CPU, and ready without one. */
	uint64_t run_ns, wait_ns;
	/*
	 * Threads that have used the end, one after the other; 0: none, or several do at once. And
	 * the part of items that passed before the last of them came; UINT64_MAX: unknown.
	 */
	uint64_t threads, before;
	uint32_t is_ready; /* if has_times: the thread runs, or waits for a CPU */
	uint32_t switches; /* times that the thread went to sleep, modulo 2^32 */
	uint64_t expired; /* of sleeps: that a timer ended, so that late_ns has less of them */
};

/* A queue at one moment. */
struct pem_streams_queue {
	uint32_t id; /* unique in the memory of one program or library of the process */
	uint32_t part; /* which of these: with id it identifies the queue while it is observed */
	uint32_t entry; /* where pem_streams__limit finds it */
	uint32_t item_bytes; /* 0: the queue is another library's, as GStreamer's */
	uint64_t capacity; /* items; 0: unknown */
	/* Items with which the queue counts as full: 1 to capacity. Another library's: 0. */
	uint64_t limit;
	uint64_t queued; /* items in the queue */
	uint64_t at_ns; /* when it was read (CLOCK_MONOTONIC) */
	char name[PEM_STREAMS_NAME_BYTES]; /* printable ASCII; other bytes are '?' */
	struct pem_streams_end push, pop;
	uint32_t is_gone; /* it was freed since the last reading: these are its last numbers */
	uint32_t reserved;
};

struct pem_streams;

/*
 * Begin to observe a process. Returns what pem_streams__close releases; NULL: errno is ESRCH (there
 * is no such process), EACCES (another user's), ENODATA (it uses GStreamer and was started without
 * pem's tracer: see pem_streams__offer), ENOENT (it shows no queue), EINVAL or ENOMEM.
 */
struct pem_streams *pem_streams__open(uint32_t pid, struct pem_error *error);
/* NULL is accepted. */
void pem_streams__close(struct pem_streams *streams);

/*
 * Search again for memory that the process shows, such as that of a library loaded since. It has
 * memory from its first queue on. Returns how many of them are known now, or -errno as open does.
 */
int pem_streams__search(struct pem_streams *streams, struct pem_error *error);

/*
 * Read all queues. *skipped, unless skipped is NULL: queues that could not be read consistently,
 * being changed all the time, those for which the process had no space to show them, and those of
 * more than 16 libraries of the process. Returns the number of queues, -ENOMEM or -EINVAL. A
 * process that has ended, or runs another program now, leaves its last numbers, with tid 0. So does
 * a queue that was freed, once, unless the process has made another one in its entry since.
 */
ptrdiff_t pem_streams__read(struct pem_streams *streams, size_t *skipped);
/* Queue i of the last reading, valid until the next one. NULL: there are not so many. */
const struct pem_streams_queue *pem_streams__queue(const struct pem_streams *streams, size_t i);
/* Had the process ended at the last reading, or did it run another program? */
int pem_streams__has_ended(const struct pem_streams *streams);

/*
 * Let a queue count as full with fewer items, or more again, from 1 to its capacity. queue: of any
 * reading, or a copy of it. The producer follows when it next finds no space, and at once when it
 * is blocked and space comes. Returns 0; -EINVAL: the number is out of range; -ESTALE: the queue is
 * gone; -EACCES: the memory can be read and not written; -ENOTSUP: the queue is another library's.
 */
int pem_streams__limit(struct pem_streams *streams, const struct pem_streams_queue *queue,
		       uint64_t limit, struct pem_error *error);

/*
 * Let programs that this process starts from now on show the queues of GStreamer, if they use it:
 * add pem's tracer to GST_TRACERS and its folder to GST_PLUGIN_PATH in the environment of this
 * process, and set GST_REGISTRY to a file in the user's cache unless it is set. Returns 0;
 * -ENOENT: the tracer is not installed; -ENOMEM. Not while other threads use the environment.
 */
int pem_streams__offer(void);

/*
 * What a thread has done between readings, added up. All but size is 0 at first. Times are in ns.
 * busy_ns is what is known to be service. high_ns is the most that it can be.
 */
struct pem_streams_service {
	size_t size; /* of this struct; set by the caller */
	uint64_t items; /* that passed the end that was asked for */
	uint64_t wall_ns; /* the sum of the next four */
	uint64_t busy_ns; /* it worked on items, or waited for something else than its queues */
	/* It was blocked in a pop or a push of any queue, without the time in which it was ready.
	 */
	uint64_t blocked_in_ns, blocked_out_ns;
	uint64_t for_cpu_ns; /* it was ready and had no CPU */
	uint64_t low_ns; /* it had a CPU outside of blocks for at least as long */
	uint64_t high_ns; /* busy_ns, doubt_ns, and what is open */
	uint64_t run_ns; /* on a CPU, with the time in which it spun for a queue */
	/* busy_ns may be too short by this: by waits in blocks that are too short for late_ns. */
	uint64_t doubt_ns;
	/*
	 * Time outside of blocks in which the thread did not run. The kernel counts a wait for a
	 * CPU when it is over. So as long as the thread is ready at each reading, this may be such
	 * a wait, or service, as in a sleep: it counts as for_cpu_ns. At a reading at which the
	 * thread sleeps, it is service. Less than 0: waits that were too short for late_ns.
	 */
	int64_t open_ns;
	uint64_t pushed, popped; /* items that passed all ends of the thread */
	/*
	 * Sleeps outside of blocks, with those in blocks that go on. Without them the thread's
	 * service is not longer than run_ns.
	 */
	int64_t other_sleeps;
};

/*
 * Add what the thread at an end of queue i of the last reading did since the reading before. pops:
 * the end that pops, or 0: the one that pushes. service: of this thread. A thread of several ends
 * is asked for by one of them. Times of successive readings add up: no item counts twice, or not at
 * all. Returns 1; 0: the two readings do not show it, since the end or one of the thread's other
 * ends had another thread, or none, or a queue is gone, or no time has passed.
 */
int pem_streams__service(const struct pem_streams *streams, size_t i, int pops,
			 struct pem_streams_service *service);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
