/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* log.c - the log handle: it chooses the events that go to the trace, and finishes the trace */
#include "chunks/chunks.h"
#include "core/binding.h"
#include "core/clock_sync.h"
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "delivery/delivery.h"
#include "dirs/dirs.h"
#include "dirs/limits.h"
#include "flight/flight.h"
#include "processes/processes.h"
#include "session/session.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "model_internal.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SETTLE_NS 5000000000u /* a keeper's time for its last reports, on a busy machine */

void pem_log__start_clock(struct pem_log *log)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	log->machine_cpu_ns = pem_machine_cpu_ns();
	log->info.start_clock = pem_clock();
	log->info.start_time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pem_session__begin_log(struct pem_session *s)
{
	if (!s->log || !s->log->awaits_source)
		return;
	s->log->awaits_source = false;
	pem_log__start_clock(s->log);
}

static void start_info(struct pem_session *s, struct pem_log *log)
{
	struct pem_trace_info *info = &log->info;

	pem_log__start_clock(log);
	pem_coarse_clock__begin(&s->coarse);
	info->clock_hz = pem_clock__hz();
	info->clock_error_ns = pem_session__clock_error_ns(s);
	info->exit_status = -1;
	if (s->sources->counter_names)
		pem_copy_text(info->counters, sizeof(info->counters), s->sources->counter_names);
	snprintf(info->version, sizeof(info->version), "%s", pem_version());
	if (gethostname(info->host, sizeof(info->host) - 1))
		snprintf(info->host, sizeof(info->host), "unknown");
	pem_boot_id(info->boot_id);
}

static bool may_be_logged(const struct pem_log *log, const struct pem_event *event)
{
	size_t i;

	if (pem_log__goes_along(log, event))
		return true;
	for (i = 0; i < log->count; i++) {
		if (log->demands[i]->event == event)
			return true;
	}
	return false;
}

/* The rest of a text behind a word; NULL: it does not begin with it. */
static const char *behind(const char *text, const char *word)
{
	size_t length = strlen(word);

	return strncmp(text, word, length) ? NULL : text + length;
}

/*
 * Do two ad-hoc probes stand at the entry and the return of one function? Then they enclose what
 * happens in it.
 */
static bool encloses(const struct pem_event *entry, const struct pem_event *end)
{
	static const char *const words[][2] = {
		{"uprobe:", "uretprobe:"}, {"fentry:", "fexit:"}, {"kprobe:", "kretprobe:"}};
	const char *function, *same;
	size_t i;

	if (entry->source_kind != PEM_SOURCE_PROBE || end->source_kind != PEM_SOURCE_PROBE)
		return false;
	for (i = 0; i < PEM_ARRAY_SIZE(words); i++) {
		function = behind(entry->source_name, words[i][0]);
		same = behind(end->source_name, words[i][1]);
		if (function && same)
			return !strcmp(function, same);
	}
	return false;
}

/*
 * Share an event with the trace. Of a function whose entry and return are both recorded they become
 * an interval there, called as the entry is; of one that is recorded alone nothing would end.
 */
static void share(struct pem_log *log, const struct pem_event *event)
{
	const struct pem_event *other;
	struct pem_event copy = *event;
	size_t i;

	for (i = 0; i < log->count && copy.meaning == PEM_MEANS_NOTHING; i++) {
		other = log->demands[i]->event;
		copy.scope = PEM_SCOPE_THREAD;
		if (encloses(event, other)) {
			copy.meaning = PEM_MEANS_INTERVAL_BEGIN;
			copy.group = event->name;
		} else if (encloses(other, event)) {
			copy.meaning = PEM_MEANS_INTERVAL_END;
			copy.group = other->name;
		}
	}
	if (copy.meaning == event->meaning || !pem_model__add_copy(log->model, &copy, NULL, NULL))
		pem_model__share(log->model, event);
}

/*
 * Make the model of the trace. It has the events that the log asks for, and later those that
 * programs and specs bring. It does not have the whole catalogue.
 */
