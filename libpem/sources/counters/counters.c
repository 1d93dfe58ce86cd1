// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * counters.c - the counters source: hardware and software counters through perf_event_open
 *
 * Not here: names and reasons (encode.c), whose threads a counter is opened on (open.c), samples of
 * the program counter (sampler.c).
 *
 * A counter of the observed command is opened on it before its exec. The exec enables the counter,
 * and all descendants inherit it. A counter with a context is opened on that thread, or on each
 * thread of that process, or per CPU. It then runs until it is closed. The code here decides
 * whether it counts for a statistic:
 *
 *	statistic = accumulated + (enabled ? reading - base : 0)
 *
 * So enabling, disabling and resetting cost one read, and no counter is opened again. If the kernel
 * had to share the hardware among too many events, a reading is scaled by time enabled / time
 * running.
 *
 * Threads: set_action and read_statistic make read system calls, and synchronous callbacks may call
 * them. A session makes one such call at a time. drain may run at the same time, because it uses
 * only 'last', 'written' and what 'is_owed' hands to it.
 */
#include "open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_INTERVAL_NS 10000000ull

/* --- opening --- */

/*
 * Has the process that the counter observes not called exec yet? The exec then enables the counter.
 */
static int waits_for_exec(const struct pem_source *source, const struct counter *counter)
{
	return source->root && !source->root_runs && counter->context.tid == PEM_ANY &&
	       (counter->context.pid == PEM_ANY || counter->context.pid == (uint32_t)source->root);
}

static int find_value(const struct pem_event *event)
{
	unsigned i;

	for (i = 0; i < event->field_count; i++)
		if (event->fields[i].type == PEM_TYPE_UINT64 &&
		    (event->fields[i].role == PEM_ROLE_VALUE ||
		     !strcmp(event->fields[i].name, "value")))
			return event->fields[i].offset;
	return -1;
}

static int open_value(struct pem_source *source, struct counter *counter, struct pem_error *error)
{
	struct perf_event_attr attr;
	int offset = find_value(counter->event), rc;

	if (offset < 0 || counter->event->fixed_bytes != counter->event->max_bytes ||
	    counter->event->max_bytes > 256) {
		counter__set_error(error, "needs a uint64 field with role 'value', and no lists");
		return -ENOTSUP;
	}
	counter->value_offset = (uint16_t)offset;
	rc = counter__encode(counter->event->source_name, &attr);
	if (rc == 0)
		rc = counter__open_all(source, counter, &attr);
	if (rc == -ESRCH)
		counter__set_error(error, "can't be counted: process %u or thread %u is gone",
				   counter->context.pid, counter->context.tid);
	else if (rc < 0)
		counter__explain(counter->event->source_name, &attr, rc, error);
	return rc;
}

static int is_of_maps(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_SAMPLE && event->meaning == PEM_MEANS_OBJECT;
}

/* The sampler that tells what is mapped: the first one. NULL: there is none. */
static struct sampler *sampler_of_maps(const struct pem_source *source)
{
	size_t i;

	for (i = 0; i < source->count; i++)
		if (source->counters[i].sampler)
			return source->counters[i].sampler;
	return NULL;
}

static int open_sampler(struct pem_source *source, const struct pem_source_config *config,
			struct counter *counter, struct pem_error *error)
{
	const struct pem_context *context = &counter->context;
	struct sampler_request request = {.event = counter->event,
					  .on_exec = waits_for_exec(source, counter),
					  .hz = config->sample_hz,
					  .stacks = config->sample_stacks,
					  .buffer_bytes = config->buffer_bytes,
					  .first_stream = 1};
	const char *members[RING_VALUES_MAX];
	size_t i;

	for (i = 0; i < config->event_count && request.member_count < RING_VALUES_MAX; i++)
		if (config->events[i].event->source_kind == PEM_SOURCE_PERF)
			members[request.member_count++] = config->events[i].event->source_name;
	request.members = members;
	for (i = 0; i < config->event_count && !sampler_of_maps(source); i++)
		if (is_of_maps(config->events[i].event))
			request.map_event = config->events[i].event;
	request.pid = request.on_exec || (source->root_runs && !context->pid) ? source->root
		      : context->tid                                          ? (pid_t)context->tid
		      : context->pid                                          ? (pid_t)context->pid
									      : -1;
	request.all_threads =
		request.pid > 0 && !request.on_exec && request.pid != (pid_t)context->tid;
	for (i = 0; i < source->count; i++) /* each sampled event has its own stream numbers */
		if (source->counters[i].sampler)
			request.first_stream += (unsigned)sysconf(_SC_NPROCESSORS_CONF);
	return sampler__open(&counter->sampler, &request, error);
}

