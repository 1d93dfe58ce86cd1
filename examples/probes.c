// SPDX-License-Identifier: MIT
/*
 * probes.c - a program with enclosing probes: threads that answer queries on a table
 *
 *	probes [THREADS [ROWS]]			answers 2,000 queries in each thread, and prints a
 * sum pem record -e Probe -- probes 2		also records what they took pem stat -e
 * APP::Probe::Lat -f cycles -- probes 2 100000
 *
 * docs/probes.md says what each probe measures.
 */
#include <pem/probe.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { FILL = 1, QUERY = 2, ROWS_READ = 3 };

static uint32_t *table;
static size_t rows;

static void *answer_queries(void *arg)
{
	uint64_t *sum = arg;
	size_t query, row, count;

	for (query = 0; query < 2000; query++) {
		/* Throughput: a record for 100 queries. */
		PEM_TPT_PROBE_BEGIN(QUERY, 100);
		/* Latency of each tenth one. */
		PEM_LAT_PROBE_BEGIN(QUERY, 10);
		count = 0;
		for (row = query % 7; row < rows; row += 7, count++)
			*sum += table[row];
		PEM_LAT_PROBE_END(QUERY);
		PEM_TPT_PROBE_END(QUERY);
		PEM_SNAPSHOT_PROBE(ROWS_READ, 1000, query, count);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1, started = 0, i;
	pthread_t thread[64];
	uint64_t sums[64] = {0}, sum = 0;
	size_t row;

	rows = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000;
	table = malloc(rows * sizeof(*table) + 1);
	if (!table)
		return 1;
	/* Page faults of memory that is touched first. */
	PEM_FLT_PROBE_BEGIN(FILL, 1);
	for (row = 0; row < rows; row++)
		table[row] = (uint32_t)row;
	PEM_FLT_PROBE_END(FILL);
	while (started < threads && started < 64 &&
	       !pthread_create(&thread[started], NULL, answer_queries, &sums[started]))
		started++;
	for (i = 0; i < started; i++) {
		pthread_join(thread[i], NULL);
		sum += sums[i];
	}
	printf("%llu\n", (unsigned long long)sum);
	free(table);
	return 0;
}
