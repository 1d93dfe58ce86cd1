/* SPDX-License-Identifier: MIT */
/* report.c - the results as text, as JSON and as an HTML page (page/); the Pareto front */
#include "program/program.h"
#include "models/effects.h"
#include "trial/trial.h"

#include "rounded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE_BYTES 1200
#define EFFECTS_TOLD 12u
#define LEAST_TOLD 0.005 /* of the variance */
#define WIDEST_KNOWN 0.5 /* a wider interval of a share says nothing */
#define PAGE_TRIALS_MAX 5000u

/* The page, with a line "@data@" where the data belong (page/build.mk). */
extern const char explore_html[], explore_html_end[];

/* --- JSON --- */

static void add_estimate(struct json_object *object, const char *key, struct explore_estimate value)
{
	struct json_object *made = json_object_new_object();

	cli_json__real(made, "value", value.value);
	cli_json__real(made, "low", value.low);
	cli_json__real(made, "high", value.high);
	json_object_object_add(object, key, made);
}

static const char *gain_text(const struct explore_effects *e)
{
	if (e->results->reference == e->best)
		return ": the defaults";
	return trial_gain__text(e->gain.value, e->gain.low, e->gain.high,
				e->has_reference ? "the defaults" : "the median configuration", "");
}

static struct explore_estimate estimate_row(const struct explore_effects *e, const double *row)
{
	double draws[EXPLORE_DRAWS];

	memcpy(draws, row, e->draws * sizeof(*draws));
	return explore_estimate_of(draws, e->draws);
}

/* The text of each parameter's value in a configuration; NULL: it means nothing there. */
static void find_values(const struct explore_results *r, const uint32_t *levels,
			const char *values[TRIAL_PARAMETERS_MAX])
{
	uint32_t i;

	for (i = 0; i < r->space->parameter_count; i++)
		values[i] = r->space->parameters[i].values[levels[i]];
	if (r->values)
		r->values(r, levels, values);
}

struct json_object *explore_configuration(const struct pem_explore_space *space,
					  const char *const *values)
{
	struct json_object *made = json_object_new_object();
	uint32_t i;

	for (i = 0; i < space->parameter_count; i++) {
		if (values[i])
			cli_json__text(made, space->parameters[i].name, values[i]);
	}
	return made;
}

static struct json_object *trial_json(const struct explore_effects *e, size_t index)
{
	const struct explore_results *r = e->results;
	const struct explore_result *trial = &r->trials[index];
	struct json_object *object = json_object_new_object();
	struct json_object *values = json_object_new_object(), *halves = json_object_new_object();
	const char *configuration[TRIAL_PARAMETERS_MAX];
	size_t i;

	cli_json__count(object, "trial", trial->number);
	find_values(r, trial->levels, configuration);
	json_object_object_add(object, "configuration",
			       explore_configuration(r->space, configuration));
	for (i = 0; i < r->metric_count && trial->values; i++) {
		cli_json__real(values, r->metrics[i].name, trial->values[i]);
		if (explore_result__half(trial, i) > 0)
			cli_json__real(halves, r->metrics[i].name, explore_result__half(trial, i));
	}
	cli_json__text(object, "outcome", trial_outcome__text(trial->outcome));
	json_object_object_add(object, "values", values);
	json_object_object_add(object, "half_intervals", halves);
	cli_json__count(object, "runs", trial->runs);
	cli_json__real(object, "seconds", trial->seconds);
	cli_json__text(object, "reason", trial->reason);
	cli_json__text(object, "machine", trial->machine);
	cli_json__text(object, "left", trial->left);
	cli_json__flag(object, "pareto", explore_effects__is_on_front(e, index));
	return object;
}

static struct json_object *parameter_json(const struct explore_effects *e, uint32_t which)
{
	const struct pem_explore_parameter *parameter = &e->results->space->parameters[which];
	struct json_object *object = json_object_new_object(), *levels = json_object_new_array();
	char sentence[SENTENCE_BYTES];
	uint32_t group, i;

	cli_json__text(object, "name", parameter->name);
	cli_json__flag(object, "ordered", parameter->is_ordered);
	json_object_object_add(object, "levels", levels);
	for (group = 0; group < explore_groups(parameter); group++) {
		struct json_object *level = json_object_new_object();

		cli_json__text(level, "value",
			       parameter->values[explore_level_of(parameter, group)]);
		for (i = 0; i < 2; i++) {
			const double *row = e->rows[i][which * EXPLORE_GROUPS_MAX + group];

			if (row)
				add_estimate(level, i ? "at_best" : "average",
					     estimate_row(e, row));
		}
		json_object_array_add(levels, level);
	}
	if (*e->unknown)
		return object;
	cli_json__flag(object, "matters",
		       explore_curve__tell(e, which, sentence, sizeof(sentence)));
	cli_json__text(object, "sentence", sentence);
	return object;
}

