// SPDX-License-Identifier: MIT
/* metric.c - the metrics that specs declare, of what a verb counted: their values, a table, JSON */
#include "percentiles.h"

#include <json-c/json.h>
#include <math.h>

/* A sum of a quotient. NAN if any of its terms is unknown. */
static double sum_of(const struct cli_metrics *metrics, size_t number, uint32_t is_divisor)
{
	const struct pem_metric *m = pem_model__metric(metrics->model, number);
	double sum = 0;
	uint32_t i;

	for (i = 0; i < m->part_count; i++)
		if (m->parts[i].is_divisor == is_divisor)
			sum += m->parts[i].factor *
			       metrics->value(&m->parts[i].term, number, metrics->arg);
	return sum;
}

static double value_of(const struct cli_metrics *metrics, size_t number)
{
	const struct pem_metric *m = pem_model__metric(metrics->model, number);
	double of, to;

	if (m->form == PEM_METRIC_BETWEEN)
		return metrics->between != NULL ? metrics->between(number, metrics->arg) : NAN;
	if (m->form == PEM_METRIC_QUOTIENT) {
		to = sum_of(metrics, number, 1);
		return to > 0 ? sum_of(metrics, number, 0) / to : NAN;
	}
	of = metrics->value(&m->of, number, metrics->arg);
	to = m->form == PEM_METRIC_RATE ? metrics->seconds
					: metrics->value(&m->to, number, metrics->arg);
	if (m->form == PEM_METRIC_DIFFERENCE)
		return of - to;
	return to > 0 ? of / to : NAN;
}

/* How the two sides of a metric were counted. */
struct sides {
	struct cli_estimate of, to;
};

static struct sides sides_of(const struct cli_metrics *metrics, size_t number)
{
	const struct pem_metric *m = pem_model__metric(metrics->model, number);
	struct sides sides = {{0}, {0}};
	uint32_t i;

	if (metrics->estimate == NULL || m->form == PEM_METRIC_BETWEEN)
		return sides;
	sides.of = metrics->estimate(&m->of, number, metrics->arg);
	if (m->form != PEM_METRIC_RATE)
		sides.to = metrics->estimate(&m->to, number, metrics->arg);
	/* Of many terms, one that was not counted with the first tells more than the others. */
	for (i = 0; i < m->part_count && !cli_estimate__are_apart(&sides.of, &sides.to); i++)
		sides.to = metrics->estimate(&m->parts[i].term, number, metrics->arg);
	return sides;
}

static bool is_estimate(const struct sides *sides)
{
	return cli_estimate__is(&sides->of) || cli_estimate__is(&sides->to);
}

static const char *sides_words(const struct sides *sides)
{
	if (cli_estimate__are_apart(&sides->of, &sides->to))
		return " (estimated: not counted at the same times)";
	return is_estimate(sides) ? " (estimated)" : "";
}

static void add_sides(struct json_object *entry, const struct sides *sides)
{
	if (!is_estimate(sides))
		return;
	cli_json__flag(entry, "estimate", true);
	cli_json__flag(entry, "same_times", !cli_estimate__are_apart(&sides->of, &sides->to));
}

/* The next metric from *i on whose value is known, and behind it *i. NULL: there is none. */
static const struct pem_metric *next_known(const struct cli_metrics *metrics, size_t *i,
					   double *value)
{
	while (*i < pem_model__metric_count(metrics->model)) {
		*value = value_of(metrics, (*i)++);
		if (!isnan(*value))
			return pem_model__metric(metrics->model, *i - 1);
	}
	return NULL;
}

bool cli_metrics__any(const struct cli_metrics *metrics)
{
	double value;
	size_t i = 0;

	return next_known(metrics, &i, &value) != NULL;
}

void cli_metrics__columns(struct cli_table *table)
{
	cli_table__column(table, "METRIC", CLI_LEFT);
	cli_table__column(table, "VALUE", CLI_RIGHT);
	cli_table__column(table, "", CLI_LEFT);
}

/* A mean says little of times. */
static const char *times_words(const struct cli_metrics *metrics, size_t number)
{
	const char *words = cli_percentiles__words(metrics->times(number, metrics->arg), "ns");

	return *words != '\0' ? cli_format("mean%s", words) : "";
}

void cli_metrics__rows(const struct cli_metrics *metrics, struct cli_table *table, const char *of)
{
	const struct pem_metric *m;
	double value;
	size_t i = 0;

	while ((m = next_known(metrics, &i, &value)) != NULL) {
		bool is_time = m->form == PEM_METRIC_BETWEEN;
		struct sides sides = sides_of(metrics, i - 1);

		cli_table__row(table, CLI_PLAIN);
		if (of != NULL)
			cli_table__cell(table, of);
		cli_table__cell(table, m->name);
		cli_table__cell(table,
				is_time ? cli_duration((uint64_t)value) : cli_decimal(value));
		cli_table__cell(table, is_time ? times_words(metrics, i - 1)
					       : cli_format("%.40s%s%s", m->unit,
							    m->form == PEM_METRIC_RATE ? "/s" : "",
							    sides_words(&sides)));
	}
}

struct json_object *cli_metrics__json(const struct cli_metrics *metrics, bool is_brief)
{
	struct json_object *array = json_object_new_array(), *entry;
	const struct pem_metric *m;
	double value;
	size_t i = 0;

	while ((m = next_known(metrics, &i, &value)) != NULL) {
		struct sides sides = sides_of(metrics, i - 1);

		entry = json_object_new_object();
		cli_json__text(entry, "metric", m->name);
		json_object_object_add(entry, "value", json_object_new_double(value));
		add_sides(entry, &sides);
		json_object_array_add(array, entry);
		if (is_brief)
			continue;
		if (m->form == PEM_METRIC_BETWEEN)
			cli_percentiles__json(metrics->times(i - 1, metrics->arg), NULL, "", entry);
		cli_json__text(entry, "unit", m->form == PEM_METRIC_BETWEEN ? "ns" : m->unit);
		cli_json__text(entry, "description", m->description);
	}
	return array;
}
