/* SPDX-License-Identifier: MIT */
/* main.c - pem rates: what each stage of a pipeline could do; its options */
#include "program/program.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_MAX (1ull << 40)

static const struct cli_option options[] = {
	CLI_ATTACH_OPTIONS,
	{'n', "items", "WHAT",
	 "What an item is: bytes (the default), reads (each read is one, or each write of a stage "
	 "that reads nothing), or a number of bytes, as 512 or 64K."},
	{'t', "tune", NULL,
	 "Observe the command once. If its stages often block on pipes, further runs try longer "
	 "pipes; "
	 "these are kept if they make the command faster, and withdrawn if not. Each call is one "
	 "run."},
	{'i', "interval", "MS", "Show the pipeline each MS milliseconds (1000), on a terminal."},
	{'o', "output", "FILE",
	 "Write the result to FILE; - is standard output. Default: the table to standard error, "
	 "where a command's output does not mix with it; JSON, and all of a trace, to standard "
	 "output."},
	{'H', "html", "PAGE", "Write a page that draws the pipeline to the file PAGE, a new one."},
	{'j', "json", NULL, "Print an object instead of tables."},
	{'q', "quiet", NULL, "Leave out what can't be observed here."},
	{0},
};

const struct cli_verb rates_help = {
	.name = "rates",
	.summary = "find out what each stage of a running pipeline could do",
	.usage = "rates [--items WHAT] [--json] [-o FILE] -- COMMAND [ARGUMENT...]\n"
		 "rates --tune [--json] [-o FILE] -- COMMAND [ARGUMENT...]\n"
		 "rates [--items WHAT] [--json] [-o FILE] -p PID,...\n"
		 "rates [--items WHAT] [--json] [-o FILE] TRACE",
	.text = "A stage is a process that reads from a pipe or a FIFO, or writes to one, which "
		"another one writes or reads; or a thread that uses a queue of pem/stream.h. "
		"Its service rate is what it would do if nothing stood in its way: the items that "
		"it took (or gave, if it takes from no queue) over the time in which it was not "
		"blocked on its queues and did not wait for a CPU. Waiting for a disk, a network "
		"or a time is a part of its service, and is told apart.\n\n"
		"The bottleneck is the stage that the last stages waited for longest, themselves "
		"or "
		"through others.\n\n"
		"A trace has all that is needed if it was recorded with the default events, or "
		"with "
		"-e OS::Syscall,OS::Sched,OS::Process.",
	.examples = "pem rates -- sh -c 'zcat f.gz | grep x | sort | uniq -c'\n"
		    "                            which of them is the bottleneck?\n"
		    "pem rates --items 512 -- sh -c 'dd if=f | ./filter > g'\n"
		    "                            in blocks a second\n"
		    "pem rates -p 4711,4712      of processes that run, until ^C\n"
		    "pem rates --html page.html trace\n"
		    "                            draw it\n"
		    "pem rates --json trace      of a recorded one, for a program",
	.options = options,
	.runs_command = true,
};

static int take_items(struct rates_request *request)
{
	if (!strcmp(optarg, "bytes"))
		request->items = RATES_BYTES;
	else if (!strcmp(optarg, "reads"))
		request->items = RATES_OPERATIONS;
	else if (!cli_parse_bytes(optarg, &request->block_bytes) && request->block_bytes &&
		 request->block_bytes <= BLOCK_MAX)
		request->items = RATES_BLOCKS;
	else
		return cli_usage_error(&rates_help,
				       "--items %s: expected bytes, reads or a number of bytes, as "
				       "512 or 64K",
				       optarg);
	return CLI_DONE;
}

