// SPDX-License-Identifier: MIT
/* record.c - pem record: runs a command and writes the events of all layers to a trace */
#include "attach.h"
#include "record.h"
#include "trigger.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OPT_NO_LIBC = 256,
	OPT_WHERE,
	OPT_OVERWRITE,
	OPT_BUDGET,
	OPT_TRIGGER,
	OPT_SNAPSHOTS,
	OPT_INTERVAL,
	OPT_COUNTERS,
	OPT_CALL_GRAPH,
	OPT_MEM,
	OPT_PAGES,
	OPT_HARDWARE
};

static const struct cli_option options[] = {
	{'e', "events", "EV,...",
	 "Events to record: names or patterns ('OS::*', 'Sched', '*Fault'), a layer (os): its "
	 "usual events; or places that no spec describes: tracepoints ('sched:*'), functions "
	 "(fentry:vfs_read, uprobe:PATH:FUNCTION or :0xADDRESS), static probes (usdt:PATH:NAME). "
	 "COUNTERS@PATTERN: events of a program at which its threads read counters, as in "
	 "ipc@phase or page-faults+task-clock@Malloc. Default: all usual stub and kernel events, "
	 "and the available counters; +EV adds to them."},
	{'o', "output", "DIR",
	 "The trace's folder, which is new or empty. Default: pem-trace-COMMAND-N here."},
	CLI_ATTACH_OPTIONS,
	{OPT_WHERE, "where", "PREDICATE",
	 "Only events whose fields pass, as in 'size > 4096 && site != 0': all events of -e must "
	 "have them. For one pattern: -e 'PATTERN where PREDICATE'."},
	{OPT_NO_LIBC, "no-libc", NULL,
	 "Do not preload the adapters that show the C library, OpenMP, MPI and SQLite."},
	{OPT_OVERWRITE, "overwrite", NULL,
	 "When a buffer is full, lose its oldest events and not the newest."},
	{RECORD_BUFFER, "buffer", "SIZE",
	 "Buffer of each recorded process, 64K to 16G. Default: 32M, and up to 128M where that "
	 "loses less and memory allows."},
	{RECORD_CLOCK, "clock", "cycles|coarse",
	 "With coarse, where a CPU is to spare, events of programs cost less, and their times are "
	 "good to a microsecond: a thread of pem advances them, which takes that CPU. Default: "
	 "cycles."},
	{RECORD_DRAIN_THREADS, "drain-threads", "N",
	 "At most so many threads of pem move events to the trace, 1 to 64. Default: half as many "
	 "as there are CPUs, at most 8. They work while much waits."},
	{RECORD_COMPRESS, "compress", NULL,
	 "Compress the trace with zstd. pem reads it as any other; for other tools: pem export "
	 "--to ctf."},
	{OPT_TRIGGER, "trigger", "WHEN",
	 "With --overwrite, write a snapshot when an event happens ('EVENT', 'EVENT where "
	 "PREDICATE') or was above a threshold in a second ('rate(EVENT) > N', 'mean(EVENT.FIELD) "
	 "> N', and sum, min, max). May be given several times. SIGUSR2 does it, too."},
	{OPT_SNAPSHOTS, "snapshots", "N",
	 "Keep only the last N of these, and fewer if they take more than a tenth of the most "
	 "space that was free while it ran. Default: 8."},
	{OPT_INTERVAL, "snapshot-interval", "SECONDS",
	 "At most one for triggers in so many seconds. Default: 10."},
	{OPT_COUNTERS, "counters", "NAME,...",
	 "With each recorded event of the kernel, and at context switches, what these counters "
	 "hold: of pem list hw (Instructions,Cycles), or libpfm4's. At most 8; needs pem.ko."},
	{'F', "frequency", "HZ",
	 "Sample where programs are so often a second, on each CPU that they run on: "
	 "HW::HWPerf::HPMsAndPC, also if -e does not name it; with --mem, data. Default: 199."},
	{'g', "stacks", NULL,
	 "Samples and allocations tell which calls led there, by the programs' unwind tables: pem "
	 "report --by stack and --by function, and flame graphs in the HTML page."},
	{OPT_CALL_GRAPH, "call-graph", "fp|dwarf",
	 "As -g; with fp by frame pointers, at a tenth of the cost, where programs were compiled "
	 "with -fno-omit-frame-pointer."},
	{OPT_MEM, "mem", NULL,
	 "Sample which data programs touch, and record what names them: "
	 "HW::HWPerf::DataSample, mappings, allocations and releases. pem report --by data."},
	{OPT_PAGES, "pages", "INTERVAL[,REGION]",
	 "Record OS::Pages::*, or those of them that -e names: how often they look at memory, and "
	 "by what regions. Default: 100ms,2M. Needs pem.ko."},
	{OPT_BUDGET, "budget", "SHARE",
	 "Keep the cost of observing below a share of the program's CPU time, such as 1%: the "
	 "costliest events are only counted, or left out, for a time, and the trace says so."},
	{OPT_HARDWARE, "hardware", "FILE.xml",
	 "Run the command on the simulated machine that FILE.xml describes: HW::Simulated::* are "
	 "what it counts. Without -e record them and the application's events."},
	{'q', "quiet", NULL, "Say nothing but errors."},
	{0},
};

