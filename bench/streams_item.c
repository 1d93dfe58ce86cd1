/* SPDX-License-Identifier: MIT */
/*
 * streams_item.c - what an item costs that passes a queue of pem/stream.h
 *
 *	streams/queue_item		a push and a pop, beside the queue without counters
 *	streams/queue_item_moodycamel	beside moodycamel::ReaderWriterQueue
 *	streams/queue_item_boost	beside boost::lockfree::spsc_queue
 *	streams/item_of_1_us		with a microsecond of work for each item
 *
 * One thread pushes 512 items and pops them, again and again, so that none of it waits: a cache
 * line on its way between two CPUs would hide the cost of counters. Not here: two threads.
 */
#include "bench/bench.h"
#include "bench/streams_item.h"

#include <stdio.h>

#define PROCESSES 7
#define ROUNDS 15
#define SLICE_MS 5.0

int main(void)
{
	static const struct bench_case cases[] = {
		{"streams/queue_item", bench_queue_observed, "without counters",
		 bench_queue_unobserved, NULL, 0},
#ifdef HAVE_QUEUE_PEERS
		{"streams/queue_item_moodycamel", bench_queue_observed, "ReaderWriterQueue",
		 bench_queue_moodycamel, NULL, 0},
		{"streams/queue_item_boost", bench_queue_observed, "spsc_queue", bench_queue_boost,
		 NULL, 0},
#endif
		{"streams/item_of_1_us", bench_work_observed, "without counters",
		 bench_work_unobserved, NULL, 0},
	};
	const struct bench bench = {"streams_item",
				    PROCESSES,
				    ROUNDS,
				    SLICE_MS,
				    CLOCK_THREAD_CPUTIME_ID,
				    cases,
				    sizeof(cases) / sizeof(cases[0])};

	if (!bench__child())
		return bench__spread(&bench) < 0;
	if (bench__pin() < 0)
		fprintf(stderr, "streams_item: not bound to one CPU\n");
	return bench__run(&bench) < 0;
}
