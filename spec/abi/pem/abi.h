/* SPDX-License-Identifier: MIT */
/*
 * abi.h - what lies in shared memory and on disk: record, packet, control page, pool, session
 *
 * Not here: how they are used (ring.h), what a stub does with them (stub.h).
 * Everything here is read by another process, program version or language, so types are
 * fixed-width, naturally aligned, padding is explicit and zeroed, and offsets are asserted below. A
 * structure grows at its end only. A reader treats each as hostile: it loads a value once, checks
 * it, then uses it.
 *
 *   session directory (tmpfs)                         one pool file per process and session
 *   +--------------------------+    +---------------------------------------------------------+
 *   | config   pem_session_page|    | pem_pool_header | chunk_state[] | event_id[] | lanes[]  |
 *   | model-*  provider models |    | cells[lane][event] | further[lane][cell] | distributions |
 *   | pool-<pid>-<n>, counts-* |    | chunk 0 | chunk 1 | ...    each one a CTF packet        |
 *   +--------------------------+    +---------------------------------------------------------+
 */
#ifndef PEM_ABI_H
#define PEM_ABI_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#ifdef __cplusplus
#define PEM_STATIC_ASSERT(expr, text) static_assert(expr, text)
#else
#define PEM_STATIC_ASSERT(expr, text) _Static_assert(expr, text)
#endif

/* For functions on an event's path: without it clang keeps an event's cursor in memory. */
#define PEM_INLINE static inline __attribute__((always_inline))

#define PEM_ABI_VERSION 1u
#define PEM_SESSIONS_MAX 8u
#define PEM_EVENTS_PER_PROVIDER_MAX 256u
#define PEM_RECORD_ALIGN 8u
#define PEM_NAME_BYTES 16u

/* Generated control pages are aligned to this: the largest page size of the architecture. */
#if defined(__aarch64__)
#define PEM_PAGE_ALIGN 65536
#else
#define PEM_PAGE_ALIGN 4096
#endif

/*
 * A record has this header, then its fixed fields, naturally aligned, then its lists and strings.
 * The next record begins at the next multiple of 8.
 */
struct pem_record_header {
	/* Low 32 bits of the clock. The packet holds all 64 bits of its first and last clock. */
	uint32_t clock_low;
	/*
	 * FNV-1a of the event's name, and of "NAME@VERSION" from version 2 on; 16 or more. In a
	 * kernel ring 0 means: not committed.
	 */
	uint32_t event_id;
};

#define PEM_CTF_MAGIC 0xC1FC1FC1u
#define PEM_NO_CPU 0xffffffffu

enum pem_packet_source {
	PEM_PACKET_USER = 0, /* pid and tid hold for each record */
	PEM_PACKET_KERNEL = 1, /* cpu holds. Process and thread come from events that set them. */
	/* The recorder wrote it about process pid. pid 0: about the whole machine. */
	PEM_PACKET_COUNTER = 2,
	/*
	 * A kernel packet whose cpu, pid and tid hold for each record. It comes from a second
	 * kernel source, beside the source whose events set threads. The clocks of the two sources
	 * differ by some nanoseconds, so an event of one source can't set the thread of the other's
	 * records.
	 */
	PEM_PACKET_KERNEL_THREAD = 3,
};

/*
 * A CTF 1.8 packet's header and context. The records follow. content_size is the commit word: the
 * producer releases it after each record (ring.h), and the consumer acquires it.
 */
struct pem_packet {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id; /* always 0: there is one stream class */
	uint64_t stream_instance_id; /* the stream file's number in the trace */
	/* packet context */
	uint64_t timestamp_begin; /* clock of the first record, or before it */
	uint64_t timestamp_end;
	/* In bits, this header included. It ends at the last byte of the last record. */
	uint64_t content_size;
	uint64_t packet_size; /* bits */
	uint64_t events_discarded; /* of this stream since it began */
	uint64_t packet_seq_num;
	uint64_t events_overwritten; /* of this stream since it began */
	uint32_t pid;
	uint32_t tid;
	uint32_t cpu;
	uint32_t source; /* enum pem_packet_source */
	uint64_t record_count; /* final when the chunk is full */
};
#define PEM_PACKET_HEADER_BYTES 112u

