// SPDX-License-Identifier: MIT
/*
 * stat_interval.c - pem stat -i: what came in each interval
 */
#include "stat.h"

#include <inttypes.h>
#include <string.h>

/* "" unless the count is a counter's. */
static const char *counter_unit(const struct stat *s, const struct stat_group *group,
				const struct pem_event *event)
{
	return stat_is_counter(group, event) ? stat_unit(s, group, event) : "";
}

/* What came since the last interval: counts and sums; the rest is of the whole run and not shown. */
static void interval_lines(struct stat *s, const struct stat_group *group, uint64_t at_ns,
			   uint64_t ns, struct json_object *events)
{
	size_t i;

	for (i = 0; i < group->count; i++) {
		const struct pem_statistic *now = &group->now[i], *before = &group->before[i];
		uint64_t count, sum = now->sum - before->sum;
		const char *unit;
		bool counter;

		if (now->event == NULL || now->unavailable != 0)
			continue;
		unit = counter_unit(s, group, now->event);
		counter = stat_is_counter(group, now->event);
		count = counter ? sum : now->count - before->count;
		if (count == 0)
			continue;
		if (events != NULL) {
			struct json_object *object = json_object_new_object();

			cli_json__text(object, "name", now->event->name);
			cli_json__count(object, "count", count);
			if (group->with_field && now->is_float)
				cli_json__real(object, "sum", now->sum_f - before->sum_f);
			else if (group->with_field)
				json_object_object_add(object, "sum",
						       json_object_new_int64((int64_t)sum));
			json_object_array_add(events, object);
			continue;
		}
		fprintf(s->out, "%10.3f  %-36s %16s %14s", (double)at_ns / 1e9,
			cli_event_name(now->event), cli_quantity(count, unit),
			strcmp(unit, "ns") == 0 ? "" : cli_rate(count, ns));
		if (group->with_field)
			fprintf(s->out, "  %s",
				now->is_float ? cli_decimal(now->sum_f - before->sum_f)
					      : cli_quantity(sum, stat_unit(s, group, now->event)));
		fputc('\n', s->out);
	}
}

void stat_interval__print(void *arg)
{
	struct stat *s = arg;
	uint64_t now = cli_now_ns(), at = now - s->start_ns, ns = now - s->last_ns;
	struct json_object *object = NULL, *events = NULL;
	unsigned int g;

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
		fprintf(s->out, "%10s  %-36s %16s %14s\n", "SECONDS", "EVENT", "COUNT", "RATE");
		s->titled = true;
	}
	for (g = 0; g < STAT_GROUPS; g++) {
		struct stat_group *group = &s->groups[g];

		interval_lines(s, group, at, ns, events);
		if (group->count != 0)
			memcpy(group->before, group->now, group->count * sizeof(*group->now));
	}
	if (object != NULL)
		cli_json__print(object, s->out, true);
	fflush(s->out);
	s->last_ns = now;
}
