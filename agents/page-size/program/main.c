/* SPDX-License-Identifier: MIT */
/* main.c - pem page-size: large pages for programs that nobody changes; which verb, its options */
#include "program.h"

#include <getopt.h>
#include <signal.h>

#define LIMIT_S 60u
#define RUNS_MAX 64u
/* The smallest page that is large. */
#define LARGE_PAGE (UINT64_C(2) << 20)
#define MAPPINGS_MAX 4096u

static const struct cli_option options[] = {
	{'b', "budget", "BYTES",
	 "run, validate, apply, model: large pages may take so much memory at most (64M). "
	 "Without it: as much as there is."},
	{'l', "limit", "SECONDS",
	 "run, validate, apply, profile: observe the first SECONDS of the command (60). calibrate: "
	 "measure for SECONDS at most (30)."},
	{'n', "runs", "NUMBER", "validate: run the command so often at most (64)."},
	{'o', "output", "FILE", "profile: write the profile there, and do not model it."},
	{'m', "mapping", "DIGITS",
	 "model: what a mapping would save, too: for each site, in the order of the table, 0 for "
	 "small pages, 1 for the next larger size, 2 for the next. May be given again."},
	{'M', "machine", "FILE",
	 "run, validate, apply, model: model with the TLBs of another machine, as calibrate --json "
	 "printed them there, not with this one's."},
	{'H', "html", "FILE", "show: write a page with pictures into a new file."},
	{'j', "json", NULL, "model, show, calibrate: print JSON."},
	{0},
};

/* Its run is never called: this program finds its verb itself. */
const struct cli_verb page_help = {
	.name = "page-size",
	.summary = "give a program's hottest memory large pages, and prove that it pays",
	.usage = "page-size run [--budget BYTES] -- COMMAND [ARG...]\n"
		 "page-size validate [--runs NUMBER] -- COMMAND [ARG...]\n"
		 "page-size apply -- COMMAND [ARG...]\n"
		 "page-size profile -o FILE -- COMMAND [ARG...]\n"
		 "page-size model FILE [--budget BYTES] [--mapping DIGITS] [--json]\n"
		 "page-size show [COMMAND] [--json | --html FILE]\n"
		 "page-size forget COMMAND\n"
		 "page-size calibrate [--limit SECONDS] [--json]",
	.text = "The first run of a command is observed: which allocation sites its references to "
		"memory belong to, and how far apart they are. A model of this machine's TLBs, "
		"which are measured once, finds the sites that gain by large pages. Later runs "
		"have large pages for them, or not, by chance, until it is clear whether that "
		"pays; what does is kept, and what does not is withdrawn. The command needs no "
		"change and does not notice, but that the first run is slow. It may be any "
		"dynamically linked program.\n\n"
		"run does one of these, whatever is next. validate repeats run until it is "
		"decided. apply gives the command its large pages without more ado. profile only "
		"observes, and model says what it would choose from such a FILE. show says what "
		"was chosen and what came of it, forget takes it back. Everything is kept in the "
		"database that pem db shows.\n\n"
		"What is predicted is simulated and says so; gains of kept sites are measured.",
	.examples = "pem page-size run -- ./app input      the first time: observe\n"
		    "pem page-size run -- ./app input      from then on: try, compare, keep\n"
		    "pem page-size validate -- ./app input  until it is decided\n"
		    "pem page-size show ./app              which data, how hot, what is gained\n"
		    "pem page-size run --budget 64M -- ./app input\n"
		    "                                      with 32 large pages of 2 MiB at most",
	.options = options,
	.status = "run, apply and validate return the command's status, and 127 if there is no\n"
		  "such command. Else 0 done, 1 wrong usage, 2 cannot be done here, 3 failed.",
};

void page_log(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	cli_say("%s", text);
}

static const struct cli_action actions[] = {
	{"run", "blM", true},    {"validate", "blnM", true}, {"apply", "blM", true},
	{"profile", "lo", true}, {"model", "bmMj", false},   {"show", "Hj", false},
	{"forget", "", false},   {"calibrate", "jl", false}, {0},
};
static int (*const acts[])(const struct page_request *request) = {
	page_run,        page_validate, page_apply,  page_profile,
	page_model_verb, page_show,     page_forget, page_calibrate_verb,
};

static bool take_budget(void *arg)
{
	uint64_t *bytes = arg;

	if (cli_parse_bytes(optarg, bytes))
		cli_usage_error(&page_help, "'%s' is not a number of bytes, such as 64M", optarg);
	else if (*bytes < LARGE_PAGE)
		cli_usage_error(
			&page_help,
			"a budget of %s has no space for a large page: give it %uM at least",
			optarg, (unsigned)(LARGE_PAGE >> 20));
	else
		return true;
	return false;
}

static const char *mappings[MAPPINGS_MAX];

static bool take_mapping(void *arg)
{
	struct page_request *request = arg;

	if (request->mapping_count == MAPPINGS_MAX) {
		cli_usage_error(&page_help, "%u mappings at one time at most", MAPPINGS_MAX);
		return false;
	}
	mappings[request->mapping_count++] = optarg;
	return true;
}

/*
 * A file that may not grow further is an error that is told, and no end of this program. Unlike
 * SIG_IGN, the command does not inherit it.
 */
static void keep_size_limit(int number)
{
	(void)number;
}

static void catch_size_limit(void)
{
	struct sigaction before;

	if (!sigaction(SIGXFSZ, NULL, &before) && before.sa_handler == SIG_DFL)
		signal(SIGXFSZ, keep_size_limit);
}

int main(int argc, char **argv)
{
	struct page_request r = {.budget_bytes = UINT64_MAX,
				 .limit_s = LIMIT_S,
				 .runs = RUNS_MAX,
				 .mappings = mappings};
	const struct cli_value values[] = {
		{'b', .take = take_budget, .arg = &r.budget_bytes},
		{'l', .number = &r.limit_s, .of = "seconds", .most = 86400},
		{'n', .number = &r.runs, .of = "runs", .most = 10000},
		{'o', .text = &r.output},
		{'m', .take = take_mapping, .arg = &r},
		{'M', .text = &r.machine},
		{'H', .text = &r.html},
		{'j', .flag = &r.json},
		{0},
	};
	int action;

	catch_size_limit();
	cli_version__check();
	action = cli_actions__read(&page_help, actions, values, argc, argv);
	if (action < 0)
		return CLI_WRONG_INPUT;
	r.words = argv + optind;
	if (actions[action].runs_command && !r.words[0])
		return cli_usage_error(&page_help,
				       "which command? pem page-size %s -- COMMAND [ARG...]",
				       actions[action].name);
	return acts[action](&r);
}