struct record {
	struct cli_patterns patterns;
	const char *directory; /* as the user wrote it, or NULL */
	char path[PATH_MAX]; /* the folder that is used */
	bool made; /* by this program, which removes it if nothing could be recorded */
	struct cli_folder folder;
	bool no_libc;
	bool quiet;
	bool samples_data;
	uint32_t pages_interval_us; /* 0: the module's default */
	uint64_t pages_region_bytes;
	double budget; /* share of the observed programs' CPU time; 0: none */
	struct cli_triggers triggers;
	struct pem_session_options session;
	struct pem_event_set *events; /* the events to record */
	/* [0] is NULL without a command. Only attached targets are then recorded. */
	char **command;
	struct cli_attach attach;
	const char *hardware_path; /* description of a simulated machine; NULL: none */
	struct cli_hardware hardware;
	char program[PATH_MAX]; /* file of the command */
};

/* Set up what the kernel module should sample. */
static int set_page_sampling(const struct cli_verb *verb, struct record *r,
			     struct pem_session *session)
{
	struct pem_error error = {{0}};

	if (r->patterns.counters != NULL &&
	    pem_session__set_counters(session, r->patterns.counters, &error) < 0)
		return cli_usage_error(verb, "%s: %s",
				       r->patterns.also[0] != NULL ? "--counters"
								   : "-e COUNTERS@EVENT",
				       error.text);
	if (r->pages_interval_us != 0 &&
	    pem_session__set_page_sampling(session, r->pages_interval_us, r->pages_region_bytes) <
		    0)
		return cli_usage_error(verb, "--pages: a region is a power of two from 4K to 1T");
	return CLI_DONE;
}

#define SAMPLES_EVENT "HW::HWPerf::HPMsAndPC"

static int parse_snapshots(const struct cli_verb *verb, struct record *r, int code)
{
	if (code == OPT_INTERVAL && cli_parse_number(optarg, 1000000, &r->triggers.interval_s) < 0)
		return cli_usage_error(verb, "--snapshot-interval %s is no number of seconds",
				       optarg);
	if (code == OPT_SNAPSHOTS &&
	    (cli_parse_number(optarg, CLI_SNAPSHOTS_MAX, &r->triggers.keep) < 0 ||
	     r->triggers.keep == 0))
		return cli_usage_error(verb, "--snapshots %s is no number from 1 to %d", optarg,
				       CLI_SNAPSHOTS_MAX);
	return 0;
}

static void take_stacks(struct record *r, enum pem_stacks stacks)
{
	r->session.sample_stacks = stacks;
	r->patterns.has_stacks = true;
	r->patterns.also[2] = SAMPLES_EVENT;
}

static int parse_call_graph(const struct cli_verb *verb, struct record *r)
{
	bool is_fp = strcmp(optarg, "fp") == 0;

	if (!is_fp && strcmp(optarg, "dwarf") != 0)
		return cli_usage_error(verb, "--call-graph %s: there are fp and dwarf", optarg);
	take_stacks(r, is_fp ? PEM_STACKS_FRAMES : PEM_STACKS_TABLES);
	return 0;
}

