// SPDX-License-Identifier: MIT
/*
 * phases.c - what happened between the begins and ends of phases
 *
 * A begin saves how many records of each event were read. Its end takes the difference. So a phase
 * takes time only at its two ends and none at each event. intervals.h matches begins and ends.
 *
 * Only events that occurred are counted, in the order in which they occurred first: a trace's model
 * may have thousands of others. Phases of names beyond COUNTS_MAX share one row.
 */
#include "intervals.h"
#include "report.h"
#include "grow.h"
#include "hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COUNTS_MAX (4u << 20) /* of all names together: 64 MiB */
#define NAMES_MAX 65536u
#define OTHER_NAMES "(other names)"

struct open_phase {
	uint32_t phase; /* index in report->phases */
	uint64_t begin_ns;
	bool is_uncounted; /* there was no room for what lies within */
	size_t count; /* events that had occurred */
	struct report_inside inside[]; /* of each of them, up to the begin */
};

struct report_open {
	struct pem_intervals *intervals; /* the data of an interval is a struct open_phase */
	/* key: hash of the name; value: first index in report->phases */
	struct pem_number_map by_name;
	size_t count; /* counts of all phases, and of the open ones, together */
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
	pem_number_map__free(&open->by_name);
	free(open);
}

/* NULL: no memory. */
static struct report_phase *add_phase(struct report *report, const char *name)
{
	struct report_phase *phase;

	if (pem_grow(&report->phases, sizeof(*report->phases), report->phase_count + 1,
		     &report->phase_capacity) < 0)
		return NULL;
	phase = &report->phases[report->phase_count];
	memset(phase, 0, sizeof(*phase));
	phase->first_ns = phase->least_ns = UINT64_MAX;
	phase->name = strdup(name);
	if (phase->name == NULL)
		return NULL;
	report->phase_count++;
	return phase;
}

/*
 * Find the phase of a name, or make it. UINT32_MAX: no memory. Names with equal hashes would share
 * one phase.
 */
static uint32_t phase_of(struct report_open *open, struct report *report, const char *name)
{
	bool is_full = report->phase_count >= NAMES_MAX || open->count >= COUNTS_MAX;
	uint32_t *at;

	if (is_full && pem_number_map__value(&open->by_name,
					     pem_hash__text(PEM_HASH_START, name)) == UINT32_MAX)
		name = OTHER_NAMES;
	at = pem_number_map__at(&open->by_name, pem_hash__text(PEM_HASH_START, name));
	if (at == NULL)
		return UINT32_MAX;
	if (*at == UINT32_MAX) {
		if (add_phase(report, name) == NULL)
			return UINT32_MAX;
		*at = (uint32_t)report->phase_count - 1;
	}
	return *at;
}

/* What an event came to until now. i: index in report->occurred. */
static struct report_inside inside_of(const struct report *report, size_t i)
{
	const struct report_event *e = &report->events[report->occurred[i]];

	return (struct report_inside){e->count, e->so_far};
}

int report_open__begin(struct report_open *open, struct report *report,
		       const struct pem_record *record)
{
	uint32_t phase = phase_of(open, report, pem_interval__name(record));
	struct open_phase *o;
	bool is_uncounted;
	size_t i, count;

	if (phase == UINT32_MAX)
		return -ENOMEM;
	is_uncounted = open->count + report->occurred_count > COUNTS_MAX;
	count = is_uncounted ? 0 : report->occurred_count;
	o = malloc(sizeof(*o) + count * sizeof(o->inside[0]));
	if (o == NULL)
		return -ENOMEM;
	o->is_uncounted = is_uncounted;
	o->count = count;
	open->count += count;
	for (i = 0; i < o->count; i++)
		o->inside[i] = inside_of(report, i);
	o->phase = phase;
	o->begin_ns = record->time_ns;
	if (record->time_ns < report->phases[phase].first_ns)
		report->phases[phase].first_ns = record->time_ns;
	o = pem_intervals__begin(open->intervals, record, o);
	if (o != NULL) {
		report->phases[o->phase].unfinished++;
		open->count -= o->count;
	}
	free(o);
	return 0;
}

/* Make room for a count of each event that has occurred. */
static int widen(struct report_open *open, struct report *report, struct report_phase *phase)
{
	size_t more = report->occurred_count - phase->counted;
	struct report_inside *inside;

	if (more == 0)
		return 0;
	if (open->count + more > COUNTS_MAX) {
		phase->is_partial = true;
		return 0;
	}
	inside = reallocarray(phase->inside, report->occurred_count, sizeof(*inside));
	if (inside == NULL)
		return -ENOMEM;
	memset(inside + phase->counted, 0, more * sizeof(*inside));
	phase->inside = inside;
	phase->counted = report->occurred_count;
	open->count += more;
	return 0;
}

/* Add what lay within an instance. Returns 0 or -ENOMEM. */
static int add_inside(struct report_open *open, struct report *report, struct report_phase *phase,
		      const struct open_phase *o)
{
	static const struct report_inside none;
	int rc = widen(open, report, phase);
	size_t i;

	for (i = 0; i < phase->counted; i++) {
		const struct report_event *e = &report->events[report->occurred[i]];
		const struct report_inside *begin = i < o->count ? &o->inside[i] : &none;
		struct report_inside end = inside_of(report, i);

		phase->inside[i].count += end.count - begin->count;
		if (e->field >= 0 && report_event__is_float(e))
			phase->inside[i].sum.f += end.sum.f - begin->sum.f;
		else
			phase->inside[i].sum.u += end.sum.u - begin->sum.u;
	}
	return rc;
}

static int close_phase(struct report_open *open, struct report *report, struct open_phase *o,
		       uint64_t end_ns)
{
	struct report_phase *phase = &report->phases[o->phase];
	uint64_t ns = end_ns > o->begin_ns ? end_ns - o->begin_ns : 0;
	int rc = 0;

	if (o->is_uncounted)
		phase->is_partial = true;
	else
		rc = add_inside(open, report, phase, o);
	cli_sum__add(&phase->total_ns, ns);
	if (ns < phase->least_ns)
		phase->least_ns = ns;
	if (ns > phase->most_ns)
		phase->most_ns = ns;
	open->count -= o->count;
	free(o);
	return rc;
}

int report_open__end(struct report_open *open, struct report *report,
		     const struct pem_record *record)
{
	struct open_phase *o = pem_intervals__end(open->intervals, record);

	if (o == NULL) {
		report->ends_without_begin++;
		return 0;
	}
	report->phases[o->phase].times++;
	return close_phase(open, report, o, record->time_ns);
}

int report_open__finish(struct report_open *open, struct report *report, uint64_t end_ns)
{
	struct open_phase *o;
	int rc = 0;

	while (rc == 0 && (o = pem_intervals__take(open->intervals)) != NULL) {
		report->phases[o->phase].unfinished++;
		rc = close_phase(open, report, o, end_ns);
	}
	return rc;
}
