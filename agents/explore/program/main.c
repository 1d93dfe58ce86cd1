/* SPDX-License-Identifier: MIT */
/* main.c - pem explore: how a program performs as a function of its settings; verbs and options */
#include "program/program.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIALS_MAX 1000000u
#define SEEDS_MAX 10000u
#define RUNS_MAX 1000u
#define RACE_RUNS 4u

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
	{'a', "apply", NULL, "best: give its settings to files, databases and servers, for good."},
	{'j', "json", NULL, "Print JSON."},
	{'H', "html", "PAGE", "show: write a page for a browser to the file PAGE, a new one."},
	{0},
};

/* Its run is never called: this program finds its verb itself. */
static struct cli_verb help = {
	.name = "explore",
	.summary = "find out how a program performs as a function of its settings",
	.usage =
		"explore init NAME|COMMAND [-o FILE]\n"
		"explore check|run|best EXPERIMENT.xml [--policy NAME] [--budget TRIALS] [--json]\n"
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
		    "                            beside chance, for a program\n"
		    "pem explore replay apache.csv --maximize\n"
		    "                            the values are rates",
	.options = options,
};

int explore_usage_error(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return cli_usage_error(&help, "%s", text);
}

struct action {
	const char *name;
	const char *options; /* that it takes */
	int (*act)(const struct explore_request *request);
};

static const struct action actions[] = {
	{"init", "o", explore_init},
	{"check", "p", explore_check},
	{"run", "pbj", explore_run},
	{"best", "aj", explore_best},
	{"reproduce", "tj", explore_reproduce},
	{"show", "MjH", explore_show},
	{"replay", "pbsrnRMj", explore_replay},
};
#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

static const struct action *find_action(const char *word)
{
	const char *names[ACTIONS], *near;
	size_t i;

	for (i = 0; i < ACTIONS; i++) {
		if (strcmp(actions[i].name, word) == 0)
			return &actions[i];
		names[i] = actions[i].name;
	}
	near = cli_nearest(word, names, ACTIONS);
	if (near)
		explore_usage_error("pem explore can't '%s'; did you mean '%s'?", word, near);
	else
		explore_usage_error("pem explore can't '%s'; it can init, check, run, best, "
				    "reproduce, show, replay",
				    word);
	return NULL;
}

/* Is it an option of this action? False: a sentence was printed. */
static bool has_option(const struct action *action, int code)
{
	const struct cli_option *option = options;

	if (code == CLI_OPTION_BAD || strchr(action->options, code))
		return true;
	while (option->code != code)
		option++;
	explore_usage_error("%s takes no --%s", action->name, option->name);
	return false;
}

/* A number of an option, up to max. False: a sentence was printed. */
static bool take_number(const char *what, uint64_t max, uint32_t *number)
{
	uint64_t value;

	if (cli_parse_number(optarg, max, &value) || !value) {
		explore_usage_error("'%s' is not a number of %s from 1 to %llu", optarg, what,
				    (unsigned long long)max);
		return false;
	}
	*number = (uint32_t)value;
	return true;
}

static bool take_noise(struct explore_request *request)
{
	char *end;

	request->noise_share = strtod(optarg, &end);
	if (end != optarg && *end == ',') {
		request->noise_most = strtod(end + 1, &end);
		if (!*end && request->noise_share >= 0 && request->noise_share <= 1 &&
		    request->noise_most >= 0 && request->noise_most <= 1000)
			return true;
	}
	explore_usage_error(
		"'%s' is not a share of runs and a share of their value, as in 0.15,0.3", optarg);
	return false;
}

static bool take_option(int code, struct explore_request *request)
{
	switch (code) {
	case 'p':
		request->policy = optarg;
		return true;
	case 'b':
		return take_number("trials", TRIALS_MAX, &request->budget);
	case 's':
		return take_number("seeds", SEEDS_MAX, &request->seeds);
	case 'r':
		return take_number("runs", RUNS_MAX, &request->runs);
	case 'n':
		return take_noise(request);
	case 'R':
		request->race_runs = 0;
		return true;
	case 't':
		return take_number("trials", TRIALS_MAX, &request->trial);
	case 'o':
		request->output = optarg;
		return true;
	case 'M':
		request->maximize = true;
		return true;
	case 'a':
		request->apply = true;
		return true;
	case 'H':
		request->page = optarg;
		return true;
	case 'j':
		request->json = true;
		return true;
	default:
		return false;
	}
}

int main(int argc, char **argv)
{
	struct explore_request request = {.seeds = 1, .runs = 1, .race_runs = RACE_RUNS};
	const struct action *action;
	int code;

	cli_version__check();
	if (argc < 2)
		return explore_usage_error("what is to be done? There is: init, check, run, best, "
					   "reproduce, show, replay");
	if (argv[1][0] == '-') {
		/* --help, or an unknown option. */
		code = cli_option__next(&help, argc, argv);
		return code == CLI_OPTION_BAD ? CLI_WRONG_INPUT
					      : explore_usage_error("options come after the verb");
	}
	action = find_action(argv[1]);
	if (!action)
		return CLI_WRONG_INPUT;
	optind = 1;
	while ((code = cli_option__next(&help, argc - 1, argv + 1)) != -1) {
		if (!has_option(action, code) || !take_option(code, &request))
			return CLI_WRONG_INPUT;
	}
	/* A table's values repeat. */
	if (!(request.noise_share > 0))
		request.race_runs = 0;
	request.words = argv + 1 + optind;
	if (action->act != explore_replay && (!request.words[0] || request.words[1]))
		return explore_usage_error("which experiment? pem explore %s EXPERIMENT.xml",
					   action->name);
	return action->act(&request);
}
