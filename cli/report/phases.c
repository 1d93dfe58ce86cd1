// SPDX-License-Identifier: MIT
/*
 * phases.c - pairs begins and ends of phases, and says what happened in between
 *
 * A begin saves how many of each event had been read; its end takes the difference. So a phase costs at its two
 * ends and nothing per event. An end closes the innermost phase that belongs to it (pem_record__key) and has its name;
 * if there is none, the innermost of its name in any thread, since `pem mark begin` and `pem mark end` are two processes.
 */
#include "report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MOST 4096 /* a trace may begin phases without end: the memory for them is bounded */

struct open_phase {
	const struct pem_event *event;
	uint64_t key;
	uint32_t phase; /* index in report->phases */
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
	o->event = record->event;
	o->key = pem_record__key(record, PEM_ROLE_ADDRESS);
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

/* Marks come from processes of their own: an end of role 'name' alone may close what another thread began. */
static bool may_end_elsewhere(const struct pem_event *event)
{
	return event->scope == PEM_SCOPE_THREAD &&
	       pem_event__field_by_role(event, PEM_ROLE_NAME) >= 0 &&
	       pem_event__field_by_role(event, PEM_ROLE_KEY) < 0;
}

static void end(struct report_open *open, struct report *report, uint32_t phase,
		const struct pem_record *record)
{
	bool has_name = pem_event__field_by_role(record->event, PEM_ROLE_NAME) >= 0;
	uint64_t key = pem_record__key(record, PEM_ROLE_ADDRESS);
	size_t i, found = SIZE_MAX;

	for (i = open->count; i-- > 0;) {
		const struct open_phase *o = &open->open[i];

		if (has_name && o->phase != phase &&
		    pem_event__field_by_role(o->event, PEM_ROLE_NAME) >= 0)
			continue;
		if (o->key == key) {
			found = i;
			break;
		}
		if (found == SIZE_MAX && o->phase == phase && may_end_elsewhere(record->event) &&
		    strcmp(o->event->group, record->event->group) == 0)
			found = i;
	}
	if (found == SIZE_MAX) {
		report->ends_without_begin++;
		return;
	}
	report->phases[open->open[found].phase].times++;
	close_phase(open, report, found, record->time_ns);
}

/* What a group's last word says: 'Work' of 'APP::Shop::Work'. */
static const char *group_name(const struct pem_event *event)
{
	const char *colon = strrchr(event->group, ':');

	return colon ? colon + 1 : *event->group ? event->group : event->class_name;
}

int report_open__record(struct report_open *open, struct report *report,
			const struct pem_record *record)
{
	int field = pem_event__field_by_role(record->event, PEM_ROLE_NAME);
	const char *name = field >= 0 ? pem_record__string(record, (unsigned int)field)
				      : group_name(record->event);
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
