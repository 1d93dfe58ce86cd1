// SPDX-License-Identifier: MIT
/*
 * top.c - pem top: shows events live, by layer, process and thread
 *
 * Not here: counting and sampling (events.c), rows (rows.c), the screen (screen.c).
 */
#include "attach.h"
#include "top.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
	{'e', "events", "EV,...",
	 "Events to watch: names or patterns. Default: all stub and kernel events, and the "
	 "available counters; +EV adds to them."},
	CLI_ATTACH_OPTIONS,
	{'i', "interval", "MS", "Draw anew each so many milliseconds, from 50 on. Default: 1000."},
	{'o', "output", "FILE",
	 "COMMAND's output goes to FILE, for the screen is taken. Default: a file in TMPDIR, named "
	 "at the end."},
	{'1', "once", NULL, "Print one interval as a table, and end."},
	{'j', "json", NULL, "With --once, an object instead."},
	{'n', "no-libc", NULL,
	 "Do not preload the adapters that show the C library, OpenMP, MPI and SQLite."},
	{'q', "quiet", NULL, "Do not say what can't be watched here."},
	{0},
};

#define SAID_MAX 16

#ifndef PEM_TOP_HAS_SCREEN
int top_screen__check(void)
{
	return cli_error(CLI_NOT_HERE,
			 "this pem was built without ncurses, which draws the screen; "
			 "'pem stat -i 1000' prints lines, 'pem top --once' a table");
}

int top_screen__run(struct top *top, uint64_t interval_ns, bool (*tick)(void *arg), void *arg)
{
	(void)top;
	(void)interval_ns;
	(void)tick;
	(void)arg;
	return CLI_NOT_HERE;
}
#endif

struct run {
	struct top top;
	struct cli_attach attach;
	uint64_t interval_ms;
	const char *output;
	char output_path[PATH_MAX]; /* file of the command's output; "": no file */
	bool once, json, no_libc, quiet;
	char **command; /* NULL: there is no command */
	pid_t pid;
	bool ended;
	int wait_status;
	pthread_mutex_t lock; /* protects the members below */
	bool on_screen;
	unsigned int said_count;
	struct {
		enum pem_log_level level;
		char text[400];
	} said[SAID_MAX];
};

static int check_usage(const struct cli_verb *verb, struct run *r)
{
	if (r->json && !r->once)
		return cli_usage_error(verb,
				       "--json goes with --once; pem stat --json -i MS prints "
				       "an object for each interval");
	if (r->output != NULL && r->command == NULL)
		return cli_usage_error(verb, "-o is for a command's output, and there is none");
	return cli_attach__check(&r->attach, verb, r->command != NULL);
}

static int parse(const struct cli_verb *verb, struct run *r, int argc, char **argv)
{
	int code, rc = CLI_DONE;

	r->interval_ms = 1000;
	while (rc == CLI_DONE && (code = cli_option__next(verb, argc, argv)) != -1) {
		switch (code) {
		case 'e':
			if (cli_patterns__add(&r->top.patterns, optarg) < 0)
				rc = cli_usage_error(verb, "-e %s has an empty name in it", optarg);
			break;
		case 'i':
			if (cli_parse_number(optarg, CLI_INTERVAL_MAX_MS, &r->interval_ms) < 0 ||
			    r->interval_ms < 50)
				rc = cli_usage_error(
					verb, "-i %s is no number of milliseconds from 50 to %u",
					optarg, CLI_INTERVAL_MAX_MS);
			break;
		case 'o':
			r->output = optarg;
			break;
		case '1':
			r->once = true;
			break;
		case 'j':
			r->json = true;
			break;
		case 'n':
			r->no_libc = true;
			break;
		case 'q':
			r->quiet = true;
			break;
		default:
			rc = cli_attach__option(&r->attach, verb, code);
			rc = rc == 0 ? CLI_WRONG_INPUT : rc < 0 ? -rc : CLI_DONE;
		}
	}
	if (optind < argc)
		r->command = argv + optind;
	cli_attach__name(&r->attach);
	return rc == CLI_DONE ? check_usage(verb, r) : rc;
}

/* --- what is observed --- */

/*
 * While the screen is shown, messages of libpem are kept for later. Threads of libpem may call
 * this.
 */
