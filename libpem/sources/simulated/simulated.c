// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * simulated.c - the source of what a simulated machine counts: reads the file that the tool writes
 *
 * Programs can write the file, too, and cut it. So it is read and not mapped, and what is missing
 * counts as zeroes. Values that fall count as those before: readings never fall, and differences
 * are never less than 0.
 *
 * A counter is the sum over all processes that the tool ran. set_action and read_statistic may be
 * called while drain runs: they use the file alone, and members that drain does not.
 */
#include "sources/readings/reading_builder.h"

#include <pem/clock.h>
#include <pem/counted.h>
#include <pem/hardware.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INTERVAL_NS 10000000ull
#define BLOCK_PROCESSES 32u /* entries read at once */
#define PREFIX "simulated::"

static const char *const names[] = {
	"INSTRUCTIONS",
	"CYCLES",
	"LOADS",
	"STORES",
	"L1_CODE_MISSES",
	"L1_DATA_MISSES",
	"L2_ACCESSES",
	"L2_MISSES",
	"L3_ACCESSES",
	"L3_MISSES",
	"LAST_LEVEL_MISSES",
	"CODE_TLB_MISSES",
	"DATA_TLB_MISSES",
	"L2_TLB_MISSES",
	"PAGE_WALKS",
	"PAGE_WALK_CYCLES",
};
PEM_STATIC_ASSERT(sizeof(names) / sizeof(names[0]) == PEM_SIMULATED_COUNT, "a name for each");

struct simulated {
	const struct pem_event *event;
	uint32_t number; /* enum pem_simulated */
	uint32_t value_offset;
	uint64_t action;
	uint64_t base, accumulated; /* of the statistic */
	uint64_t last, written; /* of readings */
	/* When logging ends: what it held then, until drain has written that. */
	uint64_t owed, owed_clock;
	int is_owed, writes_owed;
};

struct pem_source {
	int fd; /* of a struct pem_hardware_file */
	pid_t root;
	uint64_t last_sample_ns, refused;
	void (*log)(enum pem_log_level level, const char *text, void *arg);
	void *log_arg;
	size_t count;
	struct simulated counters[];
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

/* The number of a counter, by its source's name. -ENOENT: it is none of this source's. */
static int number_of(const char *name)
{
	int i;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return -ENOENT;
	for (i = 0; i < (int)PEM_SIMULATED_COUNT; i++)
		if (!strcmp(name + strlen(PREFIX), names[i]))
			return i;
	return -ENOENT;
}

/* The index of the field with the counter's value; -1: it has none. */
static int value_field(const struct pem_event *event)
{
	int i;

	for (i = 0; i < (int)event->field_count; i++)
		if (event->fields[i].role == PEM_ROLE_VALUE &&
		    event->fields[i].type == PEM_TYPE_UINT64)
			return i;
	return -1;
}

static int can_deliver(const struct pem_event *event, struct pem_error *reason)
{
	if (event->source_kind != PEM_SOURCE_SIMULATED)
		return -ENOENT;
	if (number_of(event->source_name) >= 0 && value_field(event) >= 0)
		return 1;
	set_error(reason, "no simulated machine counts '%.60s'", event->source_name);
	return 0;
}

/* --- the file --- */

/* Is it a file of the one size, of which no part was cut? */
static int is_whole(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	       st.st_size == (off_t)sizeof(struct pem_hardware_file);
}

static int open_file(const char *path, struct pem_error *error)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd >= 0 && is_whole(fd))
		return fd;
	if (fd >= 0)
		close(fd);
	set_error(error, "'%.200s' is no file of a simulated machine's counts", path);
	return -1;
}

/* How many processes took an entry, or would have: not bounded. */
static uint32_t processes_of(const struct pem_source *source)
{
	const off_t at = offsetof(struct pem_hardware, process_count);
	uint32_t count;

	return pread(source->fd, &count, sizeof(count), at) == (ssize_t)sizeof(count) ? count : 0;
}

