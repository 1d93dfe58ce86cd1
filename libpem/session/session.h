/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * session.h - the handles of a session, its command, and its turns
 */
#ifndef PEM_SESSION_H
#define PEM_SESSION_H

#include <pem/pem.h>
#include <pem/model.h>

#include <limits.h>
#include <stdbool.h>

struct pem_demand;
struct pem_log;
struct pem_model;
struct pem_session;
struct pem_spec_location;

struct pem_session_turn {
	uint64_t next_drain_ns;
};

/* --- session.c --- */

/* Make an empty session, for pem_session__open and pem_trace__recover. NULL with errno. */
struct pem_session *pem_session__new_empty(void);

/* Fill a session's model from a trace's. */
int pem_session__load_trace_model(struct pem_session *session, const struct pem_model *model,
				  struct pem_error *error);

/* --- specs.c --- */

/* Where specs and programs describe the events that a session was given. */
struct pem_session_specs {
	struct pem_spec_location *locations;
	size_t location_count, location_capacity;
};

void pem_session__forget_specs(struct pem_session *session);

/* --- codegen.c --- */

/*
 * Convert a spec by pem-codegen. *models: what it printed, of *bytes; *errors: its messages. Both
 * are for free(). Returns 0, also if the spec is wrong; or -errno with error.
 */
int pem_codegen__models(const char *file, char **models, size_t *bytes, char **errors,
			struct pem_error *error);

/* The bytes of an open file, with a NUL after them, for free(). NULL with errno. */
char *pem_codegen__read_file(int fd, size_t *bytes);

/* --- run.c --- */

/*
 * Did a session of this process start the process pid? Then that process needs no message that
 * names libpem, whether it uses libpem already or not.
 */
bool pem_session__has_started(uint32_t pid);

/* --- log.c --- */

/* Begin the trace's time now. */
void pem_log__start_clock(struct pem_log *log);
/* Is an event recorded beside those of the kernel that the log takes? The session is locked. */
bool pem_log__goes_along(const struct pem_log *log, const struct pem_event *event);
/*
 * Demand what is logged beside the events that were asked for: what tells threads and processes,
 * and how often stacks are looked for. The session is locked.
 */
void pem_log__add_context(struct pem_log *log);
/* The same, of a session whose log waits for a source to start; else nothing. */
void pem_session__begin_log(struct pem_session *session);

/*
 * A handle comes to the event of a first demand: bind the session's log to the event, too, if the
 * log takes it by its level. Returns 0, or -errno with error.
 */
int pem_session__take_by_level(struct pem_session *session, struct pem_demand *first,
			       struct pem_error *error);

/* --- statistics.c --- */

/* The session ends: say how many events statistics lacked, if more than was said before. */
void pem_session__say_all_lost(struct pem_session *session);

#endif
