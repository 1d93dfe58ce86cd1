// SPDX-License-Identifier: MIT
/*
 * enclosed.c - what a pair of statements around nothing costs (pem/probe.h), logged
 *
 *	explore/probe_floor	two bare readings of the clock, which latency takes at least
 *	explore/probe_lat	cycles; beside two events of LTTng-UST, a begin and an end
 *	explore/probe_tpt	executions and cycles
 *	explore/probe_flt	page faults; beside getrusage(RUSAGE_THREAD) called twice
 *	explore/probe_ctxsw	context switches; beside the same
 *	explore/probe_lat_mt8, explore/probe_flt_mt8	CPU time of a pair of 8 threads on the CPUs
 * that there are, which each begin with opening what they read
 *
 * Instructions of these are in insns.py.
 */
#include "bench/bench.h"
#include "bench/flight.h"
#include "bench/lttng.h"

#include <pem/probe.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define PROCESSES 5
#define ROUNDS 7
#define SLICE_MS 20.0
#define THREADS 8

static void (*lttng_log)(uint64_t n);
static uint64_t logged_count;

static void run_floor(uint64_t n)
{
	uint64_t sum = 0;

	BENCH_LOOP(n, sum += pem_clock(); __asm__ __volatile__(""
							       : "+r"(sum)::"memory");
		   sum -= pem_clock())
}

#define PAIR(name, NAME)                                                                           \
	static void *work_##name(void *arg)                                                        \
	{                                                                                          \
		const uint64_t n = *(const uint64_t *)arg;                                         \
                                                                                                   \
		BENCH_LOOP(n, PEM_##NAME##_PROBE_BEGIN(1, 1);                                      \
			   __asm__ __volatile__("" ::                                              \
							: "memory");                               \
			   PEM_##NAME##_PROBE_END(1))                                              \
		__atomic_fetch_add(&logged_count, (n + 7) & ~(uint64_t)7, __ATOMIC_RELAXED);       \
		return NULL;                                                                       \
	}                                                                                          \
	static void run_##name(uint64_t n)                                                         \
	{                                                                                          \
		work_##name(&n);                                                                   \
	}

PAIR(lat, LAT)
PAIR(tpt, TPT)
PAIR(flt, FLT)
PAIR(ctxsw, CTXSW)

static void run_threads(void *(*work)(void *), uint64_t n)
{
	pthread_t threads[THREADS];
	int i, count = 0;

	n /= THREADS;
	while (count < THREADS && !pthread_create(&threads[count], NULL, work, &n))
		count++;
	for (i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void run_lat_threads(uint64_t n)
{
	run_threads(work_lat, n);
}

static void run_flt_threads(uint64_t n)
{
	run_threads(work_flt, n);
}

static void run_lttng(uint64_t n)
{
	lttng_log(2 * n);
}

static void run_getrusage(uint64_t n)
{
	struct rusage usage;

	BENCH_LOOP(n, getrusage(RUSAGE_THREAD, &usage); getrusage(RUSAGE_THREAD, &usage))
}

int main(void)
{
	static const char *const call = "getrusage twice", *const floor = "explore/probe_floor";
	struct bench_case cases[] = {
		{floor, run_floor, NULL, NULL, NULL, 0},
		{"explore/probe_lat", run_lat, "LTTng-UST " LTTNG_VERSION ", two events", NULL,
		 floor, 0},
		{"explore/probe_tpt", run_tpt, NULL, NULL, floor, 0},
		{"explore/probe_flt", run_flt, call, run_getrusage, floor, 0},
		{"explore/probe_ctxsw", run_ctxsw, call, run_getrusage, floor, 0},
		{"explore/probe_lat_mt8", run_lat_threads, NULL, NULL, "explore/probe_lat",
		 CLOCK_PROCESS_CPUTIME_ID},
		{"explore/probe_flt_mt8", run_flt_threads, NULL, NULL, "explore/probe_flt",
		 CLOCK_PROCESS_CPUTIME_ID},
	};
	const struct bench bench = {"enclosed",
				    PROCESSES,
				    ROUNDS,
				    SLICE_MS,
				    CLOCK_THREAD_CPUTIME_ID,
				    cases,
				    sizeof(cases) / sizeof(cases[0])};
	struct pem_error error = {"unknown"};
	struct flight flight = {0};
	struct lttng lttng;
	int rc = 1;

	if (!bench__child()) {
		rc = bench__spread(&bench);
		if (rc < 0 && rc != -ECHILD) /* the child has printed the reason */
			fprintf(stderr, "enclosed: no results: %s\n", strerror(-rc));
		return rc < 0;
	}
	if (lttng__start(&lttng, FLIGHT_BYTES) < 0 && bench__child() == 1)
		printf("enclosed: no LTTng-UST beside us: %s\n", lttng.reason);
	lttng_log = lttng.peer.run_log;
	cases[1].run_peer = lttng_log ? run_lttng : NULL;
	if (flight__start(&flight, "APP::Probe::*", 0, &error) < 0) {
		fprintf(stderr, "enclosed: %s\n", error.text);
		goto out;
	}
	if (bench__child() == 1)
		printf("enclosed: %.3f cycles of the clock a nanosecond\n",
		       (double)pem_clock__hz() / 1e9);
	fflush(stdout);
	rc = bench__run(&bench) < 0;
	if (flight__check(&flight, logged_count, &error) < 0) {
		fprintf(stderr, "enclosed: not what it seems: %s\n", error.text);
		rc = 1;
	}
out:
	flight__stop(&flight);
	lttng__stop(&lttng);
	return rc;
}
