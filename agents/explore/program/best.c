/* SPDX-License-Identifier: MIT */
/* best.c - best: the configuration and how to reproduce it; reproduce: does a figure hold? */
#include "program/exploration.h"

#include "rounded.h"

#include <errno.h>
#include <math.h>

/* A figure holds if it is known to be within so much of what it was. */
#define CLOSE 0.1
#define RUNS_AGAIN 3u /* of a configuration whose figure is checked */

static void print_gain(struct exploration *x, const struct trial_winner *best)
{
	struct trial_gain gain = exploration__gain(x, best);
	const char *runs = gain.runs ? cli_format(", in %u fresh runs of each, in %s", gain.runs,
						  gain.in_pairs ? "pairs" : "turns")
				     : ", by the runs that chose it";

	fputs(!gain.value && isnan(gain.low)
		      ? ": the defaults"
		      : trial_gain__text(gain.value, gain.low, gain.high, "the defaults", runs),
	      stdout);
}

/* Configurations that were measured on this kind of machine, in all of their runs. */
static size_t count_measured(const struct exploration *x)
{
	size_t count = 0, i;

	for (i = 0; i < x->count; i++)
		count += !x->tried[i].machine && x->tried[i].figures.runs > 0 &&
			 !*x->tried[i].reason;
	return count;
}

static void print_ways(const struct exploration *x, const uint32_t *levels)
{
	const struct trial_experiment *e = &x->work.experiment;
	const char *values[TRIAL_PARAMETERS_MAX];
	uint32_t i;

	trial_experiment__values(e, levels, values);
	for (i = 0; i < e->space->view.parameter_count; i++) {
		const struct settings_target *target = &e->targets[i];

		if (values[i] && settings_way__name(target->way))
			printf("  set      %s = %s (%s%s%s)\n", target->key, values[i],
			       settings_way__name(target->way), target->in ? " " : "",
			       target->in ? target->in : "");
	}
	printf("  cd       %s\n", e->folder);
	explore_commands__tell(e, levels, NULL);
}

static int print_json(struct exploration *x, const struct trial_winner *best)
{
	const struct trial_experiment *e = &x->work.experiment;
	struct json_object *all = json_object_new_object();
	struct trial_gain gain = exploration__gain(x, best);
	const char *values[TRIAL_PARAMETERS_MAX];

	trial_experiment__values(e, best->levels, values);
	cli_json__text(all, "exploration", e->name);
	cli_json__count(all, "trial", exploration__number(x, best->levels));
	cli_json__count(all, "trials", x->here);
	cli_json__count(all, "measured", count_measured(x));
	json_object_object_add(all, "configuration",
			       explore_configuration(&e->space->view, values));
	cli_json__text(all, "metric", e->metrics[0].name);
	cli_json__text(all, "unit", e->metrics[0].unit);
	cli_json__real(all, "mean", best->mean);
	if (best->runs > 1) {
		cli_json__real(all, "low", best->low);
		cli_json__real(all, "high", best->high);
	}
	cli_json__count(all, "runs", best->runs);
	if (!isnan(gain.value))
		cli_json__real(all, "gain", gain.value);
	if (!isnan(gain.low)) {
		cli_json__real(all, "gain_low", gain.low);
		cli_json__real(all, "gain_high", gain.high);
		cli_json__count(all, "fresh_runs", gain.runs);
		cli_json__flag(all, "in_pairs", gain.in_pairs);
	}
	explore_commands__tell(e, best->levels, all);
	cli_json__print(all, stdout, false);
	return cli_finish_output(CLI_DONE);
}

/* The trial of the best value on another kind of machine; NULL: nothing was measured there. */
static const struct explore_tried *best_elsewhere(const struct exploration *x, uint32_t machine)
{
	bool greater = x->work.experiment.metrics[0].greater_is_better;
	const struct explore_tried *best = NULL;
	size_t i;

	for (i = 0; i < x->count; i++) {
		const struct explore_tried *tried = &x->tried[i];

		if (tried->machine != machine || tried->outcome != PEM_EXPLORE_MEASURED)
			continue;
		if (!best || (greater ? tried->figures.means[0] > best->figures.means[0]
				      : tried->figures.means[0] < best->figures.means[0]))
			best = tried;
	}
	return best;
}

