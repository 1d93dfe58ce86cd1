// SPDX-License-Identifier: MIT
/*
 * coarse.c - what a logged event of two 64-bit fields costs with a coarse clock
 *
 *	notify/log2_coarse	as notify/log2 (notify.c), in a session with a coarse clock
 *	notify/floor_coarse	the floor in the same rounds: a clock read, and 24 bytes stored
 *
 * A thread of the session advances the clock on another CPU meanwhile: with one CPU alone nothing
 * is measured.
 */
#include "bench/bench.h"
#include "bench/flight.h"

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
static uint64_t logged_count;

static void run_floor(uint64_t n)
{
	BENCH_LOOP(n, floor_ring__store(&ring, i))
}

static void run_log(uint64_t n)
{
	BENCH_LOOP(n, pem_notify_bench_log(i, ~i))
	logged_count += (n + 7) & ~(uint64_t)7;
}

int main(void)
{
	struct bench_case cases[] = {
		{"notify/floor_coarse", run_floor, NULL, NULL, NULL, 0},
		{"notify/log2_coarse", run_log, NULL, NULL, "notify/floor_coarse", 0},
	};
	struct bench bench = {"coarse",
			      PROCESSES,
			      ROUNDS,
			      SLICE_MS,
			      CLOCK_THREAD_CPUTIME_ID,
			      cases,
			      sizeof(cases) / sizeof(cases[0])};
	struct pem_error error = {"memory of the pool's size could not be had"};
	struct flight flight = {0};
	int rc = 1;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		printf("coarse: a coarse clock takes a CPU, and there is one only\n");
		return 0;
	}
	if (!bench__child()) {
		rc = bench__spread(&bench);
		if (rc < 0 && rc != -ECHILD) /* the child has printed the reason */
			fprintf(stderr, "coarse: no results: %s\n", strerror(-rc));
		return rc < 0;
	}
	if (floor_ring__make(&ring) < 0 ||
	    flight__start(&flight, "APP::Bench::Log", 1, &error) < 0) {
		fprintf(stderr, "coarse: %s\n", error.text);
		goto out;
	}
	if (bench__pin() < 0)
		fprintf(stderr, "coarse: not bound to one CPU\n");
	rc = bench__run(&bench) < 0;
	if (flight__check(&flight, logged_count, &error) < 0) {
		fprintf(stderr, "coarse: not what it seems: %s\n", error.text);
		rc = 1;
	}
out:
	flight__stop(&flight);
	return rc;
}
