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

struct cli_attach {
	struct pem_context contexts[CLI_ATTACH_MAX];
	int pidfds[CLI_ATTACH_MAX]; /* of contexts with a pid; -1 for other contexts */
	size_t count;
	bool all;
	bool no_follow;
	/* There is also a command. The run ends when the command ends. */
	bool beside_command;
	/* The target in words, for a title or folder. */
	char name[64];
};

/*
 * Handle an option if it is one of CLI_ATTACH_OPTIONS. Returns 1 if it was handled, 0 if it is
 * another option, less than 0 if it is wrong; a sentence was then printed.
 */
int cli_attach__option(struct cli_attach *attach, const struct cli_verb *verb, int code);
/*
 * Check the targets. A command and a running program may be observed together. A command and all
 * programs are one target that ends with the command. Returns CLI_DONE, or a status after printing
 * a sentence.
 */
int cli_attach__check(struct cli_attach *attach, const struct cli_verb *verb, bool has_command);
/* Fill in name. Call it after all options were read. */
void cli_attach__name(struct cli_attach *attach);
/* Attach a session to the targets. Returns CLI_DONE, or a status after printing a sentence. */
int cli_attach__start(struct cli_attach *attach, struct pem_session *session);
/*
 * Have all processes that were named by number ended? False if other processes may come. arg: a
 * struct cli_attach.
 */
bool cli_attach__ended(void *attach);
void cli_attach__free(struct cli_attach *attach);
/*
 * Find the file of the first process's program, so that specs beside it can be loaded. NULL with
 * path empty: there is none, or its folder belongs neither to root nor to this user.
 */
const char *cli_attach__program(const struct cli_attach *attach, char *path, size_t bytes);

#endif
