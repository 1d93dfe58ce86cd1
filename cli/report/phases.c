// SPDX-License-Identifier: MIT
/*
 * phases.c - what happened between the begins and ends of phases
 *
 * A begin saves how many records of each event were read. Its end takes the difference. So a phase
 * takes time only at its two ends and none at each event. intervals.h matches begins and ends.
 */
#include "intervals.h"
#include "report.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct open_phase {
	uint32_t phase; /* index in report->phases */
	uint64_t begin_ns;
	uint64_t counts[]; /* records of each event up to the begin */
};

struct report_open {
	struct pem_intervals *intervals; /* the data of an interval is a struct open_phase */
	struct cli_map by_name; /* key: hash of the name; value: first index in report->phases */
};

struct report_open *report_open__new(void)
{
	struct report_open *open = calloc(1, sizeof(*open));

	if (open == NULL)
		return NULL;
	open->intervals = pem_intervals__new();
	if (open->intervals == NULL) {
		free(open);
		return NULL;
	}
	return open;
}

void report_open__free(struct report_open *open)
{
	struct open_phase *o;

	if (open == NULL)
		return;
	while ((o = pem_intervals__take(open->intervals)) != NULL)
		free(o);
	pem_intervals__free(open->intervals);
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

/*
 * Find the phase of a name, or make it. UINT32_MAX: no memory. Names with equal hashes would share
 * one phase.
 */
static uint32_t phase_of(struct report_open *open, struct report *report, const char *name)
{
	uint32_t *at = cli_map__at(&open->by_name, hash(name));
	struct report_phase *phase;

	if (at == NULL)
		return UINT32_MAX;
	if (*at != UINT32_MAX)
		return *at;
	if (pem_grow(&report->phases, sizeof(*report->phases), report->phase_count + 1,
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

static int begin(struct report_open *open, struct report *report, const struct pem_record *record)
{
	uint32_t phase = phase_of(open, report, pem_interval__name(record));
	struct open_phase *o;
	size_t i;

	if (phase == UINT32_MAX)
		return -ENOMEM;
	o = malloc(sizeof(*o) + report->event_count * sizeof(o->counts[0]));
	if (o == NULL)
		return -ENOMEM;
	for (i = 0; i < report->event_count; i++)
		o->counts[i] = report->events[i].count;
	o->phase = phase;
	o->begin_ns = record->time_ns;
	if (record->time_ns < report->phases[phase].first_ns)
		report->phases[phase].first_ns = record->time_ns;
	o = pem_intervals__begin(open->intervals, record, o);
	if (o != NULL)
		report->phases[o->phase].unfinished++;
	free(o);
	return 0;
}

static void close_phase(struct report *report, struct open_phase *o, uint64_t end_ns)
{
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
	free(o);
}

int report_open__record(struct report_open *open, struct report *report,
			const struct pem_record *record)
{
	struct open_phase *o;

	if (record->event->meaning == PEM_MEANS_INTERVAL_BEGIN)
		return begin(open, report, record);
	o = pem_intervals__end(open->intervals, record);
	if (o == NULL) {
		report->ends_without_begin++;
		return 0;
	}
	report->phases[o->phase].times++;
	close_phase(report, o, record->time_ns);
	return 0;
}

void report_open__finish(struct report_open *open, struct report *report, uint64_t end_ns)
{
	struct open_phase *o;

	while ((o = pem_intervals__take(open->intervals)) != NULL) {
		report->phases[o->phase].unfinished++;
		close_phase(report, o, end_ns);
	}
}
