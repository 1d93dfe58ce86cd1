/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * reader.h - what the parts of the trace reader share
 *
 * Not here: the public interface (pem/trace.h).
 *
 *	trace.c     opens a directory, merges its streams, hands out records
 *	stream.c    one stream file: packets and records in their order, checked
 *	context.c   who ran where: process and thread of kernel records, names of processes
 *	about.c     .pem/run, .pem/balance and .pem/names
 *	kept.c      what it keeps for names of code
 *	told.c      names of processes and threads
 *	ahead.c     a thread that merges while the caller handles records
 *	losses.c    times in which streams lost records
 *	record.c    fields of a record
 */
#ifndef PEM_READER_H
#define PEM_READER_H

#include "util.h"

#include <pem/trace.h>

#include <stdbool.h>
#include <sys/types.h>

#define PEM_CPUS_MAX 8192u
#define PEM_STREAMS_MAX 65536u
#define PEM_PACKET_BYTES_MAX (256u << 20) /* no packet is in memory as a whole: see stream.c */
#define PEM_ABOUT_BYTES_MAX (64u << 20) /* size of .pem/run and of .pem/balance, at most */

/* An event as the hot loop needs it, found by its id. */
struct pem_event_info {
	const struct pem_event *event; /* NULL: free entry */
	uint32_t id;
	uint32_t fixed_bytes;
	bool has_tail;
	bool sets_context;
	int16_t process, thread, previous_thread, parent, name; /* fields by role, or -1 */
};

/*
 * An open-addressed hash table. It has so many entries for each event that most are where they are
 * looked for.
 */
#define PEM_EVENT_TABLE_SPACE 8
struct pem_event_table {
	struct pem_event_info *entries;
	uint32_t mask;
};

int pem_event_table__build(struct pem_event_table *table, const struct pem_model *model);
void pem_event_table__free(struct pem_event_table *table);

static inline uint32_t pem_event_table__hash(uint32_t id)
{
	return (id * 2654435769u) >> 12;
}

static inline const struct pem_event_info *
pem_event_table__find(const struct pem_event_table *table, uint32_t id)
{
	uint32_t i = pem_event_table__hash(id);

	for (;; i++) {
		const struct pem_event_info *info = &table->entries[i & table->mask];

		if (info->id == id && info->event)
			return info;
		if (!info->event)
			return NULL;
	}
}

/* Does a record of the event name a process or a thread? */
static inline bool pem_event_info__tells_names(const struct pem_event_info *info)
{
	return info->sets_context && info->event->meaning != PEM_MEANS_SETS_THREAD;
}

/* --- stream.c --- */

enum pem_stream_head { PEM_HEAD_NONE, PEM_HEAD_RECORD, PEM_HEAD_DAMAGE, PEM_HEAD_END };

struct pem_stream {
	/* the head: the next record or damage of this stream */
	uint64_t clock;
	uint32_t number;
	enum pem_stream_head head;
	const uint8_t *record; /* in buffer, 8-aligned */
	const struct pem_event_info *info;
	uint32_t record_bytes;
	/* the packet of the head */
	uint32_t pid, tid, cpu, source;
	const uint8_t *end; /* End of the part of the packet's content that is in the buffer */
	/*
	 * Bytes of the content that are in the file behind end. If there are any, end is 8-aligned
	 * too.
	 */
	uint64_t beyond;
	uint64_t timestamp_end;
	bool starts_loss; /* Records of this stream were lost before the head's packet */
	/* the file */
	char *name;
	int directory_fd; /* the trace's */
	int open_error; /* -errno: it could not be found out whether the file is compressed */
	struct pem_packed *packed; /* NULL: the file is not compressed */
	uint64_t file_bytes; /* of a compressed file: as if it were not */
	uint64_t packet_offset; /* offset of the head's packet */
	uint64_t next_offset; /* offset of the packet after it */
	uint8_t *buffer;
	size_t block_bytes; /* read at once */
	size_t capacity;
	size_t filled;
	uint64_t buffer_offset; /* offset of buffer[0] in the file */
	/* the packet before */
	bool any_packet;
	bool lost_in_packet;
	uint64_t discarded, overwritten, seq_num, instance_id;
	/* the trace's */
	const struct pem_event_table *events;
	uint8_t *uuid; /* uuid of all packets, once has_uuid is set */
	bool *has_uuid;
	bool torn;
	bool end_told; /* what is behind the last block of a compressed stream was told */
	struct pem_error damage; /* the error of a PEM_HEAD_DAMAGE */
};

