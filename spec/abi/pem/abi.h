/* SPDX-License-Identifier: MIT */
/*
 * abi.h - what lies in shared memory and on disk: record, packet, control page, pool, session
 *
 * Not here: how they are used (ring.h), what a stub does with them (stub.h).
 *
 * Everything here is read by another process, another program version or another language, so types
 * are fixed-width, naturally aligned, padding is explicit and zeroed, and offsets are asserted
 * below. A structure grows at its end only. Whoever reads one treats it as hostile: load once,
 * check, use.
 *
 *   session directory (tmpfs)                         one pool file per process and session
 *   +--------------------------+    +---------------------------------------------------------+
 *   | config   pem_session_page|    | pem_pool_header | chunk_state[] | event_id[] | lanes[]  |
 *   | model-*  provider models |    | cells[lane][event] | distributions[index][lane]         |
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

/* What an event passes through: without it clang keeps an event's cursor in memory. */
#define PEM_INLINE static inline __attribute__((always_inline))

#define PEM_ABI_VERSION 1u
#define PEM_SESSIONS_MAX 8u
#define PEM_EVENTS_PER_PROVIDER_MAX 256u
#define PEM_RECORD_ALIGN 8u
#define PEM_NAME_BYTES 16u

/* Page size that generated control pages are aligned to: the largest the architecture may use. */
#if defined(__aarch64__)
#define PEM_PAGE_ALIGN 65536
#else
#define PEM_PAGE_ALIGN 4096
#endif

/*
 * A record: this header, fixed fields naturally aligned, then lists and strings. Next one: next
 * multiple of 8.
 */
struct pem_record_header {
	/* low 32 bits of the clock; the packet holds all 64 of its first and last */
	uint32_t clock_low;
	/* FNV-1a of the event's name; never 0, which marks "not committed" in a kernel ring */
	uint32_t event_id;
};

#define PEM_CTF_MAGIC 0xC1FC1FC1u
#define PEM_NO_CPU 0xffffffffu

enum pem_packet_source {
	PEM_PACKET_USER = 0, /* pid and tid hold for each record */
	PEM_PACKET_KERNEL = 1, /* cpu holds; process and thread come from events that set them */
	PEM_PACKET_COUNTER = 2, /* written by the recorder about process pid (0: the machine) */
	/*
	 * Of the kernel, and cpu, pid and tid hold for each record: of a source beside the one
	 * whose events set threads. Their clocks differ by some nanoseconds, so that what one says
	 * of who runs where does not hold for the other's records.
	 */
	PEM_PACKET_KERNEL_THREAD = 3,
};

/*
 * A CTF 1.8 packet's header and context, in front of its records. content_size is the commit word:
 * the producer releases it after each record (ring.h), a consumer acquires it.
 */
