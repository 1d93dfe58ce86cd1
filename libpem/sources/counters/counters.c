// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * counters.c - the counters source: hardware and software counters through perf_event_open
 *
 * Not here: names and reasons (encode.c), samples of the program counter (sampler.c).
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
#include "counters.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_INTERVAL_NS 10000000ull
#define THREADS_MAX 4096u
#define SCAN_PASSES 8

struct counter {
	const struct pem_event *event;
	struct pem_context context;
	uint64_t action; /* PEM_ACTION; atomic because drain reads it */
	int error; /* 0, or the -errno why it can't be delivered */
	uint32_t pid; /* the process that its records are about; 0: the machine */
	uint16_t value_offset;
	int *fds;
	size_t fd_count;
	struct sampler *sampler; /* for a SAMPLE event, which has no fds */
	uint64_t base, accumulated; /* of the statistic */
	/*
	 * The greatest value written. A counter only grows, but scaling may make a reading smaller.
	 */
	uint64_t last;
	uint64_t written;
	/* What the counter had counted when logging it ended: the last record to be written. */
	uint64_t owed;
	int is_owed; /* atomic: hands 'owed' to drain */
};

struct pem_source {
	pid_t root;
	int root_runs;
	int no_follow;
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	uint64_t last_sample_ns;
	uint64_t refused; /* records that the sink refused */
	size_t count;
	struct counter counters[];
};

/* --- opening --- */

static int add_fd(struct counter *counter, int fd)
{
	int *grown;

	if (fd < 0)
		return fd;
	grown = realloc(counter->fds, (counter->fd_count + 1) * sizeof(*grown));
	if (!grown) {
		close(fd);
		return -ENOMEM;
	}
	counter->fds = grown;
	counter->fds[counter->fd_count++] = fd;
	return 0;
}

static int is_known(const pid_t *known, size_t count, pid_t tid)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (known[i] == tid)
			return 1;
	return 0;
}

/*
 * Open the counter on each thread of a process that is not yet in known. Returns how many were
 * opened, or -errno.
 */
static int open_new_threads(struct counter *counter, struct perf_event_attr *attr, int cpu,
			    pid_t *known, size_t *known_count)
{
	char path[48];
	struct dirent *entry;
	int rc, added = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", counter->pid);
	tasks = opendir(path);
	if (!tasks)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((entry = readdir(tasks)) && *known_count < THREADS_MAX) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || is_known(known, *known_count, tid))
			continue;
		rc = add_fd(counter, counter__open(attr, tid, cpu, -1));
		if (rc == -ESRCH) /* the thread has ended meanwhile */
			continue;
		if (rc < 0) {
			added = rc;
			break;
		}
		known[(*known_count)++] = tid;
		added++;
	}
	closedir(tasks);
	return added;
}

/*
 * Threads may start during the search, so it is repeated until no new thread is found. Threads that
 * start later inherit the counter, and so do processes if follow is set.
 */
static int open_process(struct counter *counter, struct perf_event_attr *attr, int cpu, int follow)
{
	pid_t *known = calloc(THREADS_MAX, sizeof(*known));
	size_t known_count = 0;
	int rc = 1, pass;

	if (!known)
		return -ENOMEM;
	attr->inherit = 1;
	attr->inherit_thread = !follow;
	for (pass = 0; rc > 0 && pass < SCAN_PASSES; pass++) {
		rc = open_new_threads(counter, attr, cpu, known, &known_count);
		if (rc == -EINVAL && attr->inherit_thread && !known_count) {
			/* Before Linux 5.13 child processes are counted, too. */
			attr->inherit_thread = 0;
			rc = 1;
		}
	}
	free(known);
	if (rc >= 0 && !known_count)
		return -ESRCH;
	return rc < 0 ? rc : 0;
}

static int open_machine(struct counter *counter, struct perf_event_attr *attr)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), i;
	int rc;

	for (i = 0; i < cpus; i++) {
		rc = add_fd(counter, counter__open(attr, -1, (int)i, -1));
		if (rc < 0 && rc != -ENODEV)
			return rc;
	}
	return counter->fd_count ? 0 : -ENODEV;
}

static int open_counter(struct pem_source *source, struct counter *counter,
			struct perf_event_attr *attr)
{
	const struct pem_context *context = &counter->context;
	int cpu = context->one_cpu ? (int)context->cpu : -1;

	attr->disabled = 1;
	attr->read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	counter->pid = context->pid;
	if (context->tid != PEM_ANY)
		return add_fd(counter, counter__open(attr, (pid_t)context->tid, cpu, -1));
	if (context->pid != PEM_ANY && context->pid != (uint32_t)source->root)
		return open_process(counter, attr, cpu, 0);
	if (source->root && source->root_runs) {
		counter->pid = (uint32_t)source->root;
		return open_process(counter, attr, cpu, !source->no_follow);
	}
	if (source->root) {
		counter->pid = (uint32_t)source->root;
		attr->inherit = 1;
		attr->inherit_thread = source->no_follow != 0;
		attr->enable_on_exec = 1;
		return add_fd(counter, counter__open(attr, source->root, cpu, -1));
	}
	if (cpu >= 0)
		return add_fd(counter, counter__open(attr, -1, cpu, -1));
	return open_machine(counter, attr);
}

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
		rc = open_counter(source, counter, &attr);
	if (rc == -ESRCH)
		counter__set_error(error, "can't be counted: process %u or thread %u is gone",
				   counter->context.pid, counter->context.tid);
	else if (rc < 0)
		counter__explain(counter->event->source_name, &attr, rc, error);
	return rc;
}