static void say(enum pem_log_level level, const char *text, void *arg)
{
	struct run *r = arg;

	pthread_mutex_lock(&r->lock);
	if (!r->on_screen)
		cli_log(level, text, &r->quiet);
	else if (level != PEM_LOG_PROGRESS && r->said_count < SAID_MAX) {
		r->said[r->said_count].level = level;
		snprintf(r->said[r->said_count++].text, sizeof(r->said[0].text), "%s", text);
	}
	pthread_mutex_unlock(&r->lock);
}

static void set_screen(struct run *r, bool on)
{
	unsigned int i;

	pthread_mutex_lock(&r->lock);
	r->on_screen = on;
	for (i = 0; !on && i < r->said_count; i++)
		cli_log(r->said[i].level, r->said[i].text, &r->quiet);
	r->said_count = on ? 0 : r->said_count;
	pthread_mutex_unlock(&r->lock);
}

/* Open a file for the command's output. Returns its descriptor, or -1 after printing a sentence. */
static int open_output(struct run *r)
{
	const char *folder = getenv("TMPDIR");
	int fd;

	if (r->output != NULL) {
		snprintf(r->output_path, sizeof(r->output_path), "%s", r->output);
		fd = open(r->output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	} else {
		snprintf(r->output_path, sizeof(r->output_path), "%s/pem-top-XXXXXX",
			 folder != NULL && *folder == '/' ? folder : "/tmp");
		fd = mkostemp(r->output_path, O_CLOEXEC);
	}
	if (fd < 0) {
		cli_error(0, "cannot write %s: %s", r->output_path, strerror(errno));
		*r->output_path = '\0';
	}
	return fd;
}

/* Print where the output is. An empty file that we made is removed. */
static void say_output(const struct run *r)
{
	struct stat st;

	if (*r->output_path == '\0' || r->output != NULL)
		return;
	if (r->ended && stat(r->output_path, &st) == 0 && st.st_size == 0)
		unlink(r->output_path);
	else
		cli_say("what %s printed is in %s", r->command[0], r->output_path);
}

/*
 * Start the command with empty standard input and its output in a file, because the screen uses the
 * terminal.
 */
static int start_command(struct run *r)
{
	struct pem_run_options run_options = {.size = sizeof(run_options),
					      .preload_libc = !r->no_libc,
					      .no_preload = !r->top.has_stubs};
	struct pem_error error = {{0}};
	int saved[3], i, out = open_output(r), in;

	if (out < 0)
		return CLI_FAILED;
	in = open("/dev/null", O_RDONLY | O_CLOEXEC);
	for (i = 0; i < 3; i++) {
		saved[i] = fcntl(i, F_DUPFD_CLOEXEC, 3);
		dup2(i == 0 ? in : out, i);
	}
	r->pid = pem_session__run(r->top.session, r->command, &run_options, &error);
	for (i = 0; i < 3; i++) {
		dup2(saved[i], i);
		close(saved[i]);
	}
	close(in);
	close(out);
	if (r->pid < 0)
		return cli_run__not_started(r->pid, &error);
	r->top.command = r->command[0];
	if (r->attach.count != 0)
		return CLI_DONE;
	snprintf(r->top.target, sizeof(r->top.target), "%s (%d)", r->command[0], (int)r->pid);
	pem_printable(r->top.target);
	return CLI_DONE;
}

static int attach(struct run *r)
{
	const struct pem_context any = {0};
	struct cli_attach *a = &r->attach;
	int status;

	if (a->count == 0) {
		a->contexts[0] = any;
		a->pidfds[0] = -1;
		a->count = 1;
		a->all = true;
	}
	if (a->all)
		snprintf(r->top.target, sizeof(r->top.target), "%s",
			 geteuid() == 0 ? "the whole machine" : "all programs of this user");
	else if (a->count == 1 && a->contexts[0].pid != 0)
		snprintf(r->top.target, sizeof(r->top.target), "%s (%u)", a->name,
			 a->contexts[0].pid);
	else
		snprintf(r->top.target, sizeof(r->top.target), "%s%s", a->name,
			 a->count > 1 ? " and others" : "");
	pem_printable(r->top.target);
	status = cli_attach__start(a, r->top.session);
	/* What was counted while sources were opened does not belong to the first interval. */
	if (status == CLI_DONE)
		top_events__reset(&r->top);
	return status;
}

/*
 * Do the session's work without waiting. Returns whether the command, if there is one, still runs.
 */
static bool work(void *arg)
{
	struct run *r = arg;

	if (!r->ended && pem_session__poll(r->top.session, 0, &r->wait_status) == 1)
		r->ended = true;
	if (!r->ended && r->command == NULL)
		r->ended = cli_attach__ended(&r->attach);
	return !r->ended;
}

static int show_once(struct run *r)
{
	uint64_t end_ns = r->top.start_ns + r->interval_ms * 1000000;

	while (work(r) && cli_now_ns() < end_ns) {
		uint64_t now = cli_now_ns(), left_ms = now < end_ns ? (end_ns - now) / 1000000 : 0;

		poll(NULL, 0, (int)(left_ms < 50 ? left_ms + 1 : 50));
	}
	top__sample(&r->top);
	top_once__print(&r->top, r->json);
	return cli_finish_output(CLI_DONE);
}

static int watch(struct run *r)
{
	int status = top_events__register(&r->top);

	if (status == CLI_DONE && (r->command == NULL || r->attach.count != 0))
		status = attach(r);
	if (status == CLI_DONE && r->command != NULL)
		status = start_command(r);
	if (status != CLI_DONE)
		return status;
	r->top.start_ns = cli_now_ns();
	if (r->once) {
		status = show_once(r);
	} else {
		set_screen(r, true);
		status = top_screen__run(&r->top, r->interval_ms * 1000000, work, r);
		set_screen(r, false);
	}
	say_output(r);
	if (r->command == NULL || status != CLI_DONE)
		return status;
	if (r->ended)
		return cli_status_of_wait(r->wait_status);
	cli_say("%s (process %d) still runs", r->command[0], (int)r->pid);
	return CLI_DONE;
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct run r = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct pem_session_options session_options = {.size = sizeof(session_options),
						      .log = say,
						      .progress = 1,
						      .log_arg = &r,
						      .by_process = 1};
	struct pem_error error = {{0}};
	char program[PATH_MAX], *no_command[] = {NULL};
	int status = parse(verb, &r, argc, argv);

	if (status == CLI_DONE)
		status = cli_counted__refuse(verb, &r.top.patterns);
	if (status == CLI_DONE && r.command != NULL)
		status = cli_command__check(r.command[0], program, sizeof(program));
	if (status == CLI_DONE && !r.once)
		status = top_screen__check();
	if (status != CLI_DONE)
		goto end;
	cli_descriptors__raise();
	r.top.session = pem_session__open(&session_options, &error);
	if (r.top.session == NULL) {
		status = cli_error(cli_status_of_errno(errno), "%s", error.text);
		goto end;
	}
	status = cli_specs__load(
		r.top.session,
		r.command != NULL ? program
				  : cli_attach__program(&r.attach, program, sizeof(program)),
		r.command != NULL ? r.command : no_command, &r.top.patterns, r.quiet);
	if (status == CLI_DONE)
		status = watch(&r);
end:
	pem_session__close(r.top.session);
	cli_attach__free(&r.attach);
	top__free(&r.top);
	return status;
}

const struct cli_verb cli_top = {
	.name = "top",
	.summary = "watch events live, by layer, process and thread",
	.usage = "top [-e EV,...] [-i MS] [-p PID,... | -a | --program NAME | --cgroup PATH]\n"
		 "top [-e EV,...] [-i MS] [-o FILE] [-a] -- COMMAND [ARG...]\n"
		 "top --once [--json] ...",
	.text = "Shows how often each event happens now, sorted, by layer, process or thread. No "
		"event is written anywhere. Enter on an event shows who raises it, and a histogram "
		"of its sizes; ? shows the other keys.",
	.examples =
		"pem top                     all programs of this user, as root the whole machine\n"
		"pem top -p 4711             a process and what it starts\n"
		"pem top -e 'OS::*' -i 250 -- make\n"
		"                            a command; what it prints goes to a file\n"
		"pem top -e 'Malloc where size > 4096'\n"
		"                            large requests only\n"
		"pem top --once --json -e Malloc -i 5000\n"
		"                            five seconds, for a program",
	.options = options,
	.status = "0 done, or the status of a command that ended; 128 and the signal's number when "
		  "a signal\nended it. Before: 1 wrong usage or input, 2 cannot be done here, 3 "
		  "failed, 127 command not found.",
	.runs_command = true,
	.run = run,
};
