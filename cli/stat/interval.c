// SPDX-License-Identifier: MIT
/*
 * interval.c - pem stat -i: events of each interval, as rates
 *
 * One header comes first. Then each event that occurred has a line. If none occurs any more, one
 * line says so, once. Columns have constant widths, from the longest expected texts.
 */
#include "stat.h"

#include <errno.h>
#include <string.h>

#define NAME_MOST 44
#define WIDTH_TIME 9
#define WIDTH_COUNT 11
#define WIDTH_RATE 12
#define WIDTH_SUM 11
#define WIDTH_MEAN 11

/* What one event counted since the last interval. */
struct came {
	const struct pem_statistic *now;
	const struct pem_statistic *before;
	const char *unit; /* unit of sum and mean, or of a counter's count */
	bool is_counter, with_field;
	uint64_t count; /* for a counter: its increase */
	uint64_t sum;
	double sum_f, mean;
	struct cli_estimate estimate;
};

/* Was the counter wanted, and never counted in the interval? */
static bool was_not_counted(const struct came *c)
{
	return c->now->unavailable == -EBUSY ||
	       (c->estimate.running_ns == 0 && c->estimate.enabled_ns != 0);
}

/* False: the event is not available here, or nothing was counted. */
static bool take(const struct stat *s, const struct stat_group *group, size_t i, struct came *c)
{
	memset(c, 0, sizeof(*c));
	c->now = &group->now[i];
	c->before = &group->before[i];
	if (c->now->event == NULL || (c->now->unavailable != 0 && c->now->unavailable != -EBUSY))
		return false;
	c->is_counter = cli_event__is_counter(c->now->event);
	c->with_field = group->with_field;
	c->unit = c->is_counter || c->with_field ? stat_unit(s, group, c->now->event) : "";
	c->sum = c->now->sum - c->before->sum;
	c->sum_f = c->now->is_float    ? c->now->sum_f - c->before->sum_f
		   : c->now->is_signed ? (double)(int64_t)c->sum
				       : (double)c->sum;
	c->count = c->is_counter ? c->sum : c->now->count - c->before->count;
	if (c->is_counter && c->now->enabled_ns != 0)
		c->estimate = cli_estimate__between(c->before, c->now, &c->count);
	c->mean = c->count != 0 ? c->sum_f / (double)c->count : 0;
	return c->count != 0 || s->show_all || was_not_counted(c);
}

static double per_second(double value, uint64_t ns)
{
	return ns != 0 ? value * 1e9 / (double)ns : 0;
}

/* --- for a program --- */

static struct json_object *came_json(const struct came *c, uint64_t ns)
{
	struct json_object *object = json_object_new_object();

	cli_json__text(object, "name", c->now->event->name);
	if (was_not_counted(c)) { /* what was not counted has no number */
		cli_json__flag(object, "counted", false);
		return object;
	}
	cli_json__count(object, "count", c->count);
	cli_estimate__json(object, &c->estimate);
	cli_json__real(object, "rate_hz", per_second((double)c->count, ns));
	if (*c->unit != '\0')
		cli_json__text(object, "unit", c->unit);
	if (!c->with_field)
		return object;
	if (c->now->is_float)
		cli_json__real(object, "sum", c->sum_f);
	else
		json_object_object_add(object, "sum", json_object_new_int64((int64_t)c->sum));
	cli_json__real(object, "mean", c->mean);
	return object;
}

/* --- for a person --- */

static unsigned int name_width(const struct stat *s)
{
	unsigned int g, width = 16;
	size_t i;

	for (g = 0; g < STAT_GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++) {
			const struct pem_event *event = s->groups[g].now[i].event;
			size_t n = event != NULL ? strlen(cli_event_name(event)) : 0;

			if (n > width)
				width = n < NAME_MOST ? (unsigned int)n : NAME_MOST;
		}
	return width;
}

static bool has_field(const struct stat *s)
{
	return s->groups[STAT_GROUP_FIELD].count != 0;
}