static int make_model(struct pem_log *log)
{
	const struct pem_model *all = log->session->model;
	const struct pem_event *event;

	log->model = pem_model__new();
	if (!log->model)
		return -ENOMEM;
	for (; log->model_seen < pem_model__count(all); log->model_seen++) {
		event = pem_model__event(all, log->model_seen);
		if (may_be_logged(log, event))
			share(log, event);
	}
	pem_model__share_metrics(log->model, all);
	return 0;
}

static void count_overwritten(void *arg, const struct pem_event *event)
{
	struct pem_demand *demand = pem_session__demand(arg, event);

	if (!demand)
		return;
	demand->delivered--;
	demand->overwritten++;
}

/* Let a flight recorder keep its records in memory: as many bytes as a pool has. */
static int keep_in_flight(struct pem_session *s, struct pem_log *log)
{
	uint64_t chunk = s->geometry.chunk_bytes,
		 bytes = chunk * pem_pool_geometry__first_chunks(&s->geometry);
	int result;

	s->flight->store = pem_flight__new(s->model, bytes < 4 * chunk ? 4 * chunk : bytes,
					   count_overwritten, s);
	if (!s->flight->store)
		return -ENOMEM;
	pem_trace_writer__keep_in(log->writer, pem_flight__store(s->flight->store));
	result = pem_session__serve(s);
	if (result)
		pem_session__say(s, PEM_LOG_WARNING,
				 "other processes can't ask for snapshots: no socket in '%s': %s",
				 s->directory, strerror(-result));
	return 0;
}

/* Bind the log to one more event. */
static int add_demand(struct pem_log *log, const struct pem_event *event,
		      const struct pem_predicate *predicate, struct pem_error *error)
{
	struct pem_demand **larger, *demand;
	int result;

	larger = realloc(log->demands, (log->count + 1) * sizeof(*larger));
	if (!larger)
		return pem_error__set(error, -ENOMEM, "out of memory");
	log->demands = larger;
	result = pem_session__bind_event(log->session, event, predicate, &log->context,
					 PEM_USE_RECORDS, &demand, error);
	if (result)
		return result;
	log->demands[log->count++] = demand;
	demand->want_log = true;
	demand->log = log->enabled;
	return 0;
}

/*
 * If the log takes an event by its level, bind it to that event. Else a rule of another handle
 * would hide the event from the log: the rule for any event is not for events that have their own.
 */
static int add_by_level(struct pem_log *log, struct pem_demand *first, struct pem_error *error)
{
	if (log->finished || first->event->source_kind != PEM_SOURCE_STUB ||
	    pem_demand__of_log(first) || !pem_log__takes(log, first))
		return 0;
	return add_demand(log, first->event, NULL, error);
}

int pem_session__take_by_level(struct pem_session *s, struct pem_demand *first,
			       struct pem_error *error)
{
	return s->log ? add_by_level(s->log, first, error) : 0;
}

/* Bind the log to the events of its set, and to others that handles want and that it takes. */
static int add_demands(struct pem_log *log, const struct pem_event_set *set,
		       struct pem_error *error)
{
	struct pem_session *s = log->session;
	const struct pem_demand *demand;
	int result = 0;
	size_t i;

	for (i = 0; i < set->count && !result; i++)
		result = add_demand(log, set->events[i],
				    set->predicates ? set->predicates[i] : NULL, error);
	for (i = 0; i < log->count; i++)
		pem_demand__note_predicate(log->demands[i], &log->info);
	for (i = 0; i < s->demand_count && !result; i++) {
		for (demand = &s->demands[i]; demand && !demand->bound; demand = demand->next)
			;
		if (demand)
			result = add_by_level(log, &s->demands[i], error);
	}
	return result;
}

static void remove_demands(struct pem_log *log)
{
	size_t i;

	for (i = 0; i < log->count; i++) {
		log->demands[i]->want_log = false;
		pem_demand__unbind(log->demands[i]);
	}
	free(log->demands);
}

