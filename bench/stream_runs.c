// SPDX-License-Identifier: MIT
/*
 * stream_runs.c - simulated runs of two stages in tandem, and what estimators make of them
 *
 * Use: stream_runs within RUNS ITEMS, or low, or high; alarms KIND RUNS ITEMS; power KIND RUNS
 * CHANGE. Prints a line for each run, for bench/streams.py.
 *
 * As in section VI of the paper (bench/heuristic.h), the service rate of the second stage is drawn
 * between 0.8 and 8 MB/s, items have 8 bytes, and its times are exponential or deterministic. Those
 * of the first stage are exponential: items that come at equal distances would leave the heuristic
 * no period in which a deterministic stage is not blocked. In low and high the rate changes
 * halfway, and utilization is below or above 0.5 in both halves.
 *
 * The paper's heuristic sees what its monitor would: counts of reads in periods, and whether the
 * stage was blocked in them. The paper finds "the largest T" with little blocking: here that is the
 * largest of 300 ns times a power of two that leaves SAMPLES unblocked periods of a run, for fewer
 * never converge; if none does, the one that leaves most.
 */
#include "tests/unit/models_series.h"
#include "agents/models/service.h"
#include "bench/heuristic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ITEM_BYTES 8.0
#define RATE_MIN (0.8e6 / ITEM_BYTES)
#define RATE_MAX (8e6 / ITEM_BYTES)
#define CAPACITY 64u
#define PERIOD_MIN_NS 300.0
#define PERIODS 16u
#define SAMPLES 4096u

/* What happens to an item at the second stage. */
struct item {
	double taken_ns, done_ns;
};

struct run {
	enum series_kind kind;
	double utilization, rates[2]; /* of the second stage, in each half, items per second */
	double arrival_rate;
	struct item *items;
	uint32_t item_count;
};

static void die(const char *why)
{
	fprintf(stderr, "stream_runs: %s\n", why);
	exit(1);
}

/* --- runs --- */

static void simulate(struct run *run, uint64_t seed)
{
	struct series first = {.kind = SERIES_EXPONENTIAL, .random = seed};
	struct series second = {.kind = run->kind, .random = seed + 1};
	double ready = 0, free_ns = 0;
	uint64_t one;
	uint32_t i;

	for (i = 0; i < run->item_count; i++) {
		struct item *item = &run->items[i];
		double rate = run->rates[2 * i >= run->item_count];

		/* The first stage waits for space in the queue. */
		ready += series_next(&first, &one) * 1e9 / run->arrival_rate;
		if (i >= CAPACITY && run->items[i - CAPACITY].taken_ns > ready)
			ready = run->items[i - CAPACITY].taken_ns;
		item->taken_ns = ready > free_ns ? ready : free_ns;
		item->done_ns = free_ns = item->taken_ns + series_next(&second, &one) * 1e9 / rate;
	}
}

static double between(uint64_t *random, double low, double high)
{
	return low + (high - low) * model_random__share(random);
}

/* The time that the stage was not blocked with an item, by a clock of whole nanoseconds. */
static uint64_t busy_ns(const struct item *item)
{
	return (uint64_t)item->done_ns - (uint64_t)item->taken_ns;
}

/* --- the heuristic --- */

struct periods {
	double period_ns;
	uint32_t unblocked;
	struct rate_heuristic heuristic;
	/* Of values that converged: their number, the last one, and the nearest to either rate. */
	uint32_t converged;
	double last, nearest[2];
};

static void take_value(const struct run *run, struct periods *p, double count)
{
	double rate = count * 1e9 / p->period_ns;
	int i;

	p->converged++;
	p->last = rate;
	for (i = 0; i < 2; i++)
		if (fabs(rate / run->rates[i] - 1) < fabs(p->nearest[i] / run->rates[i] - 1))
			p->nearest[i] = rate;
}

/* Cut the run into periods. Give them to the heuristic if it listens, or count them alone. */
static void cut(const struct run *run, struct periods *p, bool listens)
{
	double end = p->period_ns, count, idle_until = 0, converged;
	uint32_t i = 0;

	while (i < run->item_count) {
		bool is_blocked = idle_until > end - p->period_ns;

		for (count = 0; i < run->item_count && run->items[i].taken_ns < end; i++)
			count++;
		/* The stage waits from the end of a service to the next item. */
		if (i > 0 && i < run->item_count) {
			uint32_t k = i - (uint32_t)count;

			for (; k <= i && !is_blocked; k++)
				is_blocked = k > 0 &&
					     run->items[k].taken_ns > run->items[k - 1].done_ns &&
					     run->items[k - 1].done_ns < end;
			if (run->items[i - 1].done_ns < run->items[i].taken_ns)
				idle_until = run->items[i].taken_ns;
		}
		p->unblocked += !is_blocked;
		if (listens && rate_heuristic__add(&p->heuristic, count, is_blocked, &converged))
			take_value(run, p, converged);
		end += p->period_ns;
	}
}

