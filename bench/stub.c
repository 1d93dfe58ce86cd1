// SPDX-License-Identifier: MIT
/*
 * stub.c - the cost of the generated stubs of each compiled language: logged to a flight recorder,
 * and disabled
 *
 *	stub/LANGUAGE		an event of two 64-bit fields, as notify/log2
 *	stub/LANGUAGE-off	the same event, never enabled
 *
 * Each loop is a plain loop in its language (stub_cxx.cpp, stub_fortran.f90, stub_rust.rs). It runs
 * beside the loop in C in the same rounds. Not here: Java and Python (managed.py).
 */
#include "bench/bench.h"
#include "bench/flight.h"

#include "bench_stubs/bench.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROCESSES 7
#define ROUNDS 15
#define SLICE_MS 5.0

void bench_log_cxx(uint64_t n);
void bench_off_cxx(uint64_t n);
void bench_log_fortran(uint64_t n);
void bench_off_fortran(uint64_t n);
void bench_log_rust(uint64_t n);
void bench_off_rust(uint64_t n);

static uint64_t raised;

static void log_c(uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		pem_notify_bench_log(i, ~i);
	raised += n;
}

static void off_c(uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		pem_notify_bench_disabled(i, ~i);
}

#ifdef HAVE_CXX
static void log_cxx(uint64_t n)
{
	bench_log_cxx(n);
	raised += n;
}
#define CXX(function) function
#else
#define CXX(function) NULL
#endif

#ifdef HAVE_FORTRAN
static void log_fortran(uint64_t n)
{
	bench_log_fortran(n);
	raised += n;
}
#define FORTRAN(function) function
#else
#define FORTRAN(function) NULL
#endif

#ifdef HAVE_RUST
static void log_rust(uint64_t n)
{
	bench_log_rust(n);
	raised += n;
}
#define RUST(function) function
#else
#define RUST(function) NULL
#endif

static int measure(const struct bench *bench)
{
	struct flight flight;
	struct pem_error error = {""};
	int rc = 1;

	if (flight__start(&flight, "APP::Bench::Log", 0, &error) < 0) {
		fprintf(stderr, "stub: %s\n", error.text);
		goto out;
	}
	if (bench__pin() < 0)
		fprintf(stderr, "stub: not bound to one CPU\n");
	rc = bench__run(bench) < 0;
	if (flight__check(&flight, raised, &error) < 0) {
		fprintf(stderr, "stub: not what it seems: %s\n", error.text);
		rc = 1;
	}
out:
	flight__stop(&flight);
	return rc;
}

int main(void)
{
	static const struct bench_case cases[] = {
		{"stub/c", log_c, NULL, NULL, NULL, 0},
		{"stub/c++", CXX(log_cxx), "C", CXX(log_c), NULL, 0},
		{"stub/fortran", FORTRAN(log_fortran), "C", FORTRAN(log_c), NULL, 0},
		{"stub/rust", RUST(log_rust), "C", RUST(log_c), NULL, 0},
		{"stub/c-off", off_c, NULL, NULL, NULL, 0},
		{"stub/c++-off", CXX(bench_off_cxx), "C", CXX(off_c), NULL, 0},
		{"stub/fortran-off", FORTRAN(bench_off_fortran), "C", FORTRAN(off_c), NULL, 0},
		{"stub/rust-off", RUST(bench_off_rust), "C", RUST(off_c), NULL, 0},
	};
	const struct bench bench = {"stub",
				    PROCESSES,
				    ROUNDS,
				    SLICE_MS,
				    CLOCK_THREAD_CPUTIME_ID,
				    cases,
				    sizeof(cases) / sizeof(cases[0])};
	int rc;

	if (bench__child())
		return measure(&bench);
	rc = bench__spread(&bench);
	if (rc < 0 && rc != -ECHILD) /* the child has printed the reason */
		fprintf(stderr, "stub: no results: %s\n", strerror(-rc));
	return rc < 0;
}
