/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * context.h - a pass over a trace, or over records as they come: each with what went on around it
 *
 * Overview
 *
 * No producer writes which process, thread or CPU a record is of, which intervals are open around
 * it, or which message it answers. A pass recovers all that, in one reading of the trace, from what
 * specs declare: an event's meaning, group and scope, and the roles of its fields (event.h). It
 * knows no event's name. This prints how long each system call took:
 *
 *	struct pem_pass *pass = pem_pass__new(trace, NULL, &error);
 *	struct pem_record record = {.size = sizeof(record)};
 *	struct pem_around around = {.size = sizeof(around)};
 *
 *	while (pass && pem_pass__next(pass, &record, &around, &error) == 1) {
 *		for (i = 0; i < around.ended_count; i++) {
 *			const struct pem_interval *call = around.ended[i].interval;
 *
 *			if (around.ended[i].outcome == PEM_INTERVAL_ENDED)
 *				printf("%s\t%" PRIu64 " ns\n", pem_interval__title(call),
 *				       around.ended[i].end_ns - call->begin.time_ns);
 *		}
 *	}
 *	pem_pass__free(pass);
 *
 * What is claimed is true, also where records were lost. What a loss makes doubtful is unknown: an
 * interval that was open during a loss in which it could have ended ends as PEM_INTERVAL_LOST, a
 * thread's state becomes PEM_THREAD_UNKNOWN, and so on. The claims rest on one assumption: the
 * program raises its events as their specs say.
 *
 * These laws hold at the end of a pass:
 * - Each interval that began has ended once: begun = ended + with its thread + lost + open.
 * - Spans of one thread do not overlap, and follow each other in the order of time.
 *
 * A pass takes memory for what is open (intervals, messages, blocks), and some 300 bytes for each
 * process and thread that the trace has. What is open is bounded: pem_pass_options.open_max.
 *
 * Errors, and NULL in place of a pass, a record or an interval, are as in trace.h.
 *
 * A pass and its trace are used by one thread at a time. No function here is async-signal-safe.
 * Pointers to processes and threads are valid as long as the pass, all others until the next call
 * of pem_pass__next, unless a comment says otherwise.
 */
#ifndef PEM_CONTEXT_H
#define PEM_CONTEXT_H

#include <pem/trace.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define PEM_TIME_UNKNOWN UINT64_MAX

struct pem_pass;

/* A process, from its start to its end. A number that is used again is another process. */
struct pem_pass_process {
	uint32_t number; /* from 0 on, in the order in which the pass meets them */
	uint32_t pid;
	const struct pem_pass_process *parent; /* NULL: unknown */
	uint64_t start_ns; /* PEM_TIME_UNKNOWN: before the trace, or unknown */
	uint64_t end_ns; /* of its last known thread; PEM_TIME_UNKNOWN: not seen */
	char name[64]; /* the last one so far; "": unknown */
	/*
	 * Its program's arguments, the program first, with a space between each: the first 255
	 * bytes. Of a process that has not called exec: those of its parent. "": unknown. Valid
	 * until the next call of pem_pass__next.
	 */
	const char *arguments;
	const struct pem_pass_thread
		*starter; /* The parent's thread that started it; NULL: unknown */
};

enum pem_thread_state {
	PEM_THREAD_UNKNOWN = 0,
	PEM_THREAD_RUNNING, /* it has a CPU */
	PEM_THREAD_RUNNABLE, /* it waits for a CPU */
	PEM_THREAD_BLOCKED, /* it sleeps until something wakes it */
	PEM_THREAD_ENDED,
	PEM_THREAD_STATES
};

struct pem_pass_thread {
	uint32_t number; /* as pem_pass_process.number */
	uint32_t tid;
	const struct pem_pass_process *process; /* NULL: unknown */
	uint64_t start_ns, end_ns; /* as a process's */
	char name[16]; /* "": unknown */
	enum pem_thread_state state;
	uint64_t since_ns; /* since when it is in that state; PEM_TIME_UNKNOWN */
	uint32_t cpu; /* it runs, or has run last, on this one; PEM_NO_CPU: unknown */
	void *user; /* The caller's. NULL at first. */
};

/* A file that system calls are on. Files of one path are one, also if they differ. */
struct pem_pass_file {
	uint32_t number; /* from 0 on, in the order in which the pass meets them */
	/*
	 * The end of the path behind "..." if it has more than 127 bytes. As it was when the
	 * descriptor was first used. Of what has no path, what it is: "pipe:[77]". A path as a
	 * program gave it is that behind its folder's; "?/": the folder is unknown. ".." stays in
	 * it.
	 */
	char path[128];
	/* st_mode of stat(2) >> 12, such as S_IFIFO >> 12; 0: unknown, as of what was named by a
	 * path */
	uint32_t kind;
};