static int parse_budget(const struct cli_verb *verb, struct record *r)
{
	if (cli_parse_share(optarg, &r->budget) < 0)
		return cli_usage_error(verb, "--budget %s is no share such as 1%%", optarg);
	return 0;
}

static int parse_options(const struct cli_verb *verb, struct record *r, int argc, char **argv)
{
	int code, rc = 0;

	while (rc == 0 && (code = cli_option__next(verb, argc, argv)) != -1) {
		switch (code) {
		case 'e':
			if (cli_patterns__add(&r->patterns, optarg) < 0)
				rc = cli_usage_error(verb, "-e %s has an empty name in it", optarg);
			break;
		case 'o':
			r->directory = optarg;
			break;
		case OPT_WHERE:
			r->patterns.all_where = optarg;
			break;
		case OPT_NO_LIBC:
			r->no_libc = true;
			break;
		case OPT_OVERWRITE:
			r->session.overwrite = 1;
			break;
		case RECORD_BUFFER ... RECORD_COMPRESS:
			rc = record_buffers__parse(verb, code, &r->session);
			break;
		case OPT_TRIGGER:
			rc = cli_triggers__add(&r->triggers, verb, optarg);
			break;
		case OPT_SNAPSHOTS:
		case OPT_INTERVAL:
			rc = parse_snapshots(verb, r, code);
			break;
		case OPT_COUNTERS:
			r->patterns.also[0] = PEM_COUNTERS_EVENT;
			if (cli_counted__add(&r->patterns.counters, optarg) < 0)
				rc = cli_error(CLI_FAILED, "no memory for names of counters");
			break;
		case 'F':
			rc = record_samples__parse_rate(verb, &r->session.sample_hz);
			break;
		case 'g':
			take_stacks(r, PEM_STACKS_TABLES);
			break;
		case OPT_CALL_GRAPH:
			rc = parse_call_graph(verb, r);
			break;
		case OPT_MEM:
			r->samples_data = true;
			record_samples__take_data(&r->patterns);
			break;
		case OPT_PAGES:
			rc = record_samples__parse_pages(verb, &r->pages_interval_us,
							 &r->pages_region_bytes);
			break;
		case OPT_HARDWARE:
			r->hardware_path = optarg;
			break;
		case OPT_BUDGET:
			rc = parse_budget(verb, r);
			break;
		case 'q':
			r->quiet = true;
			break;
		default:
			rc = cli_attach__option(&r->attach, verb, code);
			rc = rc > 0 ? CLI_DONE : rc < 0 ? -rc : CLI_WRONG_INPUT;
		}
	}
	return rc;
}

static int parse(const struct cli_verb *verb, struct record *r, int argc, char **argv)
{
	int rc = parse_options(verb, r, argc, argv);

	if (rc == 0 && optind == argc && r->attach.count == 0)
		rc = cli_usage_error(verb, "no command to record: put it after --, or attach to a "
					   "program with -p");
	if (rc == 0)
		rc = cli_attach__check(&r->attach, verb, optind != argc);
	if (rc == 0 && r->directory != NULL && *r->directory == '\0')
		rc = cli_usage_error(verb, "-o needs the name of a folder");
	if (rc == 0 && r->triggers.count != 0 && !r->session.overwrite)
		rc = cli_usage_error(verb, "--trigger writes snapshots of a flight recorder: add "
					   "--overwrite");
	if (rc == 0 && r->hardware_path != NULL && (optind == argc || r->attach.count != 0))
		rc = cli_usage_error(verb, "--hardware needs a command, which it runs: a program "
					   "that runs already can't be simulated");
	/* With --mem it is the rate of data samples. */
	if (r->session.sample_hz != 0 && !r->samples_data)
		r->patterns.also[2] = SAMPLES_EVENT;
	r->command = argv + optind;
	cli_attach__name(&r->attach);
	return rc;
}

static const char *name_of(const struct record *r)
{
	return r->command[0] != NULL ? r->command[0] : r->attach.name;
}