/* Move to the next head. Never fails: damage is a head too. After it the stream goes on or ends. */
void pem_stream__advance(struct pem_stream *stream);
/* Go back to the file's start. There is no head then. */
void pem_stream__rewind(struct pem_stream *stream);
/* Free the buffer. It is allocated again when needed. */
void pem_stream__release(struct pem_stream *stream);

/* --- losses.c --- */

/* A window of time in which a stream lost records. */
struct pem_loss {
	uint64_t begin_clock; /* of the record before; 0: there is none */
	/* Of the record behind, or of damage, behind which another window begins; UINT64_MAX: the
	 * end */
	uint64_t end_clock;
	uint32_t source; /* enum pem_packet_source */
	uint32_t pid, tid, cpu; /* of the packet behind, or else of the one before */
};

struct pem_losses {
	struct pem_loss *windows;
	size_t count, capacity;
	bool failed; /* there was no memory for one */
};

/* Keep a window that begins at a clock. The stream is at the record behind it, or at its end. */
void pem_losses__note(struct pem_losses *losses, const struct pem_stream *s, uint64_t begin_clock);
/* Forget all windows, but keep the memory. */
void pem_losses__reset(struct pem_losses *losses);
void pem_losses__free(struct pem_losses *losses);

/* Advance a stream, and keep the window of a loss behind the record that it leaves. */
static inline void pem_losses__advance(struct pem_losses *losses, struct pem_stream *s)
{
	uint64_t clock = s->clock;
	bool lost = s->lost_in_packet;

	pem_stream__advance(s);
	if (PEM_UNLIKELY(s->starts_loss || s->head != PEM_HEAD_RECORD) &&
	    (s->starts_loss || lost || s->torn || s->head == PEM_HEAD_DAMAGE))
		pem_losses__note(losses, s, clock);
}

/*
 * trace.c: the windows that have begun until the current record, in the order in which they became
 * known, which is as soon as the record before a window has been handed out. Returns their number.
 * *losses, unless losses is NULL: the first; valid until the next record.
 */
size_t pem_trace__losses(const struct pem_trace *trace, const struct pem_loss **losses);

/* For the context stage (libpem/context). They do not block. */
size_t pem_trace__stream_count(const struct pem_trace *trace);
/* The number of windows that pem_trace__losses returns, as long as the trace is open. */
const size_t *pem_trace__known_losses(struct pem_trace *trace);
const struct pem_event_table *pem_trace__events(const struct pem_trace *trace);
/* Index into its entries of the current record's event. There is a current record. */
size_t pem_trace__event_entry(const struct pem_trace *trace);
/* losses.c: the time of a clock in nanoseconds since the trace's start; 0: before it */
uint64_t pem_trace__ns(const struct pem_trace *trace, uint64_t clock);

/* --- context.c --- */

struct pem_context_table;

struct pem_context_table *pem_context_table__new(void);
void pem_context_table__free(struct pem_context_table *table);
/* Forget everything, but keep the memory. */
void pem_context_table__reset(struct pem_context_table *table);
/* Set a process's name to the part of name behind its last slash. Returns 0 or -ENOMEM. */
int pem_context_table__set_name(struct pem_context_table *table, uint32_t pid, const char *name);
/* Set a process's name to the whole of name. Returns 0 or -ENOMEM. */
int pem_context_table__call(struct pem_context_table *table, uint32_t pid, const char *name);
const char *pem_context_table__name(const struct pem_context_table *table, uint32_t pid);
/* Set the name of thread tid of process pid (0: unknown). Returns 0 or -ENOMEM. */
int pem_context_table__call_thread(struct pem_context_table *table, uint32_t pid, uint32_t tid,
				   const char *name);
const char *pem_context_table__thread_name(const struct pem_context_table *table, uint32_t tid);
/* Forget which thread runs on cpu (below PEM_CPUS_MAX). */
void pem_context_table__lose(struct pem_context_table *table, uint32_t cpu);
/* Set *pid and *tid to the process and thread that run on cpu; 0: unknown. */
void pem_context_table__get(const struct pem_context_table *table, uint32_t cpu, uint32_t *pid,
			    uint32_t *tid);
/* Learn names alone from a record whose pid and tid were filled in. Returns 0 or -ENOMEM. */
int pem_context_table__learn_names(struct pem_context_table *table,
				   const struct pem_event_info *info,
				   const struct pem_record *record);
/*
 * Learn from a record of an event that sets context. The record's pid and tid are filled in, and
 * may be corrected. Returns 0 or -ENOMEM.
 */
int pem_context_table__learn(struct pem_context_table *table, const struct pem_event_info *info,
			     struct pem_record *record);

/* --- about.c --- */

