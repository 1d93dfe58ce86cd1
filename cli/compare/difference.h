/* SPDX-License-Identifier: MIT */
/*
 * difference.h - what differs between two sides of runs, each metric by itself
 *
 *	difference.c        matches metrics of all runs, estimates, tests
 *	diff.c              pem diff: options, statuses
 *	difference_print.c  for people and for programs
 */
#ifndef PEM_COMPARE_DIFFERENCE_H
#define PEM_COMPARE_DIFFERENCE_H

#include "cli.h"
#include "series.h"
#include "stats.h"

#define COMPARE_RUNS_MAX 64u
enum { SIDE_A, SIDE_B, SIDES };

enum compare_difference_verdict {
	COMPARE_ALIKE, /* no difference was seen */
	COMPARE_DIFFERS,
	/* There is one value on a side, so that nothing says how much it varies. */
	COMPARE_UNSURE,
};

struct compare_difference {
	char name[208];
	char unit[24];
	bool is_mean; /* a mean or a share, not an amount of each run or second */
	double value[SIDES]; /* of all runs of a side, in total or each second */
	struct compare_change change;
	double q; /* change.p, corrected for the number of metrics; NAN: unknown */
	enum compare_difference_verdict verdict;
};

struct compare_side {
	struct compare_series *runs;
	size_t count;
};

struct compare_differences {
	struct compare_side sides[SIDES];
	/* Amounts are compared for each second of what is known, as the times differ by chance. */
	bool are_rates;
	const char *why_rates; /* "": the user wants it */
	struct compare_difference *rows;
	size_t count, capacity;
	size_t one_sided; /* metrics of events that not all runs recorded */
	size_t reduced; /* metrics of events that some run recorded in part */
};

/*
 * Compare all metrics whose name contains the text only (NULL: all). The runs were read; are_rates
 * is as the user wants it, and may be set. Returns 0 or -ENOMEM.
 */
int compare_differences__find(struct compare_differences *d, const char *only);
void compare_differences__free(struct compare_differences *d);

/* For people: what differs, and with all set the rest, too. */
void compare_differences__print(const struct compare_differences *d, bool all);
struct json_object *compare_differences__json(const struct compare_differences *d);

#endif