static int make_folder(struct record *r)
{
	int status;

	if (r->directory == NULL) {
		/* mkdir decides, so two recorders never share a folder */
		status = cli_folder__make("pem-trace", name_of(r), r->path, sizeof(r->path));
		r->made = status == CLI_DONE;
	} else {
		status = cli_folder__given(r->directory, r->path, sizeof(r->path));
		r->made = status == CLI_DONE && mkdir(r->path, 0777) == 0;
		/* libpem checks whether the folder is empty */
		if (status == CLI_DONE && !r->made && errno != EEXIST)
			status = cli_error(cli_status_of_errno(errno),
					   "cannot make the folder %s for the trace: %s", r->path,
					   strerror(errno));
	}
	r->made = r->made && cli_folder__made(r->path, &r->folder) == 0;
	return status;
}

/* Nothing was recorded. Remove the folder, so that no one takes it for a trace. */
static void discard_folder(const struct record *r)
{
	if (r->made)
		cli_folder__remove(r->path, &r->folder);
}

/*
 * Print where the trace is and what is in it, from the trace itself. Returns status, or CLI_FAILED
 * if the trace can't be read.
 */
static int summarize(const struct record *r, const struct record_end *end, int status)
{
	struct pem_error error = {{0}};
	struct pem_trace *trace = cli_trace__read_back(r->path, &error);
	struct pem_balance balance;

	if (trace == NULL)
		return cli_error(status != CLI_DONE ? status : CLI_FAILED,
				 "the trace in %s cannot be read back: %s", r->path, error.text);
	balance = pem_trace__total_balance(trace);
	if (!r->quiet) {
		record_end__say(end, trace);
		cli_say("%s events in %s; next: pem report %s", cli_count(balance.delivered),
			cli_duration(pem_trace__info(trace)->duration_ns), r->path);
	}
	pem_trace__close(trace);
	return status;
}

static void give_up(const struct record *r, struct pem_log *log)
{
	pem_log__finish(log, NULL);
	discard_folder(r);
}

/* Set the tick. A flight recorder checks its triggers and the signal while it runs. */
static void add_tick(struct record *r, struct cli_run *run)
{
	run->interval_ms = 1000;
	if (!r->session.overwrite)
		return;
	run->interval_ms = r->triggers.count != 0 ? 20 : 100;
	run->tick = cli_triggers__tick;
	run->arg = &r->triggers;
}

/*
 * Watch until all attached targets have ended, or a signal comes. Returns a status, or CLI_FAILED
 * after printing a sentence.
 */
static int watch(struct record *r, struct pem_session *session)
{
	struct cli_run run = {.session = session};
	int status = cli_triggers__attach(&r->triggers, 0, &r->attach);

	if (status != CLI_DONE)
		return status;
	add_tick(r, &run);
	cli_run__go_first();
	return cli_attach__watch(&r->attach, &run, r->quiet ? NULL : "recording");
}

/*
 * Is none of the chosen events available? This is known after their sources were opened. reason:
 * why one is not.
 */
static bool has_nothing(const struct record *r, struct pem_session *session,
			struct pem_error *reason)
{
	size_t i, count = 0;

	if (!cli_patterns__has_usual(&r->patterns))
		count = pem_event_set__count(r->events);
	for (i = 0; i < count; i++)
		if (pem_session__can_deliver(session, pem_event_set__event(r->events, i), reason))
			return false;
	return count != 0;
}

/*
 * Start the command and wait for its end. Returns its status. If it could not be started, *started
 * is false and a sentence was printed.
 */
static int run_command(struct record *r, struct pem_session *session, bool *started)
{
	struct pem_run_options run_options = {.size = sizeof(run_options),
					      .preload_libc = !r->no_libc,
					      .no_preload = !cli_event_set__has_stubs(r->events) &&
							    !r->triggers.has_stubs,
					      .no_follow = r->attach.no_follow};
	struct cli_run run = {.session = session};
	char **command = cli_hardware__command(&r->hardware, r->command, &run_options);
	struct pem_error error = {{0}};
	int rc;

	add_tick(r, &run);
	rc = cli_run__start(&run, command, &run_options, &error);
	*started = rc >= 0;
	if (rc < 0)
		return cli_run__not_started(rc, &error);
	cli_triggers__attach(&r->triggers, run.pid, &r->attach);
	cli_run__go_first(); /* the command already runs, with the priority that it got */
	cli_run__wait(&run);
	cli_triggers__end(&r->triggers);
	cli_run__explain(&run, r->command[0]);
	return cli_run__status(&run);
}