int pem_about__read_run(int directory_fd, struct pem_trace_info *info, struct pem_error *error);

struct pem_balances {
	struct pem_trace_producer *producers;
	size_t producer_count;
	struct pem_balance *events; /* by the event's index in the model */
	struct pem_balance total;
	bool complete; /* the file is there, and whole */
};

/*
 * Read .pem/balance. Returns 0, or -errno with error. If the file is missing or ends early it
 * returns 0: complete is then false, and nothing else is filled.
 */
int pem_about__read_balance(int directory_fd, const struct pem_model *model,
			    struct pem_balances *balances, struct pem_error *error);
void pem_balances__free(struct pem_balances *balances);

/*
 * Names of processes and threads that existed before the recording. If one is there twice, the last
 * entry counts.
 */
struct pem_process_names {
	struct pem_process_name {
		uint32_t pid;
		uint32_t tid; /* 0: the process itself */
		char name[64];
	} * names;
	size_t count;
};
/*
 * Read .pem/names. Returns 0, or -errno with error. If there is no such file it returns 0, and
 * names is unchanged.
 */
int pem_about__read_names(int directory_fd, struct pem_process_names *names,
			  struct pem_error *error);

/* --- told.c --- */

/* What is known of names at one position. */
struct pem_told {
	struct pem_context_table *context;
	size_t next_image; /* index of the first image that has not started yet */
	uint64_t next_image_clock;
};

/* The producers in the order of their starts. The caller frees the result. NULL: no memory. */
const struct pem_trace_producer **pem_told__sort_images(const struct pem_balances *balances);
/* Name all processes as they are at the start of the trace. Returns 0 or -ENOMEM. */
int pem_told__begin(struct pem_told *told, const struct pem_trace *trace);
/* Name the process of each image that started until clock. Returns 0 or -ENOMEM. */
int pem_told__images(struct pem_told *told, const struct pem_trace *trace, uint64_t clock);

/* --- ahead.c --- */

struct pem_ahead;

/* Stop the thread. */
void pem_ahead__free(struct pem_ahead *ahead);
/* As pem_trace__next and pem_trace__rewind, before which the trace is rewound itself. */
int pem_ahead__next(struct pem_ahead *ahead, struct pem_record *record, struct pem_error *error);
int pem_ahead__rewind(struct pem_ahead *ahead);
/* At the caller's position. */
const struct pem_told *pem_ahead__told(const struct pem_ahead *ahead);
const struct pem_losses *pem_ahead__losses(const struct pem_ahead *ahead);
size_t pem_ahead__event_entry(const struct pem_ahead *ahead);
uint64_t pem_ahead__torn(const struct pem_ahead *ahead);

/* --- trace.c --- */

struct pem_trace {
	int directory_fd;
	int about_fd;
	struct pem_model *model;
	struct pem_trace_info info;
	struct pem_balances balances;
	struct pem_process_names names;
	struct pem_event_table events;
	const struct pem_trace_producer **images; /* producers in the order of their starts */
	struct pem_stream *streams;
	size_t stream_count;
	uint8_t uuid[16];
	bool has_uuid;
	struct pem_ahead *ahead; /* NULL: the caller merges */
	/* merge */
	struct pem_told told;
	struct pem_stream *current; /* not in the heap; its head was handed out last */
	struct pem_stream **heap;
	size_t heap_count;
	bool started;
	bool is_followed; /* somebody has the address of the number of known losses */
	struct pem_losses losses;
	/*
	 * Members for the time: nanoseconds at the last whole second passed, and 2^-64 parts of a
	 * nanosecond for each tick.
	 */
	uint64_t second_clock;
	uint64_t second_ns;
	uint64_t ns_per_tick;
	uint64_t ns_fraction;
};

/*
 * As pem_trace__open, for a folder that is open already. directory_fd stays open. directory is the
 * folder's name for errors.
 */
struct pem_trace *pem_trace__open_folder(int directory_fd, const char *directory,
					 struct pem_error *error);
/* Fail because a folder is no trace. Returns -EINVAL. */
int pem_trace__is_none(const char *directory, struct pem_error *error);
/* For ahead.c: as pem_trace__next and pem_trace__torn_packets, of the merge. */
int pem_trace__merge(struct pem_trace *trace, struct pem_record *record, struct pem_error *error);
uint64_t pem_trace__count_torn(const struct pem_trace *trace);

/*
 * As pem_trace__next, for a caller whose struct pem_record is longer or shorter than this
 * version's.
 */
int pem_trace__next_resized(struct pem_trace *trace, struct pem_record *record,
			    struct pem_error *error);

#endif
