// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * readings.c - reads counters: for statistics, and for packets of counter values
 *
 * A counter runs until it is closed. The code here decides whether it counts for a statistic:
 *
 *	statistic = accumulated + (enabled ? reading - base : 0)
 *
 * So enabling, disabling and resetting cost one read, and no counter is opened again. If the kernel
 * had to share the hardware among too many events, a reading is an estimate (estimate.h). Drain
 * ends a window of each hardware counter some hundred times a second, from which the error of the
 * estimate is known. Members of a group are read one after the other, microseconds apart, and each
 * with the times of that moment. Once what they count has ended, all have the same times.
 *
 * Threads: set_action and read_statistic make read system calls, and synchronous callbacks may call
 * them. A session makes one such call at a time. drain may run at the same time, because it uses
 * only 'last', 'written', 'windows' and what 'is_owed' hands to it, and publishes 'rate_error'.
 */
#include "open.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_INTERVAL_NS 10000000ull
/*
 * A read of a counter that runs on another CPU interrupts that CPU, for some microseconds. So many
 * descriptors are read less often.
 */
#define WINDOW_NS_EACH 100000ull

/* --- statistics --- */

/* Add up all descriptors. Returns 0 or -errno. */
static int read_tally(const struct counter *counter, struct tally *tally)
{
	struct reading reading;
	size_t i;

	PEM_STATIC_ASSERT(sizeof(reading) == 24, "as PERF_FORMAT_TOTAL_TIME_* has it");
	memset(tally, 0, sizeof(*tally));
	for (i = 0; i < counter->fd_count; i++) {
		ssize_t got = read(counter->fds[i], &reading, sizeof(reading));

		if (got != (ssize_t)sizeof(reading))
			return got < 0 ? -errno : -EIO;
		tally__add(tally, &reading);
	}
	return 0;
}

/* Read what the statistic counts: the counter's values, or the number of samples. */
static int read_all(const struct pem_source *source, const struct counter *counter,
		    struct tally *tally)
{
	if (!counter->is_of_maps && !counter->sampler)
		return read_tally(counter, tally);
	memset(tally, 0, sizeof(*tally));
	tally->scaled = counter->sampler
				? sampler__produced(counter->sampler)
				: sampler__maps(counters__sampler_of_maps(source, counter->event));
	return 0;
}

/* Find the counter that was opened as number i. Returns 0; -EINVAL: none; or why it was not. */
static int take_counter(struct pem_source *source, size_t i, struct counter **counter)
{
	if (i >= source->count)
		return -EINVAL;
	*counter = &source->counters[i];
	return (*counter)->error;
}

int counters__set_action(struct pem_source *source, size_t i, uint64_t action)
{
	struct tally now, came;
	struct counter *counter;
	uint64_t old;
	int rc;

	rc = take_counter(source, i, &counter);
	if (rc < 0)
		return rc;
	old = counter->action;
	rc = read_all(source, counter, &now);
	if (rc < 0)
		return rc;
	came = now;
	tally__subtract(&came, &counter->base);
	if (PEM_ACTION_FLAGS(old) & PEM_ACTION_STAT)
		tally__join(&counter->accumulated, &came);
	if (PEM_ACTION_EPOCH(old) != PEM_ACTION_EPOCH(action))
		memset(&counter->accumulated, 0, sizeof(counter->accumulated));
	counter->base = now;
	__atomic_store_n(&counter->action, action, __ATOMIC_RELAXED); /* alone: orders nothing */
	/* Of a counter that never ran there is nothing to be written. */
	if (PEM_ACTION_FLAGS(old) & ~PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG &&
	    !tally__never_ran(&now)) {
		/* MG orders both */
		__atomic_store_n(&counter->owed, tally__total(&now), __ATOMIC_RELAXED);
		__atomic_store_n(&counter->owed_clock, pem_clock(), __ATOMIC_RELAXED);
		/* MG: the value is there */
		__atomic_store_n(&counter->is_owed, 1, __ATOMIC_RELEASE);
	}
	return 0;
}

/* The error of the mean rate of so much time running, in half widths of 95 % by 2. */
static double rate_error_of(const struct counter *counter, uint64_t running_ns)
{
	/* alone: orders nothing */
	uint64_t bits = __atomic_load_n(&counter->rate_error, __ATOMIC_RELAXED);
	double value;

	memcpy(&value, &bits, sizeof(value));
	return running_ns ? value / sqrt((double)running_ns) : NAN;
}

void counter__set_rate_error(struct counter *counter)
{
	/* So that it can be taken for any part of the time that the windows are a sample of. */
	double value = windows__rate_error(&counter->windows) * sqrt(counter->windows.r) *
		       windows__t(&counter->windows) / 2;
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	__atomic_store_n(&counter->rate_error, bits, __ATOMIC_RELAXED); /* alone: orders nothing */
}