PEM_STATIC_ASSERT(sizeof(struct pem_record_header) == 8, "record header is 8 bytes");
PEM_STATIC_ASSERT(sizeof(struct pem_packet) == PEM_PACKET_HEADER_BYTES,
		  "packet header is 112 bytes");
PEM_STATIC_ASSERT(offsetof(struct pem_packet, stream_id) == 20, "stream_id");
PEM_STATIC_ASSERT(offsetof(struct pem_packet, timestamp_begin) == 32, "timestamp_begin");
PEM_STATIC_ASSERT(offsetof(struct pem_packet, content_size) == 48, "content_size");
PEM_STATIC_ASSERT(offsetof(struct pem_packet, events_overwritten) == 80, "events_overwritten");
PEM_STATIC_ASSERT(offsetof(struct pem_packet, source) == 100, "source");

/*
 * An action word tells a producer what one session wants of one event:
 *
 *	bits 0-7	flags
 *	bits 8-15	index of the statistic's field
 *	bits 16-19	enum pem_type of that field
 *	bits 20-31	byte offset of that field in the record
 *	bits 32-39	incarnation, 1 to 255: which of the sessions that had this session index
 *	bits 40-63	epoch; a new epoch starts the statistic anew
 */
#define PEM_ACTION_LOG 0x01u
#define PEM_ACTION_STAT 0x02u
#define PEM_ACTION_CALLBACK 0x04u /* A synchronous callback in the producing thread */
/* The event has a struct pem_filter. The producer tests the filter first. */
#define PEM_ACTION_FILTER 0x08u
/* The consumer sleeps. The producer logs the event, then wakes it by pem_session_page.wake. */
#define PEM_ACTION_WAKE 0x10u
/* The statistic also keeps a struct pem_distribution: variance, histogram, most frequent values. */
#define PEM_ACTION_DISTRIBUTION 0x20u
/* A consumer has changed the rules. The process applies them before it uses its filter. */
#define PEM_ACTION_CHECK 0x40u
/* Several rules apply: the process's parts say what each asks for, other flags what any does. */
#define PEM_ACTION_MORE 0x80u
#define PEM_ACTION_FLAGS(a) ((uint32_t)(a)&0xffu)
#define PEM_ACTION_FIELD(a) ((uint32_t)((a) >> 8) & 0xffu)
#define PEM_ACTION_TYPE(a) ((uint32_t)((a) >> 16) & 0xfu)
#define PEM_ACTION_OFFSET(a) ((uint32_t)((a) >> 20) & 0xfffu)
#define PEM_ACTION_INCARNATION(a) ((uint32_t)((a) >> 32) & 0xffu)
#define PEM_ACTION_EPOCH(a) ((uint32_t)((a) >> 40) & 0xffffffu)
/* Epoch and incarnation. A cell's statistic belongs to one such pair. */
#define PEM_ACTION_TAG(a) ((uint32_t)((a) >> 32))
/* Flags and field. */
#define PEM_ACTION_CHOICE(a) ((uint32_t)(a)&0xffffu)
#define PEM_ACTION(flags, field, type, offset, epoch)                                              \
	((uint64_t)(flags) | (uint64_t)(field) << 8 | (uint64_t)((type)&0xfu) << 16 |              \
	 (uint64_t)((offset)&0xfffu) << 20 | (uint64_t)((epoch)&0xffffffu) << 40)
#define PEM_ACTION_OF_INCARNATION(a, incarnation)                                                  \
	(((a) & ~(0xffULL << 32)) | (uint64_t)((incarnation)&0xffu) << 32)
