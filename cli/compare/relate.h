/* SPDX-License-Identifier: MIT */
/*
 * relate.h - which metrics of a trace move with which: targets and their relations
 *
 *	relate.c     chooses targets, correlates every metric with them, judges
 *	relate_print.c  for people and for programs
 */
#ifndef PEM_COMPARE_RELATE_H
#define PEM_COMPARE_RELATE_H

#include "cli.h"
#include "series.h"
#include "stats.h"

/* Relations are claimed if the probability that one of them is by chance is at most this. */
#define COMPARE_ERROR 0.01

enum compare_verdict {
	COMPARE_SHORT, /* too few independent windows to tell */
	COMPARE_NONE, /* no relation was seen */
	COMPARE_WITH, /* it rises and falls with the target */
	COMPARE_AGAINST, /* it rises when the target falls */
	COMPARE_SOMETIMES, /* with the target in some parts of the trace, against it in others */
};

struct compare_relation {
	size_t metric;
	struct compare_correlation of;
	double q; /* of.p, corrected for the number of relations that were tried */
	double q_turns; /* of.p_turns, with the same correction */
	/*
	 * Of phases: the amount for each second of the instance, with its duration. Of whatever
	 * comes at a steady rate there is more in an instance that lasts longer; and of what an
	 * instance does all the time, too. Which of the two holds no correlation tells.
	 */
	struct compare_correlation rate;
	enum compare_verdict verdict;
};

struct compare_target {
	size_t metric;
	const struct compare_phase *phase; /* NULL: its windows are related, not its instances */
	size_t joined; /* windows taken together */
	size_t known; /* windows or instances with a value */
	double mean; /* of them */
	double independent; /* most independent windows that a relation has */
	struct compare_relation *relations; /* the surest first */
	size_t count;
};

#define COMPARE_TARGETS_MAX 16u

struct compare_relations {
	struct compare_series series;
	struct compare_target targets[COMPARE_TARGETS_MAX];
	size_t count;
	size_t targets_left_out;
	size_t tried; /* relations of all targets */
};

/* Choose targets and relate all metrics to them. series was read. Returns 0 or -ENOMEM. */
int compare_relations__find(struct compare_relations *relations, const char *with);
void compare_relations__free(struct compare_relations *relations);

void compare_relations__print(const struct compare_relations *relations);
struct json_object *compare_relations__json(const struct compare_relations *relations);

#endif
