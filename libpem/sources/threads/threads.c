/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * threads.c - the source of what threads do as a recording begins and ends
 *
 * A thread that sleeps all the time makes no record of the kernel's. So the source looks at all
 * threads of the targets, three times:
 * - When it opens, before the kernel's sources take their time to start (preference).
 * - When it is drained first: these have started, and miss no later change. A thread that has not
 *   run since it opened has done all the time what it does now.
 * - When the recording ends, and the others still run. Of system calls that began since, the begin
 *   is recorded. So none is told then.
 *
 * A recording that starts its command sees all of it, so there is no first glimpse. A flight
 * recorder forgets what was first.
 */
#include "threads.h"
#include "grow.h"
#include "source.h"

#include <pem/predicate.h>

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDS_BYTES 512u /* of both records of a thread */

struct wanted {
	const struct pem_source_event *of_session;
	const struct pem_event *event;
	bool is_call; /* else it is the state */
	/* Stored and loaded in any thread; nothing else is published by these. */
	uint64_t action, counted;
	uint64_t written;
};

struct target {
	uint32_t pid;
	bool is_named;
	bool was_seen; /* its threads were looked at, and told */
};

struct pem_source {
	bool whole_machine, was_searched;
	bool sees_first; /* what is observed runs already */
	struct target *targets;
	size_t target_count, target_capacity;
	struct glimpses before; /* those that slept as the source opened */
	char stream[24];
	uint64_t refused; /* records that the sink refused */
	uint64_t last_clock; /* of the stream */
	size_t count;
	struct wanted wanted[];
};