static void print_elsewhere(const struct exploration *x)
{
	const struct trial_measure *metric = &x->work.experiment.metrics[0];
	char text[TRIAL_TEXT_BYTES];
	uint32_t machine;

	for (machine = 1; machine < x->work.store.machine_count; machine++) {
		const struct explore_tried *best = best_elsewhere(x, machine);

		if (!best || trial_words__text(&x->work.experiment, best->levels, text))
			continue;
		printf("\nOn %s trial %zu has the best %s, %s:\n  %s\n",
		       x->work.store.machines[machine].text, (size_t)(best - x->tried) + 1,
		       metric->name, trial_measure__text(metric, best->figures.means[0], 0), text);
	}
}

/* Why no configuration is the best one. */
static int say_none(const struct exploration *x)
{
	size_t measured = count_measured(x);

	if (x->count && !x->here) {
		print_elsewhere(x);
		fflush(stdout);
		return cli_error(CLI_FAILED,
				 "nothing was tried on this kind of machine (%s): 'pem explore "
				 "run' makes trials here",
				 x->work.store.machines[0].text);
	}
	if (!x->count)
		return cli_error(CLI_FAILED,
				 "nothing was tried yet: 'pem explore run' makes trials");
	if (!measured)
		return cli_error(CLI_FAILED,
				 "no configuration was measured: all %zu failed or were refused in "
				 "a run; 'pem explore show' prints why",
				 x->here);
	return cli_error(CLI_FAILED,
			 "no configuration has all the runs that the experiment asks for: of %zu, "
			 "%zu have some; 'pem explore run' makes the others",
			 x->here, measured);
}

int explore_print_best(struct exploration *x)
{
	const struct trial_experiment *e = &x->work.experiment;
	struct trial_winner best;
	char text[TRIAL_TEXT_BYTES];
	double half;

	if (!exploration__best(x, &best))
		return say_none(x);
	if (x->request->json)
		return print_json(x, &best);
	half = (best.high - best.low) / 2;
	trial_words__text(e, best.levels, text);
	printf("%s: best of %zu is trial %zu, %s %s", e->name, count_measured(x),
	       exploration__number(x, best.levels), e->metrics[0].name,
	       trial_measure__text(e->metrics, best.mean, half));
	if (isfinite(best.low) && isfinite(best.high))
		printf(" (%g to %g, %u runs)", pem_rounded(best.low, half),
		       pem_rounded(best.high, half), best.runs);
	else
		printf(" (%s: its error is unknown)",
		       best.runs == 1 ? "1 run" : cli_format("%u runs", best.runs));
	print_gain(x, &best);
	printf("\n  %s\n\n", text);
	print_ways(x, best.levels);
	print_elsewhere(x);
	return cli_finish_output(CLI_DONE);
}

/* Give the best configuration to files, databases and servers, for good. */
static int apply(struct exploration *x, const struct trial_winner *best)
{
	const struct trial_experiment *e = &x->work.experiment;
	struct settings_refusal refusal = {.text = ""};
	const char *values[TRIAL_PARAMETERS_MAX];
	uint32_t count = e->space->view.parameter_count, outside = 0, i;
	int rc;

	trial_experiment__values(e, best->levels, values);
	for (i = 0; i < count; i++)
		outside += values[i] && settings_way__lasts(e->targets[i].way, e->start != NULL);
	if (!outside)
		return cli_error(CLI_WRONG_INPUT, "there is nothing to apply: all settings are "
						  "given by the command above");
	rc = settings_agent__apply(x->work.settings, SETTINGS_BEFORE_START, e->targets, values,
				   count, &refusal, &x->error);
	/* A server that a trial starts has its settings from the trial alone. */
	if (!rc && !e->start)
		rc = settings_agent__apply(x->work.settings, SETTINGS_AFTER_START, e->targets,
					   values, count, &refusal, &x->error);
	if (!rc)
		rc = settings_agent__keep(x->work.settings, &x->error);
	if (rc)
		return rc > 0 ? cli_error(CLI_FAILED, "%s", refusal.text)
			      : cli_fail(-rc, &x->error);
	cli_say("%u settings were applied, for good; others are given by the command above",
		outside);
	return CLI_DONE;
}

