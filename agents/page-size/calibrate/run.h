/* SPDX-License-Identifier: MIT */
/* run.h - a calibration while it is measured; what calibrate.c and random.c share */
#ifndef PAGE_SIZE_RUN_H
#define PAGE_SIZE_RUN_H

#include "calibrate.h"
#include "chase.h"
#include "fit.h"
#include "steps.h"

#define MIB ((size_t)1 << 20)
#define ROUNDS_MIN 3
#define ROUNDS_MAX 51
/* Updates that are sparse: so many kinds. */
#define SPARSE_POINTS 2

enum curve { SMALL, PARTS, LARGE, NEAR, CURVES };

struct run {
	struct page_calibration *calibration;
	struct arena small, other; /* other: of large pages */
	uint32_t other_shift;
	uint64_t dice;
	double began_s, limit_s;
	void (*progress)(const char *sentence, void *arg);
	void *arg;
	/* Curves: points, and the least time of each; waiting and overlapping. */
	size_t points;
	double pages[STEP_POINTS_MAX], latency[CURVES][STEP_POINTS_MAX],
		throughput[CURVES][STEP_POINTS_MAX];
	char *lines[CHASE_LINES_MAX];
	/* Random accesses. */
	size_t savings_count;
	struct saving savings[FIT_POINTS_MAX];
	struct sparse_saving sparse[SPARSE_POINTS];
};

/* Of a clock that only goes on. */
double now_s(void);
/* Tell the caller of the calibration, if it wants to be told. */
void run__say(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
/*
 * Measure random accesses to small pages and to the others until a time: run->savings, and the
 * noise of the calibration; of large pages run->sparse, too. 0 or -ENOMEM.
 */
int run__measure_savings(struct run *run, double until_s);

#endif
