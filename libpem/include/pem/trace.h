/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * trace.h - reading a trace: every record of every layer in one order, with its context recovered
 *
 * Overview
 *
 * A trace is a directory. It holds CTF 1.8 (metadata and stream files), and .pem/ with what CTF has
 * no room for: 'model' (the events, as text: event.h), 'run' (struct pem_trace_info), 'balance'
 * (struct pem_balance of each producer and event), 'names' of processes, and names of code and
 * variables in 'code' and 'data' (code.h). A trace that is open has one position. This prints when
 * each event happened:
 *
 *	struct pem_record record = {.size = sizeof(record)};
 *	struct pem_trace *trace = pem_trace__open(directory, &error);
 *
 *	while (trace && pem_trace__next(trace, &record, &error) == 1)
 *		printf("%llu ns: %s\n", (unsigned long long)record.time_ns, record.event->name);
 *	pem_trace__close(trace);
 *
 * Errors are as in pem.h: -errno, or NULL with errno, and a sentence in error, which may be NULL.
 * So is a NULL that a function's comment does not accept: it is EINVAL. A function that can't fail
 * then does nothing, and returns 0, "" or NULL. The same holds for a record that was never read.
 *
 * A trace and its records are used by one thread at a time. No function here is async-signal-safe,
 * unless its comment says so. A pointer that a function returns is valid as long as the trace is
 * open, unless its comment says otherwise.
 */
#ifndef PEM_TRACE_H
#define PEM_TRACE_H

#include <pem/abi.h>
#include <pem/model.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct pem_trace;

/*
 * The event that has a list of counters' values. pem_trace_info.counters has the counters' names.
 */
#define PEM_COUNTERS_EVENT "HW::HWPerf::HPMsAtEvent"
/* As PEM_COUNTERS_EVENT, of the thread that raises an event. */
#define PEM_THREAD_COUNTERS_EVENT "HW::HWPerf::HPMsInThread"
/* Counted each time that an allocation's stack is looked for. Its first field: the calls found. */
#define PEM_STACK_WALK_EVENT "APP::Stack::Walk"
/* The last of a sample's callers, if there are others further out that are not known. */
#define PEM_CALLERS_CUT 0u

struct pem_record {
	size_t size; /* of this struct */
	uint64_t clock; /* cycle counter */
	uint64_t time_ns; /* since the trace's start */
	const struct pem_event *event;
	const uint8_t *data; /* header and fields; valid until the next pem_trace__next */
	uint32_t bytes;
	uint32_t pid; /* 0: unknown */
	uint32_t tid; /* 0: unknown */
	uint32_t cpu; /* PEM_NO_CPU: unknown */
	uint32_t stream; /* number of the stream file */
	uint32_t source; /* PEM_PACKET_USER, PEM_PACKET_KERNEL or PEM_PACKET_COUNTER */
};

/* Conservation: produced == delivered + discarded + overwritten. */
struct pem_balance {
	uint64_t produced;
	uint64_t delivered;
	uint64_t discarded;
	uint64_t overwritten;
};

struct pem_trace_producer {
	uint32_t pid; /* 0: the kernel or the recorder */
	char name[PEM_NAME_BYTES];
	struct pem_balance balance;
	uint64_t start_clock; /* when it began to record, and got this name; 0: unknown */
};

/* What one kind of observation cost, by calibration on the recording machine. */
struct pem_trace_cost {
	char kind[24]; /* "user-log", "kernel-log", ... */
	double ns_each;
	uint64_t count;
};

/*
 * Bounds between which ns_each of a struct pem_trace_cost lies: with warm caches, and with cold
 * ones. Both 0: unknown, in a trace of an older recorder.
 */
struct pem_trace_cost_range {
	double least_ns, most_ns;
};

/*
 * Processes and threads of inner pid namespaces have their numbers outside. If such a number could
 * not be found, because the process was gone, they have numbers from this one on, which no process
 * has.
 */
#define PEM_PID_UNKNOWN 0x40000000u

/* A gap: a source, or some of its events, could not be recorded as wanted. */
struct pem_trace_gap {
	char source[24];
	char reason[232];
};

/* An event whose detail level was reduced for a time, to keep an overhead budget. */
struct pem_trace_reduced {
	char event[128];
	uint32_t detail; /* at the end: 0 off, 1 statistics, 2 log */
	/* events that were counted and not logged; events while it was off are unknown */
	uint64_t counted;
};

