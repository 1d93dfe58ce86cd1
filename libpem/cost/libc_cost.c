/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libc_cost.c - measure what it costs a program that its calls of malloc and free are events
 *
 * A program allocates (exercise/main.c), alternately plain, recorded and counted. So the cost is
 * that of the whole way: the function in front of the C library's, finding the site, and the
 * record. The sessions are made for this alone. They keep the last records, so that a pool is soon
 * used whole and takes no further memory. A small pool stays in the caches. One that is larger than
 * most second-level caches does not, as that of a program that allocates now and then.
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"

#include <pem/clock.h>
#include <pem/event.h>

#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 5
#define CHUNKS_IN_CACHE 32
#define CHUNKS_BEYOND 256

enum { PLAIN, LOGGED, COUNTED, WAYS };

static bool run_once(char *const environment[], struct pem_step *pair)
{
	struct pem_exercise run;

	return pem_exercise__begin(&run, "allocate", environment) &&
	       pem_exercise__end(&run, pair, sizeof(*pair)) && pair->warm > 0 && pair->cold > 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* What an event of a pair costs more in one way than plain: the median of the rounds, in ns. */
static double more_ns(const double *way, const double *plain)
{
	double more[ROUNDS];
	unsigned i;

	for (i = 0; i < ROUNDS; i++)
		more[i] = (way[i] - plain[i]) / 2;
	qsort(more, ROUNDS, sizeof(*more), by_value);
	return more[ROUNDS / 2] > 0 ? more[ROUNDS / 2] * 1e9 / (double)pem_clock__hz() : 0;
}

static void set_action(struct pem_session *own, uint32_t flags)
{
	own->page->rules[0] = (struct pem_rule){.event_id = PEM_RULE_ANY_EVENT,
						.action = PEM_ACTION(flags, PEM_NO_FIELD, 0, 0, 1),
						.max_level = PEM_LEVEL_INFO};
	/* UI */
	__atomic_store_n(&own->page->rule_count, 1, __ATOMIC_RELEASE);
}

/* Measure with a pool of this number of chunks. */
static struct pem_cost measure(uint32_t chunks)
{
	static const uint32_t flags[WAYS] = {0, PEM_ACTION_LOG, PEM_ACTION_STAT};
	const struct pem_session_options few = {
		.size = sizeof(few), .chunk_count = chunks, .overwrite = 1};
	const struct pem_run_options options = {.size = sizeof(options), .preload_libc = true};
	struct pem_session *own = pem_session__open(&few, NULL);
	struct pem_environment *environment =
		own ? pem_environment__new(own, own->directory, NULL, &options) : NULL;
	double warm[WAYS][ROUNDS], cold[WAYS][ROUNDS];
	struct pem_cost cost = {0};
	struct pem_step pair;
	unsigned i, way;

	if (!environment)
		goto out;
	for (i = 0; i < ROUNDS; i++) {
		for (way = 0; way < WAYS; way++) {
			if (way != PLAIN)
				set_action(own, flags[way]);
			if (!run_once(way == PLAIN ? environ
						   : pem_environment__variables(environment),
				      &pair))
				goto out;
			warm[way][i] = pair.warm;
			cold[way][i] = pair.cold;
		}
	}
	cost = (struct pem_cost){.log_ns = more_ns(warm[LOGGED], warm[PLAIN]),
				 .stat_ns = more_ns(warm[COUNTED], warm[PLAIN]),
				 .cold_log_ns = more_ns(cold[LOGGED], cold[PLAIN]),
				 .cold_stat_ns = more_ns(cold[COUNTED], cold[PLAIN])};
out:
	pem_environment__free(environment);
	pem_session__close(own);
	return cost;
}

static double greatest(double a, double b)
{
	return a > b ? a : b;
}

struct pem_cost pem_libc_cost(void)
{
	struct pem_cost cost = measure(CHUNKS_IN_CACHE), far = measure(CHUNKS_BEYOND);

	cost.cold_log_ns = greatest(cost.cold_log_ns, greatest(far.log_ns, far.cold_log_ns));
	cost.cold_stat_ns = greatest(cost.cold_stat_ns, far.cold_stat_ns);
	return cost;
}