static struct json_object *effect_json(const struct explore_effects *e,
				       const struct explore_effect *effect)
{
	struct json_object *object = json_object_new_object();
	struct explore_estimate share = effect->share;

	cli_json__text(object, "parameter", e->results->space->parameters[effect->a].name);
	if (effect->b != effect->a)
		cli_json__text(object, "with", e->results->space->parameters[effect->b].name);
	if (share.high - share.low > WIDEST_KNOWN)
		share.value = NAN;
	add_estimate(object, "share", share);
	return object;
}

/* All but the trials, and the functions' values. */
static struct json_object *results_json(const struct explore_effects *e)
{
	const struct explore_results *r = e->results;
	struct json_object *object = json_object_new_object(), *metrics = json_object_new_array();
	struct json_object *parameters = json_object_new_array(),
			   *effects = json_object_new_array();
	size_t i;

	cli_json__text(object, "name", r->name);
	for (i = 0; i < r->metric_count; i++) {
		struct json_object *metric = json_object_new_object();

		cli_json__text(metric, "name", r->metrics[i].name);
		cli_json__text(metric, "unit", r->metrics[i].unit);
		cli_json__flag(metric, "greater_is_better", r->metrics[i].greater_is_better);
		json_object_array_add(metrics, metric);
	}
	for (i = 0; i < r->space->parameter_count; i++)
		json_object_array_add(parameters, parameter_json(e, (uint32_t)i));
	for (i = 0; i < e->effect_count; i++)
		json_object_array_add(effects, effect_json(e, &e->effects[i]));
	json_object_object_add(object, "metrics", metrics);
	cli_json__real(object, "configurations",
		       r->space->count == UINT64_MAX ? NAN : (double)r->space->count);
	cli_json__text(object, "unknown", e->unknown);
	json_object_object_add(object, "parameters", parameters);
	json_object_object_add(object, "effects", effects);
	if (e->best < r->count)
		json_object_object_add(object, "best", trial_json(e, e->best));
	if (e->has_reference)
		json_object_object_add(object, "reference", trial_json(e, r->reference));
	if (!*e->unknown) {
		cli_json__real(object, "noise", e->noise / (1 + e->noise));
		add_estimate(object, "gain", e->gain);
		cli_json__text(object, "compared", gain_text(e));
	}
	return object;
}

static void print_json(const struct explore_effects *e, FILE *out)
{
	struct cli_json_stream json = {.out = out};
	size_t i;

	cli_json_stream__open(&json, NULL, '{');
	cli_json_stream__add_members(&json, results_json(e));
	cli_json_stream__open(&json, "trials", '[');
	for (i = 0; i < e->results->count; i++)
		cli_json_stream__add(&json, NULL, trial_json(e, i));
	cli_json_stream__close(&json, ']');
	cli_json_stream__close(&json, '}');
}

/* --- the page --- */

static int write_page(const struct explore_effects *e, const char *path)
{
	const struct explore_results *r = e->results;
	struct json_object *data = results_json(e), *trials = json_object_new_array();
	struct json_object *population = json_object_new_array();
	size_t step = r->count / PAGE_TRIALS_MAX + 1, i;
	uint32_t parameters = r->space->parameter_count, k;
	int status;

	for (i = 0; i < r->count; i++) {
		/* Of a long table some trials, but each one that the page speaks of. */
		if (i % step == 0 || i == e->best || i == r->reference ||
		    explore_effects__is_on_front(e, i))
			json_object_array_add(trials, trial_json(e, i));
	}
	for (i = 0; i < e->population; i++) {
		struct json_object *made = json_object_new_object();
		struct json_object *groups = json_object_new_array();

		for (k = 0; k < parameters; k++)
			json_object_array_add(groups, json_object_new_uint64(explore_group_of(
							      &r->space->parameters[k],
							      e->levels[i * parameters + k])));
		json_object_object_add(made, "levels", groups);
		add_estimate(made, "value", estimate_row(e, e->values + i * e->draws));
		json_object_array_add(population, made);
	}
	cli_json__count(data, "trial_count", r->count);
	json_object_object_add(data, "trials", trials);
	json_object_object_add(data, "population", population);
	status = cli_page__write(path, explore_html, explore_html_end, data);
	json_object_put(data);
	return status;
}

/* --- text --- */

static void print_configuration(const struct explore_results *r, const uint32_t *levels, FILE *out)
{
	const char *values[TRIAL_PARAMETERS_MAX], *before = "  ";
	uint32_t i;

	find_values(r, levels, values);
	for (i = 0; i < r->space->parameter_count; i++) {
		if (!values[i])
			continue;
		fputs(before, out);
		cli_put_text(out, r->space->parameters[i].name);
		fputc('=', out);
		cli_put_word(out, values[i]);
		before = " ";
	}
	fputc('\n', out);
}

