/* SPDX-License-Identifier: MIT */
/*
 * bench.h - measuring cases beside their peers, in turn, and writing what came out
 *
 * Not here: any case (one program per claim: notify.c, ...).
 *
 * A round runs each case once and its peer right after it; the reported value is the median over
 * the rounds, with the least and greatest. Nothing is subtracted: a time per operation holds the
 * loop around it, which BENCH_LOOP makes the same for all, and which a case of its own may show
 * empty.
 *
 * Rounds are spread over several processes: where the loader and the kernel happen to put code and
 * data is worth a quarter of a short case (3.1 ns or 3.9 ns, the same all through one process); one
 * process shows one such place only.
 *
 * The environment may ask for less: BENCH_CASE, only cases with this word in their names;
 * BENCH_QUICK, one short round that shows that a case runs and not what it costs; BENCH_LIST, the
 * names only.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * Do body, a statement that may use i, n times (rounded up to 8): nothing is kept in registers
 * between two.
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
	void (*run)(uint64_t n); /* the operation n times; NULL: cannot run here, said elsewhere */
	const char *peer; /* name and version of what runs beside us, or NULL */
	void (*run_peer)(uint64_t n); /* NULL: none here */
	const char *beside; /* another case of the same program to print a ratio to, or NULL */
	clockid_t clock; /* 0: the program's */
};

struct bench {
	const char *name; /* the program's: "notify" */
	unsigned processes; /* the rounds are done in so many, one after the other */
	unsigned rounds; /* in each */
	double slice_ms; /* how long one run of a case is to take */
	/*
	 * CLOCK_MONOTONIC; CLOCK_THREAD_CPUTIME_ID for work that never waits: others' is left out
	 */
	clockid_t clock;
	const struct bench_case *cases;
	size_t case_count;
};

/* Bind the calling thread to the last CPU it may run on. Returns the CPU, or -errno. */
int bench__pin(void);
/* Is the case asked for? */
int bench__wants(const char *name);
/* Which child this process is, from 1; 0: the parent. */
unsigned bench__child(void);
/*
 * The parent: runs its program again as one child after the other, which call bench__run; prints a
 * table of all their rounds to standard output and, if the environment names BENCH_OUT, appends one
 * JSON object per case to that file. Values are ns per operation; ratio is value / peer_value. 0,
 * or -errno; a child says itself why it fails.
 */
int bench__spread(const struct bench *bench);
/* A child: run all cases' rounds, and send what was measured to the parent. 0, or -errno. */
int bench__run(const struct bench *bench);

#endif
