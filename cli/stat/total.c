// SPDX-License-Identifier: MIT
/* total.c - the output of pem stat at the end: a table by layer, or a JSON object */
#include "stat.h"

#include <errno.h>
#include <string.h>

#define LAYERS 5

static const char *const layer_names[LAYERS] = {"APP", "OS", "HW", "CPO", ""};

static unsigned int layer_of(const struct pem_event *event)
{
	unsigned int i;

	for (i = 0; i < LAYERS - 1; i++)
		if (strcmp(layer_names[i], event->layer) == 0)
			break;
	return i;
}

static const char *number(const struct pem_statistic *v, uint64_t bits, double real,
			  const char *unit)
{
	if (v->is_float)
		return cli_decimal(real);
	if (v->is_signed)
		return cli_signed((int64_t)bits);
	return cli_quantity(bits, unit);
}

/* A value between values: a mean or a deviation. */
static const char *spread(double value, const char *unit)
{
	return strcmp(unit, "bytes") == 0 && value >= 0 ? cli_bytes((uint64_t)(value + 0.5))
							: cli_decimal(value);
}

/*
 * The square root by Newton's iteration from above. It decreases until it has converged. The C
 * library's sqrt would need another library.
 */
static double root(double square)
{
	double guess = square > 1 ? square : 1, next;

	if (!(square > 0))
		return 0;
	while ((next = (guess + square / guess) / 2) < guess)
		guess = next;
	return guess;
}

static void counter_cells(const struct stat *s, const struct pem_statistic *v, uint64_t ns,
			  const char *unit, struct cli_table *table)
{
	struct cli_estimate estimate = stat_estimate(v);
	bool is_estimate = cli_estimate__is(&estimate);

	cli_table__cell(table, cli_format("%s%s", is_estimate ? "~" : "",
					  number(v, v->sum, v->sum_f, unit)));
	cli_table__cell(table,
			strcmp(unit, "ns") == 0 || s->field != NULL ? "" : cli_rate(v->sum, ns));
	if (!is_estimate)
		return;
	cli_table__cell(table, cli_percent(cli_estimate__share(&estimate)));
	cli_table__cell(table, cli_estimate__error(&estimate, v->sum));
}

static void table_row(const struct stat *s, const struct stat_group *group,
		      const struct pem_statistic *v, uint64_t ns, struct cli_table *table)
{
	const char *unit = stat_unit(s, group, v->event);
	bool counter = cli_event__is_counter(v->event), known;

	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table, cli_format("  %s", cli_event_name(v->event)));
	if (v->unavailable != 0) {
		cli_table__cell(table, v->unavailable == -EBUSY ? "not counted" : "not here");
		return;
	}
	if (counter) {
		counter_cells(s, v, ns, unit, table);
		return;
	}
	cli_table__cell(table, cli_format("%s%s", v->is_partial ? ">" : "", cli_count(v->count)));
	cli_table__cell(table, s->field == NULL ? cli_rate(v->count, ns) : "");
	if (!group->with_field || v->count == 0)
		return;
	cli_table__cell(table, "");
	cli_table__cell(table, "");
	known = !v->may_have_overflowed;
	cli_table__cell(table, known ? number(v, v->sum, v->sum_f, unit) : "unknown");
	cli_table__cell(table, number(v, v->min, v->min_f, unit));
	cli_table__cell(table, number(v, v->max, v->max_f, unit));
	cli_table__cell(table, known ? spread(v->mean, unit) : "unknown");
	if (s->keep & PEM_STATISTIC_VARIANCE)
		cli_table__cell(table, spread(root(v->variance), unit));
}

/*
 * Events left out are reported in one line. A table of all events that pem knows would hide those
 * that occurred.
 */
static bool is_left_out(const struct stat *s, const struct pem_statistic *v)
{
	return !s->show_all && v->count == 0 && v->unavailable == 0 && !v->is_partial &&
	       v->undecided == 0 && !cli_event__is_counter(v->event);
}

/* Returns how many events were left out. */
static size_t layer_rows(const struct stat *s, unsigned int layer, uint64_t ns,
			 struct cli_table *table)
{
	size_t left_out = 0;
	bool headed = false;
	unsigned int g;
	size_t i;

	for (g = 0; g < STAT_GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++) {
			const struct pem_statistic *v = &s->groups[g].now[i];

			if (v->event == NULL || layer_of(v->event) != layer)
				continue;
			if (is_left_out(s, v)) {
				left_out++;
				continue;
			}
			if (!headed) {
				cli_table__row(table, CLI_BOLD);
				cli_table__cell(table, v->event->layer);
				headed = true;
			}
			table_row(s, &s->groups[g], v, ns, table);
		}
	return left_out;
}

static const char *name_of(const struct stat *s)
{
	return s->command[0] != NULL ? s->command[0] : s->attach.name;
}

static bool any_partial(const struct stat *s)
{
	unsigned int g;
	size_t i;

	for (g = 0; g < STAT_GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++)
			if (s->groups[g].now[i].is_partial)
				return true;
	return false;
}

static bool any_estimate(const struct stat *s)
{
	unsigned int g;
	size_t i;

	for (g = 0; g < STAT_GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++) {
			struct cli_estimate e = stat_estimate(&s->groups[g].now[i]);

			if (cli_estimate__is(&e))
				return true;
		}
	return false;
}

