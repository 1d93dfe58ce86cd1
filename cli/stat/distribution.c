// SPDX-License-Identifier: MIT
/*
 * distribution.c - histograms and most frequent values at the end of pem stat
 */
#include "stat.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define BAR_WIDTH 32
#define TOP_SHOWN 10
#define TOP_MAX 64
#define BUCKETS 65u /* of a struct pem_histogram */

static const struct {
	const char *title, *key;
	unsigned int per_mille;
} shares[] = {
	{"p50", "p50", 500}, {"p90", "p90", 900}, {"p99", "p99", 990}, {"p99.9", "p99_9", 999}};
#define SHARES (sizeof(shares) / sizeof(shares[0]))

static double power_of_two(unsigned int power)
{
	return power < 64 ? (double)(UINT64_C(1) << power) : 0x1p64;
}

static const struct pem_field *field_of(const struct stat *s, const struct pem_event *event)
{
	return &event->fields[pem_event__field(event, s->field)];
}

/* A value of the field in words: a label, an address, or a quantity in its unit. */
static const char *value_text(const struct pem_field *field, const struct pem_statistic *v,
			      uint64_t value)
{
	const char *label = v->is_float ? NULL : pem_field__label(field, value);
	double real;

	if (label != NULL)
		return label;
	if (field->type == PEM_TYPE_ADDRESS || field->base == 16)
		return cli_format("0x%" PRIx64, value);
	if (v->is_float) {
		memcpy(&real, &value, sizeof(real));
		return cli_decimal(real);
	}
	if (v->is_signed)
		return cli_signed((int64_t)value);
	return cli_quantity(value, field->unit);
}

static const char *bound_text(const struct pem_field *field, unsigned int power)
{
	if (field->type == PEM_TYPE_ADDRESS || field->base == 16)
		return cli_format("0x%" PRIx64, UINT64_C(1) << power);
	return cli_quantity(UINT64_C(1) << power, field->unit);
}

static void bucket_row(const struct stat *s, const struct pem_field *field, unsigned int i,
		       uint64_t count, uint64_t most, struct cli_table *table)
{
	static const char bar[BAR_WIDTH + 1] = "################################";
	unsigned int width = (unsigned int)((double)count / (double)most * BAR_WIDTH + 0.5);

	(void)s;
	if (width == 0 && count != 0)
		width = 1;
	cli_table__row(table, CLI_PLAIN);
	cli_table__cell(table,
			i == 0 ? "  0 or less" : cli_format("  %s", bound_text(field, i - 1)));
	cli_table__cell(table, i == 0 || i == 64 ? "" : bound_text(field, i));
	cli_table__cell(table, cli_count(count));
	cli_table__cell(table, bar + BAR_WIDTH - width);
}

/* --- percentiles: a histogram of powers of two gives their bounds --- */

struct bounds {
	double from, to;
};

/*
 * Find the bounds of the value that a share of all values, in thousandths, does not exceed (of rank
 * count * share, rounded up). false: they are unknown. Values of 0 and below share a bucket.
 */
static bool percentile(const struct pem_statistic *v, const struct pem_histogram *histogram,
		       unsigned int per_mille, struct bounds *bounds)
{
	double least = v->is_float    ? v->min_f
		       : v->is_signed ? (double)(int64_t)v->min
				      : (double)v->min;
	double most = v->is_float    ? v->max_f
		      : v->is_signed ? (double)(int64_t)v->max
				     : (double)v->max;
	uint64_t count = 0, before = 0, rank;
	unsigned int i;

	for (i = 0; i < BUCKETS; i++)
		count += histogram->bucket[i];
	/* Read some events apart, its least and greatest value may be those of others. */
	if (count == 0 || count != v->count)
		return false;
	rank = count / 1000 * per_mille + (count % 1000 * per_mille + 999) / 1000;
	for (i = 0; before + histogram->bucket[i] < rank; i++)
		before += histogram->bucket[i];
	bounds->from = i == 0 ? least : power_of_two(i - 1);
	bounds->to = i == BUCKETS - 1 ? most : i == 0 ? (v->is_float ? 1 : 0) : power_of_two(i);
	if (i != 0 && i != BUCKETS - 1 && !v->is_float)
		bounds->to -= 1;
	bounds->from = bounds->from < least ? least : bounds->from;
	bounds->to = bounds->to > most ? most : bounds->to;
	return true;
}