static void set_error(struct pem_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void set_error(struct pem_error *error, const char *format, ...)
{
	va_list arguments;

	if (!error)
		return;
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
}

/* --- events --- */

/* Has the event these fields, in this order? roles ends with PEM_ROLE_NONE. */
static bool has_fields(const struct pem_event *event, const uint8_t *roles, const uint8_t *types)
{
	unsigned i;

	for (i = 0; roles[i] != PEM_ROLE_NONE; i++)
		if (i >= event->field_count || event->fields[i].role != roles[i] ||
		    event->fields[i].type != types[i])
			return false;
	return i == event->field_count && event->max_bytes <= RECORDS_BYTES / 2;
}

static bool is_state(const struct pem_event *event)
{
	static const uint8_t roles[] = {PEM_ROLE_STATE, PEM_ROLE_HOLDER, PEM_ROLE_ADDRESS,
					PEM_ROLE_NAME, PEM_ROLE_NONE};
	static const uint8_t types[] = {PEM_TYPE_UINT32, PEM_TYPE_UINT32, PEM_TYPE_ADDRESS,
					PEM_TYPE_STRING};

	return !strcmp(event->source_name, "thread") && has_fields(event, roles, types) &&
	       event->fields[3].max_count >= OBJECT_BYTES;
}

static bool is_call(const struct pem_event *event)
{
	static const uint8_t roles[] = {PEM_ROLE_SYSTEM_CALL, PEM_ROLE_DESCRIPTOR, PEM_ROLE_NONE};
	static const uint8_t types[] = {PEM_TYPE_INT64, PEM_TYPE_UINT64};

	return !strcmp(event->source_name, "call") && has_fields(event, roles, types);
}

static int can_deliver(const struct pem_event *event, struct pem_error *reason)
{
	if (event->source_kind != PEM_SOURCE_PROC)
		return -ENOENT;
	if (is_state(event) || is_call(event))
		return 1;
	set_error(reason, "nothing in /proc is '%.60s' with these fields", event->source_name);
	return 0;
}

static unsigned flags_of(const struct wanted *w)
{
	return PEM_ACTION_FLAGS(__atomic_load_n(&w->action, __ATOMIC_RELAXED));
}

static bool is_wanted(const struct pem_source *source)
{
	size_t i;

	for (i = 0; i < source->count; i++)
		if (flags_of(&source->wanted[i]) & (PEM_ACTION_LOG | PEM_ACTION_STAT))
			return true;
	return false;
}

/* --- targets --- */

static int add(struct pem_source *source, uint32_t pid, bool is_named)
{
	size_t i;

	for (i = 0; i < source->target_count; i++)
		if (source->targets[i].pid == pid)
			return 0;
	if (pem_grow(&source->targets, sizeof(*source->targets), source->target_count + 1,
		     &source->target_capacity))
		return -ENOMEM;
	source->targets[source->target_count++] = (struct target){.pid = pid, .is_named = is_named};
	return 0;
}

static int add_target(struct pem_source *source, pid_t pid)
{
	return add(source, (uint32_t)pid, false);
}

/* All processes that run now, but the recorder. */
static int add_all(struct pem_source *source)
{
	struct dirent *entry;
	uint32_t pid;
	int rc = 0;
	DIR *proc;

	proc = opendir("/proc");
	while (proc && !rc && (entry = readdir(proc))) {
		pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		if (pid && pid != (uint32_t)getpid())
			rc = add(source, pid, false);
	}
	if (proc)
		closedir(proc);
	return rc;
}

/* --- records --- */

/* Write the record of a glimpse, without its padding. Returns its bytes. */
static size_t encode(const struct wanted *w, const struct glimpse *glimpse, uint8_t *record)
{
	const struct pem_field *fields = w->event->fields;
	const struct pem_record_header header = {.clock_low = (uint32_t)glimpse->clock,
						 .event_id = w->event->id};
	size_t bytes = w->event->fixed_bytes, text;

	memset(record, 0, bytes);
	memcpy(record, &header, sizeof(header));
	if (w->is_call) {
		memcpy(record + fields[0].offset, &glimpse->call, sizeof(glimpse->call));
		memcpy(record + fields[1].offset, &glimpse->arguments[0], sizeof(uint64_t));
		return bytes;
	}
	memcpy(record + fields[0].offset, &glimpse->state, sizeof(glimpse->state));
	memcpy(record + fields[1].offset, &glimpse->holder, sizeof(glimpse->holder));
	memcpy(record + fields[2].offset, &glimpse->address, sizeof(glimpse->address));
	text = strlen(glimpse->object) + 1;
	memcpy(record + bytes, glimpse->object, text);
	return bytes + text;
}

static bool takes(const struct wanted *w, const struct glimpse *glimpse, const uint8_t *record)
{
	const struct pem_source_event *e = w->of_session;

	return (e->context.pid == PEM_ANY || e->context.pid == glimpse->pid) &&
	       (e->context.tid == PEM_ANY || e->context.tid == glimpse->tid) &&
	       (!e->context.one_cpu || e->context.cpu == glimpse->cpu) &&
	       (!e->test_count ||
		(pem_tests__valid(e->tests, e->test_count, w->event->fixed_bytes) &&
		 pem_tests_pass(e->tests, e->test_count, record)));
}

static int write_glimpse(struct pem_source *source, const struct glimpse *glimpse, bool first,
			 const struct pem_source_sink *sink)
{
	uint64_t bytes[(PEM_PACKET_HEADER_BYTES + RECORDS_BYTES) / 8];
	struct pem_packet *packet = (struct pem_packet *)bytes;
	size_t at = PEM_PACKET_HEADER_BYTES, end = at, i, one;
	int rc;

	memset(packet, 0, sizeof(*packet));
	packet->timestamp_begin = packet->timestamp_end = glimpse->clock;
	packet->pid = glimpse->pid;
	packet->tid = glimpse->tid;
	packet->cpu = glimpse->cpu;
	packet->source = PEM_PACKET_KERNEL_THREAD;
	packet->events_discarded = source->refused;
	for (i = 0; i < source->count; i++) {
		struct wanted *w = &source->wanted[i];

		if (w->is_call && (!first || glimpse->call < 0))
			continue;
		one = encode(w, glimpse, (uint8_t *)bytes + at);
		if (!takes(w, glimpse, (uint8_t *)bytes + at))
			continue;
		if (flags_of(w) & PEM_ACTION_STAT)
			__atomic_fetch_add(&w->counted, 1, __ATOMIC_RELAXED);
		if (!(flags_of(w) & PEM_ACTION_LOG))
			continue;
		w->written++;
		packet->record_count++;
		end = at + one;
		at = (end + PEM_RECORD_ALIGN - 1) & ~(size_t)(PEM_RECORD_ALIGN - 1);
	}
	if (!packet->record_count)
		return 0;
	packet->content_size = (uint64_t)end * 8;
	one = packet->record_count;
	rc = sink->write(sink->arg, source->stream, packet, end);
	if (rc < 0)
		source->refused += one;
	return rc;
}

/* --- seeing --- */

static int by_thread(const void *a, const void *b)
{
	const struct glimpse *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int by_clock(const void *a, const void *b)
{
	const struct glimpse *x = a, *y = b;

	return (x->clock > y->clock) - (x->clock < y->clock);
}

/* Look at the threads of a target, and add them to glimpses. */
static int see(const struct target *target, struct glimpses *glimpses, bool explains)
{
	struct glimpses own;
	int rc = glimpses__take(&own, target->pid, target->is_named);

	if (!rc && explains)
		glimpses__explain(&own);
	if (!rc)
		rc = pem_grow(&glimpses->threads, sizeof(*glimpses->threads),
			      glimpses->count + own.count, &glimpses->capacity);
	if (!rc && own.count) {
		memcpy(glimpses->threads + glimpses->count, own.threads,
		       own.count * sizeof(*own.threads));
		glimpses->count += own.count;
	}
	glimpses__free(&own);
	return rc == -ESRCH ? 0 : rc;
}

/* A thread that slept before, and has not run since, slept all the time. */
static void begin_earlier(const struct pem_source *source, struct glimpse *glimpse)
{
	const struct glimpse *before = NULL;

	if (glimpse->state && source->before.count)
		before = bsearch(glimpse, source->before.threads, source->before.count,
				 sizeof(*glimpse), by_thread);
	if (before && before->pid == glimpse->pid && before->state == glimpse->state &&
	    before->switches == glimpse->switches)
		glimpse->clock = before->clock;
}

/* Write glimpses in the order of their clocks. */
static int write_glimpses(struct pem_source *source, struct glimpses *glimpses, bool first,
			  const struct pem_source_sink *sink)
{
	int rc = 0, one;
	size_t i;

	for (i = 0; first && i < glimpses->count; i++)
		begin_earlier(source, &glimpses->threads[i]);
	if (glimpses->count)
		qsort(glimpses->threads, glimpses->count, sizeof(*glimpses->threads), by_clock);
	for (i = 0; i < glimpses->count; i++) {
		struct glimpse *glimpse = &glimpses->threads[i];

		/* What held from then on held later, too. */
		if (glimpse->clock < source->last_clock)
			glimpse->clock = source->last_clock;
		source->last_clock = glimpse->clock;
		one = write_glimpse(source, glimpse, first, sink);
		rc = rc ? rc : one;
	}
	return rc;
}

/* Look at targets: at those that were not looked at yet, or at all. */
static int see_and_write(struct pem_source *source, bool first, const struct pem_source_sink *sink)
{
	struct glimpses glimpses = {0};
	int rc = 0, written;
	size_t i;

	for (i = 0; !rc && i < source->target_count; i++) {
		struct target *target = &source->targets[i];

		if (!first || !target->was_seen)
			rc = see(target, &glimpses, true);
		target->was_seen = true;
	}
	written = write_glimpses(source, &glimpses, first, sink);
	glimpses__free(&glimpses);
	return rc ? rc : written;
}

static int drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	int rc = 0;

	if (final || !source->sees_first || !is_wanted(source))
		return 0;
	if (source->whole_machine && !source->was_searched)
		rc = add_all(source);
	source->was_searched = true;
	return rc ? rc : see_and_write(source, true, sink);
}

static int end(struct pem_source *source, const struct pem_source_sink *sink)
{
	int rc = source->whole_machine ? add_all(source) : 0, first;

	if (rc)
		return rc;
	/* It may be over before it was drained once. */
	first = drain(source, sink, false);
	rc = see_and_write(source, false, sink);
	return first ? first : rc;
}

/* Look at what is observed from the beginning. Without memory these glimpses are missing. */
static void see_before(struct pem_source *source)
{
	size_t i;

	if (!source->sees_first || (source->whole_machine && add_all(source)))
		return;
	for (i = 0; i < source->target_count; i++)
		see(&source->targets[i], &source->before, false);
	if (source->before.count)
		qsort(source->before.threads, source->before.count, sizeof(struct glimpse),
		      by_thread);
}

/* --- operations --- */

static void close_source(struct pem_source *source)
{
	if (!source)
		return;
	free(source->targets);
	glimpses__free(&source->before);
	free(source);
}

static int open_source(const struct pem_source_config *config, struct pem_source **out,
		       struct pem_error *error)
{
	struct pem_source *source =
		calloc(1, sizeof(*source) + config->event_count * sizeof(source->wanted[0]));
	int rc = source ? 0 : -ENOMEM;
	size_t i;

	for (i = 0; !rc && i < config->event_count; i++) {
		struct wanted *w = &source->wanted[i];

		w->of_session = &config->events[i];
		w->event = config->events[i].event;
		w->is_call = is_call(w->event);
		w->action = config->events[i].action;
		if (w->of_session->context.pid != PEM_ANY)
			rc = add(source, w->of_session->context.pid, true);
	}
	if (!rc && config->root)
		rc = add(source, (uint32_t)config->root, config->root_runs);
	if (rc) {
		set_error(error, "no memory to look at threads");
		close_source(source);
		return rc;
	}
	source->count = config->event_count;
	source->whole_machine = config->whole_machine;
	source->sees_first = (!config->root || config->root_runs) && !config->forgets;
	snprintf(source->stream, sizeof(source->stream), "k%u_0", config->beside);
	see_before(source);
	*out = source;
	return 0;
}

static int start(struct pem_source *source, struct pem_error *error)
{
	(void)source;
	(void)error;
	return 0;
}

static int set_action(struct pem_source *source, size_t i, uint64_t action)
{
	struct wanted *w;

	if (i >= source->count)
		return -EINVAL;
	w = &source->wanted[i];
	if (PEM_ACTION_EPOCH(w->action) != PEM_ACTION_EPOCH(action))
		__atomic_store_n(&w->counted, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&w->action, action, __ATOMIC_RELAXED);
	return 0;
}

static int read_statistic(struct pem_source *source, size_t i, struct pem_statistic *value)
{
	if (i >= source->count)
		return -EINVAL;
	memset(value, 0, sizeof(*value));
	value->event = source->wanted[i].event;
	value->count = __atomic_load_n(&source->wanted[i].counted, __ATOMIC_RELAXED);
	return 0;
}

static int balance(struct pem_source *source, size_t i, struct pem_balance *counts)
{
	if (i >= source->count)
		return -EINVAL;
	memset(counts, 0, sizeof(*counts));
	counts->produced = source->wanted[i].written;
	return 0;
}

__attribute__((visibility("default"))) const struct pem_source_ops pem_source = {
	.size = sizeof(struct pem_source_ops),
	.abi_version = PEM_SOURCE_ABI_VERSION,
	.name = "threads",
	.preference = 1000, /* it opens first */
	.can_deliver = can_deliver,
	.open = open_source,
	.start = start,
	.set_action = set_action,
	.read_statistic = read_statistic,
	.drain = drain,
	.add_target = add_target,
	.balance = balance,
	.close = close_source,
	.end = end,
};
