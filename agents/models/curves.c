/* SPDX-License-Identifier: MIT */
/* curves.c - from which level on a metric stops improving or gets worse, in sentences */
#include "models/effects.h"
#include "rounded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST 0.01 /* of the value: less is no effect that is worth a sentence */

/* Levels first to last are as good as the best one; those outside are worse, and not by chance. */
struct curve {
	uint32_t first, last, best, worst;
	uint32_t low, high; /* the first and the last level that is allowed */
	struct explore_estimate loss; /* of the worst level, as a share of the best one's value */
};

/* By how much a level is worse than another one. */
static struct explore_estimate loss_of(const struct explore_effects *e, const double *best,
				       const double *other, double *draws)
{
	double sign = e->results->metrics[0].greater_is_better ? 1 : -1;
	size_t d;

	for (d = 0; d < e->draws; d++)
		draws[d] = sign * (best[d] - other[d]) / fmax(fabs(best[d]), 1e-300);
	return explore_estimate_of(draws, e->draws);
}

/* Returns false if fewer than two levels are allowed, or if memory runs out. */
static bool find_curve(const struct explore_effects *e,
		       const struct pem_explore_parameter *parameter, const double *const *rows,
		       struct curve *curve)
{
	uint32_t groups = explore_groups(parameter);
	double *draws = calloc(e->draws, sizeof(*draws));
	struct explore_estimate loss;
	uint32_t low = groups, high = 0, best = 0, i;
	bool is_worse;

	for (i = 0; i < groups && draws; i++) {
		if (!rows[i])
			continue;
		if (low == groups)
			low = best = i;
		high = i;
		if (loss_of(e, rows[i], rows[best], draws).value > 0)
			best = i;
	}
	*curve = (struct curve){.first = best, .last = best, .best = best, .worst = best};
	curve->low = low;
	curve->high = high;
	for (i = low; i <= high && draws; i++) {
		if (!rows[i])
			continue;
		loss = loss_of(e, rows[best], rows[i], draws);
		/* Three deviations, since it may be the greatest of many differences. */
		is_worse = loss.low > loss.value / 3 && loss.value >= LEAST;
		if (!is_worse) {
			curve->first = i < curve->first ? i : curve->first;
			curve->last = i > curve->last ? i : curve->last;
		}
		/* A fall says more than that it rose before. */
		if (loss.value >= curve->loss.value ||
		    (is_worse && parameter->is_ordered && i > best && curve->worst < best)) {
			curve->loss = loss;
			curve->worst = i;
		}
	}
	free(draws);
	return low < high;
}

/* Write what the metric does, and by how much. Returns false if nothing is seen but chance. */
static bool tell(const struct explore_effects *e, const struct pem_explore_parameter *parameter,
		 const struct curve *curve, char *text, char *figure, size_t size)
{
	const struct explore_metric *metric = &e->results->metrics[0];
	const char *better = metric->greater_is_better ? "rises" : "falls";
	const char *worse = metric->greater_is_better ? "falls" : "rises";
	const char *const *values = parameter->values;
	const char *first = values[explore_level_of(parameter, curve->first)];
	const char *last = values[explore_level_of(parameter, curve->last)];
	const char *worst = values[explore_level_of(parameter, curve->worst)];
	double half;

	if (curve->worst >= curve->first && curve->worst <= curve->last)
		return false;
	if (!parameter->is_ordered || curve->high - curve->low == 1)
		snprintf(text, size, "%.60s is best at %.60s = %.60s", metric->name,
			 parameter->name, values[explore_level_of(parameter, curve->best)]);
	else if (curve->first > curve->low && curve->last < curve->high)
		snprintf(text, size, "%.60s %s up to %.60s = %.60s and %s beyond %.60s = %.60s",
			 metric->name, better, parameter->name, first, worse, parameter->name,
			 last);
	else if (curve->first > curve->low)
		snprintf(text, size, "%.60s %s up to %.60s = %.60s%s", metric->name, better,
			 parameter->name, first,
			 curve->first < curve->high ? " and no further" : "");
	else
		snprintf(text, size, "%.60s %s beyond %.60s = %.60s", metric->name, worse,
			 parameter->name, last);
	half = 50 * (curve->loss.high - curve->loss.low);
	snprintf(figure, size, "%g %% (%g to %g) worse at %.60s",
		 pem_rounded(100 * curve->loss.value, half),
		 pem_rounded(100 * curve->loss.low, half),
		 pem_rounded(100 * curve->loss.high, half), worst);
	return true;
}

bool explore_curve__tell(const struct explore_effects *e, uint32_t which, char *sentence,
			 size_t size)
{
	const struct pem_explore_parameter *parameter = &e->results->space->parameters[which];
	struct curve curves[2];
	char texts[2][400], figures[2][400];
	bool known[2], seen[2], alike;
	double most;
	int i;

	for (i = 0; i < 2; i++) {
		known[i] = find_curve(e, parameter, e->rows[i] + (size_t)which * EXPLORE_GROUPS_MAX,
				      &curves[i]);
		seen[i] = known[i] &&
			  tell(e, parameter, &curves[i], texts[i], figures[i], sizeof(texts[i]));
	}
	alike = curves[0].first == curves[1].first && curves[0].last == curves[1].last &&
		curves[0].best == curves[1].best;
	most = known[0] ? 100 * fmax(curves[0].loss.high, 0) : 0;
	if (seen[0] && seen[1])
		snprintf(sentence, size, "%s: %s on average%s%s%s%s at the best configuration",
			 texts[0], figures[0], alike ? ", " : "; ", alike ? "" : texts[1],
			 alike ? "" : ": ", figures[1]);
	else if (seen[0])
		snprintf(sentence, size, "%s: %s on average%s", texts[0], figures[0],
			 known[1] ? "; no effect is seen at the best configuration" : "");
	else if (seen[1])
		snprintf(sentence, size, "%s: %s at the best configuration%s", texts[1], figures[1],
			 known[0] ? "; no effect is seen on average" : "");
	else if (known[0])
		snprintf(sentence, size,
			 "No effect of %.60s is seen; if there is one, it is at most %g %%",
			 parameter->name, pem_rounded(most, most));
	else
		snprintf(sentence, size, "The effect of %.60s is unknown", parameter->name);
	return seen[0] || seen[1];
}
