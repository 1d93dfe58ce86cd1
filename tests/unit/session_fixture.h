/* SPDX-License-Identifier: MIT */
/*
 * session_fixture.h - a session with a log in a folder of the test's own
 *
 * Included by the programs session_*.c and producer_*.c.
 */
#ifndef SESSION_FIXTURE_H
#define SESSION_FIXTURE_H

#include "core/core.h"
#include "core/demand.h"
#include "writer/log.h"
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64], trace_path[96];

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* Setup and teardown of each test: a runtime folder, and a directory for a trace. */
static inline int folder_make(void **state)
{
	(void)state;
	/* In memory, as recorders' own are: a disk's file system spends more on a file than pem. */
	snprintf(folder, sizeof(folder), "%s/pem-session-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(folder))
		return -1;
	snprintf(trace_path, sizeof(trace_path), "%s/trace", folder);
	return setenv("PEM_RUNTIME_DIR", folder, 1);
}

static inline int folder_remove(void **state)
{
	(void)state;
	return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static inline struct pem_session *session_open(const struct pem_session_options *options)
{
	struct pem_error error = {""};
	struct pem_session *session = pem_session__open(options, &error);

	if (!session)
		fail_msg("%s", error.text);
	return session;
}

static inline struct pem_event_set *events(struct pem_session *session, const char *pattern)
{
	struct pem_error error = {""};
	struct pem_event_set *set = pem_event_set__new(session, &pattern, 1, &error);

	if (!set)
		fail_msg("%s", error.text);
	return set;
}

static inline struct pem_log *log_to_trace(struct pem_session *session, const char *pattern,
					   const struct pem_context *context)
{
	struct pem_event_set *set = events(session, pattern);
	struct pem_error error = {""};
	struct pem_log *log = pem_session__register_log(session, set, context, trace_path, &error);

	if (!log)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_log__enable(log), 0);
	return log;
}

/*
 * Read all of the trace; every record must be sound and in order. Returns how many; records of
 * event in *of_event.
 */
static inline uint64_t read_trace(const char *event, uint64_t *of_event,
				  struct pem_balance *balance)
{
	struct pem_error error = {""};
	struct pem_trace *trace = pem_trace__open(trace_path, &error);
	uint64_t count = 0, last = 0;
	struct pem_record record = {.size = sizeof(record)};
	int result;

	if (!trace)
		fail_msg("%s", error.text);
	*of_event = 0;
	while ((result = pem_trace__next(trace, &record, &error)) == 1) {
		assert_true(record.clock >= last);
		last = record.clock;
		*of_event += !strcmp(record.event->name, event);
		count++;
	}
	if (result)
		fail_msg("%s", error.text);
	assert_int_equal(pem_trace__torn_packets(trace), 0);
	*balance = pem_trace__total_balance(trace);
	pem_trace__close(trace);
	return count;
}

#endif
