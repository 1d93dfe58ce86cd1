// SPDX-License-Identifier: MIT
/*
 * stat.c - pem stat: runs a command and counts its events where they happen, without a trace
 *
 * Not here: the groups of events (events.c), printing (interval.c, total.c).
 */
#include "stat.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { OPT_BUDGET = 256, OPT_HISTOGRAM, OPT_TOP, OPT_VARIANCE, OPT_WHERE, OPT_HARDWARE };

static const struct cli_option options[] = {
	{'e', "events", "EV,...",
	 "Events to count: names or patterns; counters also as perf, libpfm4 or the vendor "
	 "calls them. Default: all stub and kernel events, and the "
	 "available counters; +EV adds to them."},
	{'f', "field", "FIELD",
	 "Sum, least, greatest and mean of this field, where an event has it."},
	{OPT_HISTOGRAM, "histogram", NULL,
	 "With -f: how often the field lay between which powers of two."},
	{OPT_TOP, "top", NULL, "With -f: its most frequent values."},
	{OPT_VARIANCE, "variance", NULL, "With -f: its standard deviation."},
	{'i', "interval", "MS",
	 "Print what came in each interval of so many milliseconds, and its rate."},
	{'z', "zero", NULL,
	 "Also the events that did not occur: in each interval, and in the whole."},
	{'o', "output", "FILE",
	 "Write the result to FILE; - is standard output. Default: the table to standard error, "
	 "JSON to standard "
	 "output."},
	{'j', "json", NULL, "Print an object (with -i, one a line) instead of a table."},
	CLI_ATTACH_OPTIONS,
	{'n', "no-libc", NULL,
	 "Do not preload the adapters that show the C library, OpenMP, MPI and SQLite."},
	{OPT_WHERE, "where", "PREDICATE",
	 "Only events whose fields pass, as in 'size > 4096 && site != 0': all events of -e must "
	 "have "
	 "them. For one pattern: -e 'PATTERN where PREDICATE'."},
	{OPT_BUDGET, "budget", "SHARE",
	 "Keep the cost of counting below a share of the program's CPU time, such as 1%: the "
	 "costliest events are not counted for a time, and marked."},
	{OPT_HARDWARE, "hardware", "FILE.xml",
	 "Run the command on the simulated machine that FILE.xml describes, and count what it "
	 "finds in its caches and TLBs: HW::Simulated::*, unless -e names other events. Under "
	 "Valgrind, some fifty times slower."},
	{'q', "quiet", NULL, "Do not say what can't be counted here."},
	{0},
};

static int check_options(const struct cli_verb *verb, struct stat *s, bool has_command)
{
	if (s->keep != 0 && s->field == NULL)
		return cli_usage_error(verb,
				       "a histogram, frequent values and a deviation are of a "
				       "field: name it with -f");
	if (!has_command && s->attach.count == 0)
		return cli_usage_error(verb, "no command to count: put it after --, or attach to a "
					     "program with -p");
	if (s->hardware_path != NULL && (!has_command || s->attach.count != 0))
		return cli_usage_error(verb, "--hardware needs a command, which it runs: a program "
					     "that runs already can't be simulated");
	return cli_attach__check(&s->attach, verb, has_command);
}