#define PEM_RECORD_BYTES_MAX 4096u /* The longest record. 12 bits hold every offset in it. */
#define PEM_NO_FIELD 0xffu /* The statistic is a count only */

/*
 * A provider's control page: this header, enable[n], action[n][PEM_SESSIONS_MAX]. n is the number
 * of events, rounded up to a multiple of 64.
 */
struct pem_control_header {
	uint32_t abi_version;
	uint32_t event_count;
	uint32_t event_capacity; /* n */
	uint32_t event_base; /* this provider's first index in a pool's cells */
	char provider[PEM_NAME_BYTES];
	uint8_t reserved[32];
};
PEM_STATIC_ASSERT(sizeof(struct pem_control_header) == 64, "control header is 64 bytes");

/*
 * Statistics and counts of one event in one lane. Any process may read a cell. The thread of the
 * lane is its only writer. Lane 0 has many writers, which use atomic operations.
 */
struct pem_cell {
	uint64_t produced; /* Events raised that this session wants logged; gate.h: undecided */
	uint64_t discarded; /* of these, discarded: no room; gate.h: a tag */
	/* Updates begun. While it equals stat_end, sum, min, max and tag belong together. */
	uint64_t stat_begin;
	uint64_t stat_end; /* Updates finished: this is the count */
	uint64_t sum; /* Modulo 2^64. For floating types: the bits of a double. */
	uint64_t min; /* min and max are order-preserving keys, see pem_stat_key_signed() */
	uint64_t max;
	/* PEM_ACTION_TAG() of the action that the statistic belongs to, and PEM_CELL_FLOAT. */
	uint64_t tag;
};
#define PEM_CELL_FLOAT (1ull << 63) /* the sum is a double */
PEM_STATIC_ASSERT(sizeof(struct pem_cell) == 64, "a cell is one cache line");

/* What a distribution keeps (PEM_ACTION_DISTRIBUTION), of what was asked for: distribution.h. */
#define PEM_DISTRIBUTION_VARIANCE 1u
#define PEM_DISTRIBUTION_HISTOGRAM 2u
#define PEM_DISTRIBUTION_VALUES 4u
#define PEM_DISTRIBUTION_COUNT 16u /* Distributions of one session, at most */
#define PEM_DISTRIBUTION_BUCKETS 65u
#define PEM_DISTRIBUTION_TOP 16u
/*
 * Word that names a distribution: its index in the session, the parts it keeps, and a generation.
 * The generation has 16 bits, is never 0, and is another each time the index is given away.
 */
#define PEM_DISTRIBUTION(index, keep, generation)                                                  \
	((uint32_t)(index) | (uint32_t)(keep) << 8 | (uint32_t)(generation) << 16)
#define PEM_DISTRIBUTION_INDEX(w) ((w)&0xffu)
#define PEM_DISTRIBUTION_KEEP(w) ((w) >> 8 & 0xffu)
/*
 * Tag of a struct pem_distribution: the generation in the high half, the action's tag in the low
 * half. PEM_CELL_FLOAT may be added.
 */
#define PEM_DISTRIBUTION_TAG(w, action) ((uint64_t)((w) >> 16) << 32 | PEM_ACTION_TAG(action))

struct pem_distribution_top {
	uint64_t sequence; /* odd while another value takes the entry */
	uint64_t value; /* sign-extended; a double's bits for floating types */
	uint64_t count; /* 0: free */
	/* The value may have come less often than count says, by this number at most. */
	uint64_t error;
};

