/* SPDX-License-Identifier: MIT */
/* best.c - best: the configuration and how to reproduce it; reproduce: does a figure hold? */
#include "program/exploration.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A figure holds if it is known to be within so much of what it was. */
#define CLOSE 0.1
#define RUNS_AGAIN 3u /* of a configuration whose figure is checked */

/* Which runs a gain is of. */
static const char *of_runs(uint32_t fresh)
{
	return fresh ? cli_format("in %u fresh runs of each, in turns", fresh)
		     : "by the runs that chose it";
}

static void print_gain(struct exploration *x, const struct explore_best *best)
{
	uint32_t runs;
	struct explore_estimate gain = exploration__gain(x, best, &runs);

	if (isnan(gain.value))
		return;
	if (!gain.value && isnan(gain.low)) {
		printf(": the defaults");
		return;
	}
	if (gain.low <= 0 && gain.high >= 0) {
		printf(", no difference from the defaults is seen (%+.1f to %+.1f %%, %s)",
		       100 * gain.low, 100 * gain.high, of_runs(runs));
		return;
	}
	printf(", %s %s than the defaults", cli_percent(fabs(gain.value)),
	       gain.value >= 0 ? "better" : "worse");
	if (isnan(gain.low))
		printf(" (its error is unknown: one of them ran once)");
	else
		printf(" (%+.1f to %+.1f %%, %s)", 100 * gain.low, 100 * gain.high, of_runs(runs));
}

#define SCRATCH "SCRATCH" /* in commands that are printed */

/* NULL: no memory, or there is no such command. The caller frees it. */
static char *text_of(const struct trial_experiment *e, const uint32_t *levels, const char *command)
{
	return command ? trial_words__command(e, levels, command,
					      command == e->command || command == e->start, SCRATCH)
		       : NULL;
}

void explore_add_command(struct json_object *object, const struct trial_experiment *e,
			 const uint32_t *levels, const char *key, const char *command)
{
	char *text = text_of(e, levels, command);

	if (text)
		cli_json__text(object, key, text);
	free(text);
}

void explore_print_command(const struct trial_experiment *e, const uint32_t *levels,
			   const char *what, const char *command)
{
	char *text = text_of(e, levels, command);

	if (text)
		printf("  %-8s %s\n", what, text + strspn(text, " \t\r\n"));
	free(text);
}

static bool has_scratch(const struct trial_experiment *e)
{
	const char *const commands[] = {e->prepare, e->start, e->command, e->end};
	size_t i;

	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (commands[i] && strstr(commands[i], "{scratch}"))
			return true;
	}
	return false;
}

void explore_print_scratch(const struct trial_experiment *e)
{
	if (has_scratch(e))
		printf("  %s stands for an empty folder, which each run has of its own.\n",
		       SCRATCH);
}

static void print_ways(const struct exploration *x, const uint32_t *levels)
{
	static const char *const how[] = {
		"",           "",      "",       "file",          "pragma",
		"PostgreSQL", "redis", "sysctl", "control group", "program"};
	const struct trial_experiment *e = &x->experiment;
	bool means_something[TRIAL_PARAMETERS_MAX];
	uint32_t i;

	trial_experiment__meaning(e, levels, means_something);
	for (i = 0; i < e->space->view.parameter_count; i++) {
		const struct settings_target *target = &e->targets[i];

		if (means_something[i] && target->way > SETTINGS_ENVIRONMENT)
			printf("  set      %s = %s (%s%s%s)\n", target->key,
			       e->space->parameters[i].values[levels[i]], how[target->way],
			       target->in ? " " : "", target->in ? target->in : "");
	}
	printf("  %-8s %s\n", "cd", e->folder);
	explore_print_command(e, levels, "prepare", e->prepare);
	explore_print_command(e, levels, "start", e->start);
	explore_print_command(e, levels, "run", e->command);
	explore_print_scratch(e);
}

static int print_json(struct exploration *x, const struct explore_best *best)
{
	const struct trial_experiment *e = &x->experiment;
	struct json_object *all = json_object_new_object();
	uint32_t fresh;
	struct explore_estimate gain = exploration__gain(x, best, &fresh);
	bool means_something[TRIAL_PARAMETERS_MAX];

	trial_experiment__meaning(e, best->levels, means_something);
	cli_json__text(all, "exploration", e->name);
	cli_json__count(all, "trial", exploration__number(x, best->levels));
	cli_json__count(all, "trials", x->here);
	json_object_object_add(
		all, "configuration",
		explore_configuration(&e->space->view, best->levels, means_something));
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
		cli_json__count(all, "fresh_runs", fresh);
	}
	explore_add_command(all, e, best->levels, "command", e->command);
	if (has_scratch(e))
		cli_json__text(all, "scratch", SCRATCH);
	cli_json__print(all, stdout, false);
	return cli_finish_output(CLI_DONE);
}