static void run_heuristic(const struct run *run, struct periods *best)
{
	uint32_t k;

	*best = (struct periods){0};
	for (k = PERIODS; k-- != 0 && best->unblocked < SAMPLES;) {
		struct periods p = {.period_ns = PERIOD_MIN_NS * (double)(1u << k)};

		/* No more periods than twice the items: shorter ones see at most one each. */
		if (k < PERIODS - 1 &&
		    run->items[run->item_count - 1].done_ns / p.period_ns > 2.0 * run->item_count)
			break;
		cut(run, &p, false);
		if (p.unblocked > best->unblocked)
			*best = p;
	}
	if (best->unblocked == 0)
		return;
	rate_heuristic__begin(&best->heuristic, 0);
	cut(run, best, true);
	if (best->converged == 0 && rate_heuristic__mean(&best->heuristic) > 0)
		best->last = rate_heuristic__mean(&best->heuristic) * 1e9 / best->period_ns;
}

/* --- modes --- */

/* kind utilization rate ours low high theirs converged */
static void within(struct run *run, uint64_t seed)
{
	struct model_service service = {0};
	struct model_estimate e;
	struct periods p;
	uint64_t random = seed;
	uint32_t i;

	run->rates[0] = run->rates[1] = between(&random, RATE_MIN, RATE_MAX);
	run->utilization = between(&random, 0.1, 0.99);
	run->arrival_rate = run->utilization * run->rates[0];
	simulate(run, random);
	for (i = 0; i < run->item_count; i++)
		if (model_service__add(&service, 1, busy_ns(&run->items[i]), false))
			die("no memory");
	model_service__estimate(&service, &e);
	model_service__free(&service);
	run_heuristic(run, &p);
	printf("%d %.4f %.3f %.3f %.3f %.3f %.3f %u\n", run->kind, run->utilization, run->rates[0],
	       e.range.rate, e.range.low, e.range.high, p.last, p.converged);
}

/* kind rate rate phases ours ours change theirs theirs converged */
static void two_phases(struct run *run, uint64_t seed, bool is_high)
{
	static struct model_change change;
	struct model_phase phases[MODEL_PHASES];
	struct periods p;
	uint64_t random = seed, before;
	uint32_t i, count;

	for (i = 0; i < 2; i++)
		run->rates[i] = between(&random, RATE_MIN, RATE_MAX);
	run->arrival_rate =
		is_high ? between(&random, 0.5, 0.99) * fmax(run->rates[0], run->rates[1])
			: between(&random, 0.1, 0.5) * fmin(run->rates[0], run->rates[1]);
	simulate(run, random);
	model_change__begin(&change);
	for (i = 0; i < run->item_count; i++)
		model_change__add(&change, 1, busy_ns(&run->items[i]));
	count = model_change__phases(&change, phases, &before);
	run_heuristic(run, &p);
	printf("%d %.3f %.3f %u %.3f %.3f %lld %.3f %.3f %u\n", run->kind, run->rates[0],
	       run->rates[1], count, phases[0].range.rate, phases[count - 1].range.rate,
	       (long long)phases[count - 1].first_item - run->item_count / 2, p.nearest[0],
	       p.nearest[1], p.converged);
}

/* Series without a change, or with one by a factor halfway: phases, location, delay in intervals.
 */
static void series(enum series_kind kind, uint64_t seed, uint32_t count, double factor)
{
	static struct model_change change;
	struct series s = {.kind = kind, .random = seed * 7919};
	struct model_phase phases[MODEL_PHASES];
	uint64_t items, before;
	uint32_t i, found, delay = 0;

	model_change__begin(&change);
	for (i = 0; i < count; i++) {
		double time = series_next(&s, &items) * (2 * i >= count ? factor : 1);

		if (model_change__add(&change, items, (uint64_t)(1e5 * time + 0.5)) && delay == 0)
			delay = i - count / 2;
	}
	found = model_change__phases(&change, phases, &before);
	printf("%llu %lld %u\n", (unsigned long long)(before + found),
	       (long long)phases[found - 1].first_interval - count / 2, delay);
}

int main(int argc, char **argv)
{
	struct run run = {0};
	uint32_t runs, i;

	if (argc == 5 && (!strcmp(argv[1], "alarms") || !strcmp(argv[1], "power"))) {
		bool has_change = argv[1][0] == 'p';

		for (i = 0; i < (uint32_t)atoi(argv[3]); i++)
			series((enum series_kind)(atoi(argv[2]) % SERIES_KINDS), i + 1,
			       has_change ? 20000 : (uint32_t)atoi(argv[4]),
			       has_change ? exp(i % 2 ? atof(argv[4]) : -atof(argv[4])) : 1);
		return 0;
	}
	if (argc != 4 || atoi(argv[3]) < 1)
		die("use: stream_runs within|low|high RUNS ITEMS, alarms|power KIND RUNS "
		    "ITEMS|CHANGE");
	runs = (uint32_t)atoi(argv[2]);
	run.item_count = (uint32_t)atoi(argv[3]);
	run.items = calloc(run.item_count, sizeof(*run.items));
	if (!run.items)
		die("no memory");
	for (i = 0; i < runs; i++) {
		run.kind = i % 2 ? SERIES_DETERMINISTIC : SERIES_EXPONENTIAL;
		if (!strcmp(argv[1], "within"))
			within(&run, i + 1);
		else
			two_phases(&run, i + 1, !strcmp(argv[1], "high"));
	}
	free(run.items);
	return 0;
}
