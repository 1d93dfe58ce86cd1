// SPDX-License-Identifier: MIT
/* db.c - pem db: shows what agents learnt, and carries it from one database to another */
#include "db.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>

static const struct cli_option options[] = {
	{'o', "output", "FILE", "export: write FILE, which must not exist, not standard output."},
	{'j', "json", NULL, "list, show: print an array of objects instead of a table."},
	{0},
};

static void log_sentence(enum pem_log_level level, const char *text, void *arg)
{
	(void)level;
	(void)arg;
	cli_say("%s", text);
}

static int vacuum(struct pem_database *database)
{
	struct pem_error error;
	int rc = pem_database__vacuum(database, &error);

	return rc < 0 ? cli_fail(rc, &error) : CLI_DONE;
}

struct request {
	const char *words[4];
	int count;
	const char *output;
	bool json;
};

/* What pem db can do: with how many words behind, and may it change the database? */
static const struct action {
	const char *name;
	int least, most;
	bool changes;
} actions[] = {
	{"list", 0, 0, false},  {"show", 1, 2, false}, {"export", 0, 0, false},
	{"import", 1, 1, true}, {"merge", 1, 1, true}, {"vacuum", 0, 0, true},
};
#define ACTIONS (sizeof(actions) / sizeof(actions[0]))

static int carry_out(struct pem_database *database, const struct request *request)
{
	switch (request->words[0][0]) {
	case 'l':
		return db_list(database, request->json);
	case 's':
		return db_show(database, request->words[1], request->words[2], request->json);
	case 'e':
		return db_export(database, request->output);
	case 'i':
		return db_import(database, request->words[1]);
	case 'm':
		return db_merge(database, request->words[1]);
	default:
		return vacuum(database);
	}
}

static const struct action *find_action(const struct cli_verb *verb, const char *word)
{
	const char *names[ACTIONS], *near;
	size_t i;

	for (i = 0; i < ACTIONS; i++) {
		if (strcmp(actions[i].name, word) == 0)
			return &actions[i];
		names[i] = actions[i].name;
	}
	near = cli_nearest(word, names, ACTIONS);
	cli_usage_error(verb, "pem db can't '%s'; %s%s%s", word,
			near != NULL ? "did you mean '"
				     : "it can list, show, export, import, merge, vacuum",
			near != NULL ? near : "", near != NULL ? "'?" : "");
	return NULL;
}

static int begin(const struct cli_verb *verb, const struct request *request)
{
	struct pem_database_options how = {.size = sizeof(how), .log = log_sentence};
	const struct action *action = find_action(verb, request->words[0]);
	struct pem_database *database;
	struct pem_error error;
	int status;

	if (action == NULL)
		return CLI_WRONG_INPUT;
	if (request->count - 1 < action->least || request->count - 1 > action->most)
		return cli_usage_error(verb, "pem db %s takes %s", action->name,
				       action->most == 0   ? "no words"
				       : action->most == 1 ? "one word"
							   : "a table, and perhaps a row's number");
	if (request->output != NULL && strcmp(action->name, "export") != 0)
		return cli_usage_error(verb, "only pem db export writes a file");
	how.read_only = !action->changes;
	database = pem_database__open(NULL, &how, &error);
	if (database == NULL)
		return cli_fail(-errno, &error);
	status = carry_out(database, request);
	pem_database__close(database);
	return status;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct request request = {.count = 0};
	int code;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == 'o')
			request.output = optarg;
		else if (code == 'j')
			request.json = true;
		else
			return CLI_WRONG_INPUT;
	}
	if (optind == argc)
		return cli_usage_error(verb,
				       "what about the database? There is: list, show, export, "
				       "import, merge, vacuum");
	if (argc - optind > 3)
		return cli_usage_error(verb, "too many words");
	while (optind < argc)
		request.words[request.count++] = argv[optind++];
	return begin(verb, &request);
}

const struct cli_verb cli_db = {
	.name = "db",
	.summary = "what agents learnt of programs: show it, carry it elsewhere",
	.usage = "db list [--json]\n"
		 "db show TABLE [NUMBER] [--json]\n"
		 "db export [-o FILE]\n"
		 "db import FILE\n"
		 "db merge DATABASE\n"
		 "db vacuum",
	.text = "Agents keep what they measured of a program, what they would change and how that "
		"turned out in a database, so that the next run begins where the last one ended. "
		"It is a file, pem/cpo.db in XDG_DATA_HOME (~/.local/share); PEM_DB names another "
		"file, or a PostgreSQL server by its URL, so that many machines share one.\n\n"
		"list shows the applications, and how many directives were kept, are tried and "
		"were withdrawn. show prints the rows of a TABLE: application, machine, run, "
		"metric, directive, evidence, validation, lease; or all of one row. export writes "
		"everything but leases, a JSON object per line; import reads such a file ('-': "
		"standard input), and merge another database. Rows that are here already stay as "
		"they are; if a line is wrong, nothing is imported. vacuum removes leases that "
		"are over, gives back room on the disk and checks the whole file.",
	.examples = "pem db list                 which programs are known, and what was gained\n"
		    "pem db show directive       what agents would do, or do\n"
		    "pem db show run 12          all that is known of run 12\n"
		    "pem db export -o learnt.json  write everything into a file\n"
		    "ssh other pem db export | pem db import -\n"
		    "                            what another machine learnt\n"
		    "PEM_DB=postgresql://db.example/cpo pem db merge cpo.db\n"
		    "                            give a server what a file knows",
	.options = options,
	.run = run,
};
