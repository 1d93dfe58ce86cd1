// SPDX-License-Identifier: MIT
/* relate_print.c - relations for people and for programs (contract: relate.h) */
#include "relate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More rows than this are for programs. */
#define ROWS_MAX 15u

static const char *value_words(const struct compare_metric *m, double value)
{
	/* What these words are made for */
	bool is_usual = value >= 0 && value < 1e18;

	if (is_usual && strcmp(m->unit, "ns") == 0)
		return cli_duration((uint64_t)value);
	if (is_usual && strcmp(m->unit, "bytes") == 0)
		return cli_bytes((uint64_t)value);
	return cli_decimal(value);
}

static const char *title(const struct compare_relations *r, const struct compare_target *t)
{
	const struct compare_metric *m = &r->series.metrics[t->metric];

	if (t->phase != NULL)
		return cli_format("What goes with the %s: %zu instances%s, %s on average", m->name,
				  t->known, t->phase->stride > 1 ? " of more" : "",
				  value_words(m, t->mean));
	return cli_format("What goes with the %s: %zu windows of %s, %s on average", m->name,
			  t->known, cli_duration(r->series.window_ns * t->joined),
			  value_words(m, t->mean));
}

static const char *sure(const struct compare_relation *relation)
{
	double q = relation->q;

	/* Where it goes both ways, the whole has no direction to be sure of. */
	if (relation->verdict == COMPARE_SOMETIMES)
		return "";
	return q < 0.001 ? ">99.9 %" : cli_format("%.1f %%", 100 * (1 - q));
}

/* The metric comes first in a relation: the target follows it by lag. */
static const char *lag(const struct compare_relations *r, const struct compare_target *t,
		       const struct compare_correlation *c)
{
	unsigned long size = (unsigned long)labs(c->lag);
	const char *way = c->lag > 0 ? "earlier" : "later";

	if (c->lag == 0)
		return "";
	if (t->phase != NULL)
		return cli_format(", %lu %s", size, way);
	return cli_format(", %s %s", cli_duration(size * r->series.window_ns * t->joined), way);
}

static const char *verdict(const struct compare_relation *relation)
{
	const struct compare_correlation *c = &relation->of;

	switch (relation->verdict) {
	case COMPARE_WITH:
		return "rises and falls with it";
	case COMPARE_AGAINST:
		return "moves against it";
	case COMPARE_SOMETIMES:
		return cli_format("sometimes: with it in %u of %u parts, against it in %u",
				  c->parts_with, c->parts, c->parts_against);
	case COMPARE_SHORT:
	case COMPARE_NONE:
		break;
	}
	return "";
}

static void print_rows(const struct compare_relations *r, const struct compare_target *t,
		       size_t rows)
{
	struct cli_table *table = cli_table__new(stdout);
	size_t i;

	cli_table__column(table, "METRIC", CLI_LEFT);
	cli_table__column(table, "RANKS", CLI_RIGHT);
	cli_table__column(table, "VALUES", CLI_RIGHT);
	if (t->phase != NULL)
		cli_table__column(table, "EACH SECOND", CLI_RIGHT);
	cli_table__column(table, "SURE", CLI_RIGHT);
	cli_table__column(table, "IT", CLI_LEFT);
	for (i = 0; i < rows; i++) {
		const struct compare_relation *relation = &t->relations[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, r->series.metrics[relation->metric].name);
		cli_table__cell(table, cli_format("%+.2f", relation->of.rho));
		cli_table__cell(table, cli_format("%+.2f", relation->of.r));
		if (t->phase != NULL)
			cli_table__cell(table, relation->rate.pairs != 0
						       ? cli_format("%+.2f", relation->rate.rho)
						       : "");
		cli_table__cell(table, sure(relation));
		cli_table__cell(table,
				cli_format("%s%s", verdict(relation), lag(r, t, &relation->of)));
	}
	cli_table__print(table);
}

static void sentence(const char *text)
{
	cli_wrap(stdout, text, 0, 0, cli_width(stdout));
}

/* The weakest relation that is most likely seen. A lag takes half of the error probability. */
static double detectable(const struct compare_relations *r, const struct compare_target *t)
{
	return compare__detectable(t->independent, COMPARE_ERROR / 2 / (double)(2 * r->tried + 1));
}

static void print_target(const struct compare_relations *r, const struct compare_target *t)
{
	size_t claimed = 0, others;

	printf("\n%s", cli_colour(stdout, CLI_BOLD));
	sentence(title(r, t));
	printf("%s", cli_colour(stdout, CLI_PLAIN));
	if (t->independent < COMPARE_INDEPENDENT_MIN) {
		sentence(cli_format(
			"Too short to tell: with what repeats in them, they say as much "
			"as %.0f independent ones, and %.0f are needed. Record longer%s.",
			floor(t->independent), COMPARE_INDEPENDENT_MIN,
			t->phase != NULL ? ", or mark more phases" : ""));
		return;
	}
	while (claimed < t->count && t->relations[claimed].verdict > COMPARE_NONE)
		claimed++;
	print_rows(r, t, claimed < ROWS_MAX ? claimed : ROWS_MAX);
	if (claimed > ROWS_MAX)
		sentence(cli_format("%zu weaker ones are in --json.", claimed - ROWS_MAX));
	others = t->count - claimed;
	if (others != 0)
		sentence(cli_format("%zu %s no relation. A correlation of ranks above %.2f would "
				    "most likely have been seen.",
				    others, others == 1 ? "metric shows" : "metrics show",
				    detectable(r, t)));
}

