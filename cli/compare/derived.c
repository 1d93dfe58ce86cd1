// SPDX-License-Identifier: MIT
/*
 * derived.c - the metrics that specs declare: made of those that events have
 *
 * This is the one place where a metric that no event has becomes a series. Times between events are
 * series of their own, which collect.c fills.
 */
#include "series.h"
#include "cli.h"

#include <stdio.h>
#include <string.h>

static size_t find(const struct compare_series *s, const char *name, bool is_count)
{
	size_t i;

	for (i = 0; i < s->metric_count; i++) {
		const struct compare_metric *m = &s->metrics[i];

		if (strcmp(m->name, name) == 0 && (m->kind == COMPARE_COUNT) == is_count &&
		    m->kind <= COMPARE_LEVEL)
			return i;
	}
	return SIZE_MAX;
}

/* The series of a term. SIZE_MAX: its event has no record. */
static size_t series_of(const struct compare_series *s, const struct pem_metric_term *term)
{
	size_t found;

	if (*term->field == '\0')
		return find(s, term->event, true);
	found = find(s, cli_format("%.150s %.60s", term->event, term->field), false);
	/* What a counter counted has the event's name. */
	return found != SIZE_MAX ? found : find(s, term->event, false);
}

/* A series of the time itself, in seconds. Returns its index, or -ENOSPC or -ENOMEM. */
static long seconds_series(struct compare_series *s)
{
	long at = compare_series__metric(s, "seconds", COMPARE_SUM, "s", "(time)");
	size_t i;

	if (at < 0 || s->metrics[at].total > 0)
		return at;
	s->metrics[at].is_context = true;
	for (i = 0; i < s->window_count && i < COMPARE_WINDOWS; i++) {
		uint64_t begin = i * s->window_ns, end = begin + s->window_ns;

		end = end < s->end_ns ? end : s->end_ns;
		s->metrics[at].sum[i] = end > begin ? (double)(end - begin) / 1e9 : 0;
		s->metrics[at].total += s->metrics[at].sum[i];
	}
	return at;
}

static void subtract(struct compare_series *s, size_t metric)
{
	struct compare_metric *m = &s->metrics[metric];
	const struct compare_metric *above = &s->metrics[m->above], *below = &s->metrics[m->below];
	size_t i;

	for (i = 0; i < COMPARE_WINDOWS; i++)
		m->sum[i] = above->sum[i] - below->sum[i];
	m->total = above->total - below->total;
}

/*
 * A series of one of a quotient's sums. Returns its index; -1: a term's event has no record, or
 * there is no room.
 */
static long sum_series(struct compare_series *s, const struct pem_metric *metric,
		       uint32_t is_divisor)
{
	const char *name = cli_format("%.150s %s", metric->name, is_divisor ? "below" : "above");
	size_t of[PEM_METRIC_PARTS], i;
	uint32_t k;
	long at;

	for (k = 0; k < metric->part_count; k++) {
		of[k] = series_of(s, &metric->parts[k].term);
		if (of[k] == SIZE_MAX)
			return -1;
	}
	at = compare_series__metric(s, name, COMPARE_SUM, metric->unit, metric->name);
	if (at < 0 || s->metrics[at].is_context)
		return at;
	s->metrics[at].is_context = true;
	for (k = 0; k < metric->part_count; k++) {
		const struct compare_metric *term = &s->metrics[of[k]];

		if (metric->parts[k].is_divisor != is_divisor)
			continue;
		for (i = 0; i < COMPARE_WINDOWS; i++)
			s->metrics[at].sum[i] += metric->parts[k].factor * term->sum[i];
		s->metrics[at].total += metric->parts[k].factor * term->total;
		s->metrics[at].source = term->source;
		s->metrics[at].event_id = term->event_id;
	}
	return at;
}

static void derive(struct compare_series *s, const struct pem_metric *metric)
{
	bool is_difference = metric->form == PEM_METRIC_DIFFERENCE;
	size_t above = series_of(s, &metric->of), below;
	long at;

	if (metric->form == PEM_METRIC_QUOTIENT) {
		at = sum_series(s, metric, 0);
		above = at >= 0 ? (size_t)at : SIZE_MAX;
		at = sum_series(s, metric, 1);
		below = at >= 0 ? (size_t)at : SIZE_MAX;
	} else if (metric->form == PEM_METRIC_RATE) {
		at = above != SIZE_MAX ? seconds_series(s) : -1;
		below = at >= 0 ? (size_t)at : SIZE_MAX;
	} else {
		below = series_of(s, &metric->to);
	}
	if (above == SIZE_MAX || below == SIZE_MAX)
		return;
	at = compare_series__metric(s, metric->name,
				    is_difference ? COMPARE_DIFFERENCE : COMPARE_RATIO,
				    metric->unit, metric->name);
	if (at < 0)
		return;
	s->metrics[at].above = above;
	s->metrics[at].below = below;
	s->metrics[at].source = s->metrics[above].source;
	s->metrics[at].event_id = s->metrics[above].event_id;
	s->metrics[at].other_event_id = s->metrics[below].event_id;
	if (is_difference)
		subtract(s, (size_t)at);
}

int compare_series__derive(struct compare_series *s, const struct pem_model *model)
{
	size_t i;

	for (i = 0; i < pem_model__metric_count(model); i++)
		if (pem_model__metric(model, i)->form != PEM_METRIC_BETWEEN)
			derive(s, pem_model__metric(model, i));
	return 0;
}