static const char *bound_words(const struct pem_field *field, const struct pem_statistic *v,
			       double value)
{
	if (v->is_float || value < 0)
		return cli_decimal(value);
	return cli_quantity(value < 0x1p64 ? (uint64_t)value : UINT64_MAX, field->unit);
}

static void print_percentiles(const struct stat *s, const struct pem_field *field,
			      const struct pem_statistic *v, const struct pem_histogram *histogram)
{
	struct bounds bounds;
	unsigned int i;

	/* An address is no amount. */
	if (field->type == PEM_TYPE_ADDRESS || field->base == 16 || field->label_count != 0)
		return;
	for (i = 0; i < SHARES && percentile(v, histogram, shares[i].per_mille, &bounds); i++) {
		const char *from = bound_words(field, v, bounds.from);
		const char *to = bound_words(field, v, bounds.to);

		if (strcmp(from, to) == 0)
			fprintf(s->out, "%s%s %s", i != 0 ? ", " : "  ", shares[i].title, from);
		else
			fprintf(s->out, "%s%s %s to %s", i != 0 ? ", " : "  ", shares[i].title,
				from, to);
	}
	if (i != 0)
		fprintf(s->out, "\n");
}

static void percentiles_json(const struct pem_field *field, const struct pem_statistic *v,
			     const struct pem_histogram *histogram, struct json_object *object)
{
	struct json_object *value;
	struct bounds bounds;
	unsigned int i;

	if (field->type == PEM_TYPE_ADDRESS || field->base == 16 || field->label_count != 0)
		return;
	for (i = 0; i < SHARES && percentile(v, histogram, shares[i].per_mille, &bounds); i++) {
		value = json_object_new_object();
		cli_json__real(value, "from", bounds.from);
		cli_json__real(value, "to", bounds.to);
		json_object_object_add(object, shares[i].key, value);
	}
}

static void print_histogram(const struct stat *s, const struct pem_statistic *v,
			    const struct pem_histogram *histogram)
{
	const struct pem_field *field = field_of(s, v->event);
	unsigned int i, first = 64, last = 0;
	struct cli_table *table;
	uint64_t most = 0;

	for (i = 0; i < 65; i++) {
		if (histogram->bucket[i] == 0)
			continue;
		first = i < first ? i : first;
		last = i;
		most = histogram->bucket[i] > most ? histogram->bucket[i] : most;
	}
	if (most == 0)
		return;
	fprintf(s->out, "\n%s%s%s: %s\n", cli_colour(s->out, CLI_BOLD), cli_event_name(v->event),
		cli_colour(s->out, CLI_PLAIN), s->field);
	table = cli_table__new(s->out);
	cli_table__column(table, "FROM", CLI_RIGHT);
	cli_table__column(table, "BELOW", CLI_RIGHT);
	cli_table__column(table, "COUNT", CLI_RIGHT);
	cli_table__column(table, "", CLI_LEFT);
	for (i = first; i <= last; i++)
		bucket_row(s, field, i, histogram->bucket[i], most, table);
	cli_table__print(table);
	print_percentiles(s, field, v, histogram);
}

/* How much of all events had the value. It may be known within bounds only. */
static const char *share_words(const struct pem_statistic *v, const struct pem_top *top)
{
	double least = (double)(top->count - top->error) / (double)v->count;
	double most = (double)top->count / (double)v->count;

	if (top->error == 0)
		return cli_percent(most);
	return cli_format("%.1f to %s", 100 * least, cli_percent(fmin(most, 1)));
}