struct pem_packet {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id; /* always 0: there is one stream class */
	uint64_t stream_instance_id; /* the stream file's number in the trace */
	/* packet context */
	uint64_t timestamp_begin; /* clock of the first record, or before it */
	uint64_t timestamp_end;
	uint64_t content_size; /* bits, this header included; ends at the last record's last byte */
	uint64_t packet_size; /* bits */
	uint64_t events_discarded; /* of this stream since its beginning */
	uint64_t packet_seq_num;
	uint64_t events_overwritten; /* of this stream since its beginning */
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
 *   bits 0-7 flags, 8-15 index of the statistic's field, 16-19 its enum pem_type, 20-31 its byte
 *   offset in the record, 32-39 incarnation (which of the sessions that had this entry of the
 *   process; 1 to 255), 40-63 epoch (a change of epoch starts the statistic anew).
 */
#define PEM_ACTION_LOG 0x01u
#define PEM_ACTION_STAT 0x02u
#define PEM_ACTION_CALLBACK 0x04u /* synchronous callback, in the producing thread */
#define PEM_ACTION_FILTER 0x08u /* there is a struct pem_filter for it: test that first */
/* the consumer sleeps: log it, then wake it by the session page's word */
#define PEM_ACTION_WAKE 0x10u
/* the statistic also keeps a struct pem_distribution (variance, histogram, top) */
#define PEM_ACTION_DISTRIBUTION 0x20u
/* a consumer changed the rules: the process applies them before it goes by its filter */
#define PEM_ACTION_CHECK 0x40u
#define PEM_ACTION_FLAGS(a) ((uint32_t)(a)&0xffu)
#define PEM_ACTION_FIELD(a) ((uint32_t)((a) >> 8) & 0xffu)
#define PEM_ACTION_TYPE(a) ((uint32_t)((a) >> 16) & 0xfu)
#define PEM_ACTION_OFFSET(a) ((uint32_t)((a) >> 20) & 0xfffu)
#define PEM_ACTION_INCARNATION(a) ((uint32_t)((a) >> 32) & 0xffu)
#define PEM_ACTION_EPOCH(a) ((uint32_t)((a) >> 40) & 0xffffffu)
/* Epoch and incarnation: what a cell's statistic belongs to. */
#define PEM_ACTION_TAG(a) ((uint32_t)((a) >> 32))
/* What is wanted, and of which field. */
#define PEM_ACTION_CHOICE(a) ((uint32_t)(a)&0xffffu)
#define PEM_ACTION(flags, field, type, offset, epoch)                                              \
	((uint64_t)(flags) | (uint64_t)(field) << 8 | (uint64_t)((type)&0xfu) << 16 |              \
	 (uint64_t)((offset)&0xfffu) << 20 | (uint64_t)((epoch)&0xffffffu) << 40)
#define PEM_ACTION_OF_INCARNATION(a, incarnation)                                                  \
	(((a) & ~(0xffULL << 32)) | (uint64_t)((incarnation)&0xffu) << 32)
#define PEM_RECORD_BYTES_MAX 4096u /* so that 12 bits hold every offset */
#define PEM_NO_FIELD 0xffu /* count only */

/*
 * A provider's control page: header, enable[n], action[n][PEM_SESSIONS_MAX], n = events rounded up
 * to 64.
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
 * Statistics and counts of one event in one lane. One writer (lane 0: many, atomically), any
 * reader.
 */
struct pem_cell {
	uint64_t produced; /* raised to be logged in this session */
	uint64_t discarded; /* of these, no room */
	/* updates begun; stat_begin == stat_end: the four below belong together */
	uint64_t stat_begin;
	uint64_t stat_end; /* updates finished: the count */
	uint64_t sum; /* modulo 2^64; a double's bits for floating types */
	uint64_t min; /* order-preserving keys, see pem_stat_key() */
	uint64_t max;
	uint64_t tag; /* the action's that these belong to, PEM_ACTION_TAG(), and PEM_CELL_FLOAT */
};
#define PEM_CELL_FLOAT (1ull << 63) /* the sum is a double */
PEM_STATIC_ASSERT(sizeof(struct pem_cell) == 64, "a cell is one cache line");

/*
 * What a statistic keeps beyond its cell, where an action says PEM_ACTION_DISTRIBUTION: of what it
 * is asked for only. See distribution.h.
 */
#define PEM_DISTRIBUTION_VARIANCE 1u
#define PEM_DISTRIBUTION_HISTOGRAM 2u
#define PEM_DISTRIBUTION_VALUES 4u
#define PEM_DISTRIBUTION_COUNT 16u /* of them in a session */
#define PEM_DISTRIBUTION_BUCKETS 65u
#define PEM_DISTRIBUTION_TOP 16u
/*
 * Which of a session's, what it keeps, and a number that is another each time one is given away: 16
 * bits, not 0.
 */
#define PEM_DISTRIBUTION(index, keep, generation)                                                  \
	((uint32_t)(index) | (uint32_t)(keep) << 8 | (uint32_t)(generation) << 16)
#define PEM_DISTRIBUTION_INDEX(w) ((w)&0xffu)
#define PEM_DISTRIBUTION_KEEP(w) ((w) >> 8 & 0xffu)
/*
 * What a struct pem_distribution belongs to: the generation above the action's tag, and
 * PEM_CELL_FLOAT.
 */
#define PEM_DISTRIBUTION_TAG(w, action) ((uint64_t)((w) >> 16) << 32 | PEM_ACTION_TAG(action))

struct pem_distribution_top {
	uint64_t sequence; /* odd while another value takes the entry */
	uint64_t value; /* sign-extended; a double's bits for floating types */
	uint64_t count; /* 0: free */
	uint64_t error; /* it may have come so much less often */
};

struct pem_distribution {
	uint64_t begin, end; /* as a cell's; end: how many values sum and squares are of */
	uint64_t tag;
	/* of the values, 128 bits, low word first; floating: the mean's bits and 0 */
	uint64_t sum[2];
	/*
	 * of their squares, 192 bits; floating: bits of the sum of squared distances from the mean
	 */
	uint64_t squares[3];
	uint64_t bucket[PEM_DISTRIBUTION_BUCKETS];
	uint64_t reserved[7];
	struct pem_distribution_top top[PEM_DISTRIBUTION_TOP];
};
PEM_STATIC_ASSERT(offsetof(struct pem_distribution, bucket) == 64,
		  "what belongs together is one cache line");
PEM_STATIC_ASSERT(sizeof(struct pem_distribution) == 1152,
		  "struct pem_distribution is 18 cache lines");

/*
 * A lane: one thread at one depth of nesting, one CTF stream instance. Lane 0 has no thread: see
 * pem_cell. It also keeps the statistics of threads whose lanes other threads have taken over
 * (pem_pool_header.fold).
 */
struct pem_lane {
	uint32_t state; /* PEM_LANE_* */
	uint32_t tid;
	uint64_t packet_seq; /* packets claimed */
	uint64_t discarded;
	uint64_t overwritten; /* records in packets reclaimed before anyone read them */
	uint32_t distributions; /* bit i: distributions[i] of this lane has memory */
	uint8_t reserved[28];
};
#define PEM_LANE_FREE 0u
#define PEM_LANE_OWNED 1u
/* tid of a free lane that never had memory for its cells */
#define PEM_LANE_NO_MEMORY 0xffffffffu
PEM_STATIC_ASSERT(sizeof(struct pem_lane) == 64, "a lane is one cache line");

/*
 * chunk_state[i]: state in bits 0-1, lane in bits 2-31. The compare-and-swaps between them: ring.h.
 */
#define PEM_CHUNK_FREE 0u
#define PEM_CHUNK_OWNED 1u /* its lane's thread writes */
#define PEM_CHUNK_FULL 2u /* content_size, timestamp_end and record count are final */
#define PEM_CHUNK_READING 3u /* a consumer copies it */
#define PEM_CHUNK_WORD(state, lane) ((uint32_t)(lane) << 2 | (state))
#define PEM_CHUNK_STATE(word) ((word)&3u)
#define PEM_CHUNK_LANE(word) ((word) >> 2)

#define PEM_POOL_MAGIC 0x504d4550u /* "PEMP" */
/* full pool: reclaim the oldest full chunk instead of discarding */
#define PEM_POOL_OVERWRITE 0x1u

struct pem_pool_header {
	uint32_t magic; /* stored last, released: the file is complete */
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
	 * u32[event_capacity], 0 past the last registered; then as many: the HASH of model-HASH,
	 * which describes it; 0: unknown. Then the producer's own: a bit for each chunk, whether
	 * its memory exists
	 */
	uint64_t event_id_offset;
	uint64_t lanes_offset; /* struct pem_lane[lane_count] */
	uint64_t cells_offset; /* struct pem_cell[lane_count][event_capacity] */
	uint64_t chunks_offset;
	uint64_t total_bytes;
	char comm[PEM_NAME_BYTES];
	uint32_t parent_pid;
	/* the process's index for this session: bit of enable, column of action */
	uint32_t session_index;
	/* of the process's control file in the runtime folder, "" if it has none */
	char control_name[64];
	/*
	 * struct pem_distribution[PEM_DISTRIBUTION_COUNT][lane_count], without memory where lanes
	 * do not say so
	 */
	uint64_t distributions_offset;
	/*
	 * Seccomp filters that the process may have, as it was told: one more is its own, which a
	 * consumer sees. ~0: unknown.
	 */
	uint32_t filters;
	/* A consumer has seen one more: the process makes no system call for pem from here on. */
	uint32_t restricted;
	uint8_t reserved2[48];
	uint32_t incarnation; /* for the process's action words */
	uint32_t pid_namespace; /* inode number of the one that pid is of; 0: unknown */
	/*
	 * Odd while statistics move to lane 0: who reads several lanes of an event meanwhile begins
	 * again.
	 */
	uint32_t fold;
	/*
	 * Lanes whose thread was cancelled in the middle of an event: its record may be there, and
	 * not in its count.
	 */
	uint32_t cut_short;
	uint32_t chunk_hint; /* own cache line: next chunk to try */
	/* whoever frees chunks adds 1 then: a full pool is searched again only after that */
	uint32_t freed;
	uint8_t reserved1[56];
};
PEM_STATIC_ASSERT(offsetof(struct pem_pool_header, chunk_hint) == 256,
		  "the hint has its own cache line");
PEM_STATIC_ASSERT(sizeof(struct pem_pool_header) == 320, "pool header is 320 bytes");

/*
 * One test of a predicate over a record's bytes (predicate.h evaluates it): the eight bytes that
 * end at offset end hold a field of up to eight bytes in their highest ones (a record's header
 * stands before its first field, so none of them lies outside). key = (word & mask) made orderable
 * and flipped; the test holds if key - lo <= span, unsigned. What comes next is a later test's
 * index, PEM_TEST_PASS or PEM_TEST_FAIL.
 */
struct pem_test {
	uint64_t mask;
	uint64_t flip; /* the sign bit for signed and floating fields */
	uint64_t lo;
	uint64_t span;
	uint16_t end; /* of the field, in the record; at least 9 */
	/* 1: below zero all other bits are inverted, so that keys order as values do */
	uint8_t is_float;
	uint8_t on_true, on_false; /* greater than this test's own index: a predicate ends */
	/*
	 * in a process's own copy, 1: on_true is the next test, which need not be looked up; else 0
	 */
	uint8_t is_followed;
	uint8_t reserved[2];
};
#define PEM_TEST_PASS 0xfeu
#define PEM_TEST_FAIL 0xffu
#define PEM_TESTS_MAX 32u /* of one predicate */
PEM_STATIC_ASSERT(sizeof(struct pem_test) == 40, "a test is 40 bytes");

/*
 * Where events count. Processes find out themselves which contexts they are in; threads and CPUs
 * are tested at the event.
 */
struct pem_session_context {
	uint32_t flags; /* PEM_CONTEXT_* */
	uint32_t pid; /* 0: any; a number of the pid namespace pid_namespace */
	uint32_t pid_namespace; /* inode number of the one that pid is of; 0 with pid 0 */
	uint32_t tid; /* 0: any */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t in_namespace; /* inode number of any namespace that the process is in; 0: any */
	uint64_t cgroup; /* id of a version 2 control group that it is in or below; 0: any */
	char program[PEM_NAME_BYTES]; /* the process's name as in /proc/PID/comm; "": any */
	uint8_t reserved[16];
};
#define PEM_CONTEXT_FOLLOW 1u /* with pid: and its descendants */
#define PEM_CONTEXT_TARGET 2u /* who is in it joins the session unasked */
#define PEM_CONTEXTS_MAX 64u /* so that a 64-bit word says which of them hold */
PEM_STATIC_ASSERT(sizeof(struct pem_session_context) == 64, "a context is a cache line");

/*
 * What a session wants of an event. The first rule that names an event, in a context that holds, is
 * the one.
 */
/* every event that no other rule names: those a consumer has not met yet */
#define PEM_RULE_ANY_EVENT 0xffffffffu
struct pem_rule {
	uint32_t event_id;
	uint16_t context; /* index of it in the page; 0: any */
	uint16_t test_count; /* of the predicate; 0: none */
	uint32_t test_first; /* index of it in the page's tests */
	uint32_t distribution; /* with PEM_ACTION_DISTRIBUTION: PEM_DISTRIBUTION(...) */
	uint64_t action;
	/* with PEM_RULE_ANY_EVENT: enum pem_level of the least that count; 0: all do */
	uint32_t max_level;
	uint32_t flags; /* PEM_RULE_CALLBACK_ONLY */
};
/*
 * the event's records are, or were, for callbacks alone: none of the trace's, should its recorder
 * die
 */
#define PEM_RULE_CALLBACK_ONLY 1u
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
 * The file "config" of a session directory: what to enable in a process that joins, and how big its
 * pool is.
 */
#define PEM_SESSION_MAGIC 0x324d4550u /* "PEM2": the second form of this */
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
	uint32_t closed; /* the consumer is gone: join no more, log no more */
	/* processes that could not make a pool; last_errno says why the last one could not */
	uint32_t refused;
	uint32_t last_errno;
	uint32_t pools; /* made so far: numbers their names */
	uint64_t lost; /* events to be logged, raised where there was no pool to count them in */
	uint64_t lost_statistics; /* events that statistics lack: raised where there was no lane */
	uint32_t context_count; /* at least 1: context 0 is any */
	uint32_t test_count;
	/*
	 * futex: odd while the consumer sleeps; who adds 1 then, by an event with PEM_ACTION_WAKE,
	 * wakes it
	 */
	uint32_t wake;
	/* its log is not finished: what a dead consumer left in its folder can be recovered */
	uint32_t has_log;
	uint32_t id; /* of the session, never 0: tells it apart from others in tables of sessions */
	uint32_t pools_ready; /* pools made so far, each complete */
	/*
	 * Of the lost and discarded: events of threads whose seccomp filter refuses what recording
	 * them needs.
	 */
	uint64_t lost_filtered;
	/* Processes and threads that took such a filter. */
	uint32_t filtered;
	/*
	 * Programs that were started and can't be recorded. Who starts one counts before, and takes
	 * it back where that fails.
	 */
	uint32_t unobserved[PEM_UNOBSERVED_COUNT];
	/* The last one of each; several may write at once. */
	char unobserved_name[PEM_UNOBSERVED_COUNT][PEM_NAME_BYTES];
	struct pem_rule rules[PEM_RULES_MAX];
	struct pem_session_context contexts[PEM_CONTEXTS_MAX];
	struct pem_test tests[PEM_SESSION_TESTS_MAX];
};
#define PEM_SESSION_HEAD_BYTES 208u
PEM_STATIC_ASSERT(offsetof(struct pem_session_page, rules) == PEM_SESSION_HEAD_BYTES,
		  "rules follow the head");
