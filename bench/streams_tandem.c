/* SPDX-License-Identifier: MIT */
/*
 * streams_tandem.c - two stages of known service times with a queue between them
 *
 *	streams_tandem SECONDS SERVICE_NS ARRIVAL_NS det|exp CAPACITY SEED PERIOD_US
 *
 * A makes an item in ARRIVAL_NS, B takes SERVICE_NS for it; both by the cycle counter, so that a
 * slower processor changes nothing. The mean of exponential times is exact. A third thread samples
 * B's items each PERIOD_US for the heuristic of the paper; 0: there is none.
 *
 * Prints the heuristic's items per second (nan: it found none), how often it converged, the share
 * of time that B worked, and B's mean time for an item in ns, by a clock around its work alone.
 */
#include "bench/heuristic.h"

#include <pem/stream.h>

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>

#define TABLE 65536u

static struct pem_stream *queue;
static double cycles_per_ns;
static uint64_t times[2][TABLE]; /* of A and B, in cycles */
static uint64_t end_clock, served, busy_cycles, run_cycles;
static bool is_over;
static struct rate_heuristic heuristic;
static double found_sum;
static unsigned found;

static void calibrate(void)
{
	struct timespec pause = {0, 20000000};
	uint64_t ns, cycles;

	ns = pem_stream_clock();
	cycles = pem_clock();
	nanosleep(&pause, NULL);
	ns = pem_stream_clock() - ns;
	cycles_per_ns = (double)(pem_clock() - cycles) / (double)ns;
}

static void fill(uint64_t *table, double mean_ns, bool is_exponential, unsigned seed)
{
	static double drawn[TABLE];
	double sum = 0;
	unsigned short state[3] = {(unsigned short)seed, (unsigned short)(seed >> 16), 7};

	for (size_t i = 0; i < TABLE; i++) {
		drawn[i] = is_exponential ? -log(1 - erand48(state)) : 1;
		sum += drawn[i];
	}
	for (size_t i = 0; i < TABLE; i++)
		table[i] = (uint64_t)(drawn[i] * TABLE / sum * mean_ns * cycles_per_ns);
}

static void *produce(void *unused)
{
	uint64_t i = 0, now = pem_clock(), due;

	pem_stream_stage("A");
	while (now < end_clock) {
		due = now + times[0][i % TABLE];
		while ((now = pem_clock()) < due)
			;
		if (pem_stream__push(queue, &i))
			break;
		i++;
		now = pem_clock();
	}
	pem_stream__close(queue);
	return unused;
}

static void *consume(void *unused)
{
	uint64_t item, begin, popped, now, due;

	pem_stream_stage("B");
	begin = pem_clock();
	while (!pem_stream__pop(queue, &item)) {
		popped = pem_clock();
		due = popped + times[1][item % TABLE];
		while ((now = pem_clock()) < due)
			;
		busy_cycles += now - popped;
		served++;
	}
	run_cycles = pem_clock() - begin;
	return unused;
}

/* Sample the end of the queue at which B pops, as tc of the paper. */
static void *monitor(void *period_us)
{
	uint64_t period_ns = *(unsigned *)period_us * UINT64_C(1000), at = pem_stream_clock(), now;
	const struct pem_stream_end *end = queue->side[PEM_STREAM_POPS].end;
	uint64_t items = 0, blocks = 0, new_items, new_blocks;
	struct timespec pause = {0, (long)period_ns};
	bool was_blocked = true, is_blocked;
	double converged;

	prctl(PR_SET_TIMERSLACK, 1);
	rate_heuristic__begin(&heuristic, 0);
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		nanosleep(&pause, NULL);
		new_items = __atomic_load_n(&end->items, __ATOMIC_ACQUIRE);
		now = pem_stream_clock();
		new_blocks = __atomic_load_n(&end->blocks, __ATOMIC_ACQUIRE);
		is_blocked = __atomic_load_n(&end->since_ns, __ATOMIC_ACQUIRE) != 0;
		if (now > at &&
		    rate_heuristic__add(
			    &heuristic,
			    (double)(new_items - items) * (double)period_ns / (double)(now - at),
			    was_blocked || is_blocked || new_blocks != blocks, &converged)) {
			found_sum += converged;
			found++;
		}
		at = now;
		items = new_items;
		blocks = new_blocks;
		was_blocked = is_blocked;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t a, b, m;
	unsigned seed, period_us;
	bool is_exponential;
	double mean;

	if (argc != 8)
		return 2;
	calibrate();
	is_exponential = !strcmp(argv[4], "exp");
	seed = (unsigned)atoi(argv[6]);
	period_us = (unsigned)atoi(argv[7]);
	fill(times[0], atof(argv[3]), is_exponential, 2 * seed);
	fill(times[1], atof(argv[2]), is_exponential, 2 * seed + 1);
	queue = pem_stream__make("tandem", strtoul(argv[5], NULL, 10), sizeof(uint64_t));
	if (!queue)
		return 1;
	end_clock = pem_clock() + (uint64_t)(atof(argv[1]) * 1e9 * cycles_per_ns);
	if (pthread_create(&b, NULL, consume, NULL) || pthread_create(&a, NULL, produce, NULL) ||
	    (period_us && pthread_create(&m, NULL, monitor, &period_us)))
		return 1;
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	if (period_us)
		pthread_join(m, NULL);
	mean = found ? found_sum / found : period_us ? rate_heuristic__mean(&heuristic) : NAN;
	printf("%.1f %u %.4f %.2f\n", period_us ? mean * 1e6 / period_us : NAN, found,
	       (double)busy_cycles / (double)run_cycles,
	       (double)busy_cycles / cycles_per_ns / (double)served);
	return 0;
}