/* The trial of the best value on another kind of machine; NULL: nothing was measured there. */
static const struct explore_tried *best_elsewhere(const struct exploration *x, uint32_t machine)
{
	bool greater = x->experiment.metrics[0].greater_is_better;
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
	const struct trial_measure *metric = &x->experiment.metrics[0];
	char text[TRIAL_TEXT_BYTES];
	uint32_t machine;

	for (machine = 1; machine < x->store.machine_count; machine++) {
		const struct explore_tried *best = best_elsewhere(x, machine);

		if (!best || trial_words__text(&x->experiment, best->levels, text))
			continue;
		printf("\nOn %s trial %zu has the best %s, %g%s%s:\n  %s\n",
		       x->store.machines[machine].text, (size_t)(best - x->tried) + 1, metric->name,
		       best->figures.means[0], *metric->unit ? " " : "", metric->unit, text);
	}
}

/* Why no configuration is the best one. */
static int say_none(const struct exploration *x)
{
	size_t measured = 0, i;

	for (i = 0; i < x->count; i++)
		measured += !x->tried[i].machine && x->tried[i].figures.runs > 0;
	if (x->count && !x->here) {
		print_elsewhere(x);
		fflush(stdout);
		return cli_error(CLI_FAILED,
				 "nothing was tried on this kind of machine (%s): 'pem explore "
				 "run' makes trials here",
				 x->store.machines[0].text);
	}
	if (!x->count)
		return cli_error(CLI_FAILED,
				 "nothing was tried yet: 'pem explore run' makes trials");
	if (!measured)
		return cli_error(CLI_FAILED,
				 "no configuration was measured: all %zu failed or were refused; "
				 "'pem explore show' tells why",
				 x->here);
	return cli_error(CLI_FAILED,
			 "no configuration has all the runs that the experiment asks for: of %zu, "
			 "%zu have some; 'pem explore run' makes the others",
			 x->here, measured);
}

int explore_print_best(struct exploration *x)
{
	const struct trial_experiment *e = &x->experiment;
	struct explore_best best;
	char text[TRIAL_TEXT_BYTES];

	if (!exploration__best(x, &best))
		return say_none(x);
	if (x->request->json)
		return print_json(x, &best);
	trial_words__text(e, best.levels, text);
	printf("%s: best of %zu is trial %zu, %s %g%s%s", e->name, x->here,
	       exploration__number(x, best.levels), e->metrics[0].name, best.mean,
	       *e->metrics[0].unit ? " " : "", e->metrics[0].unit);
	if (best.runs > 1)
		printf(" (%g to %g, %u runs)", best.low, best.high, best.runs);
	else
		printf(" (1 run: its error is unknown)");
	print_gain(x, &best);
	printf("\n  %s\n\n", text);
	print_ways(x, best.levels);
	print_elsewhere(x);
	return cli_finish_output(CLI_DONE);
}

/*
 * Does a setting last beyond a trial? Those of a server that a trial starts do not, nor a control
 * group's; a pragma of a connection is only tried.
 */
static bool is_kept(const struct trial_experiment *e, const struct settings_target *target)
{
	switch (target->way) {
	case SETTINGS_FILE:
	case SETTINGS_PRAGMA:
	case SETTINGS_SYSCTL:
	case SETTINGS_PROGRAM:
		return true;
	case SETTINGS_POSTGRES:
	case SETTINGS_REDIS:
		return !e->start;
	default:
		return false;
	}
}

/* Give the best configuration to files, databases and servers, for good. */
static int apply(struct exploration *x, const struct explore_best *best)
{
	const struct trial_experiment *e = &x->experiment;
	struct settings_refusal refusal = {.text = ""};
	bool means_something[TRIAL_PARAMETERS_MAX];
	const char *values[TRIAL_PARAMETERS_MAX];
	uint32_t count = e->space->view.parameter_count, i, outside = 0;
	int rc = 0;

	trial_experiment__meaning(e, best->levels, means_something);
	for (i = 0; i < count; i++) {
		values[i] =
			means_something[i] ? e->space->parameters[i].values[best->levels[i]] : NULL;
		outside += means_something[i] && is_kept(e, &e->targets[i]);
	}
	if (!rc && !outside)
		return cli_error(CLI_WRONG_INPUT, "there is nothing to apply: all settings are "
						  "given as the trial above tells");
	if (!rc)
		rc = settings_agent__apply(x->settings, SETTINGS_BEFORE_START, e->targets, values,
					   count, &refusal, &x->error);
	/* A server that a trial starts has its settings from the trial alone. */
	if (!rc && !e->start)
		rc = settings_agent__apply(x->settings, SETTINGS_AFTER_START, e->targets, values,
					   count, &refusal, &x->error);
	if (!rc)
		rc = settings_agent__keep(x->settings, &x->error);
	if (rc)
		return rc > 0 ? cli_error(CLI_FAILED, "%s", refusal.text)
			      : cli_fail(-rc, &x->error);
	cli_say("%u settings were applied, for good; others are given as the trial above tells",
		outside);
	return CLI_DONE;
}

