// SPDX-License-Identifier: MIT
/* snapshot.c - pem snapshot: makes a running flight recorder write its content as a trace */
#include "record.h"
#include "folder.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORDERS_MOST 64
#define WAIT_MS 30000

enum { OPT_SESSION = 256 };

static const struct cli_option options[] = {
	{'o', "output", "DIR",
	 "The snapshot's folder, which must not exist or be empty. Default: pem-snapshot-COMMAND-N "
	 "here."},
	{OPT_SESSION, "session", "NAME",
	 "Which recorder, if several run: its process, or its session's name."},
	{'j', "json", NULL, "Print an object instead of a sentence."},
	{0},
};

struct snapshot {
	const char *directory; /* as the user wrote it, or NULL */
	const char *session; /* as the user wrote it, or NULL */
	bool json;
	char path[PATH_MAX];
	struct pem_recorder recorders[RECORDERS_MOST];
	int count;
};

/* The short name of a recorder's command: its first word without its path. */
static const char *command_name(const struct pem_recorder *r)
{
	const char *word = cli_format("%.*s", (int)strcspn(r->command, " "), r->command);
	const char *slash = strrchr(word, '/');

	return *word == '\0' ? "programs" : slash != NULL ? slash + 1 : word;
}

static bool is_meant(const struct snapshot *s, const struct pem_recorder *r)
{
	return s->session == NULL || strcmp(s->session, r->session) == 0 ||
	       strcmp(s->session, cli_format("%u", r->pid)) == 0;
}

/* --- choosing --- */

static void print_recorders(const struct snapshot *s)
{
	struct cli_table *table = cli_table__new(stderr);
	int i;

	cli_table__column(table, "PID", CLI_RIGHT);
	cli_table__column(table, "SESSION", CLI_LEFT);
	cli_table__column(table, "RECORDS", CLI_LEFT);
	for (i = 0; i < s->count; i++) {
		const struct pem_recorder *r = &s->recorders[i];

		cli_table__row(table, CLI_PLAIN);
		cli_table__cell(table, cli_format("%u", r->pid));
		cli_table__cell(table, r->session);
		cli_table__cell(table, cli_format("%.200s%s",
						  *r->command != '\0' ? r->command : "programs",
						  r->is_running ? "" : " (recorder was killed)"));
	}
	cli_table__print(table);
}

static int none(const struct snapshot *s)
{
	if (s->session != NULL && s->count != 0) {
		cli_error(0, "no flight recorder is called %s; there is", s->session);
		print_recorders(s);
		return CLI_WRONG_INPUT;
	}
	return cli_error(CLI_WRONG_INPUT,
			 "no flight recorder of yours is running: start one with 'pem record "
			 "--overwrite -- COMMAND'");
}

/*
 * Choose the recorder: running ones before killed ones. Returns CLI_DONE, or a status after
 * printing a sentence.
 */
static int choose(struct snapshot *s, const struct pem_recorder **chosen)
{
	int i, meant[2] = {0, 0}, running;
	const struct pem_recorder *first[2] = {NULL, NULL};

	for (i = 0; i < s->count; i++) {
		if (!is_meant(s, &s->recorders[i]))
			continue;
		running = s->recorders[i].is_running != 0;
		if (meant[running]++ == 0)
			first[running] = &s->recorders[i];
	}
	running = meant[1] != 0;
	*chosen = first[running];
	if (*chosen == NULL)
		return none(s);
	if (meant[running] == 1)
		return CLI_DONE;
	cli_error(0, "%d flight recorders %s: choose one with --session PID", meant[running],
		  running ? "are running" : "were killed");
	print_recorders(s);
	return CLI_WRONG_INPUT;
}

/* --- the result --- */

static void print_json(const struct pem_recorder *r, const char *path,
		       const struct pem_trace_info *info, const struct pem_balance *balance)
{
	struct json_object *object = json_object_new_object();

	cli_json__text(object, "trace", path);
	cli_json__count(object, "recorder", r->pid);
	cli_json__text(object, "session", r->session);
	cli_json__text(object, "command", r->command);
	cli_json__flag(object, "recovered", !r->is_running);
	cli_json__count(object, "span_ns", info->duration_ns);
	cli_json__count(object, "ran_ns", info->ran_ns != 0 ? info->ran_ns : info->duration_ns);
	cli_json__count(object, "events", balance->delivered);
	cli_json__print(object, stdout, false);
}

