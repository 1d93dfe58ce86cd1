/* SPDX-License-Identifier: MIT */
/* verbs.c - run, apply, validate and profile: from what was asked for to an exit status */
#include "program.h"

#include "program/outcome.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const purposes[] = {"without large pages", "observed", "with large pages",
				       "without large pages, to compare"};

/* Refuse what can't be changed. The loop refuses the rest. */
static int check(const struct page_request *request)
{
	char file[PATH_MAX];
	struct pem_error error;
	int rc = cli_command__check(request->words[0], file, sizeof(file));

	if (rc)
		return rc;
	rc = page_program__check(file, &error);
	return rc ? cli_fail(rc, &error) : CLI_DONE;
}

static int run_once(const struct page_request *request, bool always,
		    struct pem_agent_report *report)
{
	struct pem_error error;
	int status = page_agent__run(request, always, report, &error);

	if (status < 0)
		return agent_outcome__fail(status, &error);
	agent_outcome__say(report, purposes, "");
	return status;
}

int page_run(const struct page_request *request)
{
	struct pem_agent_report report;
	int status = check(request);

	return status ? status : run_once(request, false, &report);
}

int page_apply(const struct page_request *request)
{
	struct pem_agent_report report;
	int status = check(request);

	return status ? status : run_once(request, true, &report);
}

/* Where standard input begins, for each run to read the same; -1: it can't be read again. */
static off_t find_input(void)
{
	off_t start = lseek(STDIN_FILENO, 0, SEEK_CUR);
	struct stat input;

	if (start < 0 && !fstat(STDIN_FILENO, &input) && S_ISFIFO(input.st_mode))
		cli_say("standard input is a pipe, which only the first run can read: if the "
			"command needs it, give a file");
	return start;
}

/* The signal by which a person ended validate between two runs; 0: none did. */
static volatile sig_atomic_t stopped;

/* Who asks twice does not wait for what is being done, such as a model. */
static void stop(int number)
{
	if (stopped) {
		signal(number, SIG_DFL);
		raise(number);
	}
	stopped = number;
}

/* While a command runs, the loop of agents has handlers of its own, and its report tells. */
static void catch_stops(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART}, was;
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (!sigaction(numbers[i], NULL, &was) && was.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
	}
}

/* Ended by a person: what was measured is in the database. */
static int tell_stopped(uint32_t runs, int status)
{
	cli_say("stopped after %u run%s: what they showed counts when validate goes on", runs,
		runs == 1 ? "" : "s");
	return status;
}

int page_validate(const struct page_request *request)
{
	struct pem_agent_report report;
	int status = check(request);
	off_t start = status ? -1 : find_input();
	uint32_t i;

	if (status)
		return status;
	catch_stops();
	for (i = 0; i < request->runs; i++) {
		if (start >= 0)
			lseek(STDIN_FILENO, start, SEEK_SET);
		status = run_once(request, false, &report);
		if (stopped || (report.run && report.interrupted))
			return tell_stopped(i + 1, stopped ? 128 + stopped : status);
		/* It was not run, or a signal ended it. */
		if (!report.run || status > 128)
			return status;
		if (report.purpose != PEM_AGENT_OBSERVED &&
		    (!report.directives || report.kept || report.verdict != PEM_AGENT_UNCLEAR))
			return status;
	}
	cli_say("not decided in %u run%s: what they showed counts when validate goes on",
		request->runs, request->runs == 1 ? "" : "s");
	return status;
}

/* Refuse what the loop would refuse, and a file that exists. The tool takes an empty one. */
static int check_profile(const struct page_request *request)
{
	struct pem_db_application application = {.size = sizeof(application)};
	struct pem_db_machine machine = {.size = sizeof(machine)};
	struct pem_error error;
	struct stat found;
	int rc;

	if (!request->output)
		return cli_usage_error(&page_help,
				       "where to? pem page-size profile -o FILE -- COMMAND");
	rc = pem_agent__identify(request->words[0], &application, &machine, &error);
	if (rc)
		return rc == -EPERM ? cli_error(CLI_NOT_HERE, "%s", error.text)
				    : cli_fail(rc, &error);
	if (!lstat(request->output, &found) && (!S_ISREG(found.st_mode) || found.st_size))
		return cli_error(CLI_WRONG_INPUT,
				 "%s exists: remove it, or name another file for the profile",
				 request->output);
	return CLI_DONE;
}

/* Only observe, into a file of the user's. */
int page_profile(const struct page_request *request)
{
	struct page_observer observer;
	struct pem_error error;
	char **words;
	size_t count = 0, i;
	int status = check(request), rc;

	if (!status)
		status = check_profile(request);
	if (status)
		return status;
	rc = page_observer__find(&observer, request->words[0], request->output, request->limit_s,
				 &error);
	if (rc)
		return cli_error(CLI_NOT_HERE, "%s", error.text);
	while (request->words[count])
		count++;
	words = calloc(count + sizeof(observer.words) / sizeof(observer.words[0]) + 1,
		       sizeof(*words));
	for (i = 0; words && observer.variables[i][0]; i++)
		rc |= setenv(observer.variables[i][0], observer.variables[i][1], 1);
	if (!words || rc)
		return cli_error(CLI_FAILED, "no memory");
	for (i = 0; observer.words[i]; i++)
		words[i] = observer.words[i];
	cli_say("observing with %s, for %u s at most; next: pem page-size model %s",
		page_observer__name(observer.source), request->limit_s, request->output);
	memcpy(words + i, request->words, count * sizeof(*words));
	execvp(words[0], words);
	return cli_error(CLI_FAILED, "cannot run %s: %s", words[0], strerror(errno));
}