/* An event was recorded only where its fields passed this predicate (pem_event_set__where). */
struct pem_trace_predicate {
	char event[128];
	char text[384]; /* as written; a text that was cut ends in "..." */
};

/*
 * A counter that counted only for a part of the time, since the hardware was shared: the values of
 * its records are estimates. Members as in struct pem_statistic.
 */
struct pem_trace_estimate {
	char event[128];
	uint64_t enabled_ns, running_ns;
	double error; /* of the last value; NAN: unknown */
	uint32_t together;
	uint32_t reserved; /* 0 */
};

struct pem_trace_info {
	char command[512]; /* "" when no command was run */
	char host[65];
	char version[32]; /* version of pem that recorded */
	uint64_t start_time_ns; /* CLOCK_REALTIME at the trace's start */
	uint64_t start_clock;
	uint64_t duration_ns;
	uint64_t clock_hz;
	uint64_t clock_error_ns; /* bound on the error between any two sources */
	uint64_t recorder_cpu_ns;
	uint64_t program_cpu_ns; /* user and system time of the recorded command, 0 if unknown */
	int32_t exit_status; /* of the command: exit status, 128 + signal, or -1: none or unknown */
	uint32_t complete; /* the recorder finished: balance is final */
	uint32_t cost_count;
	struct pem_trace_cost costs[16];
	uint32_t gap_count;
	struct pem_trace_gap gaps[16];
	uint32_t command_pid; /* 0: no command was run */
	char command_name[64]; /* the command's first name */
	/*
	 * Names, separated by spaces, of events that were logged only because they set the thread
	 * of the kernel's records.
	 */
	char context_events[256];
	/*
	 * Why a flight recorder wrote this snapshot ("asked for", "trigger ..."). "": this is the
	 * end of a recording.
	 */
	char snapshot[160];
	/*
	 * How long a flight recorder that has overwritten records had recorded. start_* and
	 * duration_ns then describe the records that are left. 0: no record was overwritten.
	 */
	uint64_t ran_ns;
	uint32_t reduced_count;
	struct pem_trace_reduced reduced[64];
	uint32_t predicate_count;
	uint32_t predicates_more; /* events with a predicate for which there was no room here */
	struct pem_trace_predicate predicates[64];
	/*
	 * CPU time of all processes, if the whole machine was observed; else 0. The cost of
	 * observing is a share of this time.
	 */
	uint64_t machine_cpu_ns;
	/*
	 * Names, separated by commas, of the counters whose values HW::HWPerf::HPMsAtEvent has, in
	 * their order; "": none.
	 */
	char counters[512];
	/* The boot of the machine that was recorded, as the kernel calls it. "": unknown. */
	char boot_id[40];
	uint32_t estimate_count;
	struct pem_trace_estimate estimates[64];
	/*
	 * With a coarse clock (pem_session_options.coarse_clock): the time in which it was behind
	 * by more than 10 us, at least 1; 0: events of programs read the cycle counter.
	 */
	uint64_t coarse_late_ns;
	/*
	 * System calls that pem itself made in observed programs. They are no events. 0: none, or
	 * no system calls were recorded, or by a source that does not tell them apart.
	 */
	uint64_t internal_calls;
	struct pem_trace_cost_range cost_ranges[16]; /* of costs, in their order */
};

/* --- a trace --- */

/*
 * Open a trace for reading. The caller closes it. NULL with errno and error. ENOENT: there is none;
 * EINVAL: it is no trace, or a damaged one, and error says where. Blocks on files. A torn last
 * packet of a stream, as a killed recorder leaves it, is left out and counted
 * (pem_trace__torn_packets).
 */
struct pem_trace *pem_trace__open(const char *directory, struct pem_error *error);

/* Close a trace. NULL is accepted. Records, and everything else that came from it, are freed. */
void pem_trace__close(struct pem_trace *trace);

/*
 * Finish a trace whose recorder was killed (info->complete is 0). Records that programs had logged,
 * and that still lie in shared memory, are added and accounted for. The trace must not be open for
 * reading. Of an event that asynchronous callbacks took records of with a predicate or context of
 * their own, records that they alone had taken by then count as discarded.
 *
 * 0, or -errno with error. -EBUSY: it is being recorded or recovered; -EALREADY: it is complete;
 * -EPERM: its folder, or .pem in it, is not the caller's own; -EINVAL: it is no trace. If it fails,
 * or if its process is killed, the trace's streams and shared memory are unchanged, and it can be
 * called again. Files in the folder that are not pem's stay. Thread-safe. Blocks on files.
 */
