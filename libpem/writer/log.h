/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * log.h - the log of a session: its trace, the trace's model, and what is recorded
 *
 * Not here: enabling and finishing it (session/log.c), the files (trace_writer.h).
 */
#ifndef PEM_WRITER_LOG_H
#define PEM_WRITER_LOG_H

#include <pem/model.h>
#include <pem/trace.h>

#include <stdbool.h>

struct pem_demand;
struct pem_model;
struct pem_session;
struct pem_trace_writer;

struct pem_log_span {
	uint64_t from, to; /* clocks */
};

struct pem_log {
	struct pem_session *session;
	struct pem_trace_writer *writer;
	/* of the trace: the session's, without what the trace can't hold */
	struct pem_model *model;
	size_t model_seen; /* of the session's events: those that were looked at for it */
	struct pem_trace_info info;
	uint64_t machine_cpu_ns; /* when its time began, since boot; 0: not known */
	bool enabled, finished;
	bool named; /* the trace knows who ran before */
	struct pem_log_span *spans; /* when it was enabled; the last one may go on */
	size_t span_count;
	bool closed; /* accounted for: nothing more goes into the trace */
	int result; /* of finishing */
	/* up to which also what processes raise that the session has not met; 0: nothing */
	uint8_t any_level;
	/* user records, of producers accounted for but for delivered */
	uint64_t delivered, produced, overwritten;
	size_t count;
	struct pem_demand *demands[];
};

/* --- log_model.c --- */

/* The session's model has grown: take the new events into the trace's. */
void pem_log__model_grew(struct pem_log *log);

/*
 * The trace speaks of an event of the session's: its model has to have it. A program's own spec may
 * give an event a lower level than the one known here, so that it is logged though nobody here
 * asked for it.
 */
void pem_log__describe(struct pem_log *log, const struct pem_event *event);

/*
 * Is a record the log's? Of what asynchronous callbacks want too, only what was raised while it was
 * enabled.
 */
bool pem_log__wants(const struct pem_log *log, const struct pem_demand *demand, uint64_t clock);

/* Is there a trace that records go to? */
bool pem_session__is_logging(const struct pem_session *session);

/* --- names.c --- */

/* What /proc calls a process, '?' if nothing: then false. */
bool pem_process_name(uint32_t pid, char name[PEM_NAME_BYTES]);

/* Let the trace know what all processes are called; once. */
void pem_log__name_processes(struct pem_log *log);

/* And one that was found since; log may be NULL. */
void pem_log__name_process(struct pem_log *log, uint32_t pid);

#endif