static int summarize(const struct snapshot *s, const struct pem_recorder *r, const char *path)
{
	struct pem_error error = {{0}};
	struct pem_trace *trace = cli_trace__read_back(path, &error);
	const struct pem_trace_info *info;
	struct pem_balance balance;

	if (trace == NULL)
		return cli_error(CLI_FAILED, "%s was written and cannot be read: %s", path,
				 error.text);
	info = pem_trace__info(trace);
	balance = pem_trace__total_balance(trace);
	if (s->json) {
		print_json(r, path, info, &balance);
	} else {
		cli_put_text(stdout, path);
		printf(": the last %s of ", cli_duration(info->duration_ns));
		cli_put_text(stdout, command_name(r));
		printf(", %s events; next: pem report ", cli_count(balance.delivered));
		cli_put_word(stdout, path);
		putchar('\n');
	}
	pem_trace__close(trace);
	return cli_finish_output(CLI_DONE);
}

/* The recorder is dead. The records of programs are still in shared memory. */
static int recover(const struct snapshot *s, const struct pem_recorder *r)
{
	struct pem_error error = {{0}};
	int rc;

	if (s->directory != NULL)
		return cli_error(CLI_WRONG_INPUT,
				 "flight recorder %u was killed: what it held is recovered in its "
				 "own folder, %s, so leave -o out",
				 r->pid, r->trace);
	rc = pem_trace__recover(r->trace, &error);
	if (rc < 0)
		return cli_error(cli_status_of_errno(-rc), "flight recorder %u was killed: %s",
				 r->pid, error.text);
	cli_say("flight recorder %u was killed: what living programs had logged was recovered from "
		"shared memory; what it held itself, of the kernel and of ended processes, is lost",
		r->pid);
	return summarize(s, r, r->trace);
}

static int take(struct snapshot *s, const struct pem_recorder *r)
{
	struct pem_error error = {{0}};
	int status = CLI_DONE, rc;

	if (s->directory != NULL)
		status = cli_folder__given(s->directory, s->path, sizeof(s->path));
	else
		status =
			cli_folder__make("pem-snapshot", command_name(r), s->path, sizeof(s->path));
	if (status != CLI_DONE)
		return status;
	rc = pem_recorder__snapshot(r, s->path, "asked for by pem snapshot", WAIT_MS, &error);
	if (rc < 0) {
		if (s->directory == NULL && rc != -ETIMEDOUT)
			rmdir(s->path);
		return cli_error(rc == -ENOTEMPTY || rc == -ENOTDIR ? CLI_WRONG_INPUT : CLI_FAILED,
				 "%s", error.text);
	}
	return summarize(s, r, s->path);
}

static int parse(const struct cli_verb *verb, struct snapshot *s, int argc, char **argv)
{
	int code;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		switch (code) {
		case 'o':
			s->directory = optarg;
			break;
		case OPT_SESSION:
			s->session = optarg;
			break;
		case 'j':
			s->json = true;
			break;
		default:
			return CLI_WRONG_INPUT;
		}
	}
	if (optind != argc)
		return cli_usage_error(verb, "%s: pem snapshot takes no word but options",
				       argv[optind]);
	if (s->directory != NULL && *s->directory == '\0')
		return cli_usage_error(verb, "-o needs the name of a folder");
	return CLI_DONE;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct snapshot *s = calloc(1, sizeof(*s));
	const struct pem_recorder *chosen = NULL;
	int status;

	if (s == NULL)
		return cli_error(CLI_FAILED, "no memory");
	status = parse(verb, s, argc, argv);
	if (status == CLI_DONE) {
		s->recorders[0].size = sizeof(s->recorders[0]);
		s->count = pem_recorders(s->recorders, RECORDERS_MOST);
		if (s->count < 0)
			status = cli_error(cli_status_of_errno(-s->count),
					   "cannot look for flight recorders: %s",
					   strerror(-s->count));
		else if (s->count > RECORDERS_MOST)
			s->count = RECORDERS_MOST;
	}
	if (status == CLI_DONE)
		status = choose(s, &chosen);
	if (status == CLI_DONE)
		status = chosen->is_running ? take(s, chosen) : recover(s, chosen);
	free(s);
	return status;
}

const struct cli_verb cli_snapshot = {
	.name = "snapshot",
	.summary = "write out what a flight recorder holds",
	.usage = "snapshot [-o DIR] [--session PID|NAME] [--json]",
	.text = "Finds your flight recorder, a pem record --overwrite that is running, and has it "
		"write the last seconds as a trace, while it and the program go on. A second "
		"snapshot has what is still there then too. If the recorder was killed, what "
		"programs had logged is recovered from shared memory.",
	.examples = "pem record --overwrite -- ./server &\n"
		    "                            a flight recorder\n"
		    "pem snapshot\n"
		    "                            its last seconds, into pem-snapshot-server-1\n"
		    "pem snapshot --session 4711 -o slow --json\n"
		    "                            of one of several, from a script",
	.options = options,
	.status = "0  done\n"
		  "1  wrong usage, or no such flight recorder\n"
		  "2  cannot be done on this machine or by this user\n"
		  "3  failed while doing it",
	.run = run,
};