static int open_sampler(struct pem_source *source, const struct pem_source_config *config,
			struct counter *counter, struct pem_error *error)
{
	const struct pem_context *context = &counter->context;
	struct sampler_request request = {.event = counter->event,
					  .on_exec = waits_for_exec(source, counter),
					  .hz = config->sample_hz,
					  .buffer_bytes = config->buffer_bytes,
					  .first_stream = 1};
	const char *members[RING_VALUES_MAX];
	size_t i;

	for (i = 0; i < config->event_count && request.member_count < RING_VALUES_MAX; i++)
		if (config->events[i].event->source_kind == PEM_SOURCE_PERF)
			members[request.member_count++] = config->events[i].event->source_name;
	request.members = members;
	request.pid = request.on_exec || (source->root_runs && !context->pid) ? source->root
		      : context->tid                                          ? (pid_t)context->tid
		      : context->pid                                          ? (pid_t)context->pid
									      : -1;
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

static void open_one(struct pem_source *source, const struct pem_source_config *config, size_t i)
{
	struct counter *counter = &source->counters[i];
	struct pem_error error;
	char text[sizeof(error.text) + 256];

	counter->event = config->events[i].event;
	counter->context = config->events[i].context;
	counter->action = config->events[i].action;
	snprintf(error.text, sizeof(error.text), "can't be counted");
	if (counter->event->source_kind == PEM_SOURCE_PERF)
		counter->error = open_value(source, counter, &error);
	else if (counter->event->source_kind == PEM_SOURCE_SAMPLE)
		counter->error = open_sampler(source, config, counter, &error);
	else
		counter->error = -ENOENT;
	if (counter->error == 0)
		return;
	close_counter(counter);
	snprintf(text, sizeof(text), "%s: %s", counter->event->name, error.text);
	tell(source, PEM_LOG_WARNING, text);
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
static int read_total(const struct counter *counter, uint64_t *value)
{
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
	rc = read_total(counter, &value);
	if (rc < 0)
		return rc;
	if (PEM_ACTION_FLAGS(old) & PEM_ACTION_STAT)
		counter->accumulated += since(value, counter->base);
	if (PEM_ACTION_EPOCH(old) != PEM_ACTION_EPOCH(action))
		counter->accumulated = 0;
	counter->base = value;
	__atomic_store_n(&counter->owed, value, __ATOMIC_RELAXED); /* MG orders it */
	__atomic_store_n(&counter->action, action, __ATOMIC_RELAXED); /* alone: orders nothing */
	if (PEM_ACTION_FLAGS(old) & ~PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG)
		/* MG: the value is there */
		__atomic_store_n(&counter->is_owed, 1, __ATOMIC_RELEASE);
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
	rc = read_total(counter, &value);
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

/* Read what is to be logged of the counter. Returns 1; 0: nothing; -errno. */
static int read_logged(struct counter *counter, uint64_t *value)
{
	uint64_t action = __atomic_load_n(&counter->action, __ATOMIC_RELAXED);
	int rc;

	if (counter->error || counter->sampler)
		return 0;
	/* mg: the value is there */
	if (__atomic_exchange_n(&counter->is_owed, 0, __ATOMIC_ACQUIRE)) {
		*value = __atomic_load_n(&counter->owed, __ATOMIC_RELAXED);
		return 1;
	}
	if (!(PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG))
		return 0;
	rc = read_value(counter, value);
	return rc < 0 ? rc : 1;
}

/*
 * Write one record for each logged counter, all with one time. Continues after a failure. Returns
 * the first failure.
 */
static int sample_counters(struct pem_source *source, const struct pem_source_sink *sink)
{
	struct reading_builder builder;
	struct pem_packet *packet = (struct pem_packet *)builder.bytes;
	uint64_t clock = pem_clock(), value;
	int rc, result = 0;
	size_t i;

	packet->record_count = 0;
	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];
		rc = read_logged(counter, &value);
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

static int counters_drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	uint64_t now = monotonic_ns();
	int rc, result = 0;
	size_t i;

	if (final || now - source->last_sample_ns >= SAMPLE_INTERVAL_NS) {
		source->last_sample_ns = now;
		result = sample_counters(source, sink);
	}
	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];
		uint64_t action = __atomic_load_n(&counter->action, __ATOMIC_RELAXED);

		if (!counter->sampler)
			continue;
		rc = sampler__drain(counter->sampler, sink,
				    (PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG) != 0, final);
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
};