static int take(struct rates_request *request, int code)
{
	int rc;

	switch (code) {
	case 'n':
		return take_items(request);
	case 't':
		request->tune = true;
		return CLI_DONE;
	case 'i':
		if (cli_parse_number(optarg, CLI_INTERVAL_MAX_MS, &request->interval_ms) ||
		    request->interval_ms < 50)
			return cli_usage_error(&rates_help,
					       "invalid interval '%s': expected 50 to %u ms",
					       optarg, CLI_INTERVAL_MAX_MS);
		return CLI_DONE;
	case 'o':
		request->output = optarg;
		return CLI_DONE;
	case 'H':
		request->page = optarg;
		return CLI_DONE;
	case 'j':
		request->json = true;
		return CLI_DONE;
	case 'q':
		request->quiet = true;
		return CLI_DONE;
	default:
		rc = cli_attach__option(&request->attach, &rates_help, code);
		return rc == 0 ? CLI_WRONG_INPUT : rc < 0 ? -rc : CLI_DONE;
	}
}

/* A trace is a folder that has pem's own in it; else the words are a command. */
static bool is_trace(char **words)
{
	char path[PATH_MAX];

	if (!words[0] || words[1])
		return false;
	return snprintf(path, sizeof(path), "%s/.pem", words[0]) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* Say in words, and in processes, what is observed. */
static void name_target(struct rates_request *request)
{
	size_t i, used = 0, bytes = sizeof(request->title);

	if (request->words[0])
		request->roots[request->root_count++] = getpid();
	for (i = 0; i < request->attach.count; i++)
		if (request->attach.contexts[i].pid)
			request->roots[request->root_count++] =
				(pid_t)request->attach.contexts[i].pid;
	for (i = 0; request->words[i] && used < bytes; i++)
		used += (size_t)snprintf(request->title + used, bytes - used, "%s%s", i ? " " : "",
					 request->words[i]);
	if (!request->words[0])
		snprintf(request->title, bytes, "%s", request->attach.name);
}

/* Are the options ones that go together? A status, after printing a sentence. */
static int check(const struct rates_request *request)
{
	if (!request->words[0] && !request->attach.count)
		return cli_usage_error(&rates_help,
				       "which pipeline? pem rates -- COMMAND, -p PID or TRACE");
	if (request->tune && (request->attach.count || is_trace(request->words)))
		return cli_usage_error(
			&rates_help,
			"--tune takes a command, which it runs: pem rates --tune -- COMMAND");
	if (request->tune && request->page)
		return cli_usage_error(&rates_help, "--tune and --html do not go together");
	/* Before the command runs, not after it. */
	if (request->page && !access(request->page, F_OK))
		return cli_error(CLI_WRONG_INPUT, "%s is there already: name a new file",
				 request->page);
	return CLI_DONE;
}

static int find_rates(struct rates_request *request)
{
	struct rates_run run = {.request = request, .lock = PTHREAD_MUTEX_INITIALIZER};
	bool is_of_trace = !request->attach.count && is_trace(request->words);
	int printed, status = cli_output__open(&request->output, request->json || is_of_trace,
					       &request->out);

	if (status == CLI_DONE && request->tune)
		status = rates_tune(&run);
	else if (status == CLI_DONE)
		status = is_of_trace ? rates_gather__trace(&run, request->words[0])
				     : rates_gather__live(&run);
	if (run.observation && !request->tune) {
		printed = rates_report__print(&run);
		status = status == CLI_DONE ? printed : status;
	}
	rates_run__free(&run);
	return cli_output__close(request->output, request->out, status);
}

int main(int argc, char **argv)
{
	static struct rates_request request = {.interval_ms = 1000};
	int code, status = CLI_DONE;

	cli_version__check();
	while (status == CLI_DONE && (code = cli_option__next(&rates_help, argc, argv)) != -1)
		status = code == CLI_OPTION_BAD ? CLI_WRONG_INPUT : take(&request, code);
	request.words = argv + optind;
	cli_attach__name(&request.attach);
	name_target(&request);
	if (status == CLI_DONE)
		status = check(&request);
	if (status == CLI_DONE)
		status = cli_attach__check(&request.attach, &rates_help, request.words[0] != NULL);
	if (status == CLI_DONE)
		status = find_rates(&request);
	cli_attach__free(&request.attach);
	return status;
}