static int parse(const struct cli_verb *verb, struct stat *s, int argc, char **argv)
{
	int code, rc = 0;

	while (rc == 0 && (code = cli_option__next(verb, argc, argv)) != -1) {
		switch (code) {
		case 'e':
			if (cli_patterns__add(&s->patterns, optarg) < 0)
				rc = cli_usage_error(verb, "-e %s has an empty name in it", optarg);
			break;
		case 'f':
			s->field = optarg;
			break;
		case OPT_HISTOGRAM:
			s->keep |= PEM_STATISTIC_HISTOGRAM;
			break;
		case OPT_TOP:
			s->keep |= PEM_STATISTIC_TOP;
			break;
		case OPT_VARIANCE:
			s->keep |= PEM_STATISTIC_VARIANCE;
			break;
		case 'i':
			if (cli_parse_number(optarg, CLI_INTERVAL_MAX_MS, &s->interval_ms) < 0 ||
			    s->interval_ms < 10)
				rc = cli_usage_error(verb,
						     "-i %s is no number of milliseconds "
						     "from 10 to %u",
						     optarg, CLI_INTERVAL_MAX_MS);
			break;
		case 'z':
			s->show_all = true;
			break;
		case 'o':
			s->path = optarg;
			break;
		case 'j':
			s->json = true;
			break;
		case 'n':
			s->no_libc = true;
			break;
		case OPT_WHERE:
			s->patterns.all_where = optarg;
			break;
		case OPT_HARDWARE:
			s->hardware_path = optarg;
			break;
		case OPT_BUDGET:
			if (cli_parse_share(optarg, &s->budget) < 0)
				rc = cli_usage_error(verb, "--budget %s is no share such as 1%%",
						     optarg);
			break;
		case 'q':
			s->quiet = true;
			break;
		default:
			rc = cli_attach__option(&s->attach, verb, code);
			rc = rc > 0 ? CLI_DONE : rc < 0 ? -rc : CLI_WRONG_INPUT;
		}
	}
	if (rc == 0)
		rc = check_options(verb, s, optind != argc);
	s->command = argv + optind;
	cli_attach__name(&s->attach);
	return rc;
}

static struct cli_run run_of(struct stat *s, struct pem_session *session)
{
	return (struct cli_run){.session = session,
				.interval_ms = s->interval_ms != 0 ? (int)s->interval_ms : 1000,
				.tick = stat_interval__print,
				.arg = s};
}

/*
 * Print the result. Returns CLI_DONE, or another status after printing that no event is available
 * here.
 */
static int finish(struct stat *s, struct pem_session *session, uint64_t ns)
{
	struct stat_lacks *lacks;

	s->session = session;
	stat_interval__print(s); /* the last interval, which is short */
	stat_events__read(s);
	lacks = stat_lacks__find(s, session);
	stat_total__print(s, ns);
	if (!s->json)
		stat_distribution__print(s);
	fflush(s->out);
	return stat_lacks__say(s, lacks);
}

static int count_attached(struct stat *s, struct pem_session *session)
{
	struct cli_run run = run_of(s, session);
	int status;

	s->start_ns = s->last_ns = cli_now_ns();
	status = cli_attach__watch(&s->attach, &run, s->quiet ? NULL : "counting");
	return status == CLI_DONE ? finish(s, session, cli_now_ns() - s->start_ns) : status;
}