int counters__read_statistic(struct pem_source *source, size_t i, struct pem_statistic *statistic)
{
	struct counter *counter;
	struct tally now, all;
	int rc;

	rc = take_counter(source, i, &counter);
	if (rc < 0)
		return rc;
	rc = read_all(source, counter, &now);
	if (rc < 0)
		return rc;
	all = counter->accumulated;
	if (PEM_ACTION_FLAGS(counter->action) & PEM_ACTION_STAT) {
		tally__subtract(&now, &counter->base);
		tally__join(&all, &now);
	}
	if (tally__never_ran(&all))
		return -EBUSY;
	memset(statistic, 0, sizeof(*statistic));
	statistic->event = counter->event;
	statistic->count = statistic->sum = tally__total(&all);
	statistic->counted = all.counted;
	statistic->enabled_ns = all.enabled_ns;
	statistic->running_ns = all.running_ns;
	statistic->error = estimate__error(&all, rate_error_of(counter, all.running_ns));
	statistic->together = counter->group;
	return 0;
}

int counters__estimate(struct pem_source *source, size_t i, struct pem_trace_estimate *estimate,
		       struct pem_error *reason)
{
	struct counter *counter;
	struct tally all;
	int rc;

	rc = take_counter(source, i, &counter);
	if (rc < 0)
		return rc;
	if (!counter->is_hardware)
		return 0;
	rc = read_tally(counter, &all);
	if (rc < 0)
		return rc;
	if (tally__never_ran(&all)) {
		counter__explain_busy(reason);
		return -EBUSY;
	}
	estimate->enabled_ns = all.enabled_ns;
	estimate->running_ns = all.running_ns;
	estimate->error = estimate__error(&all, rate_error_of(counter, all.running_ns));
	/* The last value written may be an earlier one, which was greater. */
	if (counter->last > tally__total(&all))
		estimate->error += (double)(counter->last - tally__total(&all));
	estimate->together = counter->group;
	return tally__is_estimate(&all);
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

static void end_window(struct counter *counter, const struct tally *now)
{
	if (!counter->is_hardware)
		return;
	windows__add(&counter->windows, now);
	counter__set_rate_error(counter);
}

/*
 * Read what is to be written of the counter. Returns 1; 0: nothing, also of a counter that never
 * ran; -errno.
 */
static int read_logged(struct counter *counter, int owed, uint64_t *value)
{
	uint64_t action = __atomic_load_n(&counter->action, __ATOMIC_RELAXED);
	struct tally now;
	int rc;

	if (counter->error || counter->sampler || counter->is_of_maps)
		return 0;
	if (owed) {
		*value = __atomic_load_n(&counter->owed, __ATOMIC_RELAXED);
		return counter->writes_owed;
	}
	if (!(PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG))
		return 0;
	rc = read_tally(counter, &now);
	if (rc < 0)
		return rc;
	end_window(counter, &now);
	*value = tally__total(&now);
	return !tally__never_ran(&now);
}

/*
 * Write one record for each logged counter, or for each that owes one, all with one time. Continues
 * after a failure. Returns the first failure.
 */
static int write_readings(struct pem_source *source, const struct pem_source_sink *sink, int owed,
			  uint64_t clock)
{
	struct reading_builder builder;
	uint64_t value;
	int rc, result = 0;
	size_t i;

	reading_builder__init(&builder);
	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];

		rc = read_logged(counter, owed, &value);
		if (rc <= 0) {
			result = result ? result : rc;
			continue;
		}
		if (value > counter->last)
			counter->last = value;
		rc = reading_builder__put(
			&builder,
			&(struct counter_reading){.event = counter->event,
						  .value_offset = counter->value_offset,
						  .pid = counter->pid,
						  .value = counter->last,
						  .clock = clock},
			sink, &source->refused);
		result = result ? result : rc;
		counter->written++;
	}
	rc = reading_builder__flush(&builder, clock, sink, &source->refused);
	return result ? result : rc;
}

/* End a window of each hardware counter that is not logged: those that are have had theirs. */
static void end_windows(struct pem_source *source, uint64_t now_ns)
{
	struct tally now;
	size_t i, fds = 0;

	for (i = 0; i < source->count; i++)
		fds += source->counters[i].is_hardware ? source->counters[i].fd_count : 0;
	if (now_ns - source->last_windows_ns < fds * WINDOW_NS_EACH)
		return;
	source->last_windows_ns = now_ns;
	for (i = 0; i < source->count; i++) {
		struct counter *counter = &source->counters[i];
		uint64_t action = __atomic_load_n(&counter->action, __ATOMIC_RELAXED);

		if (!counter->error && counter->is_hardware &&
		    !(PEM_ACTION_FLAGS(action) & PEM_ACTION_LOG) && !read_tally(counter, &now))
			end_window(counter, &now);
	}
}

int counters__sample(struct pem_source *source, const struct pem_source_sink *sink, int final)
{
	uint64_t now_ns = monotonic_ns(), owed_clock;
	int rc, result = 0;

	if (!final && now_ns - source->last_sample_ns < SAMPLE_INTERVAL_NS)
		return 0;
	source->last_sample_ns = now_ns;
	end_windows(source, now_ns);
	owed_clock = take_owed(source);
	if (owed_clock)
		result = write_readings(source, sink, 1, owed_clock);
	rc = write_readings(source, sink, 0, pem_clock());
	return result ? result : rc;
}