/* Events that 'inside' or 'from' could not decide on have no place in the table. */
static void print_undecided(const struct stat *s)
{
	unsigned int g;
	size_t i;

	for (g = 0; g < STAT_GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++) {
			const struct pem_statistic *v = &s->groups[g].now[i];

			if (v->event != NULL && v->undecided != 0)
				fprintf(s->out,
					"%s: %s more are not counted, because it is unknown "
					"whether "
					"they were inside\n",
					v->event->name, cli_count(v->undecided));
		}
}

static void print_table(const struct stat *s, uint64_t ns)
{
	struct cli_table *table = cli_table__new(s->out);
	size_t left_out = 0;
	unsigned int layer;
	char name[512];

	cli_table__column(table, "EVENT", CLI_LEFT);
	cli_table__column(table, "COUNT", CLI_RIGHT);
	cli_table__column(table, "RATE", CLI_RIGHT);
	cli_table__column(table, "COUNTED", CLI_RIGHT);
	cli_table__column(table, "ERROR", CLI_RIGHT);
	cli_table__column(table, "SUM", CLI_RIGHT);
	cli_table__column(table, "LEAST", CLI_RIGHT);
	cli_table__column(table, "MOST", CLI_RIGHT);
	cli_table__column(table, "MEAN", CLI_RIGHT);
	cli_table__column(table, "DEVIATION", CLI_RIGHT);
	for (layer = 0; layer < LAYERS; layer++)
		left_out += layer_rows(s, layer, ns, table);
	snprintf(name, sizeof(name), "%s", name_of(s));
	fprintf(s->out, "\n%s %s for %s%s%s\n\n", pem_printable(name),
		s->command[0] != NULL ? "ran" : "was observed", cli_duration(ns),
		s->field != NULL ? "; the last columns are of field " : "",
		s->field != NULL ? s->field : "");
	cli_table__print(table);
	if (left_out != 0)
		fprintf(s->out, "%s event%s did not occur; -z lists %s\n", cli_count(left_out),
			left_out == 1 ? "" : "s", left_out == 1 ? "it" : "them");
	if (any_partial(s))
		cli_wrap(s->out,
			 cli_format("> was not counted for a part of the time, to keep the cost "
				    "of counting below %s of the program's CPU time",
				    cli_percent(s->budget)),
			 0, 0, cli_width(s->out));
	if (any_estimate(s))
		cli_wrap(s->out,
			 "~ is an estimate: there are more counters than the processor has, and "
			 "they took turns. COUNTED is the share of the time in which it was "
			 "counted, ERROR what the rest may differ with 95 %",
			 0, 0, cli_width(s->out));
	print_undecided(s);
	stat_metrics__print(s, ns);
}

static struct json_object *event_json(const struct stat *s, const struct stat_group *group,
				      size_t i)
{
	const struct pem_statistic *v = &group->now[i];
	struct json_object *object = json_object_new_object();
	struct cli_estimate estimate = stat_estimate(v);
	struct pem_error reason = {{0}};

	cli_json__text(object, "name", v->event->name);
	cli_json__count(object, "version", v->event->version);
	cli_json__text(object, "layer", v->event->layer);
	cli_json__flag(object, "available", v->unavailable == 0);
	/* What was not counted has no number, not even 0. */
	if (v->unavailable != 0) {
		if (s->session != NULL &&
		    pem_session__can_deliver(s->session, v->event, &reason) != 1)
			cli_json__text(object, "reason", reason.text);
		return object;
	}
	cli_json__count(object, "count", v->count);
	cli_estimate__json(object, &estimate);
	if (v->is_partial)
		cli_json__flag(object, "partial", true);
	if (v->undecided != 0)
		cli_json__count(object, "undecided", v->undecided);
	if (cli_event__is_counter(v->event)) {
		cli_json__count(object, "sum", v->sum);
		cli_json__text(object, "unit", stat_unit(s, group, v->event));
		return object;
	}
	if (!group->with_field)
		return object;
	if (v->is_float) {
		cli_json__real(object, "sum", v->sum_f);
		cli_json__real(object, "min", v->min_f);
		cli_json__real(object, "max", v->max_f);
	} else if (v->is_signed) {
		json_object_object_add(object, "sum", json_object_new_int64((int64_t)v->sum));
		json_object_object_add(object, "min", json_object_new_int64((int64_t)v->min));
		json_object_object_add(object, "max", json_object_new_int64((int64_t)v->max));
	} else {
		cli_json__count(object, "sum", v->sum);
		cli_json__count(object, "min", v->min);
		cli_json__count(object, "max", v->max);
	}
	if (v->may_have_overflowed)
		cli_json__flag(object, "may_have_overflowed", true);
	else
		cli_json__real(object, "mean", v->mean);
	stat_distribution__json(s, group, i, object);
	return object;
}

static void print_json(const struct stat *s, uint64_t ns)
{
	struct json_object *object = json_object_new_object();
	struct json_object *events = json_object_new_array();
	unsigned int g;
	size_t i;

	cli_json__text(object, "command", name_of(s));
	cli_json__count(object, "duration_ns", ns);
	if (s->field != NULL)
		cli_json__text(object, "field", s->field);
	for (g = 0; g < STAT_GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++)
			if (s->groups[g].now[i].event != NULL)
				json_object_array_add(events, event_json(s, &s->groups[g], i));
	json_object_object_add(object, "events", events);
	json_object_object_add(object, "metrics", stat_metrics__json(s, ns));
	cli_json__print(object, s->out, s->interval_ms != 0);
}

void stat_total__print(const struct stat *s, uint64_t ns)
{
	if (s->json)
		print_json(s, ns);
	else
		print_table(s, ns);
}
