/* SPDX-License-Identifier: MIT */
/* attach.h - what verbs that observe running programs share: options, attaching, waiting */
#ifndef PEM_CLI_ATTACH_H
#define PEM_CLI_ATTACH_H

#include "cli.h"

enum { CLI_OPT_PROGRAM = 512, CLI_OPT_CGROUP, CLI_OPT_NO_FOLLOW };

/* Rows of a verb's table of options; cli_attach__option takes them. */
#define CLI_ATTACH_OPTIONS                                                                         \
	{'p', "pid", "PID,...", "Attach to processes that run, and to what they start."},          \
		{'a', "all", NULL,                                                                 \
		 "Every program of yours that can be attached to, also those to come; for root "   \
		 "every user's, and the whole kernel. With a COMMAND: while that runs."},          \
		{CLI_OPT_PROGRAM, "program", "NAME",                                               \
		 "All processes of this name, also those to come."},                               \
		{CLI_OPT_CGROUP, "cgroup", "PATH",                                                 \
		 "All processes in this control group or below, also those to come."},             \
	{                                                                                          \
		CLI_OPT_NO_FOLLOW, "no-follow", NULL,                                              \
			"The named processes or the command alone, and not what they start."       \
	}

#define CLI_ATTACH_MAX 16

/* The targets of a verb. All zero: none. */
struct cli_attach {
	struct pem_context contexts[CLI_ATTACH_MAX];
	int pidfds[CLI_ATTACH_MAX]; /* of contexts with a process; -1: the kernel gave none */
	size_t count; /* of contexts */
	bool all; /* One context is unrestricted (-a). */
	bool no_follow;
	/* There is also a command. The run ends when the command ends. */
	bool beside_command;
	/* The target in words, for a title or folder. */
	char name[64];
};

/*
 * Handle an option if it is one of CLI_ATTACH_OPTIONS. code: what cli_option__next returned, with
 * its argument in optarg. Opens a descriptor for each process (cli_attach__free). Returns 1 if it
 * was handled, 0 if it is another option. If it is wrong, or the targets are more than
 * CLI_ATTACH_MAX, prints a sentence and returns minus the exit status.
 */
int cli_attach__option(struct cli_attach *attach, const struct cli_verb *verb, int code);
/*
 * Check the targets, after all options were read. A command is observed alone, or with all programs
 * (-a) for as long as it runs. A command with other targets is an error. Without a command,
 * SIGINT gets its default action. Returns CLI_DONE, or the status of an error that was printed.
 */
int cli_attach__check(struct cli_attach *attach, const struct cli_verb *verb, bool has_command);
/*
 * Fill in name from the first target, after all options were read. A process is named by its
 * program, or by its number if it has ended. Empty: there are no targets.
 */
void cli_attach__name(struct cli_attach *attach);
/*
 * Attach a session to the targets, and catch signals from then on if there are any
 * (cli_run__catch). Prints a sentence if no program raises application events there, or not all
 * that was asked for can be observed. Blocks as pem_session__attach() does for each target. Returns
 * CLI_DONE, or a status after printing a sentence; targets before the wrong one stay attached.
 */
int cli_attach__start(struct cli_attach *attach, struct pem_session *session);
/*
 * Have all targets ended? Only processes that were named by number end; other targets may get
 * processes at any time. False if there are no targets. attach: a struct cli_attach. Does not
 * block.
 */
bool cli_attach__ended(void *attach);
/*
 * Watch until all targets have ended, or a signal comes. doing: for the sentence before it, such as
 * "recording"; NULL: none. run: a session, and a tick if there is one. Returns a status, after
 * printing an error.
 */
int cli_attach__watch(struct cli_attach *attach, struct cli_run *run, const char *doing);
/* Close the descriptors. The targets are then none. */
void cli_attach__free(struct cli_attach *attach);
/*
 * Find the file of the first target's program, if that target is a process, so that specs beside it
 * can be loaded. Writes the file's path, cut to bytes, and returns it. NULL: there is none, or
 * users other than root and this one can put files into its folder; path is then untouched or
 * empty.
 */
const char *cli_attach__program(const struct cli_attach *attach, char *path, size_t bytes);

#endif
