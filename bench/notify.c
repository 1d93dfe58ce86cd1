// SPDX-License-Identifier: MIT
/*
 * notify.c - what raising an event costs: disabled, logged to a flight recorder, counted
 *
 * Not here: several threads, the kernel's events, consumers.
 *
 *	notify/loop	the empty loop, which all other cases contain
 *	notify/floor	a read of the clock and 24 bytes stored, through memory of the pool's size;
 *			any recorder of times needs at least this
 *	notify/disabled, notify/log2, notify/stat	the generated stub of an event of two 64-bit
 *							fields
 *	notify/log2_ids	notify/log2 again, beside a peer whose records also have process and
 *			thread, as ours do
 *	notify/stat_rising	as notify/stat, of a value that is the greatest so far each time
 *	notify/stat_wide	as notify/stat, with variance and histogram
 *	notify/stat_top	as notify/stat, with the most frequent values. Half of the events have one
 *			of 8 values. The others have new values: these search all entries and
 *			replace the least frequent.
 *	notify/stat_filtered	as notify/stat, in the context of this thread and with a predicate
 *				of two tests, which holds
 *	notify/filtered_out	as notify/stat_filtered, but the second test rejects each event
 *
 * The peer raises an equal event through LTTng-UST in this process, in the same rounds. The time is
 * CPU time of the thread. The cases do not wait, and work of other threads does not count.
 */
#include "bench/bench.h"
#include "bench/flight.h"
#include "bench/lttng.h"

#include "bench_stubs/bench.h"

#include <pem/clock.h>
#include <pem/pem.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROCESSES 7
#define ROUNDS 15
#define SLICE_MS 5.0

static struct floor_ring ring;

static void run_loop(uint64_t n)
{
	BENCH_LOOP(n, )
}

static void run_floor(uint64_t n)
{
	BENCH_LOOP(n, floor_ring__store(&ring, i))
}

static void run_disabled(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_disabled(i, ~i))
}

static uint64_t logged_count;

static void run_log(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_log(i, ~i))
	logged_count += (n + 7) & ~(uint64_t)7;
}

static void run_stat(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_stat(i & 1023, ~i))
}

static void run_rising(uint64_t n)
{
	static uint64_t value = 1ull << 32;

	BENCH_LOOP(n, pem_notify_bench_stat(value++, ~i))
}

static void run_distribution(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_wide(i, ~i))
}

static void run_top(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_top(i & 1 ? i & 15 : i, ~i))
}

/* Counts events with 'a > 4096 && b != 0'. */
static void run_filtered(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_filtered(i + 4097, 1))
}

static void run_filtered_out(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_filtered(i + 4097, 0))
}

/* --- pem --- */

struct pem_side {
	struct flight flight;
	struct pem_statistics *statistics, *filtered, *distribution, *top;
};

static struct pem_statistics *count(struct pem_session *session, const char *event, uint32_t tid,
				    const char *predicate, unsigned keep, struct pem_error *error)
{
	struct pem_context here = {0};
	struct pem_statistics *statistics = NULL;
	struct pem_event_set *set = pem_event_set__new(session, &event, 1, error);

	here.pid = (uint32_t)getpid();
	here.tid = tid;
	if (set && !pem_event_set__where(set, predicate, error))
		statistics = pem_session__register_statistics(session, set, &here, "a", error);
	pem_event_set__free(set);
	if (!statistics)
		return NULL;
	if ((keep && pem_statistics__keep(statistics, keep)) ||
	    pem_statistics__enable(statistics)) {
		snprintf(error->text, sizeof(error->text), "%s could not be counted", event);
		pem_statistics__unregister(statistics);
		return NULL;
	}
	return statistics;
}

static int enable(struct pem_side *side, struct pem_error *error)
{
	const struct {
		struct pem_statistics **statistics;
		const char *event;
		uint32_t tid;
		const char *predicate;
		unsigned keep;
	} counted[] = {
		{&side->statistics, "APP::Bench::Stat", PEM_ANY, NULL, 0},
		{&side->distribution, "APP::Bench::Wide", PEM_ANY, NULL,
		 PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM},
		{&side->top, "APP::Bench::Top", PEM_ANY, NULL, PEM_STATISTIC_TOP},
		{&side->filtered, "APP::Bench::Filtered", (uint32_t)gettid(), "a > 4096 && b != 0",
		 0},
	};
	size_t i;

	if (flight__start(&side->flight, "APP::Bench::Log", 0, error) < 0)
		return -1;
	for (i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
		*counted[i].statistics =
			count(side->flight.session, counted[i].event, counted[i].tid,
			      counted[i].predicate, counted[i].keep, error);
		if (!*counted[i].statistics)
			return -1;
	}
	return 0;
}

/*
 * Check that the raised events were counted, so that the cases measure what they should. Nothing of
 * this is reported. Called once, before the rounds, because some of the statistics are read as
 * totals. The numbers are of a = 0..999: their sum and variance; half of the events of run_top have
 * one of 8 odd values, 1000 / 16 each.
 */
