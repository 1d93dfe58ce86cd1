// SPDX-License-Identifier: MIT
/* diff.c - pem diff: what differs between two traces, or between several runs on each side */
#include "difference.h"

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_ABOVE = 256, OPT_BELOW, OPT_ONLY, OPT_ALL, OPT_RATES };

static const struct cli_option options[] = {
	{OPT_ABOVE, "fail-above", "SHARE",
	 "Exit with status 5 if a metric is surely greater in B, by more than SHARE, such as 5%."},
	{OPT_BELOW, "fail-below", "SHARE", "The same for a metric that is smaller in B."},
	{OPT_ONLY, "only", "TEXT", "Only metrics whose names contain the text."},
	{OPT_RATES, "rates", NULL, "Compare amounts for each second, not for each run."},
	{OPT_ALL, "all", NULL, "Show metrics without a difference, too."},
	{'j', "json", NULL, "Print an object with all metrics instead of a table."},
	{0},
};

struct wanted {
	double above, below; /* INFINITY: no limit */
	const char *only;
	bool rates, all, json;
};

static int parse(const struct cli_verb *verb, int argc, char **argv, struct wanted *w)
{
	int code;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		double *limit = code == OPT_ABOVE ? &w->above : &w->below;

		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		if (code == OPT_ONLY)
			w->only = optarg;
		else if (code == OPT_RATES)
			w->rates = true;
		else if (code == OPT_ALL)
			w->all = true;
		else if (code == 'j')
			w->json = true;
		else if (cli_parse_share(optarg, limit) < 0)
			return cli_usage_error(
				verb, "'%s' is no share: a limit is one, such as 5%%", optarg);
	}
	return CLI_DONE;
}

/* How many words follow a word "--"; 0: there is none. */
static int words_behind(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		if (strcmp(argv[i], "--") == 0)
			return argc - i - 1;
	return 0;
}

/* Read all runs of a side. Returns a status; an error was printed. */
static int read_side(struct compare_side *side, char **words, size_t count)
{
	int status = CLI_DONE;

	side->runs = calloc(count, sizeof(*side->runs));
	if (side->runs == NULL)
		return cli_error(CLI_FAILED, "no memory for %zu runs", count);
	while (status == CLI_DONE && side->count < count) {
		status = compare_series__read(&side->runs[side->count], words[side->count]);
		side->count++;
	}
	return status;
}

/* Does a metric surely differ by more than a limit? The first one that does, or NULL. */
static const struct compare_difference *beyond(const struct compare_differences *d,
					       const struct wanted *w)
{
	size_t i;

	for (i = 0; i < d->count; i++) {
		const struct compare_difference *row = &d->rows[i];
		double change = row->value[SIDE_B] > 0 && isnan(row->change.change)
					? INFINITY
					: row->change.change;

		if (row->verdict == COMPARE_DIFFERS && (change > w->above || -change > w->below))
			return row;
	}
	return NULL;
}

static const char *unbalanced(const struct compare_differences *d)
{
	unsigned int side;
	size_t i;

	for (side = 0; side < SIDES; side++)
		for (i = 0; i < d->sides[side].count; i++)
			if (!d->sides[side].runs[i].balanced)
				return d->sides[side].runs[i].directory;
	return NULL;
}

static int show(const struct compare_differences *d, const struct wanted *w)
{
	const struct compare_difference *row = beyond(d, w);
	const char *trace = unbalanced(d);
	int status;

	if (w->json)
		cli_json__print(compare_differences__json(d), stdout, false);
	else
		compare_differences__print(d, w->all);
	status = cli_finish_output(CLI_DONE);
	if (status == CLI_DONE && trace != NULL)
		status = cli_error(CLI_UNACCOUNTED,
				   "%s: events are unaccounted for; pem report says which", trace);
	if (status == CLI_DONE && row != NULL)
		status = cli_error(CLI_DIFFERS, "%s differs by more than the limit", row->name);
	return status;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct wanted w = {.above = INFINITY, .below = INFINITY};
	struct compare_differences d = {.count = 0};
	int behind = words_behind(argc, argv), before, status = parse(verb, argc, argv, &w);

	if (status != CLI_DONE)
		return status;
	before = argc - optind - behind;
	if (behind == 0 && before == 2)
		before = behind = 1;
	if (before < 1 || behind < 1)
		return cli_usage_error(verb, "two traces are compared, or several on each side of "
					     "--: A1 A2 -- B1 B2");
	if (before > (int)COMPARE_RUNS_MAX || behind > (int)COMPARE_RUNS_MAX)
		return cli_usage_error(verb, "at most %u traces on a side", COMPARE_RUNS_MAX);
	d.are_rates = w.rates;
	status = read_side(&d.sides[SIDE_A], argv + optind, (size_t)before);
	if (status == CLI_DONE)
		status = read_side(&d.sides[SIDE_B], argv + optind + before, (size_t)behind);
	if (status == CLI_DONE && compare_differences__find(&d, w.only) < 0)
		status = cli_error(CLI_FAILED, "no memory to compare the traces");
	if (status == CLI_DONE)
		status = show(&d, &w);
	compare_differences__free(&d);
	return status;
}

const struct cli_verb cli_diff = {
	.name = "diff",
	.summary = "what differs between two traces, and how sure that is",
	.usage = "diff [OPTIONS] A B\n"
		 "diff [OPTIONS] A... -- B...",
	.text = "Compares how often events came, sums of sizes, counters, gauges and durations of "
		"two runs: of two versions, two inputs, small and large pages. Of snapshots of a "
		"flight recorder, and where records were lost, it compares rates. With several "
		"runs on each side, their spread says how sure a difference is. With one on each, "
		"runs are taken to vary as much as parts of one run do, and times of a whole run "
		"are compared without a judgement.",
	.examples = "pem diff small large         two traces\n"
		    "pem diff old1 old2 old3 -- new1 new2 new3\n"
		    "                             three runs of each version\n"
		    "pem diff --only 'run time' --fail-above 5% old? -- new?\n"
		    "                             fail if the new version takes longer\n"
		    "pem diff pem-snapshot-sh-1 pem-snapshot-sh-2\n"
		    "                             what changed while it was slow\n"
		    "pem diff --json A B | jq '.metrics[] | select(.verdict == \"differs\")'\n"
		    "                             for scripts",
	.options = options,
	.status = "0  done, whatever differs, if there is no limit\n"
		  "1  wrong usage, or not a trace\n"
		  "2  cannot be read by this user\n"
		  "3  failed while reading\n"
		  "4  shown, but events of a trace are unaccounted for\n"
		  "5  shown, and a metric surely differs by more than the limit",
	.run = run,
};