void compare_relations__print(const struct compare_relations *r)
{
	const char *losses = compare_series__losses(&r->series);
	size_t i;

	cli_put_text(stdout, r->series.directory);
	printf(", %s in windows of %s\n", cli_duration(r->series.end_ns),
	       cli_duration(r->series.window_ns));
	if (losses != NULL)
		sentence(cli_format("%s.", losses));
	if (r->count == 0)
		sentence("There is nothing to relate metrics to: no cycles per instruction, no "
			 "phase "
			 "with 8 instances, no interval with 100. --with names another metric.");
	for (i = 0; i < r->count; i++)
		print_target(r, &r->targets[i]);
	if (r->targets_left_out != 0)
		sentence(cli_format("%zu further metrics are left out: --with names some.",
				    r->targets_left_out));
	if (r->count != 0)
		printf("\n");
	if (r->count != 0)
		sentence("What moves together need not cause one another.");
}

/* --- for programs --- */

static const char *const verdict_words[] = {
	[COMPARE_SHORT] = "too-short", [COMPARE_NONE] = "none",           [COMPARE_WITH] = "with",
	[COMPARE_AGAINST] = "against", [COMPARE_SOMETIMES] = "sometimes",
};

/* A number, or null where it is unknown. */
static void add_real(struct json_object *object, const char *key, double value)
{
	if (isfinite(value))
		cli_json__real(object, key, value);
	else
		json_object_object_add(object, key, NULL);
}

static struct json_object *relation_json(const struct compare_relations *r,
					 const struct compare_target *t,
					 const struct compare_relation *relation)
{
	const struct compare_correlation *c = &relation->of;
	struct json_object *object = json_object_new_object();

	cli_json__text(object, "metric", r->series.metrics[relation->metric].name);
	cli_json__text(object, "verdict", verdict_words[relation->verdict]);
	add_real(object, "ranks", c->rho);
	add_real(object, "values", c->r);
	json_object_object_add(object, "lag", json_object_new_int64(c->lag));
	if (t->phase == NULL)
		json_object_object_add(
			object, "lag_ns",
			json_object_new_int64(c->lag * (long)(r->series.window_ns * t->joined)));
	cli_json__count(object, "pairs", c->pairs);
	add_real(object, "independent", c->independent);
	add_real(object, "p", c->p);
	add_real(object, "q", relation->q);
	cli_json__count(object, "parts", c->parts);
	cli_json__count(object, "parts_with", c->parts_with);
	cli_json__count(object, "parts_against", c->parts_against);
	add_real(object, "q_turns", relation->q_turns);
	if (t->phase != NULL && relation->rate.pairs != 0) {
		add_real(object, "rate_ranks", relation->rate.rho);
		add_real(object, "rate_p", relation->rate.p);
	}
	return object;
}

static struct json_object *target_json(const struct compare_relations *r,
				       const struct compare_target *t)
{
	const struct compare_metric *m = &r->series.metrics[t->metric];
	struct json_object *object = json_object_new_object();
	struct json_object *array = json_object_new_array();
	size_t i;

	cli_json__text(object, "metric", m->name);
	cli_json__text(object, "unit", m->unit);
	cli_json__text(object, "of", t->phase != NULL ? "instances" : "windows");
	cli_json__count(object, "count", t->known);
	if (t->phase == NULL)
		cli_json__count(object, "window_ns", r->series.window_ns * t->joined);
	add_real(object, "mean", t->mean);
	add_real(object, "independent", t->independent);
	cli_json__flag(object, "too_short", t->independent < COMPARE_INDEPENDENT_MIN);
	add_real(object, "detectable", detectable(r, t));
	for (i = 0; i < t->count; i++)
		json_object_array_add(array, relation_json(r, t, &t->relations[i]));
	json_object_object_add(object, "relations", array);
	return object;
}

struct json_object *compare_relations__json(const struct compare_relations *r)
{
	struct json_object *object = json_object_new_object();
	struct json_object *targets = json_object_new_array();
	struct json_object *metrics = json_object_new_array();
	size_t i, lost = 0;

	for (i = 0; i < r->series.window_count; i++)
		lost += compare_series__is_lost(&r->series, PEM_DOUBT_PROGRAMS, i) ||
			compare_series__is_lost(&r->series, PEM_DOUBT_KERNEL, i) ||
			compare_series__is_lost(&r->series, PEM_DOUBT_COUNTERS, i);
	cli_json__text(object, "trace", r->series.directory);
	cli_json__count(object, "duration_ns", r->series.end_ns);
	cli_json__count(object, "windows", r->series.window_count);
	cli_json__count(object, "window_ns", r->series.window_ns);
	cli_json__count(object, "lost_windows", lost);
	cli_json__flag(object, "balanced", r->series.balanced);
	cli_json__count(object, "tried", r->tried);
	for (i = 0; i < r->count; i++)
		json_object_array_add(targets, target_json(r, &r->targets[i]));
	json_object_object_add(object, "targets", targets);
	for (i = 0; i < r->series.metric_count; i++)
		json_object_array_add(metrics, json_object_new_string(r->series.metrics[i].name));
	json_object_object_add(object, "metrics", metrics);
	return object;
}