static int count_command(struct stat *s, struct pem_session *session)
{
	struct pem_run_options run_options = {.size = sizeof(run_options),
					      .preload_libc = !s->no_libc,
					      .no_preload = !s->has_stubs,
					      .no_follow = s->attach.no_follow};
	struct cli_run run = run_of(s, session);
	char **command = cli_hardware__command(&s->hardware, s->command, &run_options);
	struct pem_error error = {{0}};
	uint64_t ns;
	int rc, status;

	rc = cli_run__start(&run, command, &run_options, &error);
	if (rc < 0)
		return cli_run__not_started(rc, &error);
	/* Opening the kernel's sources does not count as time of the command. */
	s->start_ns = s->last_ns = cli_now_ns();
	cli_run__wait(&run);
	ns = pem_session__elapsed_ns(session);
	cli_run__explain(&run, s->command[0]);
	status = finish(s, session, ns);
	return cli_run__status(&run) != 0 ? cli_run__status(&run) : status;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	static struct stat s; /* too large for a small stack */
	struct pem_session_options session_options = {.size = sizeof(session_options),
						      .log = cli_log,
						      .progress = 1,
						      .log_arg = &s.quiet};
	struct pem_session *session = NULL;
	struct pem_error error = {{0}};
	char file[PATH_MAX];
	const char *program = file;
	int status = parse(verb, &s, argc, argv);

	if (status == CLI_DONE)
		status = cli_counted__refuse(verb, &s.patterns);
	if (status == CLI_DONE && s.command[0] == NULL)
		program = cli_attach__program(&s.attach, file, sizeof(file));
	else if (status == CLI_DONE)
		status = cli_command__check(s.command[0], file, sizeof(file));
	if (status == CLI_DONE && s.hardware_path != NULL)
		status = cli_hardware__start(&s.hardware, s.hardware_path, s.command, &s.patterns,
					     "HW::Simulated::*");
	if (status == CLI_DONE)
		status = cli_output__open(&s.path, s.json, &s.out);
	if (status != CLI_DONE)
		goto end;
	if (s.hardware_path != NULL)
		session_options.hardware = s.hardware.file;
	cli_descriptors__raise();
	session = pem_session__open(&session_options, &error);
	if (session == NULL) {
		status = cli_error(cli_status_of_errno(errno), "%s", error.text);
		goto end;
	}
	s.model = pem_session__model(session);
	status = cli_specs__load(session, program, s.command, &s.patterns, s.quiet);
	if (status == CLI_DONE)
		status = stat_events__register(&s, session);
	if (status == CLI_DONE && s.budget > 0 && pem_session__set_budget(session, s.budget) < 0)
		status = cli_error(CLI_FAILED, "no memory to keep a budget");
	if (status == CLI_DONE)
		status = cli_attach__start(&s.attach, session);
	if (status == CLI_DONE)
		status = s.command[0] == NULL ? count_attached(&s, session)
					      : count_command(&s, session);
end:
	status = cli_output__close(s.path, s.out, status);
	pem_session__close(session); /* closes its handles, too */
	stat_events__free(&s);
	cli_hardware__end(&s.hardware);
	cli_attach__free(&s.attach);
	cli_patterns__free(&s.patterns);
	return status;
}

const struct cli_verb cli_stat = {
	.name = "stat",
	.summary = "run a command and count its events, without a trace",
	.usage = "stat [-e EV,...] [--where PREDICATE] [-f FIELD [--histogram] [--top] "
		 "[--variance]] [-i MS [-z]] "
		 "[--budget SHARE] [--hardware FILE.xml] [--json] [-o FILE] [-a] -- "
		 "COMMAND [ARG...]\n"
		 "stat [-e EV,...] ... -p PID,... | -a | --program NAME | --cgroup PATH",
	.text = "Runs COMMAND and accumulates, where each event happens, how often it did, and, "
		"for a "
		"chosen field, its sum, least, greatest and mean. No event is written anywhere, "
		"which costs a "
		"fraction of recording it. The table goes to standard error, so that the command's "
		"output "
		"stays clean.",
	.examples = "pem stat -- sqlite3 my.db .tables\n"
		    "                            how often each event happened\n"
		    "pem stat -e Malloc -f size -- ls -R /usr\n"
		    "                            bytes asked for, and sizes of the requests\n"
		    "pem stat -e Malloc -f size --histogram --top -- ls -R /usr\n"
		    "                            and how these are distributed, and which are "
		    "frequent\n"
		    "pem stat -e 'Malloc where size > 4096,Free' -- ls -R /usr\n"
		    "                            large requests only, tested where they happen\n"
		    "pem stat -e instructions,cycles,dtlb-misses -- ./program\n"
		    "                            counters of the processor, as perf calls them\n"
		    "pem stat -e 'OS::*' -i 1000 -- make\n"
		    "                            the operating system's events, second by second\n"
		    "pem stat -p 4711 -i 1000\n"
		    "                            what a program does that runs already\n"
		    "pem stat --json -o counts.json -- ./program\n"
		    "                            numbers for another program",
	.options = options,
	.status = "The command's own; 128 and the signal's number when a signal ended it.\n"
		  "127 command not found, 126 not executable; before the command runs:\n"
		  "1 wrong usage or input, 2 cannot be done here, 3 failed; 2 also when the\n"
		  "command succeeded and none of the events of -e turned out to be had here.",
	.runs_command = true,
	.run = run,
};