struct pem_log *pem_session__register_log(struct pem_session *session,
					  const struct pem_event_set *set,
					  const struct pem_context *given, const char *directory,
					  struct pem_error *error)
{
	struct pem_context own, *context = &own;
	struct pem_log *log;
	int result;

	result = pem_event_set__check(session, set, error);
	if (!result && (!directory || !*directory))
		result = pem_error__lacks(error, "directory for the trace");
	if (!result)
		result = pem_context__copy(context, given, error);
	if (!result && session->has_logged)
		result = pem_error__set(
			error, -EBUSY,
			"this session has had its log; open a second session for another");
	log = result ? NULL : calloc(1, sizeof(*log));
	if (!log) {
		errno = result ? -result : -pem_error__set(error, -ENOMEM, "out of memory");
		return NULL;
	}
	pem_session__lock(session);
	log->session = session;
	log->context = *context;
	/*
	 * A predicate cannot be tested on events that the session does not know yet.
	 */
	log->any_level = context->pid == PEM_ANY && !set->predicates ? set->any_level : 0;
	start_info(session, log);
	result = add_demands(log, set, error);
	if (result)
		goto fail;
	result = make_model(log);
	if (result)
		goto fail;
	log->writer = pem_trace_writer__new(directory, log->model, &log->info, error);
	if (!log->writer) {
		result = -errno;
		goto fail;
	}
	pem_trace_writer__compress(log->writer, session->packer);
	pem_trace_writer__note_session(log->writer, session->directory);
	if (session->options.overwrite) {
		result = keep_in_flight(session, log);
		if (result)
			goto fail;
	}
	pem_async__log_begins(session);
	session->log = log;
	pem_session__note_log(session, true);
	pem_session__describe_flight(session, directory);
	session->has_logged = true;
	pem_session__unlock(session);
	return log;
fail:
	remove_demands(log);
	pem_session__unlock(session);
	pem_trace_writer__free(log->writer);
	pem_model__free(log->model);
	free(log);
	errno = -result;
	return NULL;
}

/* Begin or end a span in which the log is enabled. */
static void note_span(struct pem_log *log, bool enabled)
{
	struct pem_log_span *spans;

	if (!enabled && log->span_count) {
		log->spans[log->span_count - 1].to = pem_clock();
	} else if (enabled) {
		spans = realloc(log->spans, (log->span_count + 1) * sizeof(*spans));
		if (!spans)
			return;
		spans[log->span_count++] = (struct pem_log_span){pem_clock(), UINT64_MAX};
		log->spans = spans;
	}
}

int pem_log__enable(struct pem_log *log)
{
	struct pem_session *s;
	struct pem_error error;
	int result = 0;
	size_t i;

	if (!log)
		return -EINVAL;
	if (log->finished)
		return -EINVAL;
	s = log->session;
	pem_session__lock(s);
	s->was_enabled = true;
	for (i = 0; i < log->count; i++) {
		log->demands[i]->log = true;
		if (pem_context__names_self(&log->demands[i]->context))
			result = pem_session__join_self(s, NULL);
	}
	pem_log__add_context(log);
	if (!log->enabled)
		note_span(log, true);
	log->enabled = true;
	if (!result)
		result = pem_session__open_sources(s, &error);
	pem_session__publish(s);
	pem_session__update_sources(s);
	pem_session__unlock(s);
	return result;
}

void pem_log__disable(struct pem_log *log)
{
	struct pem_session *s;
	bool was_enabled;
	size_t i;

	if (!log)
		return;
	s = log->session;
	pem_session__lock(s);
	for (i = 0; i < s->demand_count; i++)
		s->demands[i].log = false;
	for (i = 0; i < log->count; i++)
		log->demands[i]->log = false;
	if (log->walks && !log->walks->statistics)
		log->walks->statistic = false;
	was_enabled = log->enabled;
	log->enabled = false;
	pem_session__publish(s);
	pem_session__update_sources(s);
	if (was_enabled)
		note_span(log, false);
	pem_session__unlock(s);
}

