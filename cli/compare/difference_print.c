// SPDX-License-Identifier: MIT
/* difference_print.c - differences for people and for programs (contract: difference.h) */
#include "difference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 40u
/* Changes of which nothing says how sure they are, and which are smaller, are not worth a row. */
#define UNSURE_MIN 0.01
/* A difference that is sure may still be too small to matter. */
#define SURE_MIN 0.001

static const char *value_words(const struct compare_differences *d,
			       const struct compare_difference *row, double value)
{
	const char *each = d->are_rates && !row->is_mean ? "/s" : "";

	/* What these words are made for */
	bool is_usual = value >= 0 && value < 1e18;

	if (is_usual && strcmp(row->unit, "ns") == 0)
		return cli_format("%s%s", cli_duration((uint64_t)value), each);
	if (is_usual && strcmp(row->unit, "bytes") == 0)
		return cli_format("%s%s", cli_bytes((uint64_t)value), each);
	if (fabs(value) < 1e15 && fabs(value - rint(value)) < 1e-6)
		return cli_format("%s%s", cli_signed((int64_t)rint(value)), each);
	return cli_format("%s%s", cli_decimal(value), each);
}

static const char *percent(double change)
{
	if (fabs(change) >= 1)
		return cli_format("%+.0f %%", 100 * change);
	return cli_format("%+.1f %%", 100 * change);
}

static const char *bounds(const struct compare_change *c)
{
	if (isnan(c->low))
		return "";
	if (c->high >= 100)
		return cli_format("above %s", percent(c->low));
	return cli_format("%+.1f to %s", 100 * c->low, percent(c->high));
}

static const char *sure(const struct compare_difference *row)
{
	if (row->verdict == COMPARE_UNSURE)
		return "unknown";
	if (row->verdict == COMPARE_ALIKE)
		return "no";
	return row->q < 0.001 ? ">99.9 %" : cli_format("%.1f %%", 100 * (1 - row->q));
}

static void sentence(const char *text)
{
	cli_wrap(stdout, text, 0, 0, cli_width(stdout));
}

static void print_side(const struct compare_differences *d, unsigned int side)
{
	size_t i;

	for (i = 0; i < d->sides[side].count; i++) {
		const struct compare_series *s = &d->sides[side].runs[i];
		const char *losses = compare_series__losses(s);

		printf("%c  ", "AB"[side]);
		cli_put_text(stdout, s->directory);
		printf(", %s%s", cli_duration(s->end_ns), *s->info->command != '\0' ? " of " : "");
		cli_put_text(stdout, s->info->command);
		putchar('\n');
		if (losses != NULL)
			sentence(cli_format("   %s", losses));
	}
}

/* What differs comes first, the greatest change first; then what is unsure. */
static int by_change(const void *a, const void *b)
{
	static const int ranks[] = {
		[COMPARE_DIFFERS] = 0, [COMPARE_UNSURE] = 1, [COMPARE_ALIKE] = 2};
	const struct compare_difference *x = *(const struct compare_difference *const *)a;
	const struct compare_difference *y = *(const struct compare_difference *const *)b;
	double cx = isnan(x->change.change) ? INFINITY : fabs(log1p(x->change.change));
	double cy = isnan(y->change.change) ? INFINITY : fabs(log1p(y->change.change));

	if (ranks[x->verdict] != ranks[y->verdict])
		return ranks[x->verdict] - ranks[y->verdict];
	return cx < cy ? 1 : cx > cy ? -1 : strcmp(x->name, y->name);
}

static bool is_small(const struct compare_difference *row)
{
	return row->verdict == COMPARE_ALIKE ||
	       fabs(row->change.change) < (row->verdict == COMPARE_UNSURE ? UNSURE_MIN : SURE_MIN);
}

static void print_rows(const struct compare_differences *d, bool all)
{
	const struct compare_difference **order = calloc(d->count + 1, sizeof(*order));
	struct cli_table *table = cli_table__new(stdout);
	size_t i, shown = 0, alike = 0;

	cli_table__column(table, "METRIC", CLI_LEFT);
	cli_table__column(table, "A", CLI_RIGHT);
	cli_table__column(table, "B", CLI_RIGHT);
	cli_table__column(table, "CHANGE", CLI_RIGHT);
	cli_table__column(table, "SURE", CLI_RIGHT);
	cli_table__column(table, "95 % BOUNDS", CLI_LEFT);
	for (i = 0; order != NULL && i < d->count; i++)
		order[i] = &d->rows[i];
	if (order != NULL)
		qsort(order, d->count, sizeof(*order), by_change);
	for (i = 0; order != NULL && i < d->count; i++) {
		const struct compare_difference *row = order[i];

		alike += is_small(row);
		if (!all && (is_small(row) || shown == ROWS_MAX))
			continue;
		shown++;
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, row->name);
		cli_table__cell(table, value_words(d, row, row->value[SIDE_A]));
		cli_table__cell(table, value_words(d, row, row->value[SIDE_B]));
		cli_table__cell(table,
				isnan(row->change.change) ? "new" : percent(row->change.change));
		cli_table__cell(table, sure(row));
		cli_table__cell(table, bounds(&row->change));
	}
	if (shown != 0)
		printf("\n");
	cli_table__print(table);
	free(order);
	if (!all && d->count - alike > shown)
		sentence(cli_format("%zu smaller ones are in --all.", d->count - alike - shown));
	if (!all && alike != 0)
		sentence(cli_format("\n%zu %s no difference, or a tiny one; --all shows %s.", alike,
				    alike == 1 ? "metric shows" : "metrics show",
				    alike == 1 ? "it" : "them"));
}

