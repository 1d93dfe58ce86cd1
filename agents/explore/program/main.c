/* SPDX-License-Identifier: MIT */
/* main.c - pem explore: how a program performs as a function of its settings; verbs and options */
#include "program/exploration.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_MAX 1000000u
#define SEEDS_MAX 10000u
#define RUNS_MAX 1000u
#define RACE_RUNS 2u /* of each in a race: more cost more than they find out */

static const struct cli_option options[] = {
	{'p', "policy", "NAME",
	 "Which policy chooses configurations: portfolio (the default), gaussian, forest, model, "
	 "halving, sobol, latin, random, grid; or ./FILE.so or ./FILE.py, a policy of your own "
	 "(pem/explore.h)."},
	{'b', "budget", "TRIALS", "Make at most TRIALS trials (100)."},
	{'s', "seeds", "NUMBER", "replay: explore NUMBER times, with seeds 1, 2, ... (1)."},
	{'r', "runs", "NUMBER", "Run each configuration NUMBER times (1)."},
	{'n', "noise", "SHARE,MOST",
	 "replay: make a SHARE of all runs worse by up to MOST of their value; 0.15,0.3: 15 % of "
	 "runs by up to 30 %."},
	{'R', "no-race", NULL,
	 "Call the configuration of the best value the best one. Without it, if there is noise, "
	 "one that looks best runs again until a test tells it from the best one so far."},
	{'M', "maximize", NULL, "The greater a value, the better. Without it: the smaller."},
	{'t', "trial", "NUMBER", "reproduce: which trial is run again."},
	{'o', "output", "FILE", "init: write the experiment to FILE (NAME.xml)."},
	{'P', "pairs", NULL,
	 "run: the command may run twice at the same time: compare configurations in pairs, as "
	 "with pairs=\"yes\" in the experiment."},
	{'a', "apply", NULL, "best: give its settings to files, databases and servers, for good."},
	{'j', "json", NULL, "Print JSON."},
	{'H', "html", "PAGE", "show: write a page for a browser to the file PAGE, a new one."},
	{0},
};

/* Its run is never called: this program finds its verb itself. */
const struct cli_verb explore_help = {
	.name = "explore",
	.summary = "find out how a program performs as a function of its settings",
	.usage =
		"explore init NAME|COMMAND [-o FILE]\n"
		"explore check|run|best EXPERIMENT.xml [--policy NAME] [--budget TRIALS] [--pairs] "
		"[--json]\n"
		"explore reproduce EXPERIMENT.xml --trial NUMBER [--json]\n"
		"explore show EXPERIMENT.xml|SPACE.csv [--json | --html PAGE]\n"
		"explore replay SPACE.csv [--policy NAME] [--seeds NUMBER] [--budget TRIALS] "
		"[--json]",
	.text = "An exploration tries configurations of a program, one after the other. A policy "
		"chooses the next one by what the earlier ones came to, so that good ones are "
		"found in few trials.\n\n"
		"An experiment is an XML file: the command, its settings and how each is given, "
		"what is measured. init writes one to begin with, check reads it, run makes "
		"trials. Each is kept in the database (PEM_DB); after ^C or kill -9, run goes on. "
		"best prints the best configuration and how to run it; reproduce runs a trial "
		"again and compares.\n\n"
		"replay tries a policy on a space that was measured before: a CSV file with a "
		"column for each setting and the value of each configuration in the last one. It "
		"prints the best value after each trial.\n\n"
		"show tells what is known of an experiment or such a space: the best "
		"configuration, which setting matters, from which value on one stops helping.",
	.examples = "pem explore init xz && pem explore run xz.xml\n"
		    "                            which options make xz fast?\n"
		    "pem explore best xz.xml     the best ones, and the command line\n"
		    "pem explore reproduce xz.xml --trial 17\n"
		    "                            does that figure hold?\n"
		    "pem explore show xz.xml --html xz.html\n"
		    "                            which setting matters, for a browser\n"
		    "pem explore replay x264.csv --seeds 21\n"
		    "                            how many trials does the policy take?\n"
		    "pem explore replay x264.csv --policy random --seeds 21 --json\n"
		    "                            beside chance, for a program",
	.options = options,
};

static const struct cli_action actions[] = {
	{"init", "o", false},          {"check", "pj", false},
	{"run", "pbPj", false},        {"best", "aj", false},
	{"reproduce", "tj", false},    {"show", "MjH", false},
	{"replay", "pbsrnRMj", false}, {0},
};
/* What each does: with a file, or with an experiment; trials are made under a guard. */
static const struct {
	int (*with_file)(const struct explore_request *request);
	int (*act)(struct exploration *exploration);
	bool makes_trials;
} acts[] = {
	{explore_init, NULL, false},     {NULL, explore_check, false},
	{NULL, explore_run, true},       {NULL, explore_best, false},
	{NULL, explore_reproduce, true}, {explore_show_table, explore_show, false},
	{explore_replay, NULL, false},
};

static bool take_noise(void *arg)
{
	struct explore_request *r = arg;
	int end = 0;

	if (sscanf(optarg, "%lf,%lf%n", &r->noise_share, &r->noise_most, &end) == 2 &&
	    !optarg[end] && r->noise_share >= 0 && r->noise_share <= 1 && r->noise_most >= 0 &&
	    r->noise_most <= 1000)
		return true;
	cli_usage_error(&explore_help,
			"'%s' is not a share of runs and a share of their value, as in 0.15,0.3",
			optarg);
	return false;
}

int main(int argc, char **argv)
{
	struct explore_request r = {.seeds = 1, .runs = 1};
	bool no_race = false;
	const struct cli_value values[] = {
		{'p', .text = &r.policy},
		{'b', .number = &r.budget, .of = "trials", .most = TRIALS_MAX},
		{'s', .number = &r.seeds, .of = "seeds", .most = SEEDS_MAX},
		{'r', .number = &r.runs, .of = "runs", .most = RUNS_MAX},
		{'n', .take = take_noise, .arg = &r},
		{'R', .flag = &no_race},
		{'M', .flag = &r.maximize},
		{'t', .number = &r.trial, .of = "trials", .most = TRIALS_MAX},
		{'o', .text = &r.output},
		{'a', .flag = &r.apply},
		{'P', .flag = &r.pairs},
		{'j', .flag = &r.json},
		{'H', .text = &r.page},
		{0},
	};
	const char *dot;
	int action;

	cli_version__check();
	action = cli_actions__read(&explore_help, actions, values, argc, argv);
	if (action < 0)
		return CLI_WRONG_INPUT;
	/* A table's values repeat. */
	r.race_runs = r.noise_share > 0 && !no_race ? RACE_RUNS : 0;
	r.words = argv + optind;
	r.act = acts[action].act;
	r.changes = acts[action].makes_trials || r.apply;
	if (acts[action].with_file != explore_replay && (!r.words[0] || r.words[1]))
		return cli_usage_error(&explore_help,
				       "which experiment? pem explore %s EXPERIMENT.xml",
				       actions[action].name);
	if (r.json && r.page)
		return cli_usage_error(&explore_help,
				       "--json and --html are two forms: take one of them");
	dot = r.words[0] ? strrchr(r.words[0], '.') : NULL;
	if (!r.act || (acts[action].with_file && dot && !strcmp(dot, ".csv")))
		return acts[action].with_file(&r);
	return acts[action].makes_trials ? trial_guard__run(exploration__act, &r)
					 : exploration__act(&r);
}
