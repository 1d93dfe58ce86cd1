// SPDX-License-Identifier: MIT
/*
 * options.c - options and help of a verb, both from one table, so that they can't differ
 *
 * getopt_long parses. This file gives it the tables, and prints the messages.
 */
#include "cli.h"
#include "text.h"

#include <assert.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONS_MAX 40 /* a verb with more ends at once, as one does that has a code twice */
#define HELP_COLUMN 24

static size_t option_count(const struct cli_verb *verb)
{
	size_t n = 0;

	size_t i;

	for (; verb->options[n].code != 0; n++) {
		for (i = 0; i < n; i++)
			assert(verb->options[i].code != verb->options[n].code);
	}
	assert(n <= OPTIONS_MAX);
	return n;
}

int cli_option__next(const struct cli_verb *verb, int argc, char **argv)
{
	struct option longs[OPTIONS_MAX + 2] = {{0}};
	char shorts[2 * OPTIONS_MAX + 8], *s = shorts;
	size_t i, n = option_count(verb);
	int code, at = optind;

	if (verb->runs_command)
		*s++ = '+';
	*s++ = ':';
	*s++ = 'h';
	for (i = 0; i < n; i++) {
		const struct cli_option *o = &verb->options[i];

		longs[i].name = o->name;
		longs[i].has_arg = o->argument != NULL ? required_argument : no_argument;
		longs[i].val = o->code;
		if (o->code < 256) {
			*s++ = (char)o->code;
			if (o->argument != NULL)
				*s++ = ':';
		}
	}
	longs[n].name = "help";
	longs[n].val = 'h';
	*s = '\0';

	opterr = 0;
	code = getopt_long(argc, argv, shorts, longs, NULL);
	if (code == 'h') {
		cli_verb__help(verb, stdout);
		exit(cli_finish_output(CLI_DONE));
	}
	if (code == ':' || code == '?') {
		const char *word = optind > at ? argv[optind - 1] : argv[at];

		/*
		 * In a cluster of short letters getopt_long has not moved optind, so the message
		 * names the letter.
		 */
		if (optopt != 0 && optopt < 256 && strncmp(word, "--", 2) != 0)
			cli_usage_error(verb,
					code == ':' ? "option -%c needs a value" : "no option -%c",
					optopt);
		else
			cli_usage_error(verb,
					code == ':' ? "option %s needs a value" : "no option %s",
					word);
		return CLI_OPTION_BAD;
	}
	return code;
}

int cli_usage_error(const struct cli_verb *verb, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cli_error(0, "%s", text);
	if (verb != NULL)
		fprintf(stderr, "     pem %s --help shows how it is used\n", verb->name);
	else
		fprintf(stderr, "     pem help shows how it is used\n");
	return CLI_WRONG_INPUT;
}

static void help_option(const struct cli_option *o, FILE *out)
{
	char left[64];
	int n;

	n = snprintf(left, sizeof(left), "  %c%c%s--%s%s%s", o->code < 256 ? '-' : ' ',
		     o->code < 256 ? o->code : ' ', o->code < 256 ? ", " : "  ", o->name,
		     o->argument != NULL ? " " : "", o->argument != NULL ? o->argument : "");
	if (n < HELP_COLUMN)
		fprintf(out, "%-*s", HELP_COLUMN, left);
	else
		fprintf(out, "%s\n%*s", left, HELP_COLUMN, "");
	cli_wrap(out, o->help, HELP_COLUMN, HELP_COLUMN, cli_width(out));
}

static void help_heading(const char *title, FILE *out)
{
	fprintf(out, "\n%s%s%s\n", cli_colour(out, CLI_BOLD), title, cli_colour(out, CLI_PLAIN));
}

/* Print each line of text after an indent. */
static void help_lines(const char *text, const char *indent, FILE *out)
{
	while (*text != '\0') {
		size_t n = strcspn(text, "\n");

		fprintf(out, "%s%.*s\n", indent, (int)n, text);
		text += n + (text[n] == '\n');
	}
}

void cli_verb__help(const struct cli_verb *verb, FILE *out)
{
	static const struct cli_option help = {'h', "help", NULL, "Print this."};
	const char *usage = verb->usage;
	size_t i, n = option_count(verb);

	while (*usage != '\0') {
		size_t length = strcspn(usage, "\n");

		fprintf(out, "%s pem %.*s\n", usage == verb->usage ? "Usage:" : "      ",
			(int)length, usage);
		usage += length + (usage[length] == '\n');
	}
	fputc('\n', out);
	cli_wrap(out, verb->text, 0, 0, cli_width(out));
	help_heading("Examples", out);
	help_lines(verb->examples, "  ", out);
	help_heading("Options", out);
	for (i = 0; i < n; i++)
		help_option(&verb->options[i], out);
	help_option(&help, out);
	help_heading("Exit status", out);
	help_lines(verb->status != NULL ? verb->status
					: "0  done\n"
					  "1  wrong usage or input\n"
					  "2  cannot be done on this machine or by this user\n"
					  "3  failed while doing it",
		   "  ", out);
}

const char *cli_nearest(const char *word, const char *const *names, size_t count)
{
	const char *found = NULL;
	unsigned int best = 3; /* a word with more than two edits is not a misspelling */
	size_t i;

	for (i = 0; i < count; i++) {
		unsigned int d = pem_edit_distance(word, names[i]);

		if (d < best && d < strlen(names[i])) {
			best = d;
			found = names[i];
		}
	}
	return found;
}
