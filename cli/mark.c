// SPDX-License-Identifier: MIT
/*
 * mark.c - pem mark: marks a phase in the recording that this process was started under
 *
 * It raises the events of a program that calls the stubs of spec/app/phase.xml. Begin and end may
 * come from different processes. Readers of the trace match them by name.
 */
#include "cli.h"
#include "stubs/phase.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAME_MOST 63 /* bytes of the field 'name' without its NUL: cli_usage.py compares them */

static const struct cli_option options[] = {{0}};

enum action { BEGIN, END, RUN, ACTIONS };

static const char *const actions[ACTIONS] = {[BEGIN] = "begin", [END] = "end", [RUN] = "run"};

struct request {
	enum action action;
	const char *name;
	char **command; /* of RUN; ends in NULL */
};

/* Read the command line. Returns 0, or a status after saying what is wrong. */
static int parse(const struct cli_verb *verb, int argc, char **argv, struct request *request)
{
	int code;

	while ((code = cli_option__next(verb, argc, argv)) != -1)
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
	if (optind == argc)
		return cli_usage_error(verb, "mark what? There is: begin, end, run");
	for (request->action = BEGIN; request->action < ACTIONS; request->action++)
		if (strcmp(argv[optind], actions[request->action]) == 0)
			break;
	if (request->action == ACTIONS)
		return cli_usage_error(verb, "pem mark can't '%s'; it can begin, end and run",
				       argv[optind]);
	optind++;
	if (optind == argc || *argv[optind] == '\0')
		return cli_usage_error(verb, "the phase's name is missing");
	request->name = argv[optind++];
	if (*request->name == '-')
		return cli_usage_error(verb,
				       "the phase's name is missing: '%s' begins with '-', as no "
				       "name does",
				       request->name);
	if (strlen(request->name) > NAME_MOST)
		return cli_usage_error(verb, "a phase's name has at most %d bytes", NAME_MOST);
	if (request->action != RUN && optind != argc)
		return cli_usage_error(verb, "one name at a time: quote '%s %s'", request->name,
				       argv[optind]);
	if (request->action != RUN)
		return 0;
	if (optind < argc && strcmp(argv[optind], "--") == 0)
		optind++;
	if (optind == argc)
		return cli_usage_error(verb, "no command to run: put it after --");
	request->command = argv + optind;
	return 0;
}

/*
 * Wait until the command ends, and pass on to it the signals that a process sends to this one. The
 * command gets a terminal's signals anyway. signals: those to wait for, which are blocked, with
 * SIGCHLD among them. Returns 0, or -errno.
 */
static int wait_for_command(pid_t pid, const sigset_t *signals, int *wait_status)
{
	siginfo_t info;
	pid_t ended;
	int number;

	for (;;) {
		ended = waitpid(pid, wait_status, WNOHANG);
		if (ended == pid)
			return 0;
		if (ended < 0)
			return -errno;
		number = sigwaitinfo(signals, &info);
		if (number < 0 && errno != EINTR)
			return -errno;
		if (number > 0 && number != SIGCHLD && info.si_code <= 0)
			kill(pid, number);
	}
}

/*
 * Run the command as if pem was not there. Returns its status. Signals stay blocked: this process
 * must live to raise the phase's end.
 */
static int run_command(char **argv)
{
	static const int waited_for[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD};
	struct sigaction usual = {.sa_handler = SIG_DFL}, old_child;
	int wait_status, status, result;
	sigset_t signals, old_mask;
	pid_t pid;
	size_t i;

	/* SIGCHLD may be ignored from the start. The kernel then keeps no status to wait for. */
	sigaction(SIGCHLD, &usual, &old_child);
	sigemptyset(&signals);
	for (i = 0; i < sizeof(waited_for) / sizeof(waited_for[0]); i++)
		sigaddset(&signals, waited_for[i]);
	sigprocmask(SIG_BLOCK, &signals, &old_mask);
	pid = fork();
	if (pid < 0)
		return cli_error(CLI_FAILED, "cannot start %s: %s", argv[0], strerror(errno));
	if (pid == 0) {
		sigaction(SIGCHLD, &old_child, NULL);
		sigprocmask(SIG_SETMASK, &old_mask, NULL);
		execvp(argv[0], argv);
		status = errno == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
		_exit(cli_error(status, "cannot run %s: %s", argv[0], strerror(errno)));
	}
	result = wait_for_command(pid, &signals, &wait_status);
	if (result < 0)
		return cli_error(CLI_FAILED, "lost %s: %s", argv[0], strerror(-result));
	return cli_status_of_wait(wait_status);
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	struct request request = {0};
	int status = parse(verb, argc, argv, &request);

	if (status != 0)
		return status;
	if (request.action != END)
		pem_notify_phase_begin(request.name);
	if (request.action == RUN)
		status = run_command(request.command);
	if (request.action != BEGIN)
		pem_notify_phase_end(request.name);
	return status;
}

const struct cli_verb cli_mark = {
	.name = "mark",
	.summary = "name a phase of the program that is being recorded",
	.usage = "mark begin|end NAME\nmark run NAME -- COMMAND [ARG...]",
	.text = "Tells the recording around it that a phase begins or ends. So scripts, and "
		"unmodified "
		"programs that can run a command, can say what they are doing; pem report shows "
		"each phase "
		"with its duration and the events inside. Outside a recording it does nothing, and "
		"that is no "
		"error. Programs of your own call the stubs of stubs/phase.h instead.",
	.examples =
		"pem record -- sh -c 'pem mark run sort -- sort big > sorted; gzip sorted'\n"
		"                            a phase around one command of a script\n"
		"pem mark begin load; ./load-data; pem mark end load\n"
		"                            a phase around several\n"
		"pem record -- sqlite3 my.db '.system pem mark begin load' '.read load.sql' \\\n"
		"    '.system pem mark end load'\n"
		"                            from inside a program nobody changed",
	.options = options,
	.status = "0  done, or outside a recording\n"
		  "1  wrong usage\n"
		  "3  mark run could not start its command\n"
		  "of mark run: the command's own; 127 not found, 126 not executable",
	.runs_command = true,
	.run = run,
};