static void tell(const struct pem_source *source, enum pem_log_level level, const char *text)
{
	if (source->log)
		source->log(level, text, source->log_arg);
}

static void close_counter(struct counter *counter)
{
	while (counter->fd_count)
		close(counter->fds[--counter->fd_count]);
	free(counter->fds);
	counter->fds = NULL;
	sampler__close(counter->sampler);
	counter->sampler = NULL;
}

/* Say why the counter can't be had. */
static void refuse(const struct pem_source *source, struct counter *counter, const char *reason)
{
	char text[sizeof(((struct pem_error *)0)->text) + 256];

	close_counter(counter);
	snprintf(text, sizeof(text), "%s: %s", counter->event->name, reason);
	tell(source, PEM_LOG_WARNING, text);
}

static void open_one(struct pem_source *source, const struct pem_source_config *config, size_t i)
{
	struct counter *counter = &source->counters[i];
	struct pem_error error;

	counter->event = config->events[i].event;
	counter->context = config->events[i].context;
	counter->action = config->events[i].action;
	counter->is_of_maps = is_of_maps(counter->event);
	snprintf(error.text, sizeof(error.text), "can't be counted");
	if (counter->is_of_maps)
		return;
	if (counter->event->source_kind == PEM_SOURCE_PERF)
		counter->error = open_value(source, counter, &error);
	else if (counter->event->source_kind == PEM_SOURCE_SAMPLE)
		counter->error = open_sampler(source, config, counter, &error);
	else
		counter->error = -ENOENT;
	if (counter->error)
		refuse(source, counter, error.text);
}

/* What is mapped is told beside samples. */
static void open_maps(struct pem_source *source)
{
	size_t i;

	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];

		if (!counter->is_of_maps || sampler_of_maps(source))
			continue;
		counter->error = -ENOTSUP;
		refuse(source, counter,
		       "is told beside samples: ask for HW::HWPerf::HPMsAndPC, too");
	}
}

static void counters_close(struct pem_source *source)
{
	size_t i;

	if (!source)
		return;
	for (i = 0; i < source->count; i++)
		close_counter(&source->counters[i]);
	free(source);
}

static int counters_open(const struct pem_source_config *config, struct pem_source **out,
			 struct pem_error *error)
{
	struct pem_source *source;
	size_t i;

	if (config->size < sizeof(*config) || config->event_count > PEM_RULES_MAX) {
		counter__set_error(error,
				   "the counters source was asked for %zu events; its limit is %u",
				   config->event_count, PEM_RULES_MAX);
		return -EINVAL;
	}
	source = calloc(1, sizeof(*source) + config->event_count * sizeof(source->counters[0]));
	if (!source) {
		counter__set_error(error, "no memory for %zu counters", config->event_count);
		return -ENOMEM;
	}
	source->root = config->root;
	source->root_runs = config->root_runs;
	source->no_follow = config->no_follow;
	source->log = config->log;
	source->log_arg = config->log_arg;
	source->count = config->event_count;
	for (i = 0; i < source->count; i++)
		open_one(source, config, i);
	open_maps(source);
	*out = source;
	return 0;
}

static int counters_start(struct pem_source *source, struct pem_error *error)
{
	size_t i, k;

	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];
		int rc = 0;

		if (counter->error || waits_for_exec(source, counter))
			continue;
		for (k = 0; rc == 0 && k < counter->fd_count; k++)
			if (ioctl(counter->fds[k], PERF_EVENT_IOC_ENABLE, 0) < 0)
				rc = -errno;
		if (rc == 0 && counter->sampler)
			rc = sampler__start(counter->sampler);
		if (rc < 0) {
			counter__set_error(error, "%s can't be started: %s", counter->event->name,
					   strerror(-rc));
			return rc;
		}
	}
	return 0;
}

