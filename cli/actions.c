// SPDX-License-Identifier: MIT
/* actions.c - a program of its own that does several things: which of them, and its options */
#include "cli.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define ACTIONS_MAX 32 /* of a table, without its end */

/* The index of an action; -1 after a sentence. */
static int find(const struct cli_verb *help, const struct cli_action *actions, const char *word)
{
	const char *names[ACTIONS_MAX], *near;
	char all[256] = "";
	size_t used = 0;
	int i;

	for (i = 0; actions[i].name; i++) {
		if (word && !strcmp(actions[i].name, word))
			return i;
		assert(i < ACTIONS_MAX);
		names[i] = actions[i].name;
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "",
					 names[i]);
	}
	near = word ? cli_nearest(word, names, (size_t)i) : NULL;
	if (!word)
		cli_usage_error(help, "what is to be done? There is: %s", all);
	else if (near)
		cli_usage_error(help, "pem %s can't '%s'; did you mean '%s'?", help->name, word,
				near);
	else
		cli_usage_error(help, "pem %s can't '%s'; it can %s", help->name, word, all);
	return -1;
}

/* Store the value of an option. False: a sentence was printed. */
static bool take(const struct cli_verb *help, const struct cli_value *to)
{
	uint64_t value;

	if (to->text)
		*to->text = optarg;
	if (to->flag)
		*to->flag = true;
	if (to->take)
		return to->take(to->arg);
	if (!to->number)
		return true;
	if (cli_parse_number(optarg, to->most, &value) || !value) {
		cli_usage_error(help, "'%s' is not a number of %s from 1 to %u", optarg, to->of,
				to->most);
		return false;
	}
	*to->number = (uint32_t)value;
	return true;
}

int cli_actions__read(const struct cli_verb *help, const struct cli_action *actions,
		      const struct cli_value *values, int argc, char **argv)
{
	const struct cli_option *option;
	const struct cli_value *to;
	struct cli_verb verb = *help;
	int found, code;

	if (argc > 1 && argv[1][0] == '-') {
		/* --help, or an unknown option. */
		if (cli_option__next(help, argc, argv) != CLI_OPTION_BAD)
			cli_usage_error(help, "options come after the verb");
		return -1;
	}
	found = find(help, actions, argc > 1 ? argv[1] : NULL);
	if (found < 0)
		return found;
	verb.runs_command = actions[found].runs_command;
	optind = 1;
	while ((code = cli_option__next(&verb, argc - 1, argv + 1)) != -1) {
		if (code == CLI_OPTION_BAD)
			return -1;
		if (!strchr(actions[found].options, code)) {
			for (option = help->options; option->code != code;)
				option++;
			cli_usage_error(help, "%s takes no --%s", actions[found].name,
					option->name);
			return -1;
		}
		for (to = values; to->code != code;)
			to++;
		if (!take(help, to))
			return -1;
	}
	optind++;
	return found;
}