int explore_best(const struct explore_request *request)
{
	struct exploration x;
	struct explore_estimate gain;
	struct explore_best best;
	uint32_t runs;
	int rc = exploration__open(&x, request, request->apply);

	rc = rc ? cli_fail(-rc, &x.error) : explore_print_best(&x);
	if (!rc && request->apply && exploration__best(&x, &best)) {
		gain = exploration__gain(&x, &best, &runs);
		rc = runs && gain.high < 0
			     ? cli_error(CLI_FAILED, "fresh runs showed that it is worse than the "
						     "defaults: nothing was applied")
			     : apply(&x, &best);
	}
	exploration__close(&x);
	return rc;
}

/* --- reproduce --- */

static void print_compared(const struct explore_tried *then, const struct explore_tried *now,
			   uint32_t number, double half, bool known)
{
	struct json_object *all = json_object_new_object();
	double difference = now->figures.means[0] - then->figures.means[0];

	cli_json__count(all, "trial", number);
	cli_json__real(all, "then", then->figures.means[0]);
	cli_json__real(all, "now", now->figures.means[0]);
	if (!isnan(half)) {
		cli_json__real(all, "low", difference - half);
		cli_json__real(all, "high", difference + half);
	}
	/* Not there: it is unknown. */
	if (known)
		cli_json__flag(all, "holds", fabs(difference) <= half);
	cli_json__print(all, stdout, false);
}

static int compare(const struct exploration *x, const struct explore_tried *then,
		   const struct explore_tried *now, uint32_t number)
{
	double difference = now->figures.means[0] - then->figures.means[0], half;
	const char *unit = x->experiment.metrics[0].unit;
	bool holds, known;

	if (!now->figures.runs)
		return cli_error(CLI_FAILED, "trial %u: %s", number, now->reason);
	half = trial_figures__half_interval(&now->figures, 1, &then->figures, 1);
	holds = fabs(difference) <= half;
	known = !isnan(half) && (!holds || half <= CLOSE * fabs(then->figures.means[0]));
	if (x->request->json)
		print_compared(then, now, number, half, known);
	if (isnan(half))
		return cli_error(CLI_FAILED,
				 "trial %u was measured once then and once now: how much its runs "
				 "differ is unknown, and so is whether its figure holds",
				 number);
	if (!known)
		return cli_error(
			CLI_FAILED,
			"trial %u: %g %s then and %g %s now, but its runs differ so much that "
			"95 %% of differences lie between %+g and %+g: whether the figure "
			"holds is unknown; each reproduce adds %u runs",
			number, then->figures.means[0], unit, now->figures.means[0], unit,
			difference - half, difference + half, RUNS_AGAIN);
	if (!x->request->json) {
		printf("trial %u: %s %g %s then (%u runs), %g %s now (%u runs)\n", number,
		       x->experiment.metrics[0].name, then->figures.means[0], unit,
		       then->figures.runs, now->figures.means[0], unit, now->figures.runs);
		printf("The figure %s: the difference is %+g to %+g %s (95 %%).\n",
		       holds ? "holds" : "does not hold", difference - half, difference + half,
		       unit);
	}
	return cli_finish_output(holds ? CLI_DONE : CLI_DIFFERS);
}

static int reproduce(void *arg)
{
	const struct explore_request *request = arg;
	struct exploration x;
	struct explore_tried then, now = {0};
	int rc = exploration__open(&x, request, true);
	uint32_t i, number = request->trial;

	if (!rc && (number < 1 || number > x.count)) {
		exploration__close(&x);
		return cli_usage_error(&explore_help,
				       "--trial: there are %zu trials; name one, from 1 on",
				       x.count);
	}
	if (!rc && !x.tried[number - 1].figures.runs) {
		rc = cli_error(CLI_WRONG_INPUT, "trial %u was not measured: %s", number,
			       x.tried[number - 1].reason);
		exploration__close(&x);
		return rc;
	}
	if (!rc && x.tried[number - 1].machine) {
		rc = cli_error(CLI_WRONG_INPUT, "trial %u ran on %s: reproduce it there", number,
			       x.store.machines[x.tried[number - 1].machine].text);
		exploration__close(&x);
		return rc;
	}
	if (!rc)
		then = x.tried[number - 1];
	for (i = 0; !rc && i < RUNS_AGAIN; i++) {
		rc = exploration__run(&x, then.levels, false);
		if (!rc && (x.outcome.outcome == PEM_EXPLORE_MEASURED ||
			    x.outcome.outcome == PEM_EXPLORE_STOPPED))
			trial_figures__add(&now.figures, x.outcome.values,
					   x.experiment.metric_count);
	}
	if (!rc) {
		memcpy(now.reason, x.outcome.reason, sizeof(now.reason));
		rc = compare(&x, &then, &now, number);
	} else {
		rc = rc == -EINTR ? 128 + trial_interrupted : cli_fail(-rc, &x.error);
	}
	exploration__close(&x);
	return rc;
}

int explore_reproduce(const struct explore_request *request)
{
	return trial_guard__run(reproduce, (void *)(uintptr_t)request);
}