struct pem_distribution {
	/* Updates begun and finished, as in a cell. end: also the number of values in sum. */
	uint64_t begin, end;
	uint64_t tag;
	/* Sum of the values, 128 bits, low word first. Floating types: bits of the mean, then 0. */
	uint64_t sum[2];
	/*
	 * Sum of the squares: 192 bits, low word first. Floating types: the bits of the sum of
	 * squared distances from the mean.
	 */
	uint64_t squares[3];
	uint64_t bucket[PEM_DISTRIBUTION_BUCKETS];
	/* The writer's: a hash of each top value, a byte; the least count; where to look next. */
	uint64_t top_hash[PEM_DISTRIBUTION_TOP / 8], top_least, top_at, reserved[3];
	struct pem_distribution_top top[PEM_DISTRIBUTION_TOP];
};
PEM_STATIC_ASSERT(offsetof(struct pem_distribution, bucket) == 64,
		  "what belongs together is one cache line");
PEM_STATIC_ASSERT(sizeof(struct pem_distribution) == 1152,
		  "struct pem_distribution is 18 cache lines");

/*
 * A lane is one thread at one depth of nesting, and one CTF stream instance. Lane 0 belongs to no
 * thread: all threads write to it atomically (struct pem_cell). Lane 0 also keeps the statistics of
 * threads whose lanes other threads have taken over (pem_pool_header.fold).
 */
struct pem_lane {
	uint32_t state; /* PEM_LANE_* */
	uint32_t tid;
	uint64_t packet_seq; /* packets claimed */
	uint64_t discarded;
	/* Records in packets that were reclaimed before a consumer read them. */
	uint64_t overwritten;
	uint32_t distributions; /* bit i: distributions[i] of this lane has memory */
	uint32_t further; /* 1: the lane's further cells have memory */
	uint64_t coarse_end; /* with PEM_POOL_COARSE: no later packet begins before or with it */
	uint8_t reserved[16];
};
#define PEM_LANE_FREE 0u
#define PEM_LANE_OWNED 1u
/* tid of a free lane whose cells never had memory */
#define PEM_LANE_NO_MEMORY 0xffffffffu
PEM_STATIC_ASSERT(sizeof(struct pem_lane) == 64, "a lane is one cache line");

/* chunk_state[i]: the state is in bits 0-1, the lane in bits 2-31. ring.h has the transitions. */
#define PEM_CHUNK_FREE 0u
#define PEM_CHUNK_OWNED 1u /* The thread of its lane writes to it */
#define PEM_CHUNK_FULL 2u /* content_size, timestamp_end and record_count are final */
#define PEM_CHUNK_READING 3u /* A consumer copies it */
#define PEM_CHUNK_WORD(state, lane) ((uint32_t)(lane) << 2 | (state))
#define PEM_CHUNK_STATE(word) ((word)&3u)
#define PEM_CHUNK_LANE(word) ((word) >> 2)

#define PEM_POOL_MAGIC 0x504d4550u /* "PEMP" */
/* When the pool is full, reclaim the oldest full chunk instead of discarding records. */
#define PEM_POOL_OVERWRITE 0x1u
#define PEM_POOL_FURTHER 0x2u /* lanes have further cells */
#define PEM_POOL_COARSE 0x4u /* records have pem_session_page.coarse_clock as their clock */

/* Further cells of a lane, a page of them: for statistics beyond the first of an event. */
#define PEM_FURTHER_CELLS 64u

