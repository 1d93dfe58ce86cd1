// SPDX-License-Identifier: MIT
/* estimate.c - words and JSON for counters that counted only for a part of the time */
#include "cli.h"

#include <json-c/json.h>
#include <math.h>

bool cli_estimate__is(const struct cli_estimate *e)
{
	return e->running_ns < e->enabled_ns;
}

double cli_estimate__share(const struct cli_estimate *e)
{
	return e->enabled_ns != 0 ? (double)e->running_ns / (double)e->enabled_ns : 1;
}

bool cli_estimate__are_apart(const struct cli_estimate *a, const struct cli_estimate *b)
{
	return a->together != 0 && b->together != 0 && a->together != b->together &&
	       (cli_estimate__is(a) || cli_estimate__is(b));
}

const char *cli_estimate__error(const struct cli_estimate *e, uint64_t value)
{
	if (isnan(e->error))
		return "unknown";
	if (value == 0)
		return cli_format("+-%s", cli_decimal(e->error));
	return cli_format("+-%s", cli_percent(e->error / (double)value));
}

void cli_estimate__json(struct json_object *object, const struct cli_estimate *e)
{
	if (!cli_estimate__is(e))
		return;
	cli_json__flag(object, "estimate", true);
	cli_json__real(object, "counted_share", cli_estimate__share(e));
	cli_json__count(object, "enabled_ns", e->enabled_ns);
	cli_json__count(object, "running_ns", e->running_ns);
	if (isnan(e->error)) /* unknown */
		json_object_object_add(object, "error", NULL);
	else
		cli_json__real(object, "error", e->error);
}

struct cli_estimate cli_estimate__between(const struct pem_statistic *before,
					  const struct pem_statistic *now, uint64_t *count)
{
	struct cli_estimate e = {.together = now->together,
				 .enabled_ns = now->enabled_ns - before->enabled_ns,
				 .running_ns = now->running_ns - before->running_ns};
	double missed = (double)now->enabled_ns - (double)now->running_ns;
	double here = (double)e.enabled_ns - (double)e.running_ns;
	double value = (double)(now->counted - before->counted);

	*count = now->counted - before->counted;
	if (!cli_estimate__is(&e))
		return e;
	if (e.running_ns == 0) {
		*count = 0;
		e.error = NAN;
		return e;
	}
	value *= (double)e.enabled_ns / (double)e.running_ns;
	*count = value < 0x1p63 ? (uint64_t)value : UINT64_MAX;
	/* Nothing seen: less than 3 in a time as long, with 95 %. */
	if (now->counted == 0) {
		e.error = isnan(now->error) ? NAN : 3 * here / (double)e.running_ns;
		return e;
	}
	e.error =
		now->error * sqrt(here / missed * ((double)e.enabled_ns / (double)now->enabled_ns) *
				  ((double)now->running_ns / (double)e.running_ns));
	return e;
}
