/* SPDX-License-Identifier: MIT */
/* run.c - run: trials, until the budget is used */
#include "program/exploration.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SKIPS_MAX 10000u /* configurations in a row that have a refused value */

static void show_progress(const struct exploration *x, uint32_t trials, uint64_t began_ns,
			  size_t before)
{
	const struct trial_experiment *e = &x->work.experiment;
	double spent_s = (double)(cli_now_ns() - began_ns) / 1e9;
	double left_s = e->time_s > 0 ? e->time_s - spent_s : INFINITY;
	struct trial_winner best;
	bool is_known = exploration__best(x, &best);

	if (trials && x->here > before && trials > x->here)
		left_s = fmin(left_s,
			      spent_s / (double)(x->here - before) * (double)(trials - x->here));
	cli_progress__show(cli_format(
		"trial %zu%s%s%s", x->here + 1, trials ? cli_format(" of %u", trials) : "",
		is_known ? cli_format(", best %g %.23s", best.mean, e->metrics[0].unit) : "",
		isfinite(left_s) && left_s > 0
			? cli_format(", %s left", cli_duration((uint64_t)(left_s * 1e9)))
			: ""));
}

/* Trials until the budget is used. Returns 0, or -errno. */
static int explore(struct exploration *x)
{
	const struct trial_experiment *e = &x->work.experiment;
	uint32_t trials = x->request->budget ? x->request->budget : e->trials;
	uint32_t levels[TRIAL_PARAMETERS_MAX];
	uint64_t began_ns = cli_now_ns();
	size_t before = x->here, skips = 0;
	bool again;
	int rc = exploration__catch_up(x);

	/* The gain over the defaults is what people ask for first. */
	if (!rc && e->has_default && !exploration__find(x, e->defaults)) {
		show_progress(x, trials, began_ns, before);
		rc = exploration__run(x, e->defaults, NULL, true);
		rc = rc == -EALREADY ? 0 : rc;
	}
	while (!rc && !trial_interrupted) {
		if (e->time_s > 0 && (double)(cli_now_ns() - began_ns) / 1e9 >= e->time_s)
			break;
		again = false;
		rc = exploration__catch_up(x);
		if (rc)
			break;
		rc = explore_search__next(x->search, levels, &again);
		if (rc <= 0 ||
		    (!again && trials && x->here + exploration__made_now(x, true) >= trials))
			break;
		if (trial_work__refused(&x->work, levels)) {
			rc = explore_search__reserve(x->search, levels, PEM_EXPLORE_REFUSED);
			if (++skips < SKIPS_MAX)
				continue;
			cli_say("the exploration ends: what is left has values that are refused: "
				"%s",
				trial_work__refused(&x->work, levels));
			break;
		}
		show_progress(x, trials, began_ns, before);
		rc = exploration__run(x, levels,
				      again ? trial_races__beside(explore_search__races(x->search))
					    : NULL,
				      !again);
		/* It is reserved with the next look, and another one is chosen. */
		if (rc == -EALREADY && ++skips < SKIPS_MAX)
			rc = 0;
		else
			skips = 0;
	}
	cli_progress__clear();
	if (rc < 0 && rc != -EINTR && !x->error.text[0])
		snprintf(x->error.text, sizeof(x->error.text), "the policy %.60s failed: %s",
			 x->policy.name, explore_policy__why(rc));
	return trial_interrupted ? -EINTR : rc > 0 ? 0 : rc;
}

int explore_run(struct exploration *x)
{
	uint64_t began_ns = cli_now_ns();
	double time_s = x->work.experiment.time_s > 0 ? x->work.experiment.time_s : INFINITY;
	size_t lost;
	int rc = trial_store__forget_lost(&x->work.store, &lost, &x->error), status;

	if (lost)
		cli_say("%s lost when an exploration was killed; such runs are made again if they "
			"are needed",
			lost == 1 ? "1 run was" : cli_format("%zu runs were", lost));
	if (!rc)
		rc = explore(x);
	if (!rc)
		rc = exploration__validate(x, time_s - (double)(cli_now_ns() - began_ns) / 1e9);
	trial_work__restore(&x->work);
	if (rc && rc != -EINTR)
		return cli_fail(-rc, &x->error);
	status = rc && !x->count ? CLI_DONE : explore_print_best(x);
	if (!rc)
		return status;
	cli_say("the exploration was interrupted; the same command goes on with it");
	return 128 + trial_interrupted;
}