static int check_counts(struct pem_side *side, struct pem_error *error)
{
	struct pem_statistic before = {.size = sizeof(before)}, after = before, passed = before,
			     distribution = before;
	struct pem_top top = {.size = sizeof(top)};

	run_log(8);
	run_disabled(8);
	if (pem_statistics__read(side->statistics, &before, 1) == 1) {
		run_stat(1000);
		run_filtered(1000);
		run_filtered_out(1000);
		run_distribution(1000);
		run_top(1000);
		if (pem_statistics__read(side->statistics, &after, 1) == 1 &&
		    after.count - before.count == 1000 && after.sum - before.sum == 499500 &&
		    pem_statistics__read(side->filtered, &passed, 1) == 1 && passed.count == 1000 &&
		    pem_statistics__read(side->distribution, &distribution, 1) == 1 &&
		    distribution.variance == 83333.25 &&
		    pem_statistics__top(side->top, 0, &top, 1) == 1 && top.count >= 62)
			return 0;
	}
	snprintf(error->text, sizeof(error->text), "the statistic does not count what is raised");
	return -1;
}

static void disable(struct pem_side *side)
{
	pem_statistics__unregister(side->statistics);
	pem_statistics__unregister(side->filtered);
	pem_statistics__unregister(side->distribution);
	pem_statistics__unregister(side->top);
	flight__stop(&side->flight);
}

enum {
	LOOP,
	FLOOR,
	DISABLED,
	LOG,
	LOG_IDS,
	STAT,
	STAT_RISING,
	STAT_FILTERED,
	FILTERED_OUT,
	STAT_DISTRIBUTION,
	STAT_TOP,
};

int main(void)
{
	struct bench_case cases[] = {
		[LOOP] = {"notify/loop", run_loop, NULL, NULL, NULL, 0},
		[FLOOR] = {"notify/floor", run_floor, NULL, NULL, NULL, 0},
		[DISABLED] = {"notify/disabled", run_disabled, "LTTng-UST " LTTNG_VERSION, NULL,
			      NULL, 0},
		[LOG] = {"notify/log2", run_log, "LTTng-UST " LTTNG_VERSION, NULL, "notify/floor",
			 0},
		[LOG_IDS] = {"notify/log2_ids", run_log,
			     "LTTng-UST " LTTNG_VERSION " with vpid and vtid", NULL, "notify/floor",
			     0},
		[STAT] = {"notify/stat", run_stat, NULL, NULL, NULL, 0},
		[STAT_RISING] = {"notify/stat_rising", run_rising, NULL, NULL, "notify/stat", 0},
		[STAT_FILTERED] = {"notify/stat_filtered", run_filtered,
				   "LTTng-UST " LTTNG_VERSION ", rejecting", NULL, NULL, 0},
		[FILTERED_OUT] = {"notify/filtered_out", run_filtered_out,
				  "LTTng-UST " LTTNG_VERSION, NULL, NULL, 0},
		[STAT_DISTRIBUTION] = {"notify/stat_wide", run_distribution, NULL, NULL,
				       "notify/stat", 0},
		[STAT_TOP] = {"notify/stat_top", run_top, NULL, NULL, "notify/stat", 0},
	};
	struct bench bench = {"notify",
			      PROCESSES,
			      ROUNDS,
			      SLICE_MS,
			      CLOCK_THREAD_CPUTIME_ID,
			      cases,
			      sizeof(cases) / sizeof(cases[0])};
	struct pem_side side = {0};
	struct pem_error error = {"memory of the pool's size could not be had"};
	struct lttng lttng;
	int rc = 1;

	if (!bench__child()) {
		rc = bench__spread(&bench);
		if (rc < 0 && rc != -ECHILD) /* the child has printed the reason */
			fprintf(stderr, "notify: no results: %s\n", strerror(-rc));
		return rc < 0;
	}
	if (lttng__start(&lttng, FLIGHT_BYTES) < 0 && bench__child() == 1)
		printf("notify: no LTTng-UST beside us: %s\n", lttng.reason);
	cases[DISABLED].run_peer = lttng.peer.run_disabled;
	cases[LOG].run_peer = lttng.peer.run_log;
	cases[LOG_IDS].run_peer = lttng.peer.run_log_ids;
	cases[STAT_FILTERED].run_peer = lttng.peer.run_filtered;
	cases[FILTERED_OUT].run_peer = lttng.peer.run_filtered;
	if (floor_ring__make(&ring) < 0 || enable(&side, &error) < 0 ||
	    check_counts(&side, &error) < 0) {
		fprintf(stderr, "notify: %s\n", error.text);
		goto out;
	}
	if (bench__pin() < 0)
		fprintf(stderr, "notify: not bound to one CPU\n");
	rc = bench__run(&bench) < 0;
	if (flight__check(&side.flight, logged_count, &error) < 0) {
		fprintf(stderr, "notify: not what it seems: %s\n", error.text);
		rc = 1;
	}
out:
	disable(&side);
	lttng__stop(&lttng);
	return rc;
}
