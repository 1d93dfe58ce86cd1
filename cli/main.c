// SPDX-License-Identifier: MIT
/*
 * main.c - pem: finds the verb and calls it
 *
 * Each verb has its own file. cli.h has what they share.
 */
#include "cli.h"

#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const struct cli_verb *const verbs[] = {
	&cli_record, &cli_stat,      &cli_top,     &cli_launch, &cli_report,
	&cli_export, &cli_list,      &cli_doctor,  &cli_mark,   &cli_gen,
	&cli_spec,   &cli_snapshot,  &cli_diff,    &cli_lab,
#ifdef PEM_HAS_DATABASE
	&cli_db,     &cli_page_size, &cli_explore, &cli_rates,
#endif
};
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void overview(FILE *out)
{
	const char *bold = cli_colour(out, CLI_BOLD), *plain = cli_colour(out, CLI_PLAIN);
	size_t i;

	fprintf(out,
		"pem %s watches a program through application, libraries, operating system\n"
		"and hardware, on one timeline.\n\n",
		PEM_VERSION);
	for (i = 0; i < VERBS; i++)
		fprintf(out, "  %spem %-9s%s %s\n", bold, verbs[i]->name, plain, verbs[i]->summary);
	fprintf(out,
		"\nA first look:\n"
		"  pem record -- sqlite3 my.db 'select count(*) from t'\n"
		"  pem report pem-trace-sqlite3-1\n"
		"  pem export --to html pem-trace-sqlite3-1\n\n"
		"pem VERB --help explains a verb by examples; pem doctor says what works here.\n");
}

static const struct cli_verb *find(const char *name)
{
	size_t i;

	for (i = 0; i < VERBS; i++)
		if (strcmp(verbs[i]->name, name) == 0)
			return verbs[i];
	return NULL;
}

static int unknown(const char *name)
{
	const char *names[VERBS], *near;
	size_t i;

	for (i = 0; i < VERBS; i++)
		names[i] = verbs[i]->name;
	near = cli_nearest(name, names, VERBS);
	if (near != NULL)
		return cli_usage_error(NULL, "pem has no verb '%s'; did you mean '%s'?", name,
				       near);
	return cli_usage_error(NULL, "pem has no verb '%s'", name);
}

static int help(const char *name)
{
	const struct cli_verb *verb;

	if (name == NULL) {
		overview(stdout);
		return cli_finish_output(CLI_DONE);
	}
	verb = find(name);
	if (verb == NULL)
		return unknown(name);
	if (verb->usage == NULL) { /* another program, which has its own help */
		char word[] = "--help", *words[] = {(char *)(uintptr_t)name, word, NULL};

		return verb->run(verb, 2, words);
	}
	cli_verb__help(verb, stdout);
	return cli_finish_output(CLI_DONE);
}

static void keep_size_limit(int number)
{
	(void)number;
}

/*
 * A file that may not grow further (ulimit -f) is an error that a sentence names, and does not end
 * pem by SIGXFSZ. exec resets a handler, so commands get the default action.
 */
static void catch_size_limit(void)
{
	struct sigaction action = {.sa_handler = keep_size_limit, .sa_flags = SA_RESTART}, before;

	if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
		sigaction(SIGXFSZ, &action, NULL);
}

int main(int argc, char **argv)
{
	const struct cli_verb *verb;
	int rc;

	catch_size_limit();
	cli_version__check();
	if (argc < 2)
		return help(NULL);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("pem %s\n", PEM_VERSION);
		return cli_finish_output(CLI_DONE);
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0)
		return help(argc > 2 ? argv[2] : NULL);
	if (argv[1][0] == '-')
		return cli_usage_error(NULL, "no option %s before a verb", argv[1]);
	verb = find(argv[1]);
	if (verb == NULL)
		return unknown(argv[1]);
	/*
	 * pem mark handles no events of other processes. Its command gets the capabilities that pem
	 * mark got.
	 */
	rc = verb != &cli_mark ? pem_run__drop_capabilities() : 0;
	if (rc < 0)
		return cli_error(CLI_FAILED,
				 "cannot keep pem's capabilities from the programs it starts: %s",
				 strerror(-rc));
	optind = 1;
	return verb->run(verb, argc - 1, argv + 1);
}
