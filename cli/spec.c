// SPDX-License-Identifier: MIT
/*
 * spec.c - pem spec check: asks pem-codegen whether event specs are correct and compatible with
 * older ones
 */
#include "cli.h"
#include "spec_files.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOLDER_DEPTH 8u

enum { OPT_AGAINST = 256, OPT_STRICT };

static const struct cli_option options[] = {
	{OPT_AGAINST, "against", "OLD",
	 "Also say what changed since OLD, a spec or a folder of specs, in a way that needs a new "
	 "version."},
	{OPT_STRICT, "strict", NULL, "Warnings count as errors."},
	{'j', "json", NULL,
	 "Print an array of objects with file, line, column, severity and message."},
	{0},
};

struct check {
	struct cli_words words;
	bool old_folder, new_folder;
	bool json;
};

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/*
 * Add a file, or the specs of a folder. Each is preceded by the option if there is one. Returns a
 * status.
 */
static int add(struct check *c, const char *option, const char *path, bool *folder)
{
	struct pem_spec_files files = {0};
	int rc, status = CLI_DONE;
	size_t i;

	if (!is_folder(path)) {
		if ((option != NULL && !cli_words__add(&c->words, option)) ||
		    !cli_words__add(&c->words, path))
			return CLI_FAILED;
		return CLI_DONE;
	}
	*folder = true;
	rc = pem_spec_files__add_folder(&files, path, FOLDER_DEPTH, CLI_SPEC_PATH, NULL);
	if (rc < 0)
		status = cli_error(CLI_WRONG_INPUT, "cannot read the folder %s: %s", path,
				   strerror(-rc));
	else if (files.count == 0)
		status = cli_error(CLI_WRONG_INPUT,
				   "there is no spec in the folder %s: no file *.xml whose root "
				   "element is <spec>",
				   path);
	for (i = 0; i < files.count && status == CLI_DONE; i++)
		if ((option != NULL && !cli_words__add(&c->words, option)) ||
		    !cli_words__add(&c->words, files.files[i].path))
			status = CLI_FAILED;
	pem_spec_files__free(&files);
	return status;
}

static int check_specs(struct check *c, char **paths, int count)
{
	int status = CLI_DONE, i;

	if (!cli_words__add(&c->words, c->json ? "--json" : "--summary"))
		return CLI_FAILED;
	for (i = 0; i < count && status == CLI_DONE; i++) {
		/* A file's name may begin with a dash. */
		const char *path = *paths[i] == '-' ? cli_format("./%s", paths[i]) : paths[i];

		status = add(c, NULL, path, &c->new_folder);
	}
	if (status != CLI_DONE)
		return status;
	if (c->old_folder && !c->new_folder && !cli_words__add(&c->words, "--part"))
		return CLI_FAILED;
	return cli_codegen__exec(&c->words);
}

static int unknown(const struct cli_verb *verb, const char *word)
{
	static const char *const words[] = {"check", "import"};
	const char *near = cli_nearest(word, words, 2);

	return cli_usage_error(verb, "pem spec can't '%s'; %s%s%s", word,
			       near != NULL ? "did you mean '" : "it can check and import",
			       near != NULL ? near : "", near != NULL ? "'?" : "");
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct check c = {.json = false};
	int code, status = CLI_DONE;

	if (argc > 1 && strcmp(argv[1], "import") == 0)
		return cli_spec_import(argc - 1, argv + 1);
	if (!cli_words__add(&c.words, "--check"))
		return CLI_FAILED;
	while (status == CLI_DONE && (code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == OPT_AGAINST)
			status = add(&c, "--against", optarg, &c.old_folder);
		else if (code == OPT_STRICT)
			status = cli_words__add(&c.words, "--strict") ? CLI_DONE : CLI_FAILED;
		else if (code == 'j')
			c.json = true;
		else
			status = CLI_WRONG_INPUT;
	}
	if (status != CLI_DONE)
		goto end;
	if (optind == argc)
		status = cli_usage_error(verb, "what about specs? There is: check, import");
	else if (strcmp(argv[optind], "check") != 0)
		status = unknown(verb, argv[optind]);
	else if (optind + 1 == argc)
		status = cli_usage_error(verb, "no spec given");
	else
		status = check_specs(&c, argv + optind + 1, argc - optind - 1);
end:
	cli_words__free(&c.words);
	return status;
}

const struct cli_verb cli_spec = {
	.name = "spec",
	.summary = "check an event spec, or import one",
	.usage = "spec check [--against OLD] [--strict] [--json] FILE|FOLDER...\n"
		 "spec import --tracepoint GLOB[,GLOB]... | --usdt BINARY [-o FILE]\n"
		 "spec import --lttng PROVIDER | --pfm GLOB [-o FILE]",
	.text = "Checks event specs and writes nothing: against the schema, for what no schema can "
		"say (names that "
		"collide, a role that the meaning needs), and with --against for changes that "
		"would make new "
		"records mean something else under an old name. Every mistake of every file comes "
		"in one run, a "
		"line each that editors can jump to: FILE:LINE:COLUMN: error: what, and what was "
		"expected. A missing "
		"description or unit is a warning. Of a folder, all specs in it are checked, also "
		"against each other.",
	.examples =
		"pem spec check shop.xml     every mistake, and how many there are\n"
		"pem spec check --strict spec\n"
		"                            a folder, of which not even a unit may be missing\n"
		"pem spec check --against v1/shop.xml shop.xml\n"
		"                            may this replace what was released?\n"
		"pem spec check shop.xml && pem gen shop.xml -o gen\n"
		"                            stubs only out of a right spec",
	.options = options,
	.status = "0  right, with or without warnings\n"
		  "1  a mistake, a change without a new version, or wrong usage;\n"
		  "   with --strict also a warning\n"
		  "2  pem-codegen is not there\n"
		  "3  failed while doing it",
	.run = run,
};