/* An interval that has begun: its begin's record, and where it is nested. */
struct pem_interval {
	struct pem_record begin; /* a copy: event, data, pid, tid, cpu, time_ns, ... */
	const struct pem_pass_thread *thread; /* that began it; NULL: unknown */
	/* The interval of the same thread around it; NULL: none. Of scope 'thread' only. */
	const struct pem_interval *outer;
	uint64_t number; /* from 1 on, in the order of begins */
	uint32_t group; /* small number of group and scope, see pem_pass__group_name */
	uint32_t depth; /* number of intervals around it */
	uint64_t child_ns; /* time of intervals that ended directly in it */
	uint64_t user[2]; /* The caller's. 0 at first. */
	/*
	 * Of a system call whose first argument is a descriptor: the file. It may become known
	 * shortly after the begin. NULL: unknown, or it is on none. Valid as long as the pass.
	 */
	const struct pem_pass_file *file;
};

enum pem_interval_outcome {
	PEM_INTERVAL_ENDED = 0, /* its end was read */
	PEM_INTERVAL_WITH_THREAD, /* its thread ended before it did */
	PEM_INTERVAL_LOST, /* its end may be among lost records, or it was too old (open_max) */
	PEM_INTERVAL_OPEN, /* it is open at the end of the trace */
	PEM_INTERVAL_OUTCOMES
};

struct pem_ended {
	const struct pem_interval *interval;
	enum pem_interval_outcome outcome;
	/* When it ended. LOST: until when it was surely open. OPEN: the last record's time. */
	uint64_t end_ns;
};

/* What ended a span of state BLOCKED. */
enum pem_woken_by {
	PEM_WOKEN_UNKNOWN = 0, /* no record of meaning 'thread-waking' tells */
	PEM_WOKEN_THREAD, /* another thread, or its end */
	PEM_WOKEN_INTERRUPT, /* of a timer, a disk, a network, ... */
	/* An interrupt, or a page fault that let go of memory the thread waited for. */
	PEM_WOKEN_INTERRUPT_OR_FAULT,
	PEM_WOKEN_OUTSIDE /* a thread of a process that the recording does not observe */
};

/*
 * A part of a critical path: what it had to wait for at a time. Parts follow each other without a
 * gap, so their times add up to the path's.
 */
struct pem_path_part {
	/* The part that ended as this one began. NULL: the path begins here. */
	const struct pem_path_part *before;
	const struct pem_pass_thread *thread;
	/*
	 * What the thread did. RUNNING; RUNNABLE: it waited for a CPU; BLOCKED: it waited for what
	 * no thread of the trace brought about; UNKNOWN: that was not recorded.
	 */
	enum pem_thread_state state;
	enum pem_woken_by woken_by; /* of state BLOCKED: what ended it */
	uint64_t begin_ns, end_ns;
	uint64_t user; /* The caller's, of state BLOCKED. 0 at first. */
	/* 1, of state UNKNOWN: it stands for parts that were forgotten: more than open_max. */
	int is_forgotten;
};

/* A time during which a thread was in one state. */
struct pem_span {
	const struct pem_pass_thread *thread;
	enum pem_thread_state state;
	uint32_t cpu; /* of state RUNNING, and of what follows it: where it ran; or PEM_NO_CPU */
	uint64_t begin_ns, end_ns;
	/* Innermost interval of the thread at the span's end; NULL: none, or unknown */
	const struct pem_interval *interval;
	/*
	 * The thread of PEM_WOKEN_THREAD; else NULL. Traces whose records of meaning
	 * 'thread-waking' have no field of role 'interrupt' do not tell interrupts in system calls,
	 * or in threads of the kernel, from these.
	 */
	const struct pem_pass_thread *waker;
	enum pem_woken_by woken_by;
	/*
	 * Of state BLOCKED, if pem_pass_options.has_paths: the part that the wait is in the
	 * thread's critical path. NULL: its waker's path took the wait's place.
	 */
	const struct pem_path_part *part;
	/*
	 * Of state BLOCKED, by records of meaning 'thread-state': what the thread waits for, and
	 * the thread that holds that. NULL: unknown.
	 */
	const char *waits_on;
	const struct pem_pass_thread *holder;
};

/* The other end of a message. */
struct pem_partner {
	uint64_t time_ns;
	const struct pem_event *event;
	const struct pem_pass_thread *thread; /* NULL: unknown */
	uint64_t size; /* field of role 'size', or 0 */
};

/* A block of memory. */
struct pem_block {
	uint64_t address, size;
	uint64_t begin_ns; /* when it was allocated */
	uint64_t code; /* field of role 'code' of the allocation: who called; 0: it has none */
	const struct pem_event *event; /* of the allocation */
	const struct pem_pass_thread *thread; /* that allocated it; NULL: unknown */
	uint64_t stack; /* field of role 'stack' of the allocation; 0: it has none */
};

