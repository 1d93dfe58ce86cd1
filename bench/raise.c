// SPDX-License-Identifier: MIT
/*
 * raise.c - raises APP::Bench::Log at a given rate, for benchmarks that record a program from
 * outside
 *
 *	raise [--lttng] paced RATE_HZ COUNT	one thread raises COUNT events; RATE_HZ 0: as fast
 *						as it can
 *	raise [--lttng] threads COUNT RATE_HZ	COUNT threads raise 8 events RATE_HZ times a second,
 *						until standard input ends
 *
 * Prints 'ready' once each thread has raised an event, and at the end how many events were raised
 * in how many ns. The program is not linked with libpem, which is preloaded as for any program.
 * With --lttng it raises LTTng-UST's event of the same fields, through the loops of peer-lttng.so
 * beside it.
 */
#include "bench/bench.h"
#include "bench/lttng_peer.h"

#include "bench_stubs/bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BURST 256u
#define STACK_BYTES (64u << 10)

static void (*raise_events)(uint64_t n);
static uint64_t rate_hz;
static volatile int over;
static uint64_t total, ready;

static void raise_ours(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_log(i, ~i))
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Raise events in bursts that are too short to fill a buffer. */
static void raise_paced(uint64_t count)
{
	uint64_t start = now_ns(), done = 0;

	while (done < count) {
		raise_events(BURST);
		done += BURST;
		while (rate_hz && (now_ns() - start) * (double)rate_hz < (double)done * 1e9)
			;
	}
	total = done;
}

static void *raise_now_and_then(void *arg)
{
	const struct timespec pause = {(time_t)(1 / rate_hz),
				       rate_hz > 1 ? (long)(1000000000u / rate_hz) : 0};
	uint64_t done = 0;

	(void)arg;
	do {
		raise_events(8);
		if (!done)
			__atomic_fetch_add(&ready, 1, __ATOMIC_RELAXED);
		done += 8;
		nanosleep(&pause, NULL);
	} while (!over);
	__atomic_fetch_add(&total, done, __ATOMIC_RELAXED);
	return NULL;
}

static int raise_in_threads(unsigned long count)
{
	pthread_t *threads = calloc(count, sizeof(*threads));
	pthread_attr_t attributes;
	unsigned long i;
	char c;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	for (i = 0; threads && i < count; i++)
		if (pthread_create(&threads[i], &attributes, raise_now_and_then, NULL))
			return -1;
	while (__atomic_load_n(&ready, __ATOMIC_RELAXED) < count)
		usleep(1000);
	puts("ready");
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0)
		;
	over = 1;
	for (i = 0; threads && i < count; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	return 0;
}

int main(int argc, char **argv)
{
	int lttng = argc > 1 && !strcmp(argv[1], "--lttng");
	struct lttng_peer peer = {.run_log = raise_ours};
	char reason[256];
	uint64_t start;

	argv += lttng;
	if (argc - lttng != 4) {
		fprintf(stderr,
			"use: raise [--lttng] paced RATE_HZ COUNT | threads COUNT RATE_HZ\n");
		return 1;
	}
	if (lttng && lttng_peer__load(&peer, LTTNG_PEER_LOG, reason, sizeof(reason)) < 0) {
		fprintf(stderr, "raise: no LTTng-UST: %s\n", reason);
		return 2;
	}
	raise_events = peer.run_log;
	start = now_ns();
	if (!strcmp(argv[1], "paced")) {
		rate_hz = strtoull(argv[2], NULL, 10);
		raise_paced(strtoull(argv[3], NULL, 10));
	} else {
		rate_hz = strtoull(argv[3], NULL, 10);
		if (!rate_hz || raise_in_threads(strtoul(argv[2], NULL, 10)) < 0) {
			fprintf(stderr, "raise: not so many threads here\n");
			return 2;
		}
	}
	printf("raised %llu %llu\n", (unsigned long long)total,
	       (unsigned long long)(now_ns() - start));
	return 0;
}
