// SPDX-License-Identifier: MIT
/* estimate.c - counters that counted for a part of the time only, since the hardware was shared */
#include "report.h"

#include <string.h>

static bool is_of(const struct pem_trace_estimate *estimate, const struct report_event *event)
{
	return event->event->meaning == PEM_MEANS_COUNTER &&
	       strncmp(estimate->event, event->event->name, sizeof(estimate->event) - 1) == 0;
}

struct cli_estimate report__estimate(const struct report *r, const struct report_event *event)
{
	uint32_t i;

	for (i = 0; i < r->info->estimate_count; i++) {
		const struct pem_trace_estimate *e = &r->info->estimates[i];

		if (is_of(e, event))
			return (struct cli_estimate){e->enabled_ns, e->running_ns, e->error,
						     e->together};
	}
	return (struct cli_estimate){0};
}

void report_estimate__print(const struct report *r)
{
	if (r->info->estimate_count != 0)
		cli_wrap(stdout,
			 "~ is an estimate: there were more counters than the processor has, and "
			 "they took turns. Behind it are the share of the time in which it was "
			 "counted, and what the rest may differ with 95 %",
			 0, 0, cli_width(stdout));
}