struct pem_pool_header {
	/* Stored last, with release: a reader that sees it finds a complete file. */
	uint32_t magic;
	uint32_t abi_version;
	uint32_t flags;
	uint32_t chunk_bytes; /* a power of two */
	uint32_t chunk_count;
	uint32_t lane_count;
	uint32_t event_capacity; /* cells per lane, and entries of event_id[] */
	uint32_t pid;
	uint64_t start_clock; /* clock when the pool was made */
	uint64_t chunk_state_offset; /* u32[chunk_count] */
	/*
	 * Offset of three arrays, one behind the other:
	 * - u32[event_capacity]: ids of events; 0 behind the last registered one.
	 * - u32[event_capacity]: the HASH of the file model-HASH that describes each event; 0:
	 *   unknown.
	 * - Two bits for each chunk, for the producer alone: whether each half of the chunk has
	 *   memory.
	 */
	uint64_t event_id_offset;
	uint64_t lanes_offset; /* struct pem_lane[lane_count] */
	uint64_t cells_offset; /* struct pem_cell[lane_count][event_capacity] */
	uint64_t chunks_offset;
	uint64_t total_bytes;
	char comm[PEM_NAME_BYTES];
	uint32_t parent_pid;
	/* The process's session index: the bit of enable and the column of action. */
	uint32_t session_index;
	/* Name of the process's control file in the runtime directory; "": it has none. */
	char control_name[64];
	/*
	 * struct pem_distribution[PEM_DISTRIBUTION_COUNT][lane_count]. An element has memory only
	 * where pem_lane.distributions says so.
	 */
	uint64_t distributions_offset;
	/*
	 * Seccomp filters that are known to let pem's calls pass; ~0: unknown. If a consumer counts
	 * more on the process, the others may refuse these calls.
	 */
	uint32_t filters;
	/*
	 * A consumer has counted more filters than these. From then on the process makes no system
	 * call for pem.
	 */
	uint32_t restricted;
	/* Bit i: the process, applying rules, found itself in the session page's context i. */
	uint64_t contexts;
	uint64_t gates; /* Address of struct pem_gate_states[PEM_SESSIONS_MAX]; 0: none */
	uint8_t reserved2[32];
	uint32_t incarnation; /* incarnation in the process's action words */
	uint32_t pid_namespace; /* inode number of pid's namespace; 0: unknown */
	/*
	 * Odd while a producer moves statistics to lane 0. A reader of several lanes of an event
	 * begins again if this was odd or has changed.
	 */
	uint32_t fold;
	/*
	 * Number of lanes whose thread was cancelled in the middle of an event. The event's record
	 * may lie in the chunk and not be in the lane's count.
	 */
	uint32_t cut_short;
	uint32_t chunk_hint; /* Index of the chunk to try next. It has its own cache line. */
	/*
	 * A consumer or producer that frees chunks adds 1 afterwards. A producer searches a full
	 * pool again only after that.
	 */
	uint32_t freed;
	uint32_t chunk_limit; /* Chunks in use; 0: all. Its consumer may raise it. */
	uint8_t reserved1[52];
};
PEM_STATIC_ASSERT(offsetof(struct pem_pool_header, chunk_hint) == 256,
		  "the hint has its own cache line");
PEM_STATIC_ASSERT(sizeof(struct pem_pool_header) == 320, "pool header is 320 bytes");

/*
 * One test of a predicate over a record's bytes; predicate.h evaluates it.
 *
 * The library loads the eight bytes that end at offset end; generated code knows the field by end.
 * Their highest bytes hold a field of at most eight bytes. All eight lie inside the record, because
 * its header stands before its first field. key is (word & mask), made orderable and flipped. The
 * test holds if key - lo <= span, unsigned. on_true and on_false name what comes next: a later
 * test's index, PEM_TEST_PASS or PEM_TEST_FAIL.
 */
struct pem_test {
	uint64_t mask;
	uint64_t flip; /* the sign bit for signed and floating fields */
	uint64_t lo;
	uint64_t span;
	uint16_t end; /* Offset of the field's end in the record; at least 9 */
	/* 1: all bits but the sign are inverted below zero, so that keys order as values do. */
	uint8_t is_float;
	/* Each is greater than this test's own index, so every predicate ends. */
	uint8_t on_true, on_false;
	/* In a process's private copy, 1: on_true is the next test; a stub need not look it up. */
	uint8_t is_followed;
	uint8_t reserved[2];
};
#define PEM_TEST_PASS 0xfeu
#define PEM_TEST_FAIL 0xffu
#define PEM_TESTS_MAX 32u /* Tests of one predicate, at most */
PEM_STATIC_ASSERT(sizeof(struct pem_test) == 40, "a test is 40 bytes");

