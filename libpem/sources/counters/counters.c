// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * counters.c - the counters source: hardware and software counters through perf_event_open
 *
 * Not here: names and reasons (encode.c), which counters are opened together and on whose threads
 * (open.c), reading them (readings.c), samples of the program counter (sampler.c).
 *
 * A counter of the observed command is opened on it before its exec. The exec enables the counter,
 * and all descendants inherit it. A counter with a context is opened on that thread, or on each
 * thread of that process, or per CPU. It then runs until it is closed; readings.c decides whether
 * it counts for a statistic.
 */
#include "open.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* --- opening --- */

int counter__is_of_maps(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_SAMPLE &&
	       (event->meaning == PEM_MEANS_OBJECT || event->meaning == PEM_MEANS_NOTHING);
}

/* Is it told beside samples of data, or is it one? */
static int is_of_data(const struct pem_event *event)
{
	return event->meaning == PEM_MEANS_ACCESS || event->meaning == PEM_MEANS_NOTHING;
}

struct sampler *counters__sampler_of_maps(const struct pem_source *source,
					  const struct pem_event *event)
{
	size_t i;

	for (i = 0; i < source->count; i++)
		if (source->counters[i].sampler &&
		    is_of_data(source->counters[i].event) == is_of_data(event))
			return source->counters[i].sampler;
	return NULL;
}

static int open_sampler(struct pem_source *source, const struct pem_source_config *config,
			struct counter *counter, struct pem_error *error)
{
	const struct pem_context *context = &counter->context;
	const int of_data = is_of_data(counter->event);
	struct sampler_request request = {.event = counter->event,
					  .cgroup_fd = source->cgroup_fd,
					  .on_exec = counter__waits_for_exec(source, counter),
					  .hz = config->sample_hz,
					  .stacks =
						  of_data ? PEM_STACKS_NONE : config->sample_stacks,
					  .buffer_bytes = config->buffer_bytes,
					  .first_stream = 1};
	const char *members[RING_VALUES_MAX];
	size_t i;

	for (i = 0; !of_data && i < config->event_count && request.member_count < RING_VALUES_MAX;
	     i++)
		if (config->events[i].event->source_kind == PEM_SOURCE_PERF)
			members[request.member_count++] = config->events[i].event->source_name;
	request.members = members;
	for (i = 0; i < config->event_count && !counters__sampler_of_maps(source, counter->event);
	     i++)
		if (counter__is_of_maps(config->events[i].event) &&
		    is_of_data(config->events[i].event) == of_data)
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
	counter__close_fds(counter);
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

static void prepare(struct pem_source *source, const struct pem_source_config *config, size_t i)
{
	struct counter *counter = &source->counters[i];

	counter->event = config->events[i].event;
	counter->context = config->events[i].context;
	counter->action = config->events[i].action;
	counter->is_of_maps = counter__is_of_maps(counter->event);
	counter__set_rate_error(counter);
}

/* Tell if a timer samples data in place of a processor that could. */
static void tell_timer(const struct pem_source *source, const struct counter *counter)
{
	int error = -sampler__no_precise(counter->sampler);
	char text[256];

	if (!error || error == ENOENT)
		return;
	snprintf(text, sizeof(text),
		 "%s: the processor's own samples can't be had (%s%s); a timer takes them, and "
		 "their addresses are approximate",
		 counter->event->name, strerror(error),
		 error == EACCES ? ": root may, or sysctl kernel.perf_event_paranoid lets others"
				 : "");
	tell(source, PEM_LOG_WARNING, text);
}

/* Open what is no counter. */
static void open_other(struct pem_source *source, const struct pem_source_config *config,
		       struct counter *counter)
{
	struct pem_error error;

	snprintf(error.text, sizeof(error.text), "can't be counted");
	if (counter->is_of_maps)
		return;
	counter->error = counter->event->source_kind == PEM_SOURCE_SAMPLE
				 ? open_sampler(source, config, counter, &error)
				 : -ENOENT;
	if (counter->error)
		refuse(source, counter, error.text);
	else
		tell_timer(source, counter);
}

/* With a control group as the target there is no root: its processes come and go. */
static int find_cgroup(struct pem_source *source, const struct pem_source_config *config,
		       struct pem_error *error)
{
	if (!config->cgroup)
		return 0;
	source->root = source->root_runs = 0;
	source->cgroup_fd = cgroup__open(config->cgroup);
	if (source->cgroup_fd >= 0)
		return 0;
	counter__set_error(error,
			   "the control group %llu is not below /sys/fs/cgroup; it may be gone",
			   (unsigned long long)config->cgroup);
	return source->cgroup_fd;
}

/* Was a sampler refused, of data or of code? */
static bool lacks_sampler(const struct pem_source *source, bool of_data)
{
	size_t i;

	for (i = 0; i < source->count; i++)
		if (source->counters[i].event->source_kind == PEM_SOURCE_SAMPLE &&
		    !source->counters[i].is_of_maps && source->counters[i].error &&
		    is_of_data(source->counters[i].event) == of_data)
			return true;
	return false;
}

/* What is mapped is told beside samples. */
static void open_maps(struct pem_source *source)
{
	size_t i;

	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];

