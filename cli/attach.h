/* SPDX-License-Identifier: MIT */
/*
 * attach.h - what verbs that observe running programs share: options, attaching, waiting
 */
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
	int pidfds[CLI_ATTACH_MAX]; /* of contexts with a pid, else -1 */
	size_t count;
	bool all;
	bool no_follow;
	bool beside_command; /* which says when it is over */
	char name[64]; /* of what is attached to, for a title or folder */
};

/* Is this an option of ours? 1: taken; 0: no; less: wrong, and said. */
int cli_attach__option(struct cli_attach *attach, const struct cli_verb *verb, int code);
/*
 * A command and a program that runs already are two targets; a command and all programs are not,
 * and end with the command. CLI_DONE, or a status, said.
 */
int cli_attach__check(struct cli_attach *attach, const struct cli_verb *verb, bool has_command);
/* Once all options are read: what is attached to gets its name. */
void cli_attach__name(struct cli_attach *attach);
/* Attach a session. CLI_DONE or a status, said. */
int cli_attach__start(struct cli_attach *attach, struct pem_session *session);
/*
 * Have all processes ended that were named by number? No, if others may come. arg: a struct
 * cli_attach.
 */
bool cli_attach__ended(void *attach);
void cli_attach__free(struct cli_attach *attach);
/*
 * The file of the first process's program, for specs that lie beside it. NULL, and path is empty:
 * there is none, or its folder is neither root's nor this user's.
 */
const char *cli_attach__program(const struct cli_attach *attach, char *path, size_t bytes);

#endif