/*
 * The magic of a file "counts-<pid>-<n>": the head of a page in which a process counts that may not
 * write the session's page. It holds a shared lock (flock) on the file as long as it, or a child,
 * has it mapped.
 */
#define PEM_COUNTS_MAGIC 0x434d4550u /* "PEMC" */

/*
 * An entry of a process's table of sessions, one for each bit of an enable byte. Who wants to
 * observe the process takes a free one: a consumer from outside, or the process itself for a
 * session that it was started in. A process joins a session that is offered to it at its next event
 * that the session enables; nothing else happens in it.
 *
 *	FREE --take (compare-and-swap)--> TAKEN --fill--> FILLED --none else has the session-->
 *	OFFERED --give back--> FREE
 *
 * A session's consumer and the process may do so at the same time, for the same session: two
 * entries of it would record each event twice. So both say FILLED before they look at the other
 * entries. The process then takes a consumer's FILLED back to FREE, and yields to an OFFERED one; a
 * consumer yields to either (tests/model/both_join.pml).
 *
 * Each step counts the word's serial number up, so that nobody gives back what has become
 * another's. A consumer's number stands beside it: who finds an entry that is not free tells from
 * the lock on that consumer's folder whether it died there, and then takes the entry.
 * tests/model/entries.pml explores this.
 */