int pem_trace__recover(const char *directory, struct pem_error *error);

/*
 * Copy a trace to the folder 'to', which must not exist, for readers of CTF that do not know pem:
 * streams that were compressed (pem_session_options.compress) are as they were before. Returns 0,
 * or -errno with error, and nothing is left of the copy: -EEXIST; -EINVAL, -ENOENT: no trace;
 * -EBADMSG: a stream is damaged; -ENOPKG: libzstd is missing. Thread-safe. Blocks on files.
 */
int pem_trace__unpack(const char *directory, const char *to, struct pem_error *error);

/* The events that the trace describes. Does not block. */
const struct pem_model *pem_trace__model(const struct pem_trace *trace);

/* What the recorder said about the recording. Does not block. */
const struct pem_trace_info *pem_trace__info(const struct pem_trace *trace);

/*
 * Read a file of names that the trace keeps (pem/code.h), "code" or "data". The caller frees *text.
 * Returns 0; -ENOENT: it keeps none; -EINVAL: it is not a text, or name is another one; -ENOMEM,
 * and what open(2) returns. Blocks on files.
 */
int pem_trace__read_kept(const struct pem_trace *trace, const char *name, char **text);
/*
 * Write such a file in place of the one that is there. Returns 0; -EPERM: the trace is another
 * user's; or another -errno. Blocks on files.
 */
int pem_trace__write_kept(const struct pem_trace *trace, const char *name, const char *text,
			  size_t bytes);

/*
 * The folder of debug files (pem_object_query.debug_folders) in which the recorder kept copies of
 * files that may be gone. It is valid while the trace is open. Returns 0; -ENOENT: it kept none.
 */
int pem_trace__files_kept(const struct pem_trace *trace, char *folder, size_t bytes);
/* Remove that folder, once names are kept. Returns 0, also if there is none, or -errno. */
int pem_trace__drop_kept(const struct pem_trace *trace);

/* How many packets were left out because they are torn. Does not block. */
uint64_t pem_trace__torn_packets(const struct pem_trace *trace);

/* --- its records --- */

/*
 * Read the next record in the order of time. Records of one time come in the order of their
 * streams. record needs its size. Its event lives as long as the trace, its data until the next
 * call.
 *
 * Returns 1: record is filled in. 0: there are no more records. -EINVAL with error: a packet is
 * damaged, and the next call goes on behind it; or record has no size. -ENOMEM. May block on files.
 *
 * time_ns is 0 for a record from before the trace's start. The process and thread of a kernel's
 * record come from events that set them on its CPU. After a loss on a CPU they are unknown (0)
 * until the next such event.
 */
int pem_trace__next(struct pem_trace *trace, struct pem_record *record, struct pem_error *error);

/*
 * Go back to before the first record. Returns 0; -ENOMEM. Does not block, unless the trace is read
 * ahead: then it waits until the thread is done with its file.
 */
int pem_trace__rewind(struct pem_trace *trace);

/*
 * Read ahead: from now on a thread of the trace's own reads and merges the streams, while the
 * caller handles records. What the caller sees stays the same, and so does the rule that a trace is
 * used by one thread at a time. Damage and the end come where they are. It is worth its memory (2
 * MB) where handling a record takes as long as reading it, as with pem_pass__next. Call it before
 * the first record is read, and before pem_pass__new. The thread has all signals blocked. It ends
 * with pem_trace__close; after fork, a child may only close the trace's descriptors by exec.
 *
 * Returns 1: the trace is read ahead. 0: it is not, because the caller may use one CPU only.
 * -EBUSY: reading has begun. -ENOMEM. Does not block.
 */
int pem_trace__read_ahead(struct pem_trace *trace);

/*
 * Name of a process as last seen up to the current position, or "". Lives until the next
 * pem_trace__next(). Does not block.
 */
const char *pem_trace__process_name(const struct pem_trace *trace, uint32_t pid);

/*
 * As pem_trace__process_name(), for a thread: the name that prctl's PR_SET_NAME sets, and debuggers
 * show.
 */
const char *pem_trace__thread_name(const struct pem_trace *trace, uint32_t tid);

/*
 * A time in which a stream may have lost records: behind one of its records, and before another.
 */
