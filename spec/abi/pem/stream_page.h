/* SPDX-License-Identifier: MIT */
/*
 * stream_page.h - counters of the queues of pem/stream.h, as a process shows them to observers
 *
 *	offset 0	struct pem_stream_page			384 bytes
 *	384		struct pem_stream_entry [0]		384 bytes each
 *	...		struct pem_stream_entry [PEM_STREAM_QUEUES_MAX - 1]
 *
 * The memory is a memfd named PEM_STREAM_MEMFD, sealed at PEM_STREAM_BYTES, of which the process
 * keeps a descriptor open. A program and each of its libraries that use queues have one each. A
 * child of fork makes its own; page.pid tells the process that a memfd is of.
 *
 * The process writes everything but pem_stream_entry.limit, and reads nothing but that: whatever an
 * observer writes into the memory, queues keep their items. Observers load each member once and
 * check it. All integers are accessed atomically. Item counts run free: only their differences,
 * modulo 2^64, have a meaning.
 *
 * The thread that uses an end of a queue is the only writer of that end. It stores items at each
 * operation: the producer before the item can be popped (A), the consumer before the space can be
 * used again (B).
 * An observer that loads the consumer's items first finds popped <= pushed, by A. One that loads
 * the producer's items first finds pushed <= popped + capacity, by B.
 * The other members are stored when the thread finds no item or no space, and when another thread
 * uses the end. sequence is odd in the meantime.
 *
 * Times are CLOCK_MONOTONIC in ns.
 *
 * Not here: the queue itself (pem/stream.h), which lies in private memory.
 */
#ifndef PEM_STREAM_PAGE_H
#define PEM_STREAM_PAGE_H

#include <pem/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PEM_STREAM_MEMFD "pem-streams"
#define PEM_STREAM_MAGIC 0x6d727473u
#define PEM_STREAM_VERSION 2u
#define PEM_STREAM_QUEUES_MAX 1023u
#define PEM_STREAM_NAME_BYTES 32u /* with the terminating NUL */
#define PEM_STREAM_CAPACITY_MAX (1ull << 40)
/* A thread that gets a CPU later than this after its wake-up waited for the CPU. */
#define PEM_STREAM_LATE_NS 20000u
/* The kernel may end a sleep by this much later than it was asked to (PR_SET_TIMERSLACK). */
#define PEM_STREAM_SLACK_NS 50000u
/* A bit of pem_stream_end.threads: several threads use the end at once. */
#define PEM_STREAM_SHARED (1ull << 63)
/* A value of pem_stream_end.before: a thread's first items are not told from those before. */
#define PEM_STREAM_BEFORE_UNKNOWN UINT64_MAX

/* One end of a queue. */
struct pem_stream_end {
	uint64_t items; /* pushed, or popped */
	uint32_t sequence;
	uint32_t tid; /* the thread that used the end last; 0: none in this process */
	uint64_t blocks; /* times that the thread was blocked */
	uint64_t blocked_ns; /* in blocks that are over */
	uint64_t since_ns; /* begin of the block that goes on; 0: none */
	uint64_t sleeps; /* times that the thread slept in a block; other blocks were spent spinning
			  */
	/* Part of blocked_ns: from wake-ups until the thread had a CPU, where later than LATE_NS.
	 */
	uint64_t late_ns;
	uint64_t refused; /* calls of try_push or try_pop that found no space or no item */
	uint64_t before; /* part of items: moved before the thread came */
	uint64_t threads; /* times that a thread came, and PEM_STREAM_SHARED */
	uint64_t expired; /* of sleeps: that the kernel's timer ended */
	uint64_t reserved;
	char stage[PEM_STREAM_NAME_BYTES]; /* of the thread; "": it has no name */
};
PEM_STATIC_ASSERT(sizeof(struct pem_stream_end) == 128, "an end is 128 bytes");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_end, sequence) == 8, "sequence");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_end, blocks) == 16, "blocks");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_end, since_ns) == 32, "since_ns");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_end, refused) == 56, "refused");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_end, before) == 64, "before");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_end, threads) == 72, "threads");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_end, expired) == 80, "expired");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_end, stage) == 96, "stage");

/* A queue. The first 128 bytes but limit, dropped and gone do not change while id stays the same.
 */
struct pem_stream_entry {
	uint32_t id; /* of the queue, from 1 on, used once in a process; 0: the entry is free */
	uint32_t item_bytes; /* 0: the queue is another library's (pem/stream_shim.h) */
	/* Items: a power of two. Another library's: any number; 0: unknown. */
	uint64_t capacity;
	/*
	 * Written by observers: the queue counts as full with this many items, from 1 to capacity;
	 * any other value: capacity. The producer follows when it next looks for space.
	 * Another library's: 0.
	 */
	uint64_t limit;
	/* Another library's: items that the library dropped, so that no thread pops them. */
	uint64_t dropped;
	uint32_t gone; /* id of the queue that was freed and left its last numbers; 0: none */
	uint32_t reserved[15];
	char name[PEM_STREAM_NAME_BYTES];
	struct pem_stream_end producer;
	struct pem_stream_end consumer;
};
PEM_STATIC_ASSERT(sizeof(struct pem_stream_entry) == 384, "an entry is 384 bytes");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_entry, capacity) == 8, "capacity");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_entry, limit) == 16, "limit");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_entry, dropped) == 24, "dropped");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_entry, gone) == 32, "gone");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_entry, name) == 96, "name");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_entry, producer) == 128, "producer");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_entry, consumer) == 256, "consumer");

struct pem_stream_page {
	uint32_t magic; /* PEM_STREAM_MAGIC, stored last */
	uint32_t version; /* PEM_STREAM_VERSION */
	uint32_t entry_bytes;
	uint32_t entry_count; /* entries beyond this many were never used */
	uint32_t pid; /* as the process sees itself */
	uint32_t unlisted; /* queues that found no free entry */
	uint64_t reserved[45];
};
PEM_STATIC_ASSERT(sizeof(struct pem_stream_page) == 384, "the page's head is as long as an entry");
PEM_STATIC_ASSERT(offsetof(struct pem_stream_page, pid) == 16, "pid");

#define PEM_STREAM_BYTES (384u * (PEM_STREAM_QUEUES_MAX + 1u))

#ifdef __cplusplus
}
#endif
#endif
