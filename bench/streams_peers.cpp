/* SPDX-License-Identifier: MIT */
/* streams_peers.cpp - queues of others for streams_item.c */
#include "bench/streams_item.h"

#include <boost/lockfree/spsc_queue.hpp>
#include <readerwriterqueue.h>

template <typename Push, typename Pop> static void burst(uint64_t n, Push push, Pop pop)
{
	uint64_t item = 0, sum = 0;

	for (uint64_t i = 0; i < n; i += BENCH_BURST) {
		for (uint64_t k = 0; k < BENCH_BURST; k++)
			push(k);
		for (uint64_t k = 0; k < BENCH_BURST; k++) {
			pop(item);
			sum += item;
		}
	}
	__asm__ __volatile__("" : : "r"(sum));
}

void bench_queue_moodycamel(uint64_t n)
{
	static moodycamel::ReaderWriterQueue<uint64_t> queue(2 * BENCH_BURST);

	burst(
		n, [](uint64_t item) { queue.try_enqueue(item); },
		[](uint64_t &item) { queue.try_dequeue(item); });
}

void bench_queue_boost(uint64_t n)
{
	static boost::lockfree::spsc_queue<uint64_t> queue(2 * BENCH_BURST);

	burst(
		n, [](uint64_t item) { queue.push(item); },
		[](uint64_t &item) { queue.pop(item); });
}
