/* SPDX-License-Identifier: MIT */
/* check.c - check: what a trial would do, and what it would miss */
#include "program/exploration.h"

#include <stdlib.h>
#include <string.h>

#define SCRATCH "SCRATCH" /* in commands that are printed */
#define COMMANDS 4u

static const char *const names[COMMANDS] = {"prepare", "start", "command", "end"};

/* One of the commands with a configuration's values. NULL: there is none, or no memory. */
static char *command_of(const struct trial_experiment *e, const uint32_t *levels, size_t which,
			bool *has_scratch)
{
	const char *command =
		(const char *[COMMANDS]){e->prepare, e->start, e->command, e->end}[which];

	if (!command)
		return NULL;
	*has_scratch |= strstr(command, "{scratch}") != NULL;
	return trial_words__command(e, levels, command,
				    command == e->command || command == e->start, SCRATCH);
}

void explore_commands__tell(const struct trial_experiment *e, const uint32_t *levels,
			    struct json_object *object)
{
	bool has_scratch = false;
	size_t i;

	for (i = 0; i < COMMANDS; i++) {
		char *text = command_of(e, levels, i, &has_scratch);

		if (text && object)
			cli_json__text(object, names[i], text);
		else if (text)
			printf("  %-8s %s\n", names[i], text + strspn(text, " \t\r\n"));
		free(text);
	}
	if (has_scratch && object)
		cli_json__text(object, "scratch", SCRATCH);
	else if (has_scratch)
		printf("  %s stands for an empty folder, which each run has of its own.\n",
		       SCRATCH);
}

static struct json_object *metrics_json(const struct trial_experiment *e)
{
	struct json_object *metrics = json_object_new_array();
	size_t i;

	for (i = 0; i < e->metric_count; i++) {
		struct json_object *metric = json_object_new_object();

		cli_json__text(metric, "name", e->metrics[i].name);
		cli_json__flag(metric, "aim", i < e->objectives);
		cli_json__flag(metric, "greater_is_better", e->metrics[i].greater_is_better);
		json_object_array_add(metrics, metric);
	}
	return metrics;
}

static void print_json(const struct exploration *x, const uint32_t *levels, const char *missing)
{
	const struct trial_experiment *e = &x->work.experiment;
	struct json_object *all = json_object_new_object();

	cli_json__text(all, "exploration", e->name);
	cli_json__count(all, "parameters", e->space->view.parameter_count);
	if (e->space->view.count != UINT64_MAX)
		cli_json__count(all, "configurations", e->space->view.count);
	cli_json__text(all, "policy", x->policy.name);
	cli_json__text(all, "folder", e->folder);
	explore_commands__tell(e, levels, all);
	cli_json__text(all, "program",
		       x->work.store.has_program ? x->work.store.application.path : "");
	cli_json__real(all, "limit_s", e->limit_s);
	cli_json__count(all, "disk_bytes", e->disk_bytes);
	json_object_object_add(all, "metrics", metrics_json(e));
	cli_json__count(all, "tried", x->count);
	cli_json__text(all, "unknown_word", e->unknown);
	cli_json__text(all, "missing", missing);
	cli_json__print(all, stdout, false);
}

static void print_text(const struct exploration *x, const uint32_t *levels)
{
	const struct trial_experiment *e = &x->work.experiment;
	size_t i;

	printf("%s: %u parameters, %s, policy %s\n", e->name, e->space->view.parameter_count,
	       e->space->view.count == UINT64_MAX
		       ? "too many configurations to count"
		       : cli_format("%s configurations", cli_count(e->space->view.count)),
	       x->policy.name);
	printf("\nA trial runs this, in %s, with its values:\n", e->folder);
	explore_commands__tell(e, levels, NULL);
	if (*e->unknown)
		printf("{%s} stays as it is: no parameter has that name.\n", e->unknown);
	printf("\nIt is ended after %g s, or when the free space of the disk has fallen by %s.\n",
	       e->limit_s, cli_bytes(e->disk_bytes));
	for (i = 0; i < e->metric_count; i++)
		printf("%s %s%s\n",
		       i < e->objectives ? "aim:     " : "measured:", e->metrics[i].name,
		       i >= e->objectives                ? ""
		       : e->metrics[i].greater_is_better ? ", the more the better"
							 : ", the less the better");
	printf("Trials are of %s.\n%zu configurations were tried already.\n", x->work.store.build,
	       x->count);
}

int explore_check(struct exploration *x)
{
	const struct trial_experiment *e = &x->work.experiment;
	uint32_t levels[TRIAL_PARAMETERS_MAX] = {0};
	int rc = trial_experiment__check(e, x->work.store.application.path, &x->error);

	if (e->has_default)
		memcpy(levels, e->defaults, sizeof(levels));
	else if (e->space->view.count != UINT64_MAX)
		e->space->view.at(&e->space->view, 0, levels);
	if (x->request->json)
		print_json(x, levels, rc ? x->error.text : "");
	else
		print_text(x, levels);
	/* What prepare makes is not there yet. */
	if (rc && e->prepare)
		cli_say("%s (unless prepare makes it)", x->error.text);
	return cli_finish_output(rc && !e->prepare ? cli_fail(-rc, &x->error) : CLI_DONE);
}
