/* SPDX-License-Identifier: MIT */
/*
 * html_phases.c - phases for the page: the longest PEM_HTML_PHASES_MAX of those that ended
 *
 * Not here: matching ends and begins (intervals.h).
 */
#include "html_data.h"
#include "intervals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pem_html_phases__init(struct pem_html_phases *phases)
{
	memset(phases, 0, sizeof(*phases));
	/* Twice the number kept, plus all that may be open at the end. */
	phases->kept =
		calloc(2 * PEM_HTML_PHASES_MAX + PEM_INTERVALS_OPEN_MAX, sizeof(*phases->kept));
	phases->open = pem_intervals__new();
	return phases->kept && phases->open ? 0 : -ENOMEM;
}

void pem_html_phases__free(struct pem_html_phases *phases)
{
	struct pem_html_phase *phase;

	while (phases->open && (phase = pem_intervals__take(phases->open)))
		free(phase);
	pem_intervals__free(phases->open);
	free(phases->kept);
	memset(phases, 0, sizeof(*phases));
}

static uint64_t length_ns(const struct pem_html_phase *phase)
{
	return phase->end_ns - phase->begin_ns;
}

static int by_length_descending(const void *a, const void *b)
{
	uint64_t x = length_ns(a), y = length_ns(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct pem_html_phase *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return by_length_descending(a, b);
}

static void keep_longest(struct pem_html_phases *phases)
{
	if (phases->kept_count <= PEM_HTML_PHASES_MAX)
		return;
	qsort(phases->kept, phases->kept_count, sizeof(*phases->kept), by_length_descending);
	phases->left_out += phases->kept_count - PEM_HTML_PHASES_MAX;
	phases->kept_count = PEM_HTML_PHASES_MAX;
	phases->shortest_ns = length_ns(&phases->kept[PEM_HTML_PHASES_MAX - 1]);
}

static void end_phase(struct pem_html_phases *phases, const struct pem_html_phase *phase)
{
	if (length_ns(phase) < phases->shortest_ns) {
		phases->left_out++;
		return;
	}
	if (phases->kept_count == 2 * PEM_HTML_PHASES_MAX)
		keep_longest(phases);
	phases->kept[phases->kept_count++] = *phase;
}

static int begin(struct pem_html_phases *phases, const struct pem_record *record)
{
	struct pem_html_phase *phase = calloc(1, sizeof(*phase));

	if (!phase)
		return -ENOMEM;
	phase->begin_ns = record->time_ns;
	phase->pid = record->pid;
	phase->tid = record->tid;
	strncpy(phase->name, pem_interval__name(record), sizeof(phase->name) - 1);
	phase = pem_intervals__begin(phases->open, record, phase);
	phases->left_out += phase != NULL;
	free(phase);
	return 0;
}

static void end(struct pem_html_phases *phases, const struct pem_record *record)
{
	struct pem_html_phase *phase = pem_intervals__end(phases->open, record);

	if (!phase) {
		phases->unmatched++;
		return;
	}
	/* A damaged clock may go backwards. */
	phase->end_ns = record->time_ns > phase->begin_ns ? record->time_ns : phase->begin_ns;
	/*
	 * If begin and end come from different processes (pem mark), the phase belongs to the whole
	 * run.
	 */
	if (phase->pid != record->pid)
		phase->pid = phase->tid = 0;
	end_phase(phases, phase);
	free(phase);
}

int pem_html_phases__add(struct pem_html_phases *phases, const struct pem_record *record)
{
	if (record->event->meaning == PEM_MEANS_INTERVAL_BEGIN)
		return begin(phases, record);
	end(phases, record);
	return 0;
}

void pem_html_phases__finish(struct pem_html_phases *phases, uint64_t end_ns)
{
	struct pem_html_phase *phase;

	keep_longest(phases);
	while ((phase = pem_intervals__take(phases->open))) {
		phase->end_ns = end_ns > phase->begin_ns ? end_ns : phase->begin_ns;
		phase->is_open = 1;
		phases->kept[phases->kept_count++] = *phase;
		free(phase);
	}
	qsort(phases->kept, phases->kept_count, sizeof(*phases->kept), by_begin);
}