static void print_top(const struct stat *s, const struct pem_statistic *v,
		      const struct pem_top *top, int count)
{
	const struct pem_field *field = field_of(s, v->event);
	struct cli_table *table;
	int i;

	if (count == 0 || v->count == 0)
		return;
	fprintf(s->out, "\n%s%s%s: most frequent %s\n", cli_colour(s->out, CLI_BOLD),
		cli_event_name(v->event), cli_colour(s->out, CLI_PLAIN), s->field);
	table = cli_table__new(s->out);
	cli_table__column(table, "VALUE", CLI_RIGHT);
	cli_table__column(table, "AT MOST", CLI_RIGHT);
	cli_table__column(table, "AT LEAST", CLI_RIGHT);
	cli_table__column(table, "SHARE", CLI_RIGHT);
	for (i = 0; i < count && i < TOP_SHOWN; i++) {
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_format("  %s", value_text(field, v, top[i].value)));
		cli_table__cell(table, cli_count(top[i].count));
		cli_table__cell(table, cli_count(top[i].count - top[i].error));
		cli_table__cell(table, share_words(v, &top[i]));
	}
	cli_table__print(table);
}

void stat_distribution__print(const struct stat *s)
{
	const struct stat_group *group = &s->groups[STAT_GROUP_FIELD];
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	struct pem_top top[TOP_MAX] = {{.size = sizeof(top[0])}};
	size_t i;
	int rc;

	for (i = 0; group->statistics != NULL && i < group->count; i++) {
		if (s->keep & PEM_STATISTIC_HISTOGRAM &&
		    pem_statistics__histogram(group->statistics, i, &histogram) == 0)
			print_histogram(s, &group->now[i], &histogram);
		if (s->keep & PEM_STATISTIC_TOP) {
			rc = pem_statistics__top(group->statistics, i, top, TOP_MAX);
			if (rc > 0)
				print_top(s, &group->now[i], top, rc);
		}
	}
}

/* --- JSON --- */

static struct json_object *value_json(const struct pem_statistic *v, uint64_t value)
{
	double real;

	if (v->is_float) {
		memcpy(&real, &value, sizeof(real));
		return json_object_new_double(real);
	}
	return v->is_signed ? json_object_new_int64((int64_t)value) : json_object_new_uint64(value);
}

static struct json_object *histogram_json(const struct pem_histogram *histogram)
{
	struct json_object *buckets = json_object_new_array();
	struct json_object *bucket;
	unsigned int i;

	for (i = 0; i < 65; i++) {
		if (histogram->bucket[i] == 0)
			continue;
		bucket = json_object_new_object();
		if (i != 0)
			cli_json__count(bucket, "from", UINT64_C(1) << (i - 1));
		if (i != 64)
			cli_json__count(bucket, "below", UINT64_C(1) << i);
		cli_json__count(bucket, "count", histogram->bucket[i]);
		json_object_array_add(buckets, bucket);
	}
	return buckets;
}

static struct json_object *top_json(const struct stat *s, const struct pem_statistic *v,
				    const struct pem_top *top, int count)
{
	struct json_object *values = json_object_new_array();
	struct json_object *value;
	const char *label;
	int i;

	for (i = 0; i < count; i++) {
		value = json_object_new_object();
		json_object_object_add(value, "value", value_json(v, top[i].value));
		label = v->is_float ? NULL : pem_field__label(field_of(s, v->event), top[i].value);
		if (label != NULL)
			cli_json__text(value, "label", label);
		cli_json__count(value, "count", top[i].count);
		cli_json__count(value, "error", top[i].error);
		json_object_array_add(values, value);
	}
	return values;
}

void stat_distribution__json(const struct stat *s, const struct stat_group *group, size_t i,
			     struct json_object *object)
{
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	struct pem_top top[TOP_MAX] = {{.size = sizeof(top[0])}};
	int rc;

	if (!group->with_field)
		return;
	if (s->keep & PEM_STATISTIC_VARIANCE && group->now[i].unavailable == 0)
		cli_json__real(object, "variance", group->now[i].variance);
	if (s->keep & PEM_STATISTIC_HISTOGRAM &&
	    pem_statistics__histogram(group->statistics, i, &histogram) == 0) {
		json_object_object_add(object, "histogram", histogram_json(&histogram));
		percentiles_json(field_of(s, group->now[i].event), &group->now[i], &histogram,
				 object);
	}
	if (!(s->keep & PEM_STATISTIC_TOP))
		return;
	rc = pem_statistics__top(group->statistics, i, top, TOP_MAX);
	if (rc >= 0)
		json_object_object_add(object, "top", top_json(s, &group->now[i], top, rc));
}