struct pem_around {
	size_t size; /* of this struct */
	const struct pem_pass_process *process; /* NULL: unknown */
	const struct pem_pass_thread *thread; /* NULL: unknown, or no thread (idle) */
	uint32_t cpu; /* PEM_NO_CPU: unknown */
	/* 1: the record ends something whose begin is unknown (interval, block, message). */
	uint32_t is_unmatched;
	/* The innermost open interval of the thread. It contains the record. */
	const struct pem_interval *interval;
	/* The phase that contains the record, see pem_event__is_phase. */
	const struct pem_interval *phase;
	/* The interval that the record begins. NULL: none. */
	const struct pem_interval *begun;
	const struct pem_ended *ended; /* what ended since the record before */
	size_t ended_count;
	const struct pem_span *spans; /* what is known since the record before */
	size_t span_count;
	/*
	 * The record is a message's second end, and this is the first: the send of a receive. If
	 * records of both ends lie in the other order, as after fork, the receive of a send.
	 */
	const struct pem_partner *partner;
	/*
	 * allocation: the block it allocates. release: the block it releases. access: the block
	 * that it touches. NULL: unknown, or the call failed.
	 */
	const struct pem_block *block;
	/* The block that an allocation ends, as realloc does. */
	const struct pem_block *old_block;
};

enum pem_pass_part {
	PEM_PASS_BLOCKS = 1, /* block, old_block, pem_pass__blocks */
	PEM_PASS_MESSAGES = 2, /* partner */
	PEM_PASS_INTERVALS = 4, /* interval, phase, begun, ended; paths need them */
};

struct pem_pass_options {
	size_t size; /* of this struct */
	/* Most intervals, messages and blocks that may be open, of each; 0: 4 million */
	uint64_t open_max;
	/* Bits of enum pem_pass_part: what the caller does not need, and the pass leaves out. */
	uint64_t without;
	/* 1: critical paths, which take some 80 bytes for each of at most open_max parts. */
	uint64_t has_paths;
	/* Of a live pass: a process that is observed from the first record on; 0: none. */
	uint64_t command_pid;
	/* Of a live pass, 1: all processes are observed from the first record on. */
	uint64_t is_whole_machine;
};

/* Counts of what a pass could not tell. All are 0 for a trace of which all is known. */
struct pem_pass_unknown {
	size_t size; /* of this struct */
	uint64_t losses; /* places in streams where records were lost */
	uint64_t intervals; /* intervals that ended as LOST */
	uint64_t ends; /* ends of intervals without a known begin */
	uint64_t receives; /* receives without a known send */
	uint64_t releases; /* releases of blocks that are unknown */
	uint64_t left_out; /* what was forgotten because more than open_max were open */
};

/*
 * Begin a pass at the trace's start (it is rewound). The trace has to live as long as the pass, and
 * nobody else may move it. options may be NULL. NULL with errno and error: ENOMEM; EINVAL, E2BIG:
 * bad options. Does not block.
 */
struct pem_pass *pem_pass__new(struct pem_trace *trace, const struct pem_pass_options *options,
			       struct pem_error *error);

/*
 * A live pass: its records come from the caller, while they happen. An asynchronous callback's
 * (pem_session__register_async_callback) are what it takes: in the order of their time, with their
 * process and thread. model: the session's, which has to live as long as the pass. Events that are
 * added to the session later are not known to the pass.
 *
 * Spans and intervals are told when they end, as in a trace. pem_pass_thread.state and since_ns say
 * what a thread does now. Times are nanoseconds since the first record. Errors as pem_pass__new.
 */
struct pem_pass *pem_pass__new_live(const struct pem_model *model,
				    const struct pem_pass_options *options,
				    struct pem_error *error);

/*
 * Of a live pass: take the next record, a copy of what a callback got, whose time_ns is filled in.
 * around needs its size, and is filled in as by pem_pass__next. Its pointers are valid until the
 * next call with this pass. Returns 0; -EINVAL with error: the record's event is not one of the
 * model, or it is not a live pass; -ENOMEM: the pass can't go on. Does not block.
 */
int pem_pass__take(struct pem_pass *pass, struct pem_record *record, struct pem_around *around,
		   struct pem_error *error);

/*
 * Of a live pass: records were lost (pem_callback_counts.lost has risen) since the call before, or
 * since the begin. From here on the pass claims only what the loss leaves no doubt of. What it told
 * since the call before may be wrong; a caller who needs to know leaves that out. Returns 0;
 * -EINVAL: it is not a live pass; -ENOMEM.
 */