/* Attach, run the command if there is one, complete the trace. Returns the exit status. */
static int record(struct record *r, struct pem_session *session, struct pem_log *log)
{
	struct record_end end = {.session = session,
				 .patterns = &r->patterns,
				 .program = r->program,
				 .known = pem_model__count(pem_session__model(session))};
	struct pem_error error = {{0}};
	bool started = true;
	int status, rc;

	if (pem_log__enable(log) < 0) {
		discard_folder(r);
		return cli_error(CLI_FAILED, "cannot start the recording in %s", r->path);
	}
	status = cli_attach__start(&r->attach, session);
	if (status != CLI_DONE) {
		give_up(r, log);
		return status;
	}
	status = r->command[0] != NULL ? run_command(r, session, &started) : watch(r, session);
	if (!started) {
		give_up(r, log);
		return status;
	}
	rc = pem_log__finish(log, &error);
	end.not_written = rc < 0;
	if (rc < 0)
		/* An error of the command itself is more important. */
		status = cli_error(status != 0 ? status : CLI_FAILED, "%s",
				   *error.text != '\0' ? error.text : strerror(-rc));
	status = summarize(r, &end, status);
	if (status == CLI_DONE && has_nothing(r, session, &error))
		status = r->quiet ? cli_error(CLI_NOT_HERE,
					      "none of the events of -e can be had here: %s",
					      error.text)
				  : cli_error(CLI_NOT_HERE,
					      "none of the events of -e can be had here");
	return status;
}

static int open_log(struct record *r, struct pem_session *session, struct pem_log **log)
{
	struct pem_error error = {{0}};
	struct pem_event_set *set =
		cli_choose_logged(session, &r->patterns, r->pages_interval_us != 0, &error);
	int status;

	*log = NULL;
	if (set == NULL)
		return cli_error(errno == ENOENT ? CLI_WRONG_INPUT : cli_status_of_errno(errno),
				 "%s", error.text);
	r->events = set;
	status = cli_counted__set(session, &r->patterns);
	cli_run__prepare();
	if (status == CLI_DONE)
		status = make_folder(r);
	if (status == CLI_DONE) {
		*log = pem_session__register_log(session, set, NULL, r->path, &error);
		if (*log == NULL) {
			status = cli_error(cli_status_of_errno(errno), "%s", error.text);
			discard_folder(r);
		}
	}
	return status;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	/* Too large for a small stack. */
	static struct record r = {
		.session = {.size = sizeof(r.session), .log = cli_log, .progress = 1},
		.triggers = {.keep = CLI_SNAPSHOTS_KEPT, .interval_s = CLI_SNAPSHOT_INTERVAL_S}};
	struct pem_error error = {{0}};
	struct pem_session *session = NULL;
	struct pem_log *log;
	int status;

	r.session.log_arg = &r.quiet;
	status = parse(verb, &r, argc, argv);
	if (status == CLI_DONE && r.command[0] != NULL)
		status = cli_command__check(r.command[0], r.program, sizeof(r.program));
	else if (status == CLI_DONE)
		cli_attach__program(&r.attach, r.program, sizeof(r.program));
	if (status == CLI_DONE && r.hardware_path != NULL) {
		status = cli_hardware__start(&r.hardware, r.hardware_path, r.command, &r.patterns,
					     "APP,HW::Simulated::*");
		r.session.hardware = r.hardware.file;
	}
	if (status != CLI_DONE)
		goto end;
	cli_descriptors__raise();
	session = pem_session__open(&r.session, &error);
	if (session == NULL) {
		status = cli_error(cli_status_of_errno(errno), "%s", error.text);
		goto end;
	}
	status = cli_specs__load(session, *r.program != '\0' ? r.program : NULL, r.command,
				 &r.patterns, r.quiet);
	if (status == CLI_DONE)
		status = set_page_sampling(verb, &r, session);
	if (status == CLI_DONE)
		status = open_log(&r, session, &log);
	if (status == CLI_DONE && r.session.overwrite) {
		status = cli_triggers__start(&r.triggers, session, r.path, r.quiet);
		if (status != CLI_DONE)
			give_up(&r, log);
	}
	if (status == CLI_DONE && r.budget > 0 && pem_session__set_budget(session, r.budget) < 0)
		status = cli_error(CLI_FAILED, "no memory to keep a budget");
	if (status == CLI_DONE)
		status = record(&r, session, log);
end:
	cli_triggers__free(&r.triggers);
	pem_event_set__free(r.events);
	pem_session__close(session);
	cli_patterns__free(&r.patterns);
	cli_hardware__end(&r.hardware);
	cli_attach__free(&r.attach);
	return status;
}