static uint64_t sum_of(const struct pem_source *source, uint32_t number)
{
	struct pem_simulated_process block[BLOCK_PROCESSES];
	uint32_t left = processes_of(source), i;
	off_t at = offsetof(struct pem_hardware_file, processes);
	uint64_t sum = 0;
	ssize_t bytes;

	if (left > PEM_HARDWARE_PROCESSES_MAX)
		left = PEM_HARDWARE_PROCESSES_MAX;
	while (left) {
		uint32_t count = left < BLOCK_PROCESSES ? left : BLOCK_PROCESSES;

		memset(block, 0, sizeof(block));
		bytes = pread(source->fd, block, count * sizeof(block[0]), at);
		if (bytes <= 0)
			return sum;
		for (i = 0; i < count; i++)
			sum += block[i].counts[number];
		at += bytes;
		left -= count;
		if ((size_t)bytes < count * sizeof(block[0]))
			return sum;
	}
	return sum;
}

/* What was counted since base. 0: the file's values fell. */
static uint64_t since(uint64_t now, uint64_t base)
{
	return now > base ? now - base : 0;
}

/* --- operations --- */

/* Say what the counts lack. */
static void tell_losses(const struct pem_source *source)
{
	uint32_t taken = processes_of(source);
	char text[160];

	if (!is_whole(source->fd))
		source->log(PEM_LOG_WARNING,
			    "the file of the simulated machine's counts was cut or grew: a program "
			    "changed it, and the counts are not to be trusted",
			    source->log_arg);
	if (taken <= PEM_HARDWARE_PROCESSES_MAX)
		return;
	snprintf(text, sizeof(text),
		 "the simulated machine ran %u processes and counts %u: the last ones are not in "
		 "its counts",
		 taken, PEM_HARDWARE_PROCESSES_MAX);
	source->log(PEM_LOG_WARNING, text, source->log_arg);
}

static void simulated_close(struct pem_source *source)
{
	if (!source)
		return;
	if (source->fd >= 0) {
		if (source->log)
			tell_losses(source);
		close(source->fd);
	}
	free(source);
}

static int simulated_open(const struct pem_source_config *config, struct pem_source **out,
			  struct pem_error *error)
{
	struct pem_source *source;
	size_t i;
	int number, value;

	if (config->size < sizeof(*config) || !config->hardware) {
		set_error(error, "no simulated machine is named: pem stat --hardware FILE.xml");
		return -EINVAL;
	}
	source = calloc(1, sizeof(*source) + config->event_count * sizeof(source->counters[0]));
	if (!source) {
		set_error(error, "no memory for %zu counters", config->event_count);
		return -ENOMEM;
	}
	source->root = config->root;
	source->log = config->log;
	source->log_arg = config->log_arg;
	source->count = config->event_count;
	source->fd = open_file(config->hardware, error);
	if (source->fd < 0) {
		simulated_close(source);
		return -EINVAL;
	}
	for (i = 0; i < source->count; i++) {
		source->counters[i].event = config->events[i].event;
		source->counters[i].action = config->events[i].action;
		number = number_of(config->events[i].event->source_name);
		value = value_field(config->events[i].event);
		if (number < 0 || value < 0) {
			set_error(error, "%s can't be counted", config->events[i].event->name);
			simulated_close(source);
			return -EINVAL;
		}
		source->counters[i].number = (uint32_t)number;
		source->counters[i].value_offset = config->events[i].event->fields[value].offset;
	}
	*out = source;
	return 0;
}

static int simulated_start(struct pem_source *source, struct pem_error *error)
{
	(void)source;
	(void)error;
	return 0;
}

