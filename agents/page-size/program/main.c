/* SPDX-License-Identifier: MIT */
/* main.c - pem page-size: large pages for programs that nobody changes; which verb, its options */
#include "program.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

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
static struct cli_verb help = {
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

int page_usage_error(const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return cli_usage_error(&help, "%s", text);
}

void page_log(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	cli_say("%s", text);
}

struct action {
	const char *name;
	const char *options; /* that it takes */
	bool command; /* behind "--", and with options of its own */
	int (*act)(const struct page_request *request);
};

static const struct action actions[] = {
	{"run", "blM", true, page_run},
	{"validate", "blnM", true, page_validate},
	{"apply", "blM", true, page_apply},
	{"profile", "lo", true, page_profile},
	{"model", "bmMj", false, page_model_verb},
	{"show", "Hj", false, page_show},
	{"forget", "", false, page_forget},
	{"calibrate", "jl", false, page_calibrate_verb},
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
	page_usage_error(
		"pem page-size can't '%s'; %s%s%s", word,
		near ? "did you mean '"
		     : "it can run, validate, apply, profile, model, show, forget, calibrate",
		near ? near : "", near ? "'?" : "");
	return NULL;
}

/* A number of an option, up to max. False: a sentence was printed. */
static bool take_number(const char *what, uint64_t max, uint32_t *number)
{
	uint64_t value;

	if (cli_parse_number(optarg, max, &value) || !value) {
		page_usage_error("%s is no number of %s from 1 to %llu", optarg, what,
				 (unsigned long long)max);
		return false;
	}
	*number = (uint32_t)value;
	return true;
}

/* Is it an option of this action? False: a sentence was printed. */
static bool has_option(const struct action *action, int code)
{
	const struct cli_option *option = options;

	if (code == CLI_OPTION_BAD || strchr(action->options, code))
		return true;
	while (option->code != code)
		option++;
	page_usage_error("%s takes no --%s", action->name, option->name);
	return false;
}

static bool take_budget(uint64_t *bytes)
{
	if (cli_parse_bytes(optarg, bytes))
		page_usage_error("%s is no number of bytes, such as 64M", optarg);
	else if (*bytes < LARGE_PAGE)
		page_usage_error(
			"a budget of %s has no room for a large page: give it %uM at least", optarg,
			(unsigned)(LARGE_PAGE >> 20));
	else
		return true;
	return false;
}

static bool take_option(int code, struct page_request *request, const char **mappings)
{
	switch (code) {
	case 'b':
		return take_budget(&request->budget_bytes);
	case 'l':
		return take_number("seconds", 86400, &request->limit_s);
	case 'n':
		return take_number("runs", 10000, &request->runs);
	case 'o':
		request->output = optarg;
		return true;
	case 'm':
		if (request->mapping_count < MAPPINGS_MAX) {
			mappings[request->mapping_count++] = optarg;
			return true;
		}
		page_usage_error("%u mappings at one time at most", MAPPINGS_MAX);
		return false;
	case 'M':
		request->machine = optarg;
		return true;
	case 'H':
		request->html = optarg;
		return true;
	case 'j':
		request->json = true;
		return true;
	default:
		return false;
	}
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
	static const char *mappings[MAPPINGS_MAX];
	struct page_request request = {.budget_bytes = UINT64_MAX,
				       .limit_s = LIMIT_S,
				       .runs = RUNS_MAX,
				       .mappings = mappings};
	const struct action *action;
	int code;

	catch_size_limit();
	cli_version__check();
	if (argc < 2)
		return page_usage_error(
			"what is to be done? There is: run, validate, apply, profile, "
			"model, show, forget, calibrate");
	if (argv[1][0] == '-') {
		/* --help, or an option that is none. */
		code = cli_option__next(&help, argc, argv);
		return code == CLI_OPTION_BAD ? CLI_WRONG_INPUT
					      : page_usage_error("options come behind the verb");
	}
	action = find_action(argv[1]);
	if (!action)
		return CLI_WRONG_INPUT;
	help.runs_command = action->command;
	optind = 1;
	while ((code = cli_option__next(&help, argc - 1, argv + 1)) != -1) {
		if (!has_option(action, code) || !take_option(code, &request, mappings))
			return CLI_WRONG_INPUT;
	}
	request.words = argv + 1 + optind;
	if (action->command && !request.words[0])
		return page_usage_error("which command? pem page-size %s -- COMMAND [ARG...]",
					action->name);
	return action->act(&request);
}
