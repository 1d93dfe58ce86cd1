/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * log.h - the log of a session: its trace, the trace's model, and what is recorded
 *
 * Not here: enabling and finishing it (session/log.c), the files (trace_writer.h).
 */
#ifndef PEM_WRITER_LOG_H
#define PEM_WRITER_LOG_H

#include <pem/model.h>
#include <pem/pem.h>
#include <pem/trace.h>

#include <stdbool.h>

struct pem_demand;
struct pem_model;
struct pem_session;
struct pem_trace_writer;

struct pem_log_span {
	uint64_t from, to; /* clock values */
};

struct pem_log {
	struct pem_session *session;
	struct pem_trace_writer *writer;
	/* The trace's model: the session's model without what the trace can't hold. */
	struct pem_model *model;
	/* The number of the session's events that were considered for the trace's model. */
	size_t model_seen;
	struct pem_trace_info info;
	/* The machine's CPU time since boot at the time when the log began; 0: not known. */
	uint64_t machine_cpu_ns;
	/* The trace's time begins when a source starts. */
	bool awaits_source;
	bool enabled, finished;
	/* The names of the processes that ran before are in the trace. */
	bool named;
	/* Times in which the log was enabled. The last one may not have ended. */
	struct pem_log_span *spans;
	size_t span_count;
	/* Everything is accounted for. Nothing more goes into the trace. */
	bool closed;
	int result; /* result of finishing it */
	/*
	 * enum pem_level: the log also takes events up to this level that the session does not know
	 * yet; 0: it takes none.
	 */
	uint8_t any_level;
	/*
	 * Counts of user records. produced and overwritten are of producers that are accounted for.
	 */
	uint64_t delivered, produced, overwritten;
	uint64_t readings; /* of produced: readings of counters at events */
	/* The demand that counts how often allocations' stacks are looked for; NULL: none does. */
	struct pem_demand *walks;
	uint64_t of_libc; /* of produced: events of the functions in front of the C library's */
	/* Where it takes events. */
	struct pem_context context;
	/*
	 * The demands that it is bound to: of the events of its set, and of those that it takes by
	 * level and that other handles want.
	 */
	size_t count;
	struct pem_demand **demands;
};

/* --- log_model.c --- */

/* The session's model has grown: take the new events into the trace's model. */
void pem_log__model_grew(struct pem_log *log);

/*
 * Make sure that the trace's model has an event of the session's model, because the trace mentions
 * the event. A program's own spec may give an event a lower level than the level known here. The
 * program then logs the event though nobody here asked for it.
 */
void pem_log__describe(struct pem_log *log, const struct pem_event *event);

/*
 * Does the log take the event's records, because it was asked for the event or for all events up to
 * its level? first: the event's first demand.
 */
bool pem_log__takes(const struct pem_log *log, struct pem_demand *first);
/*
 * May a record with this clock value be for the log? demand: the event's first, or NULL. An event
 * that asynchronous callbacks ever wanted has records in pools that are not for the log. Of such an
 * event, the log takes only what was raised while it was enabled.
 */
bool pem_log__wants(const struct pem_log *log, struct pem_demand *demand, uint64_t clock);

/* Is there a trace that records go to? */
bool pem_session__is_logging(const struct pem_session *session);

/* --- names.c --- */

/* Write the names of all processes to the trace, once. log may be NULL. */
void pem_log__name_processes(struct pem_log *log);

/* Add the name of a process that was found later; log may be NULL. */
void pem_log__name_process(struct pem_log *log, uint32_t pid);

#endif
