// SPDX-License-Identifier: MIT
/*
 * report_phases.c - pairs begins and ends of phases, and says what happened in between
 *
 * A begin saves how many of each event had been read; its end takes the difference. So a phase costs at its two
 * ends and nothing per event. An end closes the innermost phase of its name in its thread; if there is none, the
 * innermost of its name anywhere, since `pem mark begin` and `pem mark end` are two processes.
 */
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MOST 4096 /* a trace may begin phases without end: the memory for them is bounded */

struct open_phase {
	uint32_t phase; /* index in report->phases */
	uint32_t tid;
	uint64_t begin_ns;
	uint64_t *counts; /* of all events at the begin */
};

struct report_open {
	struct open_phase open[OPEN_MOST];
	size_t count;
	struct cli_map by_name; /* hash of the name: first index in report->phases */
};

struct report_open *report_open__new(void)
{
	return calloc(1, sizeof(struct report_open));
}

void report_open__free(struct report_open *open)
{
	if (open == NULL)
		return;
	while (open->count > 0)
		free(open->open[--open->count].counts);
	cli_map__free(&open->by_name);
	free(open);
}

static uint64_t hash(const char *text)
{
	uint64_t h = 14695981039346656037ull; /* FNV-1a 64 */

	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 1099511628211ull;
	return h;
}

/* The phase of a name, made when new; UINT32_MAX without memory. Names whose hashes collide would share one. */
static uint32_t phase_of(struct report_open *open, struct report *report, const char *name)
{
	uint32_t *at = cli_map__at(&open->by_name, hash(name));
	struct report_phase *phase;

	if (at == NULL)
		return UINT32_MAX;
	if (*at != UINT32_MAX)
		return *at;
	if (cli_grow((void **)&report->phases, sizeof(*report->phases), report->phase_count,
		     &report->phase_capacity) < 0)
		return UINT32_MAX;
	phase = &report->phases[report->phase_count];
	memset(phase, 0, sizeof(*phase));
	phase->first_ns = phase->least_ns = UINT64_MAX;
	phase->name = strdup(name);
	phase->counts = calloc(report->event_count + 1, sizeof(*phase->counts));
	if (phase->name == NULL || phase->counts == NULL) {
		free(phase->name);
		free(phase->counts);
		return UINT32_MAX;
	}
	*at = (uint32_t)report->phase_count++;
	return *at;
}

static int begin(struct report_open *open, struct report *report, uint32_t phase,
		 const struct pem_record *record)
{
	struct open_phase *o;
	size_t i;

	if (open->count == OPEN_MOST) {
		/* The outermost gives way: it is the likeliest to never end. */
		report->phases[open->open[0].phase].unfinished++;
		free(open->open[0].counts);
		memmove(open->open, open->open + 1, (OPEN_MOST - 1) * sizeof(open->open[0]));
		open->count--;
	}
	o = &open->open[open->count];
	o->counts = calloc(report->event_count + 1, sizeof(*o->counts));
	if (o->counts == NULL)
		return -ENOMEM;
	for (i = 0; i < report->event_count; i++)
		o->counts[i] = report->events[i].count;
	o->phase = phase;
	o->tid = record->tid;
	o->begin_ns = record->time_ns;
	if (record->time_ns < report->phases[phase].first_ns)
		report->phases[phase].first_ns = record->time_ns;
	open->count++;
	return 0;
}

static void close_phase(struct report_open *open, struct report *report, size_t at, uint64_t end_ns)
{
	struct open_phase *o = &open->open[at];
	struct report_phase *phase = &report->phases[o->phase];
	uint64_t ns = end_ns > o->begin_ns ? end_ns - o->begin_ns : 0;
	size_t i;

	for (i = 0; i < report->event_count; i++)
		phase->counts[i] += report->events[i].count - o->counts[i];
	phase->total_ns += ns;
	if (ns < phase->least_ns)
		phase->least_ns = ns;
	if (ns > phase->most_ns)
		phase->most_ns = ns;
	free(o->counts);
	memmove(o, o + 1, (open->count - at - 1) * sizeof(*o));
	open->count--;
}

static void end(struct report_open *open, struct report *report, uint32_t phase,
		const struct pem_record *record)
{
	size_t i, found = SIZE_MAX;

	for (i = open->count; i-- > 0;) {
		if (open->open[i].phase != phase)
			continue;
		if (found == SIZE_MAX)
			found = i;
		if (open->open[i].tid == record->tid) {
			found = i;
			break;
		}
	}
	if (found == SIZE_MAX) {
		report->ends_without_begin++;
		return;
	}
	report->phases[phase].times++;
	close_phase(open, report, found, record->time_ns);
}

int report_open__record(struct report_open *open, struct report *report,
			const struct pem_record *record)
{
	int field = pem_event__field_by_role(record->event, PEM_ROLE_NAME);
	const char *name = field >= 0 ? pem_record__string(record, (unsigned int)field)
				      : record->event->class_name;
	bool begins = record->event->meaning == PEM_MEANS_INTERVAL_BEGIN;
	uint32_t phase;

	phase = phase_of(open, report, name);
	if (phase == UINT32_MAX)
		return -ENOMEM;
	if (begins)
		return begin(open, report, phase, record);
	end(open, report, phase, record);
	return 0;
}

int report_open__finish(struct report_open *open, struct report *report, uint64_t end_ns)
{
	while (open->count > 0) {
		report->phases[open->open[open->count - 1].phase].unfinished++;
		close_phase(open, report, open->count - 1, end_ns);
	}
	return 0;
}