/*
 * A context: where events count. A process finds out itself which contexts it is in. Thread and CPU
 * are tested at the event.
 */
struct pem_session_context {
	uint32_t flags; /* PEM_CONTEXT_* */
	uint32_t pid; /* 0: any. Else a process id in the pid namespace pid_namespace. */
	uint32_t pid_namespace; /* Inode number of pid's namespace; 0 with pid 0 */
	uint32_t tid; /* 0: any */
	uint32_t cpu; /* PEM_NO_CPU: any */
	/* Inode number of a namespace, of any kind, that the process is in; 0: any. */
	uint32_t in_namespace;
	/* Id of a version 2 control group; the process is in it or below it. 0: any. */
	uint64_t cgroup;
	char program[PEM_NAME_BYTES]; /* The process's name, as in /proc/PID/comm; "": any */
	uint8_t reserved[16];
};
#define PEM_CONTEXT_FOLLOW 1u /* With pid: the descendants of the process count too */
#define PEM_CONTEXT_TARGET 2u /* A process in this context joins the session unasked */
#define PEM_CONTEXTS_MAX 64u /* A 64-bit word says which contexts hold */
PEM_STATIC_ASSERT(sizeof(struct pem_session_context) == 64, "a context is a cache line");

/*
 * A rule: a session's demand on an event. Of the rules that name an event in a context that holds,
 * the first of each cell counts: of the event's own cell, and of each further one. A session has
 * several for an event if its handles differ.
 */
/* Matches every event that no other rule names: events that the consumer does not know yet. */
#define PEM_RULE_ANY_EVENT 0xffffffffu
struct pem_rule {
	uint32_t event_id;
	uint16_t context; /* Index of the context in the page; 0: any */
	uint16_t test_count; /* of the predicate; 0: none */
	uint32_t test_first; /* Index of the predicate's first test in the page's tests */
	uint32_t distribution; /* with PEM_ACTION_DISTRIBUTION: PEM_DISTRIBUTION(...) */
	uint64_t action;
	/* With PEM_RULE_ANY_EVENT: the highest enum pem_level that counts; 0: all. Else: gate.h */
	uint32_t max_level;
	uint32_t flags; /* PEM_RULE_CALLBACK_ONLY, PEM_RULE_OF_LOG, PEM_RULE_CELL; counted.h */
};
/* For recovery: callbacks alone take, or took, records of the event. The log takes none. */
#define PEM_RULE_CALLBACK_ONLY 1u
/* For recovery: the log takes the event's records of the rule's context that pass its tests. */
#define PEM_RULE_OF_LOG 2u
/* Bits 8-15 of flags: 0, the event's own cell; to 64: 1 and a further one's index; else: gate.h. */
#define PEM_RULE_CELL(flags) ((flags) >> 8 & 0xffu)
#define PEM_RULE_OF_CELL(cell) ((uint32_t)(cell) << 8)
PEM_STATIC_ASSERT(sizeof(struct pem_rule) == 32, "a rule is 32 bytes");

/* Why a program that a recorded one starts can't be recorded. */
enum pem_unobserved {
	/* The libraries can't be loaded there, and were taken out of LD_PRELOAD. */
	PEM_UNOBSERVED_LIBRARIES,
	/* It was given an environment without the libraries, or without the session. */
	PEM_UNOBSERVED_ENVIRONMENT,
	/* It gains rights as it starts, so that its loader ignores LD_PRELOAD. */
	PEM_UNOBSERVED_PRIVILEGED,
	/* It is linked statically: only the C library's events are missing. */
	PEM_UNOBSERVED_STATIC,
	/* It was started where the session's folder can't be written to. */
	PEM_UNOBSERVED_UNREACHABLE,
	PEM_UNOBSERVED_COUNT
};

