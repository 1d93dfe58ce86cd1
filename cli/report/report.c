// SPDX-License-Identifier: MIT
/* report.c - pem report: what a trace contains, whether it is complete, and what observing cost */
#include "report.h"
#include "compare/compare.h"

#include <getopt.h>
#include <string.h>

enum { OPT_BY = 256, OPT_CORRELATE, OPT_WITH };

static const struct cli_option options[] = {
	{OPT_BY, "by", "WHAT",
	 "One table only: by layer, process, thread, event, site, state, path, wait, lock, "
	 "interval, "
	 "message, phase, function, stack, data, file or syscall; or system calls by two of phase, "
	 "process, "
	 "thread, syscall and "
	 "file, as phase,syscall."},
	{OPT_CORRELATE, "correlate", NULL,
	 "Show which metrics rise and fall with cycles per instruction, and with durations."},
	{OPT_WITH, "with", "TEXT", "With --correlate: the metrics whose names contain the text."},
	{'j', "json", NULL, "Print an object with everything instead of tables."},
	{0},
};

/* Parse two words with a comma between, such as "phase,syscall". */
static int parse_pair(const char *word, enum report_key pair[2])
{
	static const char *const words[REPORT_KEYS] = {
		[KEY_SYSCALL] = "syscall", [KEY_FILE] = "file",   [KEY_PROCESS] = "process",
		[KEY_THREAD] = "thread",   [KEY_PHASE] = "phase",
	};
	const char *comma = strchr(word, ',');
	unsigned int i, found = 0;

	for (i = 0; comma != NULL && i < REPORT_KEYS; i++) {
		if (strlen(words[i]) == (size_t)(comma - word) &&
		    strncmp(words[i], word, (size_t)(comma - word)) == 0) {
			pair[0] = (enum report_key)i;
			found |= 1;
		}
		if (strcmp(words[i], comma + 1) == 0) {
			pair[1] = (enum report_key)i;
			found |= 2;
		}
	}
	return found == 3 && pair[0] != pair[1] ? 0 : -1;
}

static int parse_by(const char *word, enum report_by *by, struct report *report)
{
	static const char *const words[] = {
		[REPORT_LAYER] = "layer",       [REPORT_PROCESS] = "process",
		[REPORT_THREAD] = "thread",     [REPORT_EVENT] = "event",
		[REPORT_SITE] = "site",         [REPORT_STATE] = "state",
		[REPORT_INTERVAL] = "interval", [REPORT_FILE] = "file",
		[REPORT_SYSCALL] = "syscall",   [REPORT_FUNCTION] = "function",
		[REPORT_STACK] = "stack",       [REPORT_DATA] = "data",
		[REPORT_WAIT] = "wait",         [REPORT_MESSAGE] = "message",
		[REPORT_LOCK] = "lock",         [REPORT_PHASE] = "phase",
		[REPORT_PATH] = "path",         [REPORT_PAIR] = "",
	};
	unsigned int i;

	for (i = REPORT_LAYER; i < REPORT_BY_COUNT; i++)
		if (*words[i] != '\0' && strcmp(words[i], word) == 0) {
			*by = (enum report_by)i;
			return 0;
		}
	*by = REPORT_PAIR;
	report->has_pair = parse_pair(word, report->pair) == 0;
	return report->has_pair ? 0 : -1;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	enum report_by by = REPORT_ALL;
	struct report report = {0};
	bool json = false, correlate = false;
	const char *with = NULL;
	int code, status;

	while ((code = cli_option__next(verb, argc, argv)) != -1) {
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
		if (code == 'j')
			json = true;
		else if (code == OPT_CORRELATE)
			correlate = true;
		else if (code == OPT_WITH)
			with = optarg;
		else if (parse_by(optarg, &by, &report) < 0)
			return cli_usage_error(
				verb,
				"--by %s: there is layer, process, thread, event, site, state, "
				"path, wait, lock, interval, message, phase, function, stack, "
				"data, file "
				"and "
				"syscall; "
				"and for system calls "
				"two of phase, process, thread, syscall and file, as phase,syscall",
				optarg);
	}
	if (optind + 1 != argc)
		return cli_usage_error(verb,
				       optind == argc ? "no trace given" : "one trace at a time");
	if (with != NULL && !correlate)
		return cli_usage_error(verb, "--with goes with --correlate");
	if (correlate && by != REPORT_ALL)
		return cli_usage_error(verb, "--by and --correlate are two reports: choose one");
	if (correlate)
		return compare__print_correlation(argv[optind], with, json);
	if (by == REPORT_SITE || by == REPORT_FUNCTION || by == REPORT_STACK) {
		report.sites = report_sites__new(by != REPORT_SITE, by == REPORT_STACK);
		if (report.sites == NULL)
			return cli_error(CLI_FAILED, "no memory for call sites");
	}
	if (by == REPORT_DATA) {
		report.data = report_data__new();
		if (report.data == NULL)
			return cli_error(CLI_FAILED, "no memory for data structures");
	}
	status = report__collect(&report, argv[optind]);
	if (status == CLI_DONE) {
		if (json)
			report__print_json(&report);
		else
			report__print(&report, argv[optind], by);
		status = cli_finish_output(CLI_DONE);
		if (status == CLI_DONE && !report.balanced)
			status = cli_error(CLI_UNACCOUNTED, "%s: %s", argv[optind],
					   report__verdict(&report));
	}
	report__free(&report);
	return status;
}

