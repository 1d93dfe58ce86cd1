/* SPDX-License-Identifier: MIT */
/*
 * html_counters.c - keeps the last value of each counter, to compute the growth of values that only
 * grow
 *
 * A counter is an event of one process, thread (by their numbers in the pass), cpu and stream. At
 * most COUNTERS_MAX are followed. Of further counters the records still count, but their growth
 * does not.
 */
#include "html_data.h"
#include "hash.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES 32768u /* a power of two */
#define COUNTERS_MAX (ENTRIES / 2)

struct counter {
	const struct pem_event *event; /* NULL: the entry is free */
	uint32_t process, thread, cpu, stream;
	uint64_t time_ns;
	uint64_t value;
	double value_f;
};

struct pem_html_counters {
	uint32_t count;
	uint64_t multiplier; /* of hash.h */
	struct counter entry[ENTRIES];
};

struct pem_html_counters *pem_html_counters__new(void)
{
	struct pem_html_counters *counters = calloc(1, sizeof(*counters));

	if (counters)
		counters->multiplier = pem_hash__multiplier();
	return counters;
}

void pem_html_counters__free(struct pem_html_counters *counters)
{
	free(counters);
}

/* Find the counter of a record, or take a free entry. NULL: there are too many. */
static struct counter *find(struct pem_html_counters *counters, const struct counter *wanted)
{
	uint64_t multiplier = counters->multiplier, key;
	uint32_t i;

	key = pem_hash__join(0, multiplier, (uint64_t)wanted->event->id << 32 | wanted->stream);
	key = pem_hash__join(key, multiplier, (uint64_t)wanted->process << 32 | wanted->thread);
	i = (uint32_t)pem_hash__index(key ^ wanted->cpu, multiplier, ENTRIES);
	for (;; i = (i + 1) % ENTRIES) {
		struct counter *counter = &counters->entry[i];

		if (!counter->event) {
			if (counters->count == COUNTERS_MAX)
				return NULL;
			return counter;
		}
		if (counter->event == wanted->event && counter->process == wanted->process &&
		    counter->thread == wanted->thread && counter->cpu == wanted->cpu &&
		    counter->stream == wanted->stream)
			return counter;
	}
}

static int is_float(const struct pem_field *field)
{
	return field->type == PEM_TYPE_FLOAT32 || field->type == PEM_TYPE_FLOAT64;
}

int pem_html_counters__step(struct pem_html_counters *counters, const struct pem_record *record,
			    const struct pem_around *around, unsigned field, double *growth,
			    uint64_t *since_ns)
{
	struct counter now = {.event = record->event,
			      .process = pem_html_number(around->process),
			      .thread = around->thread ? around->thread->number + 1 : 0,
			      .cpu = record->cpu,
			      .stream = record->stream,
			      .time_ns = record->time_ns};
	struct counter *last = find(counters, &now);
	int err = 0;

	if (!last)
		return 0;
	/* The difference of integers is exact even above 2^53. */
	if (is_float(&record->event->fields[field]))
		now.value_f = pem_record__f64(record, field);
	else
		now.value = pem_record__u64(record, field);
	if (!isfinite(now.value_f))
		return -EINVAL;
	if (!last->event) {
		counters->count++;
	} else if (now.value < last->value || now.value_f < last->value_f) {
		err = -EINVAL;
	} else {
		*growth = (double)(now.value - last->value) + (now.value_f - last->value_f);
		*since_ns = last->time_ns;
		err = isfinite(*growth) ? 1 : -EINVAL;
	}
	*last = now;
	return err;
}