void compare_differences__print(const struct compare_differences *d, bool all)
{
	size_t a = d->sides[SIDE_A].count, b = d->sides[SIDE_B].count;

	print_side(d, SIDE_A);
	print_side(d, SIDE_B);
	if (d->are_rates && *d->why_rates != '\0')
		sentence(cli_format("Amounts are those of a second, as %s.", d->why_rates));
	print_rows(d, all);
	if (d->count == 0)
		sentence("\nThere is no metric that both sides have.");
	if (d->one_sided != 0)
		sentence(cli_format("%zu %s of events that not all runs recorded.", d->one_sided,
				    d->one_sided == 1 ? "metric is" : "metrics are"));
	if (d->reduced != 0)
		sentence(cli_format("%zu %s left out: some run recorded only a part of the events, "
				    "by a budget or a predicate.",
				    d->reduced, d->reduced == 1 ? "metric is" : "metrics are"));
	if (a == 1 && b == 1)
		sentence(
			"\nOne run on each side: runs are taken to vary as much as sixteenths of a "
			"run do, so that only great differences are sure. Several runs tell more: "
			"pem diff A1 A2 A3 -- B1 B2 B3.");
	else if (a < 2 || b < 2)
		sentence("\nOne run on a side: nothing says how much it varies. Record it again.");
	else if (a < 3 || b < 3)
		sentence("\nTwo runs on a side say little about how much they vary: only great "
			 "differences are found.");
}

/* --- for programs --- */

static void add_real(struct json_object *object, const char *key, double value)
{
	if (isfinite(value))
		cli_json__real(object, key, value);
	else
		json_object_object_add(object, key, NULL);
}

static struct json_object *row_json(const struct compare_difference *row)
{
	static const char *const words[] = {[COMPARE_ALIKE] = "alike",
					    [COMPARE_DIFFERS] = "differs",
					    [COMPARE_UNSURE] = "unknown"};
	struct json_object *object = json_object_new_object();

	cli_json__text(object, "metric", row->name);
	cli_json__text(object, "unit", row->unit);
	cli_json__text(object, "verdict", words[row->verdict]);
	cli_json__flag(object, "mean", row->is_mean);
	add_real(object, "a", row->value[SIDE_A]);
	add_real(object, "b", row->value[SIDE_B]);
	add_real(object, "change", row->change.change);
	add_real(object, "low", row->change.low);
	add_real(object, "high", row->change.high);
	add_real(object, "p", row->change.p);
	add_real(object, "q", row->q);
	return object;
}

static struct json_object *side_json(const struct compare_side *side)
{
	struct json_object *array = json_object_new_array();
	size_t i, k;

	for (i = 0; i < side->count; i++) {
		const struct compare_series *s = &side->runs[i];
		struct json_object *object = json_object_new_object();
		size_t lost = 0;

		for (k = 0; k < s->window_count; k++)
			lost += compare_series__is_lost(s, PEM_DOUBT_PROGRAMS, k) ||
				compare_series__is_lost(s, PEM_DOUBT_KERNEL, k) ||
				compare_series__is_lost(s, PEM_DOUBT_COUNTERS, k);
		cli_json__text(object, "trace", s->directory);
		cli_json__text(object, "command", s->info->command);
		cli_json__count(object, "duration_ns", s->end_ns);
		cli_json__count(object, "windows", s->window_count);
		cli_json__count(object, "lost_windows", lost);
		cli_json__flag(object, "balanced", s->balanced);
		json_object_array_add(array, object);
	}
	return array;
}

struct json_object *compare_differences__json(const struct compare_differences *d)
{
	struct json_object *object = json_object_new_object();
	struct json_object *rows = json_object_new_array();
	bool single = d->sides[SIDE_A].count == 1 && d->sides[SIDE_B].count == 1;
	size_t i;

	json_object_object_add(object, "a", side_json(&d->sides[SIDE_A]));
	json_object_object_add(object, "b", side_json(&d->sides[SIDE_B]));
	cli_json__text(object, "amounts", d->are_rates ? "each-second" : "each-run");
	cli_json__text(object, "confidence", single ? "within-runs" : "between-runs");
	cli_json__count(object, "one_sided", d->one_sided);
	cli_json__count(object, "partial", d->reduced);
	for (i = 0; i < d->count; i++)
		json_object_array_add(rows, row_json(&d->rows[i]));
	json_object_object_add(object, "metrics", rows);
	return object;
}