static void print_head(const struct explore_effects *e, FILE *out)
{
	const struct explore_results *r = e->results;
	const struct explore_metric *metric = &r->metrics[0];
	const struct explore_result *best = &r->trials[e->best];
	size_t counts[TRIAL_OUTCOMES] = {0}, i;

	for (i = 0; i < r->count; i++)
		counts[r->trials[i].outcome % TRIAL_OUTCOMES]++;
	cli_put_text(out, r->name);
	fputs(": ", out);
	cli_put_text(out, metric->name);
	fprintf(out, " of %s trials (%s is better)", cli_count(r->count),
		metric->greater_is_better ? "more" : "less");
	for (i = 1; i < TRIAL_OUTCOMES; i++) {
		if (counts[i])
			fprintf(out, ", %s %s", cli_count(counts[i]),
				trial_outcome__text((uint32_t)i));
	}
	fputs("\n\n", out);
	if (e->best < r->count) {
		fprintf(out, "best: trial %u, ", best->number);
		cli_put_text(out, metric->name);
		fprintf(out, " %g%s", pem_rounded(best->values[0], explore_result__half(best, 0)),
			*metric->unit ? " " : "");
		cli_put_text(out, metric->unit);
		if (explore_result__half(best, 0) > 0)
			fprintf(out, " +- %.2g", explore_result__half(best, 0));
		fprintf(out, "%s\n", gain_text(e));
		print_configuration(r, best->levels, out);
	}
	if (*e->unknown)
		fprintf(out, "\nWhich parameter matters is unknown: %s.\n", e->unknown);
}

static void print_effects(const struct explore_effects *e, FILE *out)
{
	struct cli_table *table = cli_table__new(out);
	const struct pem_explore_parameter *parameters = e->results->space->parameters;
	char sentence[SENTENCE_BYTES];
	size_t i, told;
	int matters;

	cli_table__column(table, "PARAMETERS", CLI_CUT);
	cli_table__column(table, "SHARE", CLI_RIGHT);
	cli_table__column(table, "95 % INTERVAL", CLI_RIGHT);
	for (i = told = 0; i < e->effect_count && told < EFFECTS_TOLD; i++) {
		const struct explore_effect *effect = &e->effects[i];
		const char *name = parameters[effect->a].name;
		double half = 50 * (effect->share.high - effect->share.low);

		if (effect->share.high < LEAST_TOLD)
			continue;
		told++;
		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, effect->a == effect->b
					       ? name
					       : cli_format("%.100s, %.100s together", name,
							    parameters[effect->b].name));
		cli_table__cell(table,
				effect->share.high - effect->share.low > WIDEST_KNOWN
					? "unknown"
					: cli_format("%g %%",
						     pem_rounded(100 * effect->share.value, half)));
		cli_table__cell(table, cli_format("%g to %g %%",
						  pem_rounded(100 * effect->share.low, half),
						  pem_rounded(100 * effect->share.high, half)));
	}
	fputc('\n', out);
	cli_table__print(table);
	fputc('\n', out);
	for (matters = 1; matters >= 0; matters--) {
		for (i = 0; i < e->effect_count; i++) {
			if (e->effects[i].a != e->effects[i].b ||
			    explore_curve__tell(e, e->effects[i].a, sentence, sizeof(sentence)) !=
				    matters)
				continue;
			cli_put_text(out, sentence);
			fputc('\n', out);
		}
	}
}

/* Print the trials of the front, or those that were not measured. */
static void print_trials(const struct explore_effects *e, bool front, FILE *out)
{
	const struct explore_results *r = e->results;
	const char *title = front ? "\nPareto front:\n" : "\nfailed or refused:\n";
	size_t i, k;

	for (i = 0; i < r->count; i++) {
		const struct explore_result *trial = &r->trials[i];

		if (front ? !explore_effects__is_on_front(e, i)
			  : trial->outcome != PEM_EXPLORE_FAILED &&
				    trial->outcome != PEM_EXPLORE_REFUSED)
			continue;
		fprintf(out, "%strial %u", title, trial->number);
		title = "";
		for (k = 0; k < r->metric_count && front; k++) {
			fprintf(out, ", %g ",
				pem_rounded(trial->values[k], explore_result__half(trial, k)));
			cli_put_text(out,
				     *r->metrics[k].unit ? r->metrics[k].unit : r->metrics[k].name);
		}
		if (front) {
			fprintf(out, trial->runs == 1 ? " (1 run)" : " (%u runs)", trial->runs);
		} else {
			fprintf(out, ", %s: ", trial_outcome__text(trial->outcome));
			cli_put_text(out, trial->reason);
		}
		fputc('\n', out);
		print_configuration(r, trial->levels, out);
	}
}

static void print_text(const struct explore_effects *e, FILE *out)
{
	print_head(e, out);
	if (!*e->unknown)
		print_effects(e, out);
	print_trials(e, true, out);
	print_trials(e, false, out);
}

/* --- all --- */

int explore_results__report(const struct explore_results *results, const char *page, bool json,
			    FILE *out)
{
	struct explore_effects e;
	int rc = explore_effects__find(&e, results), status = CLI_DONE;

	if (rc)
		status = cli_error(CLI_FAILED, "cannot model the trials: %s", strerror(-rc));
	else if (page)
		status = write_page(&e, page);
	else if (json)
		print_json(&e, out);
	else
		print_text(&e, out);
	explore_effects__free(&e);
	return status || page ? status : cli_finish_output(CLI_DONE);
}