int explore_best(struct exploration *x)
{
	int status = explore_print_best(x);
	struct trial_gain gain;
	struct trial_winner best;

	if (status || !x->request->apply || !exploration__best(x, &best))
		return status;
	gain = exploration__gain(x, &best);
	if (gain.runs && gain.high < 0)
		return cli_error(CLI_FAILED, "fresh runs showed that it is worse than the "
					     "defaults: nothing was applied");
	return apply(x, &best);
}

/* --- reproduce --- */

static void print_compared(const struct trial_figures *then, const struct trial_figures *now,
			   uint32_t number, double half, bool known)
{
	struct json_object *all = json_object_new_object();
	double difference = now->means[0] - then->means[0];

	cli_json__count(all, "trial", number);
	cli_json__real(all, "then", then->means[0]);
	cli_json__real(all, "now", now->means[0]);
	if (!isnan(half)) {
		cli_json__real(all, "low", difference - half);
		cli_json__real(all, "high", difference + half);
	}
	/* Not there: it is unknown. */
	if (known)
		cli_json__flag(all, "holds", fabs(difference) <= half);
	cli_json__print(all, stdout, false);
}

static int compare(const struct exploration *x, const struct trial_figures *then,
		   const struct trial_figures *now)
{
	double difference = now->means[0] - then->means[0];
	double half = trial_figures__half_interval(now, 1, then, 1);
	const struct trial_experiment *e = &x->work.experiment;
	const struct trial_measure *metric = e->metrics;
	const char *before = trial_measure__text(metric, then->means[0], half);
	const char *after = trial_measure__text(metric, now->means[0], half);
	uint32_t number = x->request->trial;
	bool holds = fabs(difference) <= half;
	bool known = !isnan(half) && (!holds || half <= CLOSE * fabs(then->means[0]));
	size_t usual;

	if (x->request->json)
		print_compared(then, now, number, half, known);
	if (isnan(half))
		return cli_error(CLI_FAILED,
				 "trial %u was measured once then and once now: how much its runs "
				 "differ is unknown, and so is whether its figure holds",
				 number);
	if (!known)
		return cli_error(CLI_FAILED,
				 "trial %u: %s then and %s now, but its runs differ so much that "
				 "95 %% of differences lie between %+g and %+g: whether the figure "
				 "holds is unknown; each reproduce adds %u runs",
				 number, before, after, pem_rounded(difference - half, half),
				 pem_rounded(difference + half, half), RUNS_AGAIN);
	if (!x->request->json) {
		printf("trial %u: %s %s then (%u runs), %s now (%u runs)\n", number, metric->name,
		       before, then->runs, after, now->runs);
		printf("The figure %s: the difference is %+g to %s (95 %%).\n",
		       holds ? "holds" : "does not hold", pem_rounded(difference - half, half),
		       trial_measure__text(metric, difference + half, half));
		if (!holds && e->has_default && (usual = exploration__number(x, e->defaults)) &&
		    usual != number)
			printf("Does the defaults' figure hold? --trial %zu shows it.\n", usual);
	}
	return cli_finish_output(holds ? CLI_DONE : CLI_DIFFERS);
}

int explore_reproduce(struct exploration *x)
{
	const uint32_t number = x->request->trial;
	struct trial_figures then, now = {0};
	const struct explore_tried *tried;
	uint32_t i;
	int rc = 0;

	if (number < 1 || number > x->count)
		return cli_usage_error(&explore_help,
				       "--trial: there are %zu trials; name one, from 1 on",
				       x->count);
	tried = &x->tried[number - 1];
	if (!tried->figures.runs)
		return cli_error(CLI_WRONG_INPUT, "trial %u was not measured: %s", number,
				 tried->reason);
	if (tried->machine)
		return cli_error(CLI_WRONG_INPUT, "trial %u ran on %s: reproduce it there", number,
				 x->work.store.machines[tried->machine].text);
	then = tried->figures;
	for (i = 0; !rc && i < RUNS_AGAIN; i++) {
		rc = exploration__run(x, x->tried[number - 1].levels, NULL, false);
		if (!rc && trial_outcome__has_values(x->work.outcomes[0].outcome))
			trial_figures__add(&now, x->work.outcomes[0].values,
					   x->work.experiment.metric_count);
	}
	if (rc)
		return rc == -EINTR ? 128 + trial_interrupted : cli_fail(-rc, &x->error);
	if (!now.runs)
		return cli_error(CLI_FAILED, "trial %u: %s", number, x->work.outcomes[0].reason);
	return compare(x, &then, &now);
}
