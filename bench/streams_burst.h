/* SPDX-License-Identifier: MIT */
/*
 * streams_burst.h - items through a queue of pem/stream.h, with counters or without
 *
 * Included by a file that defines QUEUE and WORK, the names of the two functions.
 */
#include "bench/streams_item.h"

#include <pem/stream.h>

static struct pem_stream *queue(void)
{
	static struct pem_stream *made;

	if (!made)
		made = pem_stream__make("bench", 2 * BENCH_BURST, sizeof(uint64_t));
	if (!made)
		abort();
	return made;
}

void QUEUE(uint64_t n)
{
	struct pem_stream *stream = queue();
	uint64_t item = 0, sum = 0, i, k;

	for (i = 0; i < n; i += BENCH_BURST) {
		for (k = 0; k < BENCH_BURST; k++)
			pem_stream__push(stream, &k);
		for (k = 0; k < BENCH_BURST; k++) {
			pem_stream__pop(stream, &item);
			sum += item;
		}
	}
	__asm__ __volatile__("" : : "r"(sum));
}

void WORK(uint64_t n)
{
	struct pem_stream *stream = queue();
	uint64_t item = 0, i, k, chain = 1;

	for (i = 0; i < n; i++) {
		pem_stream__push(stream, &i);
		pem_stream__pop(stream, &item);
		/* Each multiplication waits for the one before. */
		for (k = 0; k < 800; k++) {
			chain *= item | 1;
			__asm__ __volatile__("" : "+r"(chain));
		}
	}
}