/*
 * The file "config" of a session directory. It says what a joining process enables, and its pool's
 * size.
 */
#define PEM_SESSION_MAGIC 0x324d4550u /* "PEM2": the second layout */
#define PEM_RULES_MAX 1024u
#define PEM_SESSION_TESTS_MAX 2048u
struct pem_session_page {
	uint32_t magic;
	uint32_t abi_version;
	uint32_t generation; /* odd while rules, contexts and tests change */
	uint32_t pool_flags;
	uint32_t chunk_bytes;
	uint32_t chunk_count;
	uint32_t lane_count;
	uint32_t event_capacity;
	uint32_t rule_count;
	uint32_t consumer_pid;
	uint32_t closed; /* The consumer is gone. Processes join and log no more. */
	/* Processes that could not make a pool. last_errno is the reason of the last one. */
	uint32_t refused;
	uint32_t last_errno;
	uint32_t pools; /* Pools begun so far. A pool's name has its number. */
	/* Events that should have been logged, but were raised where no pool could count them. */
	uint64_t lost;
	/* Events that are missing in statistics, because there was no lane to count them in. */
	uint64_t lost_statistics;
	uint32_t context_count; /* At least 1: context 0 means any */
	uint32_t test_count;
	/*
	 * A futex. It is odd while the consumer sleeps. A producer that raises an event with
	 * PEM_ACTION_WAKE then adds 1 and wakes the consumer.
	 */
	uint32_t wake;
	/* The log is not finished. If the consumer dies, the session directory can be recovered. */
	uint32_t has_log;
	uint32_t id; /* The session's id, never 0. It tells sessions apart in tables of sessions. */
	uint32_t pools_ready; /* pools made so far, each complete */
	/*
	 * Part of lost and discarded: events of threads whose seccomp filter refuses the system
	 * calls that recording them needs.
	 */
	uint64_t lost_filtered;
	/* Processes and threads that took such a seccomp filter. */
	uint32_t filtered;
	/*
	 * Programs that were started and can't be recorded, by reason. The starting process counts
	 * before the start, and takes the count back if the start fails.
	 */
	uint32_t unobserved[PEM_UNOBSERVED_COUNT];
	/* Name of the last such program, by reason. Several processes may write it at once. */
	char unobserved_name[PEM_UNOBSERVED_COUNT][PEM_NAME_BYTES];
	struct pem_rule rules[PEM_RULES_MAX];
	struct pem_session_context contexts[PEM_CONTEXTS_MAX];
	struct pem_test tests[PEM_SESSION_TESTS_MAX];
	uint64_t coarse_clock; /* with PEM_POOL_COARSE: the consumer advances it */
	uint64_t chunk_most; /* that a pool has; it uses chunk_count at first. 0: no more */
	uint64_t standby_files; /* made for this session so far (standby_file.h) */
	uint32_t gates_at_start, gates; /* bit g: gate g is here: before the command; now */
};
#define PEM_SESSION_HEAD_BYTES 208u
PEM_STATIC_ASSERT(offsetof(struct pem_session_page, rules) == PEM_SESSION_HEAD_BYTES,
		  "rules follow the head");
/*
 * Magic of a file "counts-<pid>-<n>". The file is the head of a session page. A process counts in
 * it if it may not write the session's own page. The process holds a shared lock (flock) on the
 * file as long as it, or a child, has the file mapped.
 */
#define PEM_COUNTS_MAGIC 0x434d4550u /* "PEMC" */