const struct cli_verb cli_record = {
	.name = "record",
	.summary = "run a command and record every layer to a trace",
	.usage = "record [-e EV,...] [--where PREDICATE] [-o DIR] [--no-libc] [--overwrite] "
		 "[--buffer SIZE] [--clock coarse] [--drain-threads N] [--compress] [--budget "
		 "SHARE] "
		 "[--hardware FILE.xml] [-F HZ] [-g] [--mem] [--counters NAME,...] [--pages "
		 "INTERVAL[,REGION]] [--trigger WHEN] [-q] [-a] -- COMMAND [ARG...]\n"
		 "record [-e EV,...] ... -p PID,... | -a | --program NAME | --cgroup PATH",
	.text = "Runs COMMAND as it is, nothing to recompile, and records it and its descendants: "
		"allocations and phases of the application, page faults, context switches, system "
		"calls and "
		"process events of the operating system, counters of the hardware. What this "
		"machine or this "
		"user can't have is said in one sentence, and the rest goes on. The trace is CTF: "
		"pem report, "
		"pem export, babeltrace2 and Trace Compass read it. Interrupt once to end the "
		"command, twice "
		"to stop recording at once; the trace is complete either way.",
	.examples =
		"pem record -- sqlite3 my.db 'select count(*) from t'\n"
		"                            all events, into pem-trace-sqlite3-1\n"
		"pem record -e 'OS::*' -o faults -- make\n"
		"                            the operating system's view, into faults/\n"
		"pem record -e Libc,PageFault --buffer 64M -- ./server\n"
		"                            two kinds of events, large buffers\n"
		"pem record -p 4711\n"
		"                            a program that runs already, until it ends or you\n"
		"                            interrupt\n"
		"pem record -e 'Malloc where size > 4096' -- ./server\n"
		"                            large requests only, tested before anything is "
		"written\n"
		"pem record -e 'ext4:*,usdt:/usr/bin/python3:function__*' -- python3 job.py\n"
		"                            tracepoints and static probes, in no spec\n"
		"pem record -F 1000 -- ./server\n"
		"                            all events, and where its CPU time goes, more finely\n"
		"pem record -g -e HPMsAndPC -- ./server\n"
		"                            only where its CPU time goes, by stacks of calls\n"
		"pem record --mem -e DataSample -- ./server\n"
		"                            only which data it waits for\n"
		"pem record -e ipc@phase -- ./server\n"
		"                            cycles and instructions of each phase, by thread\n"
		"pem record -e 'Syscall::*' --counters Instructions -- ./server\n"
		"                            what each system call had cost the processor\n"
		"pem record -e 'OS::Pages::*' --pages 50ms,64K -p 4711\n"
		"                            which parts of its memory a program uses\n"
		"pem record --overwrite -- ./crashes-after-hours\n"
		"                            what did not fit: the oldest\n"
		"pem record --overwrite --trigger 'max(Malloc.size) > 1e6' -- ./server\n"
		"                            and a snapshot of what led to that",
	.options = options,
	.status = "The command's own; 128 and the signal's number when a signal ended it.\n"
		  "127 command not found, 126 not executable; before the command runs:\n"
		  "1 wrong usage or input, 2 cannot be done here, 3 failed; 3 also when the\n"
		  "command succeeded and the recording did not (a full disk), and 2 when none of\n"
		  "the events of -e turned out to be had here.",
	.runs_command = true,
	.run = run,
};