const struct cli_verb cli_report = {
	.name = "report",
	.summary = "what is in a trace, what was lost, what it cost",
	.usage = "report [--by WHAT] [--json] TRACE\n"
		 "report --correlate [--with TEXT] [--json] TRACE",
	.text = "Reads the whole trace and shows its events by layer and by process, the phases "
		"with what "
		"happened inside, what observing cost the program, and what could not be recorded "
		"and why. "
		"For every event, what was produced must be what was delivered, discarded or "
		"overwritten; and "
		"what the recorder says it delivered must be there to read. A trace of which this "
		"does not "
		"hold is shown all the same, with exit status 4.",
	.examples =
		"pem report pem-trace-sqlite3-1\n"
		"                            all of it\n"
		"pem report --by thread pem-trace-make-1\n"
		"                            which thread did how much of what\n"
		"pem report --by state TRACE\n"
		"                            which thread ran, and in what it was blocked\n"
		"pem report --by interval TRACE\n"
		"                            how long system calls, locks and other intervals "
		"took\n"
		"pem report --by path TRACE  what the command's end waited for, part by part\n"
		"pem report --by wait TRACE  who waited for whom, in what, on which file\n"
		"pem report --by syscall TRACE\n"
		"                            system calls: time, failures, and the file of most\n"
		"pem report --by file TRACE  files: time of system calls on each\n"
		"pem report --by site TRACE  where memory was allocated, and how much\n"
		"pem report --by function TRACE\n"
		"                            where the CPU was, and who allocated what is live\n"
		"pem report --by stack TRACE\n"
		"                            the stacks of calls that most memory came from\n"
		"pem report --by data TRACE  which data structures the CPU waited for\n"
		"pem report --correlate TRACE\n"
		"                            what goes with long phases and slow calls\n"
		"pem report --json TRACE | jq .events\n"
		"                            produced, delivered, discarded, overwritten\n"
		"pem report TRACE > /dev/null && echo nothing is unaccounted for\n"
		"                            in a script",
	.options = options,
	.status = "0  done, every event is accounted for\n"
		  "1  wrong usage, or not a trace\n"
		  "2  cannot be read by this user\n"
		  "3  failed while reading\n"
		  "4  shown, but events are unaccounted for, or the recorder did not finish",
	.run = run,
};
