// SPDX-License-Identifier: MIT
/*
 * spec.c - pem spec check: is an event spec right? pem-codegen knows; this runs it
 */
#include "cli.h"
#include "spec_import.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_option options[] = {{0}};

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	char **words;
	int code, i, n = 1;

	if (argc > 1 && strcmp(argv[1], "import") == 0)
		return cli_spec_import(argc - 1, argv + 1);
	while ((code = cli_option__next(verb, argc, argv)) != -1)
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
	if (optind == argc)
		return cli_usage_error(verb, "what about specs? There is: check, import");
	if (strcmp(argv[optind], "check") != 0)
		return cli_usage_error(verb, "pem spec can't '%s'; it can check and import",
				       argv[optind]);
	if (optind + 1 == argc)
		return cli_usage_error(verb, "no spec given");
	words = calloc((size_t)argc + 4, sizeof(*words));
	if (words == NULL)
		return cli_error(CLI_FAILED, "no memory");
	words[n++] = (char *)"--check";
	for (i = optind + 1; i < argc; i++)
		words[n++] = argv[i];
	code = cli_codegen__exec(words);
	free(words);
	return code;
}

const struct cli_verb cli_spec = {
	.name = "spec",
	.summary = "check an event spec, or import one",
	.usage = "spec check FILE.xml...\n"
		 "spec import --tracepoint GLOB | --usdt BINARY | --pfm GLOB [-o FILE]",
	.text = "Checks event specs and writes nothing: against the schema, and for what no schema "
		"can say "
		"(names that collide, a role that the meaning needs). Every mistake is one line, "
		"FILE:LINE: "
		"error: what, and what was expected.",
	.examples = "pem spec check game.xml     silent when it is right\n"
		    "pem spec check spec/*/*.xml all of them, also against each other\n"
		    "pem spec check game.xml && pem gen game.xml -o gen\n"
		    "                            stubs only out of a right spec",
	.options = options,
	.run = run,
};
