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

#define NAME_MOST 63 /* bytes of the field 'name' without its NUL */

static const struct cli_option options[] = {{0}};

/* Run the command as if pem was not there. Returns its status. */
static int run_command(char **argv)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old_int, old_quit;
	int wait_status, status;
	pid_t pid;

	/* Ctrl-C is meant for the command. This process must live to raise the phase's end. */
	sigaction(SIGINT, &ignore, &old_int);
	sigaction(SIGQUIT, &ignore, &old_quit);
	pid = fork();
	if (pid < 0)
		return cli_error(CLI_FAILED, "cannot start %s: %s", argv[0], strerror(errno));
	if (pid == 0) {
		sigaction(SIGINT, &old_int, NULL);
		sigaction(SIGQUIT, &old_quit, NULL);
		execvp(argv[0], argv);
		status = errno == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
		_exit(cli_error(status, "cannot run %s: %s", argv[0], strerror(errno)));
	}
	while (waitpid(pid, &wait_status, 0) < 0)
		if (errno != EINTR)
			return cli_error(CLI_FAILED, "lost %s: %s", argv[0], strerror(errno));
	return cli_status_of_wait(wait_status);
}

static int run(const struct cli_verb *verb, int argc, char **argv)
{
	const char *what, *name;
	char **command = NULL;
	int code, status = CLI_DONE;

	while ((code = cli_option__next(verb, argc, argv)) != -1)
		if (code == CLI_OPTION_BAD)
			return CLI_WRONG_INPUT;
	if (optind == argc)
		return cli_usage_error(verb, "mark what? There is: begin, end, run");
	what = argv[optind++];
	if (strcmp(what, "begin") != 0 && strcmp(what, "end") != 0 && strcmp(what, "run") != 0)
		return cli_usage_error(verb, "pem mark can't '%s'; it can begin, end and run",
				       what);
	if (optind == argc || *argv[optind] == '\0')
		return cli_usage_error(verb, "the phase's name is missing");
	name = argv[optind++];
	if (strlen(name) > NAME_MOST)
		return cli_usage_error(verb, "a phase's name has at most %d bytes", NAME_MOST);
	if (*what == 'r') {
		if (optind < argc && strcmp(argv[optind], "--") == 0)
			optind++;
		if (optind == argc)
			return cli_usage_error(verb, "no command to run: put it after --");
		command = argv + optind;
	} else if (optind != argc) {
		return cli_usage_error(verb, "one name at a time: quote '%s %s'", name,
				       argv[optind]);
	}

	if (*what != 'e')
		pem_notify_phase_begin(name);
	if (command != NULL)
		status = run_command(command);
	if (*what != 'b')
		pem_notify_phase_end(name);
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
		  "of mark run: the command's own; 127 not found, 126 not executable",
	.runs_command = true,
	.run = run,
};
