/* SPDX-License-Identifier: MIT */
/* show.c - show: what is known of a space: best, effects, curves; as text, JSON or a page */
#include "program/exploration.h"
#include "program/program.h"
#include "trial/table.h"
#include "results/results.h"

#include <stdlib.h>
#include <string.h>

/* The rows of a table are trials that were all measured. */
static int show_table(const struct explore_request *request, const char *path)
{
	struct explore_metric metric = {.unit = (char *)"", .greater_is_better = request->maximize};
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
		trials[i] = (struct explore_result){
			.number = (uint32_t)i + 1,
			.levels = table.space->rows + i * table.space->view.parameter_count,
			.runs = 1,
			.values = &table.values[i],
			.reason = "",
			.machine = "",
			.left = "",
		};
	metric.name = table.metric;
	results.space = &table.space->view;
	results.trials = trials;
	results.count = table.space->row_count;
	if (!trials)
		rc = cli_error(CLI_FAILED, "no memory for %zu trials", results.count);
	else
		rc = request->page ? explore_results__page(&results, request->page)
				   : explore_results__print(&results, request->json, stdout);
	free(trials);
	trial_table__free(&table);
	return rc;
}

static int show_experiment(const struct explore_request *request)
{
	struct exploration_report report = {.metrics = NULL};
	struct exploration x;
	int rc = exploration__open(&x, request, false);

	if (rc)
		rc = cli_fail(-rc, &x.error);
	else if (exploration__report(&x, &report))
		rc = cli_error(CLI_FAILED, "no memory for %zu trials", x.count);
	else
		rc = request->page ? explore_results__page(&report.results, request->page)
				   : explore_results__print(&report.results, request->json, stdout);
	exploration_report__free(&report);
	exploration__close(&x);
	return rc;
}

int explore_show(const struct explore_request *request)
{
	const char *path = request->words[0], *end = strrchr(path, '.');

	if (request->json && request->page)
		return cli_usage_error(&explore_help,
				       "--json and --html are two forms: take one of them");
	return end && !strcmp(end, ".csv") ? show_table(request, path) : show_experiment(request);
}