static int simulated_set_action(struct pem_source *source, size_t i, uint64_t action)
{
	struct simulated *counter;
	uint64_t now;

	if (i >= source->count)
		return -EINVAL;
	counter = &source->counters[i];
	now = sum_of(source, counter->number);
	if (PEM_ACTION_FLAGS(counter->action) & PEM_ACTION_STAT)
		counter->accumulated += since(now, counter->base);
	if (PEM_ACTION_EPOCH(counter->action) != PEM_ACTION_EPOCH(action))
		counter->accumulated = 0;
	counter->base = now;
	if (PEM_ACTION_FLAGS(counter->action) & ~PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG) {
		/* MG orders both */
		__atomic_store_n(&counter->owed, now, __ATOMIC_RELAXED);
		__atomic_store_n(&counter->owed_clock, pem_clock(), __ATOMIC_RELAXED);
		/* MG: the value is there */
		__atomic_store_n(&counter->is_owed, 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&counter->action, action, __ATOMIC_RELAXED); /* alone: orders nothing */
	return 0;
}

static int simulated_read_statistic(struct pem_source *source, size_t i,
				    struct pem_statistic *statistic)
{
	const struct simulated *counter;
	uint64_t value;

	if (i >= source->count)
		return -EINVAL;
	counter = &source->counters[i];
	value = counter->accumulated;
	if (PEM_ACTION_FLAGS(counter->action) & PEM_ACTION_STAT)
		value += since(sum_of(source, counter->number), counter->base);
	memset(statistic, 0, sizeof(*statistic));
	statistic->event = counter->event;
	statistic->count = statistic->sum = value;
	return 0;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* Take what counters owe. Returns the last clock of these, at which all are written; 0: none. */
static uint64_t take_owed(struct pem_source *source)
{
	uint64_t clock = 0, its;
	size_t i;

	for (i = 0; i < source->count; i++) {
		struct simulated *counter = &source->counters[i];

		/* mg: the value is there */
		counter->writes_owed = __atomic_exchange_n(&counter->is_owed, 0, __ATOMIC_ACQUIRE);
		its = __atomic_load_n(&counter->owed_clock, __ATOMIC_RELAXED);
		if (counter->writes_owed && its > clock)
			clock = its;
	}
	return clock;
}

/* Is the counter to be written, and with what value? */
static int is_written(const struct pem_source *source, const struct simulated *counter, int owed,
		      uint64_t *value)
{
	uint64_t action = __atomic_load_n(&counter->action, __ATOMIC_RELAXED);

	*value = owed ? __atomic_load_n(&counter->owed, __ATOMIC_RELAXED)
		      : sum_of(source, counter->number);
	return owed ? counter->writes_owed : (PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG) != 0;
}

/* Write one record for each logged counter, or for each that owes one, all with one time. */
static int write_readings(struct pem_source *source, const struct pem_source_sink *sink, int owed,
			  uint64_t clock)
{
	struct reading_builder builder;
	int rc, result = 0;
	uint64_t value;
	size_t i;

	reading_builder__init(&builder);
	for (i = 0; i < source->count; i++) {
		struct simulated *counter = &source->counters[i];

		if (!is_written(source, counter, owed, &value))
			continue;
		if (value > counter->last)
			counter->last = value;
		rc = reading_builder__put(
			&builder,
			&(struct counter_reading){.event = counter->event,
						  .value_offset = counter->value_offset,
						  .pid = (uint32_t)source->root,
						  .value = counter->last,
						  .clock = clock},
			sink, &source->refused);
		result = result ? result : rc;
		counter->written++;
	}
	rc = reading_builder__flush(&builder, clock, sink, &source->refused);
	return result ? result : rc;
}

static int simulated_drain(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	uint64_t now_ns = monotonic_ns(), owed_clock;
	int rc, result = 0;

	if (!final && now_ns - source->last_sample_ns < INTERVAL_NS)
		return 0;
	source->last_sample_ns = now_ns;
	owed_clock = take_owed(source);
	if (owed_clock)
		result = write_readings(source, sink, 1, owed_clock);
	rc = write_readings(source, sink, 0, pem_clock());
	return result ? result : rc;
}

static int simulated_balance(struct pem_source *source, size_t i, struct pem_balance *balance)
{
	if (i >= source->count)
		return -EINVAL;
	memset(balance, 0, sizeof(*balance));
	balance->produced = source->counters[i].written;
	return 0;
}

static int encode_counter(const char *name, struct pem_counter *counter, struct pem_error *error)
{
	int number = number_of(name);

	(void)error;
	if (number < 0)
		return number;
	*counter = (struct pem_counter){.type = PEM_COUNTER_SIMULATED, .config = (uint64_t)number};
	return 0;
}

__attribute__((visibility("default"))) const struct pem_source_ops pem_source = {
	.size = sizeof(struct pem_source_ops),
	.abi_version = PEM_SOURCE_ABI_VERSION,
	.name = "simulated",
	.can_deliver = can_deliver,
	.open = simulated_open,
	.start = simulated_start,
	.set_action = simulated_set_action,
	.read_statistic = simulated_read_statistic,
	.drain = simulated_drain,
	.balance = simulated_balance,
	.close = simulated_close,
	.encode_counter = encode_counter,
};