/*
 * Note in the trace how the recording failed, as the recorder's caller is told. There is room: the
 * writer has reserved some.
 */
static void note_failure(struct pem_trace_info *info, int failure)
{
	struct pem_trace_gap *gap;

	if (!failure)
		return;
	if (info->gap_count == PEM_ARRAY_SIZE(info->gaps))
		info->gap_count--;
	gap = &info->gaps[info->gap_count++];
	pem_copy_text(gap->source, sizeof(gap->source), "trace");
	snprintf(gap->reason, sizeof(gap->reason),
		 "the trace is not whole, for it could not be written: %s; what is missing is "
		 "counted as lost",
		 strerror(-failure));
}

/*
 * Drain a producer to its end. Records for which its directory has no time left are counted as
 * discarded.
 */
static void drain_to_end(struct pem_session *s, struct pem_producer *p)
{
	p->unread = !pem_session__drain_producer(s, p, true);
	if (p->unread)
		pem_dir__exceed(s, p->dir, PEM_EXCESS_TIME, 1);
}

int pem_log__finish(struct pem_log *log, struct pem_error *error)
{
	const struct timespec pause = {0, 2000000};
	struct pem_session *s;
	struct pem_producer *p;
	int result;

	if (!log)
		return pem_error__lacks(error, "log");
	s = log->session;
	if (log->finished)
		return log->result;
	pem_session__lock(s);
	if (log->enabled)
		pem_session__drain_sources(s, PEM_DRAIN_END);
	pem_session__unlock(s);
	pem_log__disable(log);
	pem_session__lock(s);
	pem_session__stop_serving(s);
	log->finished = true;
	pem_session__begin_end(s);
	pem_session__settle_dirs(s, pem_monotonic_ns() + SETTLE_NS);
	pem_session__scan_producers(s);
	pem_session__release_gone(s);
	/* Wait for events that are under way. */
	if (s->processes->producers)
		nanosleep(&pause, NULL);
	pem_session__drain_sources(s, PEM_DRAIN_FINAL);
	if (s->flight->store) {
		pem_trace_writer__keep_in(log->writer, NULL);
		pem_flight__write(s->flight->store, log->writer);
	}
	for (p = s->processes->producers; p; p = p->next) {
		drain_to_end(s, p);
		pem_session__account(s, p);
	}
	pem_session__account_sources(s, NULL);
	pem_log__close_account(s, &log->info);
	if (!pem_trace_writer__failed(log->writer))
		pem_trace_writer__set_info(log->writer,
					   &log->info); /* the clock's rate is now known better */
	note_failure(&log->info, pem_trace_writer__failed(log->writer));
	result = pem_trace_writer__finish(log->writer, &log->info);
	if (!result) {
		pem_session__note_log(s, false);
		pem_trace_writer__note_session(log->writer, NULL);
		result = pem_trace_writer__failed(log->writer);
	}
	if (result) {
		pem_error__set(error, result,
			       "the trace is not whole: %s; what could not be written is counted",
			       strerror(-result));
		pem_error__advise_space(error, result, " and record again");
	}
	log->result = result;
	log->closed = true;
	pem_session__unlock(s);
	return result;
}

void pem_log__unregister(struct pem_log *log)
{
	struct pem_session *s;
	size_t i;

	if (!log)
		return;
	s = log->session;
	pem_log__finish(log, NULL);
	pem_session__lock(s);
	for (i = 0; i < s->demand_count; i++)
		s->demands[i].want_log = false;
	if (log->walks && !log->walks->statistics)
		log->walks->want_statistic = false;
	remove_demands(log);
	pem_trace_writer__free(log->writer);
	pem_flight__free(s->flight->store);
	s->flight->store = NULL;
	pem_model__free(log->model);
	free(log->spans);
	s->log = NULL;
	pem_session__unlock(s);
	free(log);
}
