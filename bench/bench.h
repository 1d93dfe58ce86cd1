/* SPDX-License-Identifier: MIT */
/*
 * bench.h - runs benchmark cases beside their peers in turn, and writes the results
 *
 * Not here: any case (one program per claim: notify.c, ...).
 *
 * A round runs each case once and its peer directly after it. The reported value is the median over
 * the rounds, with the least and greatest. Nothing is subtracted: a time per operation includes the
 * loop around it. BENCH_LOOP makes the loop the same for all cases, and a case of its own may
 * measure the empty loop.
 *
 * Rounds are spread over several processes. The addresses of code and data change a short case by a
 * quarter (3.1 ns or 3.9 ns, constant within one process), and one process shows only one choice of
 * addresses.
 *
 * Environment variables ask for less. BENCH_CASE: only cases with this word in their names.
 * BENCH_QUICK: one short round, which shows that a case runs but not its cost. BENCH_LIST: print
 * the names only.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * Run body, a statement that may use i, n times (rounded up to a multiple of 8). The compiler keeps
 * nothing in registers between two runs.
 */
/* clang-format off */
#define BENCH_LOOP(n, body)                                                                        \
	for (uint64_t i = 0; i < (n);) {                                                           \
		BENCH_ONE_(body) BENCH_ONE_(body) BENCH_ONE_(body) BENCH_ONE_(body)                \
		BENCH_ONE_(body) BENCH_ONE_(body) BENCH_ONE_(body) BENCH_ONE_(body)                \
	}
#define BENCH_ONE_(body)                                                                           \
	{                                                                                          \
		body;                                                                              \
		i++;                                                                               \
		__asm__ __volatile__("" : "+r"(i) : : "memory");                                   \
	}
/* clang-format on */

struct bench_case {
	const char *name; /* "notify/log2" */
	/*
	 * Runs the operation n times; NULL: cannot run here, and the reason is printed elsewhere.
	 */
	void (*run)(uint64_t n);
	const char *peer; /* name and version of the peer, or NULL */
	void (*run_peer)(uint64_t n); /* NULL: there is none here */
	/* Another case of the same program, to print a ratio to it, or NULL. */
	const char *beside;
	clockid_t clock; /* 0: bench.clock */
};

struct bench {
	const char *name; /* the program's name: "notify" */
	/* The rounds are divided among this number of processes, which run one after the other. */
	unsigned processes;
	unsigned rounds; /* rounds in each process */
	double slice_ms; /* how long one run of a case should take */
	/*
	 * CLOCK_MONOTONIC; or CLOCK_THREAD_CPUTIME_ID for work that never waits, which leaves out
	 * the time of other threads.
	 */
	clockid_t clock;
	const struct bench_case *cases;
	size_t case_count;
};

/* Bind the calling thread to the last CPU that it may run on. Returns the CPU, or -errno. */
int bench__pin(void);
/* Was this case asked for? */
int bench__wants(const char *name);
/* The number of this child process, from 1. 0: this is the parent. */
unsigned bench__child(void);
/*
 * Called by the parent. It runs its own program again as one child after the other. Each child
 * calls bench__run. The parent prints a table of all rounds to standard output. If the environment
 * names BENCH_OUT, it also appends one JSON object per case to that file. Values are ns per
 * operation; ratio is value / peer_value. Returns 0, or -errno; a failing child prints the reason
 * itself.
 */
int bench__spread(const struct bench *bench);
/*
 * Called by a child. It runs all rounds of the cases and sends the results to the parent. Returns 0
 * or -errno.
 */
int bench__run(const struct bench *bench);

#endif
