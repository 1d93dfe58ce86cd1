// SPDX-License-Identifier: MIT
/*
 * threads.c - the cost of raising an event when 2 or 8 threads do so on 2 CPUs
 *
 *	notify/log2_mt2, notify/log2_mt8		elapsed time for one event of all threads:
 *							1 / throughput
 *	notify/log2_mt2_cpu, notify/log2_mt8_cpu	CPU time of the process for one event,
 *							without the work of other processes
 *
 * The threads live through all rounds. Each is bound to one of the last two CPUs that this process
 * may run on. The peer raises an equal event through LTTng-UST in the same threads.
 */
#include "bench/bench.h"
#include "bench/flight.h"
#include "bench/lttng.h"

#include "bench_stubs/bench.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define PROCESSES 5
#define ROUNDS 7
#define SLICE_MS 40.0
#define CPUS 2

struct team {
	unsigned count;
	pthread_barrier_t begin, end;
	void (*work)(uint64_t n);
	uint64_t n; /* operations of each thread */
};

static struct team two = {.count = 2}, eight = {.count = 8};
static int cpus[CPUS];
static void (*lttng_log)(uint64_t n);
static uint64_t logged_count;

static void raise_ours(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_log(i, ~i))
}

static void run(struct team *team, void (*work)(uint64_t n), uint64_t n)
{
	team->work = work;
	team->n = (n / team->count + 7) & ~(uint64_t)7;
	pthread_barrier_wait(&team->begin);
	pthread_barrier_wait(&team->end);
	if (work == raise_ours)
		logged_count += team->n * team->count;
}

static void run_two(uint64_t n)
{
	run(&two, raise_ours, n);
}

static void run_eight(uint64_t n)
{
	run(&eight, raise_ours, n);
}

static void run_two_peer(uint64_t n)
{
	run(&two, lttng_log, n);
}

static void run_eight_peer(uint64_t n)
{
	run(&eight, lttng_log, n);
}

static void *member(void *arg)
{
	struct team *team = arg;

	for (;;) {
		pthread_barrier_wait(&team->begin);
		team->work(team->n);
		pthread_barrier_wait(&team->end);
	}
	return NULL;
}

/* Find the last CPUS that this process may run on. Returns 0, or -1 if there are fewer. */
static int choose_cpus(void)
{
	cpu_set_t allowed;
	int cpu, found = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -1;
	for (cpu = CPU_SETSIZE - 1; cpu >= 0 && found < CPUS; cpu--)
		if (CPU_ISSET(cpu, &allowed))
			cpus[found++] = cpu;
	return found == CPUS ? 0 : -1;
}

/* Start the threads. They end with the process. */
static int start_team(struct team *team)
{
	pthread_attr_t attributes;
	pthread_t thread;
	cpu_set_t one;
	unsigned i;
	int rc = 0;

	pthread_barrier_init(&team->begin, NULL, team->count + 1);
	pthread_barrier_init(&team->end, NULL, team->count + 1);
	for (i = 0; rc == 0 && i < team->count; i++) {
		CPU_ZERO(&one);
		CPU_SET(cpus[i % CPUS], &one);
		pthread_attr_init(&attributes);
		pthread_attr_setaffinity_np(&attributes, sizeof(one), &one);
		rc = pthread_create(&thread, &attributes, member, team);
		pthread_attr_destroy(&attributes);
	}
	return rc ? -1 : 0;
}

int main(void)
{
	static const char *const peer = "LTTng-UST " LTTNG_VERSION;
	struct bench_case cases[] = {
		{"notify/log2_mt2", run_two, peer, NULL, NULL, 0},
		{"notify/log2_mt8", run_eight, peer, NULL, "notify/log2_mt2", 0},
		{"notify/log2_mt2_cpu", run_two, peer, NULL, NULL, CLOCK_PROCESS_CPUTIME_ID},
		{"notify/log2_mt8_cpu", run_eight, peer, NULL, "notify/log2_mt2_cpu",
		 CLOCK_PROCESS_CPUTIME_ID},
	};
	const struct bench bench = {"threads",
				    PROCESSES,
				    ROUNDS,
				    SLICE_MS,
				    CLOCK_MONOTONIC,
				    cases,
				    sizeof(cases) / sizeof(cases[0])};
	struct flight flight = {0};
	struct pem_error error = {"there are no two CPUs to run on"};
	struct lttng lttng;
	size_t i;
	int rc = 1;

	if (!bench__child()) {
		rc = bench__spread(&bench);
		if (rc < 0 && rc != -ECHILD) /* the child has printed the reason */
			fprintf(stderr, "threads: no results: %s\n", strerror(-rc));
		return rc < 0;
	}
	if (lttng__start(&lttng, FLIGHT_BYTES) < 0 && bench__child() == 1)
		printf("threads: no LTTng-UST beside us: %s\n", lttng.reason);
	lttng_log = lttng.peer.run_log;
	for (i = 0; lttng_log && i < sizeof(cases) / sizeof(cases[0]); i++)
		cases[i].run_peer = cases[i].run == run_two ? run_two_peer : run_eight_peer;
	if (choose_cpus() < 0 || flight__start(&flight, "APP::Bench::Log", 0, &error) < 0 ||
	    start_team(&two) < 0 || start_team(&eight) < 0) {
		fprintf(stderr, "threads: %s\n", error.text);
		goto out;
	}
	if (bench__child() == 1)
		printf("threads: bound to CPUs %d and %d\n", cpus[1], cpus[0]);
	fflush(stdout);
	rc = bench__run(&bench) < 0;
	if (flight__check(&flight, logged_count, &error) < 0) {
		fprintf(stderr, "threads: not what it seems: %s\n", error.text);
		rc = 1;
	}
out:
	flight__stop(&flight);
	lttng__stop(&lttng);
	return rc;
}