/* --- readings --- */

/* Read the sum of all descriptors, scaled. Returns 0 or -errno. */
static int read_value(const struct counter *counter, uint64_t *value)
{
	uint64_t sum = 0, reading[3]; /* value, time enabled, time running */
	size_t i;

	for (i = 0; i < counter->fd_count; i++) {
		ssize_t got = read(counter->fds[i], reading, sizeof(reading));

		if (got != (ssize_t)sizeof(reading))
			return got < 0 ? -errno : -EIO;
		sum += counter__scale(reading[0], reading[1], reading[2]);
	}
	*value = sum;
	return 0;
}

/* Read the number that the statistic counts: the counter's value, or the number of samples. */
static int read_total(const struct pem_source *source, const struct counter *counter,
		      uint64_t *value)
{
	if (counter->is_of_maps) {
		*value = sampler__maps(sampler_of_maps(source));
		return 0;
	}
	if (!counter->sampler)
		return read_value(counter, value);
	*value = sampler__produced(counter->sampler);
	return 0;
}

/* Scaling may make a reading smaller than the base. The difference is then 0. */
static uint64_t since(uint64_t value, uint64_t base)
{
	return value > base ? value - base : 0;
}

static int counters_set_action(struct pem_source *source, size_t i, uint64_t action)
{
	struct counter *counter;
	uint64_t old, value;
	int rc;

	if (i >= source->count)
		return -EINVAL;
	counter = &source->counters[i];
	if (counter->error)
		return counter->error;
	old = counter->action;
	rc = read_total(source, counter, &value);
	if (rc < 0)
		return rc;
	if (PEM_ACTION_FLAGS(old) & PEM_ACTION_STAT)
		counter->accumulated += since(value, counter->base);
	if (PEM_ACTION_EPOCH(old) != PEM_ACTION_EPOCH(action))
		counter->accumulated = 0;
	counter->base = value;
	__atomic_store_n(&counter->action, action, __ATOMIC_RELAXED); /* alone: orders nothing */
	if (PEM_ACTION_FLAGS(old) & ~PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG) {
		__atomic_store_n(&counter->owed, value, __ATOMIC_RELAXED); /* MG orders both */
		__atomic_store_n(&counter->owed_clock, pem_clock(), __ATOMIC_RELAXED);
		/* MG: the value is there */
		__atomic_store_n(&counter->is_owed, 1, __ATOMIC_RELEASE);
	}
	return 0;
}

static int counters_read_statistic(struct pem_source *source, size_t i,
				   struct pem_statistic *statistic)
{
	struct counter *counter;
	uint64_t value;
	int rc;

	if (i >= source->count)
		return -EINVAL;
	counter = &source->counters[i];
	if (counter->error)
		return counter->error;
	rc = read_total(source, counter, &value);
	if (rc < 0)
		return rc;
	memset(statistic, 0, sizeof(*statistic));
	statistic->event = counter->event;
	statistic->count = counter->accumulated;
	if (PEM_ACTION_FLAGS(counter->action) & PEM_ACTION_STAT)
		statistic->count += since(value, counter->base);
	statistic->sum = statistic->count;
	return 0;
}

/* --- packets --- */

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/*
 * Find which counters owe a reading of when logging them ended. Returns the last clock of these, at
 * which all are written; 0: there are none.
 */
static uint64_t take_owed(struct pem_source *source)
{
	uint64_t clock = 0, its;
	size_t i;

	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];

		counter->writes_owed = 0;
		if (counter->error || counter->sampler || counter->is_of_maps)
			continue;
		/* mg: the value is there */
		counter->writes_owed = __atomic_exchange_n(&counter->is_owed, 0, __ATOMIC_ACQUIRE);
		its = __atomic_load_n(&counter->owed_clock, __ATOMIC_RELAXED);
		if (counter->writes_owed && its > clock)
			clock = its;
	}
	return clock;
}

