// SPDX-License-Identifier: MIT
/* metrics.c - the metrics that specs declare, of what pem stat counted */
#include "stat.h"

#include <math.h>
#include <string.h>

/* Was the sum of this field kept? Of a counter its value is. */
static bool has_field(const struct stat *s, const struct stat_group *group,
		      const struct pem_event *event, const char *field)
{
	int value = pem_event__field_by_role(event, PEM_ROLE_VALUE);

	if (cli_event__is_counter(event))
		return value >= 0 && strcmp(event->fields[value].name, field) == 0;
	return group->with_field && s->field != NULL && strcmp(s->field, field) == 0;
}

static double value_in(const struct stat *s, const struct stat_group *group,
		       const struct pem_statistic *v, const struct pem_metric_term *term)
{
	if (v->unavailable != 0 || v->is_partial)
		return NAN;
	if (*term->field == '\0')
		return cli_event__is_counter(v->event) ? NAN : (double)v->count;
	if (!has_field(s, group, v->event, term->field) || v->may_have_overflowed)
		return NAN;
	return v->is_float ? v->sum_f : v->is_signed ? (double)(int64_t)v->sum : (double)v->sum;
}

/* The statistic of a term, and its group. NULL: the event was not counted. */
static const struct pem_statistic *find(const struct stat *s, const struct pem_metric_term *term,
					const struct stat_group **group)
{
	unsigned int g;
	size_t i;

	for (g = 0; g < STAT_GROUPS; g++)
		for (i = 0; i < s->groups[g].count; i++) {
			const struct pem_statistic *v = &s->groups[g].now[i];

			*group = &s->groups[g];
			if (v->event != NULL && strcmp(v->event->name, term->event) == 0)
				return v;
		}
	return NULL;
}

static double value_of(const struct pem_metric_term *term, size_t metric, const void *arg)
{
	const struct stat_group *group;
	const struct pem_statistic *v = find(arg, term, &group);

	(void)metric;
	return v != NULL ? value_in(arg, group, v, term) : NAN;
}

static struct cli_estimate estimate_of(const struct pem_metric_term *term, size_t metric,
				       const void *arg)
{
	const struct stat_group *group;
	const struct pem_statistic *v = find(arg, term, &group);

	(void)metric;
	return v != NULL ? stat_estimate(v) : (struct cli_estimate){0};
}

static struct cli_metrics metrics_of(const struct stat *s, uint64_t ns)
{
	return (struct cli_metrics){.model = s->model,
				    .seconds = (double)ns / 1e9,
				    .value = value_of,
				    .estimate = estimate_of,
				    .arg = s};
}

void stat_metrics__print(const struct stat *s, uint64_t ns)
{
	struct cli_metrics metrics = metrics_of(s, ns);
	struct cli_table *table;

	if (!cli_metrics__any(&metrics))
		return;
	table = cli_table__new(s->out);
	cli_metrics__columns(table);
	cli_metrics__rows(&metrics, table, NULL);
	fputc('\n', s->out);
	cli_table__print(table);
}

struct json_object *stat_metrics__json(const struct stat *s, uint64_t ns)
{
	struct cli_metrics metrics = metrics_of(s, ns);

	return cli_metrics__json(&metrics, false);
}
