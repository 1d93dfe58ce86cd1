// SPDX-License-Identifier: MIT
/*
 * gen.c - pem gen: makes stubs out of an event spec, by running pem-codegen
 */
#include "cli.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_LANG = 256 };

static const struct cli_option options[] = {
	{OPT_LANG, "lang", "LANG", "Language of the stubs: c. Default: c."},
	{'o', "output", "DIR", "Folder to write into. Default: the current one."},
	{0},
};

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	const char *language = "c", *output = ".";
	char **words;
	int code, i, n = 1;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		if (code == OPT_LANG)
			language = optarg;
		else
			output = optarg;
	}
	if (strcmp(language, "c") != 0)
		return cli_usage_error(verb, "no stubs in language '%s': there is c", language);
	if (optind == argc)
		return cli_usage_error(verb, "no spec given");
	words = calloc((size_t)argc + 6, sizeof(*words));
	if (words == NULL)
		return cli_error(CLI_FAILED, "no memory");
	words[n++] = (char *)"--backend";
	words[n++] = (char *)"c";
	words[n++] = (char *)"-o";
	words[n++] = (char *)output;
	for (i = optind; i < argc; i++)
		words[n++] = argv[i];
	code = cli_codegen__exec(words);
	free(words);
	return code;
}

const struct cli_verb cli_gen = {
	.name = "gen",
	.summary = "make stubs out of an event spec",
	.usage = "gen [--lang c] [-o DIR] FILE.xml...",
	.text = "Makes, for each spec, a C header PROVIDER.h with one inline function per event: "
		"include "
		"it, call pem_notify_CLASS_SPECIFIER(), and pem record sees the event. The header "
		"needs no "
		"library: without libpem in the process its stubs do nothing. Nothing is rewritten "
		"that "
		"would not change.",
	.examples = "pem gen --lang c game.xml -o gen\n"
		    "                            gen/game.h\n"
		    "pem gen events/*.xml -o gen several specs at once\n"
		    "pem spec check game.xml     only look whether it is right",
	.options = options,
	.run = run,
};
