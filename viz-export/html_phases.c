/* SPDX-License-Identifier: MIT */
/*
 * html_phases.c - phases for the page: the longest PEM_HTML_PHASES_MAX
 *
 * Not here: matching ends and begins (pem/context.h).
 */
#include "html_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int pem_html_phases__init(struct pem_html_phases *phases)
{
	memset(phases, 0, sizeof(*phases));
	/* Twice the number kept, so that they are sorted seldom. */
	phases->kept = calloc(2 * PEM_HTML_PHASES_MAX, sizeof(*phases->kept));
	return phases->kept ? 0 : -ENOMEM;
}

void pem_html_phases__free(struct pem_html_phases *phases)
{
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

void pem_html_phases__add(struct pem_html_phases *phases, const struct pem_ended *ended,
			  const struct pem_record *record)
{
	const struct pem_record *begin = &ended->interval->begin;
	struct pem_html_phase phase = {
		.begin_ns = begin->time_ns, .pid = begin->pid, .tid = begin->tid};
	const struct pem_pass_thread *thread = ended->interval->thread;

	/* A damaged clock may go backwards. */
	phase.end_ns = ended->end_ns > phase.begin_ns ? ended->end_ns : phase.begin_ns;
	phase.is_open = ended->outcome == PEM_INTERVAL_OPEN || ended->outcome == PEM_INTERVAL_LOST;
	/*
	 * If begin and end come from different processes (pem mark), the phase belongs to the whole
	 * run.
	 */
	if (ended->outcome == PEM_INTERVAL_ENDED && record && record->pid != phase.pid)
		phase.pid = phase.tid = 0;
	phase.process = phase.pid && thread ? pem_html_number(thread->process) : 0;
	strncpy(phase.name, pem_html__interval_name(ended->interval), sizeof(phase.name) - 1);
	if (length_ns(&phase) < phases->shortest_ns) {
		phases->left_out++;
		return;
	}
	if (phases->kept_count == 2 * PEM_HTML_PHASES_MAX)
		keep_longest(phases);
	phases->kept[phases->kept_count++] = phase;
}

void pem_html_phases__finish(struct pem_html_phases *phases)
{
	keep_longest(phases);
	qsort(phases->kept, phases->kept_count, sizeof(*phases->kept), by_begin);
}