static void print_titles(struct stat *s)
{
	s->name_width = name_width(s);
	fprintf(s->out, "%s%*s  %-*s %*s %*s", cli_colour(s->out, CLI_DIM), WIDTH_TIME, "SECONDS",
		(int)s->name_width, "EVENT", WIDTH_COUNT, "COUNT", WIDTH_RATE, "RATE");
	if (has_field(s))
		fprintf(s->out, " %*s %*s %*s", WIDTH_SUM, "SUM", WIDTH_RATE, "SUM/S", WIDTH_MEAN,
			"MEAN");
	fprintf(s->out, "%s\n", cli_colour(s->out, CLI_PLAIN));
	s->titled = true;
}

/* A value of the attribute, in its unit if pem knows the unit. */
static const char *amount(double value, const char *unit)
{
	if (value >= 0 && (strcmp(unit, "bytes") == 0 || strcmp(unit, "ns") == 0))
		return cli_quantity((uint64_t)(value + 0.5), unit);
	return cli_decimal(value);
}

static const char *sum_of(const struct came *c)
{
	if (c->now->is_float)
		return cli_decimal(c->sum_f);
	return c->now->is_signed ? cli_signed((int64_t)c->sum) : cli_quantity(c->sum, c->unit);
}

static void print_line(const struct stat *s, const struct came *c, double at_s, uint64_t ns)
{
	bool is_time = strcmp(c->unit, "ns") == 0;
	const char *rate = c->count != 0 ? cli_rate(c->count, ns) : "0/s";

	if (was_not_counted(c)) {
		fprintf(s->out, "%*.3f  %-*s %*s\n", WIDTH_TIME, at_s, (int)s->name_width,
			cli_event_name(c->now->event), WIDTH_COUNT, "not counted");
		return;
	}
	/* Time counted per second is the load of a number of CPUs. */
	if (c->is_counter && is_time)
		rate = cli_percent(per_second((double)c->count, ns) / 1e9);
	fprintf(s->out, "%*.3f  %-*s %*s %*s", WIDTH_TIME, at_s, (int)s->name_width,
		cli_event_name(c->now->event), WIDTH_COUNT,
		cli_format("%s%s", cli_estimate__is(&c->estimate) ? "~" : "",
			   c->is_counter ? cli_quantity(c->count, c->unit) : cli_count(c->count)),
		WIDTH_RATE, rate);
	if (cli_estimate__is(&c->estimate))
		fprintf(s->out, "  (%s, error %s)", cli_percent(cli_estimate__share(&c->estimate)),
			cli_estimate__error(&c->estimate, c->count));
	if (c->with_field)
		fprintf(s->out, " %*s %*s %*s", WIDTH_SUM, sum_of(c), WIDTH_RATE,
			cli_format("%s/s", amount(per_second(c->sum_f, ns), c->unit)), WIDTH_MEAN,
			amount(c->mean, c->unit));
	fputc('\n', s->out);
}

/* --- an interval --- */

static size_t print_group(struct stat *s, const struct stat_group *group, double at_s, uint64_t ns,
			  struct json_object *events)
{
	struct came c;
	size_t i, n = 0;

	for (i = 0; i < group->count; i++) {
		if (!take(s, group, i, &c))
			continue;
		if (events != NULL)
			json_object_array_add(events, came_json(&c, ns));
		else
			print_line(s, &c, at_s, ns);
		n++;
	}
	if (group->count != 0)
		memcpy(group->before, group->now, group->count * sizeof(*group->now));
	return n;
}

void stat_interval__print(void *arg)
{
	struct stat *s = arg;
	uint64_t now = cli_now_ns(), at = now - s->start_ns, ns = now - s->last_ns;
	struct json_object *object = NULL, *events = NULL;
	unsigned int g;
	size_t n = 0;

	if (s->interval_ms == 0)
		return;
	stat_events__read(s);
	if (s->json) {
		object = json_object_new_object();
		events = json_object_new_array();
		cli_json__count(object, "time_ns", at);
		cli_json__count(object, "interval_ns", ns);
		json_object_object_add(object, "events", events);
	} else if (!s->titled) {
		print_titles(s);
	}
	for (g = 0; g < STAT_GROUPS; g++)
		n += print_group(s, &s->groups[g], (double)at / 1e9, ns, events);
	if (object != NULL)
		cli_json__print(object, s->out, true);
	else if (n == 0 && !s->silent)
		fprintf(s->out, "%*.3f  none came\n", WIDTH_TIME, (double)at / 1e9);
	s->silent = n == 0;
	fflush(s->out);
	s->last_ns = now;
}