int pem_pass__lose(struct pem_pass *pass);

/*
 * Of a live pass: name a process (tid 0), or a thread, that was there before the first record.
 * Returns 0; -EINVAL: it is not a live pass, pid is 0, or name is NULL; -ENOMEM.
 */
int pem_pass__call(struct pem_pass *pass, uint32_t pid, uint32_t tid, const char *name);

/*
 * Of a live pass: there are no more records. around gets what was still open, as at a trace's end.
 * Returns 0; -EINVAL with error: it is not a live pass, or around's size; -ENOMEM.
 */
int pem_pass__end(struct pem_pass *pass, struct pem_around *around, struct pem_error *error);

/* End a pass. NULL is accepted. The trace stays open. */
void pem_pass__free(struct pem_pass *pass);

/*
 * Read the next record, as pem_trace__next does, and tell what is around it. record and around need
 * their sizes.
 *
 * Returns 1: both are filled in. 0: the trace is at its end. around has then what was still open:
 * ended with outcome OPEN, and the last spans. -EINVAL with error: as pem_trace__next; around has
 * no record, but may have spans. -ENOMEM: the pass can't go on. May block on files.
 */
int pem_pass__next(struct pem_pass *pass, struct pem_record *record, struct pem_around *around,
		   struct pem_error *error);

/* Processes and threads met so far, by their number. NULL: there is none. Does not block. */
size_t pem_pass__process_count(const struct pem_pass *pass);
const struct pem_pass_process *pem_pass__process(const struct pem_pass *pass, size_t number);
size_t pem_pass__thread_count(const struct pem_pass *pass);
const struct pem_pass_thread *pem_pass__thread(const struct pem_pass *pass, size_t number);
/* The same for files that descriptors were. */
size_t pem_pass__file_count(const struct pem_pass *pass);
const struct pem_pass_file *pem_pass__file(const struct pem_pass *pass, size_t number);

/* Change pem_pass_thread.user of a thread of this pass, or of pem_around or pem_span. */
void pem_pass_thread__set_user(const struct pem_pass_thread *thread, void *user);
/* Change pem_path_part.user of a span's part. */
void pem_path_part__set_user(const struct pem_path_part *part, uint64_t value);
/* Change pem_interval.user[i], i 0 or 1, of an open interval or one that just ended. */
void pem_interval__set_user(const struct pem_interval *interval, unsigned i, uint64_t value);

/*
 * The last part of the critical path to a thread's present, as far as spans of it were told: what
 * the thread had to wait for, back to where the path begins. Where another thread woke it, or
 * started it, the path goes on in that one. A wait that no thread of the trace ended, or of which
 * it is unknown, is a part itself. NULL: none, or has_paths is 0. Valid until the next call of
 * pem_pass__next.
 */
const struct pem_path_part *pem_pass__path(const struct pem_pass *pass,
					   const struct pem_pass_thread *thread);

/*
 * The same to the end of the command, or of the first process that was attached to: of its thread
 * that ended last. NULL: there was none, its threads were not recorded, or it had not ended at the
 * trace's end, as in a snapshot. Complete at the trace's end.
 */
const struct pem_path_part *pem_pass__command_path(const struct pem_pass *pass);

/*
 * Groups that the trace's model has: events of one group and scope that begin and end intervals
 * have one number. Numbers go from 0 to count - 1. The name is the group's text.
 */
size_t pem_pass__group_count(const struct pem_pass *pass);
const char *pem_pass__group_name(const struct pem_pass *pass, size_t group);

/*
 * What an interval is called: the text of its begin's field of role 'name', or the name of the
 * system call in its field of role 'system-call'.
 * If that is missing or empty, it is the last word of the group: 'Work' of 'APP::Shop::Work'. Valid
 * until the next call of this function with this pass's intervals by the same thread.
 */
const char *pem_interval__title(const struct pem_interval *interval);

/*
 * Is the event one of phases? Phases are the intervals that programs declare by themselves, of
 * layers APP and CPO and level 'info' or above. A record's phase is the innermost open one of its
 * thread; if there is none, the last one that began in its process; then in its parent process, and
 * so on; then one that a process began which has since ended, as `pem mark` does.
 */
int pem_event__is_phase(const struct pem_event *event);

/*
 * Call visit with each block that is allocated and not released, in no order. Stops if visit
 * returns not 0, and returns that; else 0. Blocks of which a release may be lost are left out.
 */
int pem_pass__blocks(const struct pem_pass *pass,
		     int (*visit)(void *arg, const struct pem_pass_process *process,
				  const struct pem_block *block),
		     void *arg);

/* Count what is unknown so far. unknown needs its size. */
void pem_pass__unknown(const struct pem_pass *pass, struct pem_pass_unknown *unknown);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
