/* SPDX-License-Identifier: MIT */
/* show.c - show: what is known of a space: best, effects, curves; as text, JSON or a page */
#include "program/exploration.h"
#include "trial/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The rows of a table are trials that were all measured. */
int explore_show_table(const struct explore_request *request)
{
	struct explore_metric metric = {.unit = (char *)"", .greater_is_better = request->maximize};
	const char *path = request->words[0];
	struct explore_results results = {.name = path,
					  .metrics = &metric,
					  .metric_count = 1,
					  .best = SIZE_MAX,
					  .reference = SIZE_MAX};
	struct pem_error error = {.text = ""};
	struct explore_result *trials;
	struct trial_table table;
	int rc = trial_table__read(&table, path, &error);
	size_t i;

	if (rc)
		return cli_fail(-rc, &error);
	trials = calloc(table.space->row_count, sizeof(*trials));
	for (i = 0; i < table.space->row_count && trials; i++)
		trials[i] = (struct explore_result){.number = (uint32_t)i + 1,
						    .levels = table.space->rows +
							      i * table.space->view.parameter_count,
						    .runs = 1,
						    .values = &table.values[i],
						    .reason = "",
						    .machine = "",
						    .left = ""};
	metric.name = table.metric;
	results.space = &table.space->view;
	results.trials = trials;
	results.count = table.space->row_count;
	if (!trials)
		rc = cli_error(CLI_FAILED, "no memory for %zu trials", results.count);
	else
		rc = explore_results__report(&results, request->page, request->json, stdout);
	free(trials);
	trial_table__free(&table);
	return rc;
}

/* The machine, which the experiment has not, keeps its text. */
static void find_values(const struct explore_results *results, const uint32_t *levels,
			const char **values)
{
	trial_experiment__values(results->arg, levels, values);
}

static struct explore_result result_of(const struct exploration *x, const struct explore_tried *t)
{
	return (struct explore_result){
		.number = (uint32_t)(t - x->tried) + 1,
		.levels = t->levels,
		.outcome = t->outcome,
		.runs = t->figures.runs,
		.values = t->figures.runs ? t->figures.means : NULL,
		.errors = t->figures.errors,
		.seconds = t->seconds,
		.machine = *t->node ? t->node : x->work.store.machines[t->machine].text,
		.reason = t->reason,
		.left = t->left,
	};
}

int explore_show(struct exploration *x)
{
	const struct trial_experiment *e = &x->work.experiment;
	const struct explore_tried *usual =
		e->has_default ? exploration__find(x, e->defaults) : NULL;
	/* One kind of machine alone tells nothing of another. */
	bool are_compared = x->count > x->here && (x->here || x->machines.count > 2);
	struct pem_explore_space space =
		are_compared ? trial_machines__whole(&x->machines) : e->space->view;
	struct explore_metric metrics[TRIAL_METRICS_MAX];
	struct explore_result *trials = calloc(x->count + 1, sizeof(*trials));
	struct explore_results results = {.name = e->name,
					  .space = &space,
					  .metrics = metrics,
					  .metric_count = e->metric_count,
					  .aims = e->objectives,
					  .values = find_values,
					  .arg = e,
					  .trials = trials,
					  .count = x->count,
					  .best = x->count,
					  .reference =
						  usual ? (size_t)(usual - x->tried) : x->count};
	struct explore_estimate estimate;
	struct trial_gain gain;
	struct trial_winner best;
	size_t i;
	int rc;

	if (!trials)
		return cli_error(CLI_FAILED, "no memory for %zu trials", x->count);
	for (i = 0; i < e->metric_count; i++)
		metrics[i] = (struct explore_metric){e->metrics[i].name, e->metrics[i].unit,
						     e->metrics[i].greater_is_better};
	for (i = 0; i < x->count; i++)
		trials[i] = result_of(x, &x->tried[i]);
	if (exploration__best(x, &best)) {
		results.best = exploration__number(x, best.levels) - 1;
		gain = exploration__gain(x, &best);
		estimate = (struct explore_estimate){gain.value, gain.low, gain.high};
		results.gain = isnan(gain.value) ? NULL : &estimate;
	}
	rc = explore_results__report(&results, x->request->page, x->request->json, stdout);
	free(trials);
	return rc;
}