struct pem_trace_loss {
	size_t size; /* of this struct */
	uint64_t begin_ns; /* of the stream's record before; 0: there is none */
	uint64_t end_ns; /* of the stream's record behind; UINT64_MAX: there is none */
	uint32_t pid; /* whose records; 0: unknown, or the kernel's */
	uint32_t tid; /* 0: unknown, or the kernel's */
	uint32_t cpu; /* of the kernel's; PEM_NO_CPU: unknown */
	uint32_t source; /* PEM_PACKET_USER, PEM_PACKET_KERNEL or PEM_PACKET_COUNTER */
};

/*
 * How many losses are known up to the current position. A loss is known as soon as the record
 * before it was read, and all are at the trace's end. A recorder counts losses for each packet, so
 * that a time may be longer than what was lost. Does not block.
 */
size_t pem_trace__loss_count(const struct pem_trace *trace);

/*
 * Fill in loss i, from 0 on, in the order in which they became known. loss needs its size. Returns
 * 0; -ENOENT: there is none; -EINVAL: loss has no size. Does not block.
 */
int pem_trace__loss(const struct pem_trace *trace, size_t i, struct pem_trace_loss *loss);

/* --- what was counted --- */

/* How many producers the recorder accounted for. Does not block. */
size_t pem_trace__producer_count(const struct pem_trace *trace);

/* Producer i, or NULL. Does not block. */
const struct pem_trace_producer *pem_trace__producer(const struct pem_trace *trace, size_t i);

/*
 * Balance of one event over all producers, as recorded; zeroes for an event that was never raised.
 */
struct pem_balance pem_trace__event_balance(const struct pem_trace *trace,
					    const struct pem_event *event);

/*
 * Sum over all events. delivered counts the records that the recorder wrote; compare it with the
 * records that are read.
 */
struct pem_balance pem_trace__total_balance(const struct pem_trace *trace);

/* --- a record's fields --- */

/*
 * All of these take the index of a field in record->event->fields (pem_event__field). The record
 * was checked before it was delivered. They are thread-safe and async-signal-safe, and do not
 * block.
 */

/* A number, converted to the type asked for. 0 for strings and lists. */
uint64_t pem_record__u64(const struct pem_record *record, unsigned field);
int64_t pem_record__i64(const struct pem_record *record, unsigned field);
double pem_record__f64(const struct pem_record *record, unsigned field);

/*
 * Does a record of meaning 'sets-thread' only name the thread that its CPU runs? Its state is
 * PEM_NO_SWITCH. Such a record is not an occurrence of its event: counts leave it out.
 */
int pem_record__is_marker(const struct pem_record *record);

/* A string with its NUL, or "" if the field is no string. Lives as long as record->data. */
const char *pem_record__string(const struct pem_record *record, unsigned field);

/*
 * Write a value in the words of its labels: an enum's name, or the names of a flags field's bits,
 * joined by '|', with 0x... for bits without a name. The text is cut to bytes, with a NUL. Returns
 * the whole text's length. 0, and "": there is no word for the value.
 */
size_t pem_record__words(const struct pem_record *record, unsigned field, char *text, size_t bytes);

/* Return the number of elements of a list or array. *elements is the first, aligned to its size. */
uint32_t pem_record__list(const struct pem_record *record, unsigned field, const void **elements);

/*
 * Return a key that records which belong together have in common (enum pem_meaning in event.h). It
 * is a 64-bit FNV-1a hash of the meaning's group, the thread, process or CPU of its scope, the
 * fields of role 'key', and the address of an allocation or release. 0: the event's meaning matches
 * nothing. The caller compares names, because an end need not repeat its begin's name. address:
 * PEM_ROLE_OLD_ADDRESS for a realloc's old block, else PEM_ROLE_ADDRESS.
 */
uint64_t pem_record__key(const struct pem_record *record, enum pem_role address);

/* --- text --- */

/*
 * Make a text fit to be shown, in place. '?' replaces each byte of a control character (C0, DEL,
 * C1), of a character that ends a line or turns the direction of text (U+2028 to U+202E, U+2066 to
 * U+2069), and each byte that is no UTF-8. libpem has done this with its errors and log sentences,
 * and with the names of processes and threads that it returns. Fields of records are as programs
 * wrote them. Returns text. Thread-safe, async-signal-safe, does not block.
 */
char *pem_printable(char *text);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