struct pem_session_entry {
	uint64_t word; /* PEM_ENTRY_WORD */
	/* 1 to 255, another each time the entry is taken: tells its sessions apart */
	uint32_t incarnation;
	uint32_t consumer_pid;
	uint32_t session_id; /* of its page */
	/* the process's: incarnation that it joined last, which is not to be the next */
	uint32_t joined;
	uint64_t contexts; /* bit i: the consumer found the process in the page's context i */
	/* of the session, in the runtime folder that the control file is in; "": elsewhere */
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
 * A consumer's number, of its folder session-PID-NUMBER. 0: the process itself takes the entry, or
 * the folder is elsewhere.
 */
#define PEM_CONSUMER(pid, number) ((uint32_t)(number) << 22 | (uint32_t)(pid))
#define PEM_CONSUMER_PID(consumer) ((consumer)&0x3fffffu)
#define PEM_CONSUMER_NUMBER(consumer) ((consumer) >> 22)
PEM_STATIC_ASSERT(sizeof(struct pem_session_entry) == 64, "an entry is one cache line");

/*
 * A process's control file in the runtime directory: this page, then each provider's control page
 * as it was registered. A consumer asks to be served by filling a session entry.
 */
#define PEM_CONTROL_MAGIC 0x434d4550u /* "PEMC" */
#define PEM_PROVIDERS_MAX 32u
#define PEM_CONTROL_EVENTS 512u
struct pem_control_file {
	uint32_t magic;
	uint32_t abi_version;
	uint32_t pid;
	uint32_t provider_count; /* released after the entry below is complete */
	uint64_t start_clock;
	uint32_t pid_namespace; /* inode number of the one that pid is of; 0: unknown */
	uint32_t reserved0;
	/*
	 * u32[PEM_CONTROL_EVENTS], by a provider's event_base and its event's index; 0 past the
	 * last registered
	 */
	uint64_t event_id_offset;
	uint64_t reserved[3];
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