		if (!counter->is_of_maps || counters__sampler_of_maps(source, counter->event))
			continue;
		counter->error = -ENOTSUP;
		/* Why there are no samples is told already. */
		if (lacks_sampler(source, is_of_data(counter->event))) {
			close_counter(counter);
			continue;
		}
		refuse(source, counter,
		       is_of_data(counter->event)
			       ? "is told beside samples of data: ask for HW::HWPerf::DataSample, "
				 "too"
			       : "is told beside samples: ask for HW::HWPerf::HPMsAndPC, too");
	}
}

static void counters_close(struct pem_source *source)
{
	size_t i;

	if (!source)
		return;
	for (i = 0; i < source->count; i++)
		close_counter(&source->counters[i]);
	if (source->cgroup_fd >= 0)
		close(source->cgroup_fd);
	free(source);
}

static int counters_open(const struct pem_source_config *config, struct pem_source **out,
			 struct pem_error *error)
{
	struct pem_source *source;
	size_t i;
	int rc;

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
	source->cgroup_fd = -1;
	source->root = config->root;
	source->root_runs = config->root_runs;
	source->no_follow = config->no_follow;
	source->log = config->log;
	source->log_arg = config->log_arg;
	source->count = config->event_count;
	for (i = 0; i < source->count; i++)
		prepare(source, config, i);
	rc = find_cgroup(source, config, error);
	if (!rc)
		rc = counters__open_values(source, config, refuse);
	if (rc) {
		counters_close(source);
		return rc;
	}
	for (i = 0; i < source->count; i++)
		if (source->counters[i].event->source_kind != PEM_SOURCE_PERF)
			open_other(source, config, &source->counters[i]);
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

		if (counter->error || counter__waits_for_exec(source, counter))
			continue;
		for (k = 0; rc == 0 && counter->is_leader && k < counter->fd_count; k++)
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

/* --- draining --- */

/* Is what a ring has by now to be logged: from now on, or until logging has ended just now? */
static int is_logged(struct counter *counter)
{
	uint64_t action = __atomic_load_n(&counter->action, __ATOMIC_RELAXED);
	/* mg: the value is there */
	int was_logged = __atomic_exchange_n(&counter->is_owed, 0, __ATOMIC_ACQUIRE);

	return was_logged || PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG;
}

static int logs_maps(struct pem_source *source, int of_data)
{
	int logs = 0;
	size_t i;

	for (i = 0; i < source->count; i++)
		logs |= source->counters[i].is_of_maps &&
			is_of_data(source->counters[i].event) == of_data &&
			is_logged(&source->counters[i]);
	return logs;
}

static int counters_drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	int rc, result = counters__sample(source, sink, final);
	int log_maps[2] = {logs_maps(source, 0), logs_maps(source, 1)};
	size_t i;

	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];

		if (!counter->sampler)
			continue;
		rc = sampler__drain(counter->sampler, sink, is_logged(counter),
				    log_maps[is_of_data(counter->event)], final);
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
	if (counter->error)
		return counter->error;
	memset(balance, 0, sizeof(*balance));
	balance->produced = counter->written;
	if (counter->is_of_maps)
		balance->produced =
			sampler__maps(counters__sampler_of_maps(source, counter->event));
	if (counter->sampler) {
		balance->produced = sampler__produced(counter->sampler);
		balance->discarded = sampler__discarded(counter->sampler);
	}
	return 0;
}

/* A process that came into the observed control group. */
static int counters_add_target(struct pem_source *source, pid_t pid)
{
	(void)pid;
	return source->cgroup_fd >= 0 ? 0 : -ENOTSUP;
}

__attribute__((visibility("default"))) const struct pem_source_ops pem_source = {
	.size = sizeof(struct pem_source_ops),
	.abi_version = PEM_SOURCE_ABI_VERSION,
	.name = "counters",
	.can_deliver = counter__can_deliver,
	.open = counters_open,
	.start = counters_start,
	.set_action = counters__set_action,
	.read_statistic = counters__read_statistic,
	.drain = counters_drain,
	.add_target = counters_add_target,
	.balance = counters_balance,
	.close = counters_close,
	.find = counter__find,
	.knows_counter = counter__knows,
	.encode_counter = counter__encode_for_threads,
	.counted_as = counter__counted_as,
	.counter_turns = counter__turns,
	.estimate = counters__estimate,
};