/*
 * An entry of a process's table of sessions. The table has one entry for each bit of an enable
 * byte. A consumer outside takes a free entry to observe the process. The process itself takes one
 * for a session that it was started in. A process joins an offered session at its next event that
 * the session enables. Nothing else happens in the process.
 *
 *	FREE --take (compare-and-swap)--> TAKEN --fill--> FILLED --none else has the session-->
 *	OFFERED --give back--> FREE
 *
 * A consumer and the process may take entries for one session at the same time. Two entries of one
 * session would record each event twice. So both set FILLED before they look at the other entries.
 * The process then sets a consumer's FILLED entry back to FREE, and yields to an OFFERED one. A
 * consumer yields to FILLED and to OFFERED (tests/model/both_join.pml).
 *
 * Each step adds 1 to the word's serial number, so that nobody gives back an entry that has another
 * owner by then. The word also has the number of the consumer. A consumer that finds an entry not
 * free tests the lock on the folder of that number. If that consumer has died, it takes the entry.
 * tests/model/entries.pml explores this.
 */
struct pem_session_entry {
	uint64_t word; /* PEM_ENTRY_WORD */
	/* 1 to 255, another each time the entry is taken. It tells the entry's sessions apart. */
	uint32_t incarnation;
	uint32_t consumer_pid;
	uint32_t session_id; /* The id in the session's page */
	/* Written by the process: the incarnation it joined last. The next one has to differ. */
	uint32_t joined;
	uint64_t contexts; /* bit i: the consumer found the process in the page's context i */
	/* The session's folder in the control file's runtime directory; "": it is elsewhere. */
	char folder[32];
};
#define PEM_ENTRY_FREE 0u
#define PEM_ENTRY_TAKEN 1u
#define PEM_ENTRY_OFFERED 2u
#define PEM_ENTRY_FILLED 3u
#define PEM_ENTRY_WORD(state, serial, consumer)                                                    \
	((uint64_t)(consumer) << 32 | (uint32_t)(serial) << 2 | (state))
#define PEM_ENTRY_STATE(word) ((uint32_t)(word)&3u)
#define PEM_ENTRY_SERIAL(word) ((uint32_t)(word) >> 2)
#define PEM_ENTRY_CONSUMER(word) ((uint32_t)((word) >> 32))
/*
 * A consumer's number, made from the name of its folder session-PID-NUMBER. 0: the process itself
 * takes the entry, or the folder is elsewhere.
 */
#define PEM_CONSUMER(pid, number) ((uint32_t)(number) << 22 | (uint32_t)(pid))
#define PEM_CONSUMER_PID(consumer) ((consumer)&0x3fffffu)
#define PEM_CONSUMER_NUMBER(consumer) ((consumer) >> 22)
PEM_STATIC_ASSERT(sizeof(struct pem_session_entry) == 64, "an entry is one cache line");

/*
 * A process's control file in the runtime directory: this page, then each provider's control page
 * as it was registered. A consumer fills a session entry to observe the process.
 */
#define PEM_CONTROL_MAGIC 0x434d4550u /* "PEMC" */
#define PEM_PROVIDERS_MAX 32u
#define PEM_CONTROL_EVENTS 512u
struct pem_control_file {
	uint32_t magic;
	uint32_t abi_version;
	uint32_t pid;
	/* Stored with release after the new element of provider[] is complete. */
	uint32_t provider_count;
	uint64_t start_clock;
	uint32_t pid_namespace; /* Inode number of pid's namespace; 0: unknown */
	uint32_t reserved0;
	/* Offset of u32[PEM_CONTROL_EVENTS]: ids of events, by event_base + index; 0: no event */
	uint64_t event_id_offset;
	uint64_t gates, reserved[2]; /* gates: as in the pool's header */
	struct {
		uint64_t offset;
		uint64_t bytes;
	} provider[PEM_PROVIDERS_MAX];
	struct pem_session_entry session[PEM_SESSIONS_MAX];
};
PEM_STATIC_ASSERT(offsetof(struct pem_control_file, provider) == 64,
		  "providers follow the 64-byte head");
PEM_STATIC_ASSERT(offsetof(struct pem_control_file, session) == 576, "sessions follow providers");
PEM_STATIC_ASSERT(sizeof(struct pem_control_file) <= 4096, "the control file's head is one page");

#endif
