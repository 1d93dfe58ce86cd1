/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* counter_names.c - the names that perf, libpfm4 and the vendors have for counters */
#include "model_internal.h"
#include "util.h"

#include <ctype.h>
#include <string.h>

/* Are they equal but for case, '-' and '_'? The first has a length. */
static int is_same_counter(const char *a, size_t length, const char *b)
{
	const char *end = a + length;

	for (;; a++, b++) {
		while (a < end && (*a == '-' || *a == '_'))
			a++;
		while (*b == '-' || *b == '_')
			b++;
		if (a == end || !*b)
			return a == end && !*b;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return 0;
	}
}

/* Does a source of the counter, or its part behind the processor's name, have that name? */
static int counts_as(const struct pem_event *event, const char *name)
{
	const char *at, *part;
	size_t n;

	for (at = event->source_name; *at; at += n + (at[n] == '|')) {
		n = strcspn(at, "|");
		if (is_same_counter(at, n, name))
			return 1;
		part = memmem(at, n, "::", 2);
		if (part && is_same_counter(part + 2, n - (size_t)(part + 2 - at), name))
			return 1;
	}
	return is_same_counter(event->specifier, strlen(event->specifier), name);
}

/* perf's second names, and short ones that people use. */
static const char *const counter_aliases[][2] = {
	{"cpu-cycles", "perf::CYCLES"},
	{"branches", "perf::BRANCH-INSTRUCTIONS"},
	{"idle-cycles-frontend", "perf::STALLED-CYCLES-FRONTEND"},
	{"idle-cycles-backend", "perf::STALLED-CYCLES-BACKEND"},
	{"faults", "perf::PAGE-FAULTS"},
	{"cs", "perf::CONTEXT-SWITCHES"},
	{"migrations", "perf::CPU-MIGRATIONS"},
	{"dtlb-misses", "perf::PERF_COUNT_HW_CACHE_DTLB:READ:MISS"},
	{"itlb-misses", "perf::ITLB-LOAD-MISSES"},
	{"l1d-misses", "perf::L1-DCACHE-LOAD-MISSES"},
	{"llc-misses", "perf::CACHE-MISSES"},
};

int pem_event__is_counter(const struct pem_event *event, const char *name)
{
	size_t i;

	if (event->source_kind != PEM_SOURCE_PERF)
		return 0;
	for (i = 0; i < PEM_ARRAY_SIZE(counter_aliases); i++)
		if (is_same_counter(name, strlen(name), counter_aliases[i][0]))
			name = counter_aliases[i][1];
	return counts_as(event, name);
}