/* Read what is to be written of the counter. Returns 1; 0: nothing; -errno. */
static int read_logged(const struct counter *counter, int owed, uint64_t *value)
{
	uint64_t action = __atomic_load_n(&counter->action, __ATOMIC_RELAXED);
	int rc;

	if (counter->error || counter->sampler || counter->is_of_maps)
		return 0;
	if (owed) {
		*value = __atomic_load_n(&counter->owed, __ATOMIC_RELAXED);
		return counter->writes_owed;
	}
	if (!(PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG))
		return 0;
	rc = read_value(counter, value);
	return rc < 0 ? rc : 1;
}

/*
 * Write one record for each logged counter, or for each that owes one, all with one time. Continues
 * after a failure. Returns the first failure.
 */
static int write_readings(struct pem_source *source, const struct pem_source_sink *sink, int owed,
			  uint64_t clock)
{
	struct reading_builder builder;
	struct pem_packet *packet = (struct pem_packet *)builder.bytes;
	uint64_t value;
	int rc, result = 0;
	size_t i;

	packet->record_count = 0;
	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];

		rc = read_logged(counter, owed, &value);
		if (rc <= 0) {
			result = result ? result : rc;
			continue;
		}
		if (value > counter->last)
			counter->last = value;
		if (!packet->record_count || packet->pid != counter->pid ||
		    builder.at + counter->event->max_bytes > sizeof(builder.bytes)) {
			rc = reading_builder__flush(&builder, clock, sink, &source->refused);
			result = result ? result : rc;
			reading_builder__begin(&builder, counter->pid, clock);
		}
		reading_builder__append(&builder, counter->event, counter->value_offset,
					counter->last, clock);
		counter->written++;
	}
	rc = reading_builder__flush(&builder, clock, sink, &source->refused);
	return result ? result : rc;
}

static int sample_counters(struct pem_source *source, const struct pem_source_sink *sink)
{
	uint64_t owed_clock = take_owed(source);
	int rc = owed_clock ? write_readings(source, sink, 1, owed_clock) : 0, result = rc;

	rc = write_readings(source, sink, 0, pem_clock());
	return result ? result : rc;
}

/* Is what a ring has by now to be logged: from now on, or until logging has ended just now? */
static int is_logged(struct counter *counter)
{
	uint64_t action = __atomic_load_n(&counter->action, __ATOMIC_RELAXED);
	/* mg: the value is there */
	int was_logged = __atomic_exchange_n(&counter->is_owed, 0, __ATOMIC_ACQUIRE);

	return was_logged || PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG;
}

static int logs_maps(struct pem_source *source)
{
	int logs = 0;
	size_t i;

	for (i = 0; i < source->count; i++)
		logs |= source->counters[i].is_of_maps && is_logged(&source->counters[i]);
	return logs;
}

static int counters_drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	uint64_t now = monotonic_ns();
	int rc, result = 0, log_maps;
	size_t i;

	if (final || now - source->last_sample_ns >= SAMPLE_INTERVAL_NS) {
		source->last_sample_ns = now;
		result = sample_counters(source, sink);
	}
	log_maps = logs_maps(source);
	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];

		if (!counter->sampler)
			continue;
		rc = sampler__drain(counter->sampler, sink, is_logged(counter), log_maps, final);
		result = result ? result : rc;
	}
	return result;
}

static int counters_balance(struct pem_source *source, size_t i, struct pem_balance *balance)
{
	const struct counter *counter;

	if (i >= source->count)
		return -EINVAL;
	counter = &source->counters[i];
	memset(balance, 0, sizeof(*balance));
	balance->produced = counter->written;
	if (counter->is_of_maps && !counter->error)
		balance->produced = sampler__maps(sampler_of_maps(source));
	if (counter->sampler) {
		balance->produced = sampler__produced(counter->sampler);
		balance->discarded = sampler__discarded(counter->sampler);
	}
	return 0;
}

__attribute__((visibility("default"))) const struct pem_source_ops pem_source = {
	.size = sizeof(struct pem_source_ops),
	.abi_version = PEM_SOURCE_ABI_VERSION,
	.name = "counters",
	.can_deliver = counter__can_deliver,
	.open = counters_open,
	.start = counters_start,
	.set_action = counters_set_action,
	.read_statistic = counters_read_statistic,
	.drain = counters_drain,
	.balance = counters_balance,
	.close = counters_close,
	.knows_counter = counter__knows,
	.encode_counter = counter__encode_for_threads,
};
