// SPDX-License-Identifier: MIT
/*
 * derived.c - metrics that are made of others
 *
 * This is the one place where a metric that no event has becomes a series.
 */
#include "series.h"

#include <string.h>

static const struct {
	const char *name, *unit, *above, *below;
} ratios[] = {
	{"cycles per instruction", "cycles/instruction", "HW::HWPerf::Cycles",
	 "HW::HWPerf::Instructions"},
};

static size_t find(const struct compare_series *s, const char *name)
{
	size_t i;

	for (i = 0; i < s->metric_count; i++)
		if (s->metrics[i].kind == COMPARE_GROWTH && strcmp(s->metrics[i].name, name) == 0)
			return i;
	return SIZE_MAX;
}

int compare_series__derive(struct compare_series *s)
{
	size_t i;

	for (i = 0; i < sizeof(ratios) / sizeof(ratios[0]); i++) {
		size_t above = find(s, ratios[i].above), below = find(s, ratios[i].below);
		long at;

		if (above == SIZE_MAX || below == SIZE_MAX)
			continue;
		at = compare_series__metric(s, ratios[i].name, COMPARE_RATIO, ratios[i].unit,
					    ratios[i].name);
		if (at < 0)
			continue;
		s->metrics[at].above = above;
		s->metrics[at].below = below;
		s->metrics[at].source = s->metrics[above].source;
	}
	return 0;
}
