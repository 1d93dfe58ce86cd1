/* SPDX-License-Identifier: MIT */
/*
 * record.h - what the parts of pem record share
 */
#ifndef PEM_CLI_RECORD_H
#define PEM_CLI_RECORD_H

#include "cli.h"

struct record_end {
	struct pem_session *session;
	const struct cli_patterns *patterns;
	const char *program; /* the command's file */
	size_t known; /* events of the session's model before the command ran */
	bool not_written; /* the disk refused a part, and that is said */
};

/* Say what could not be recorded, what was lost, and what was asked for and raised by nobody. */
void record_end__say(const struct record_end *end, const struct pem_trace *trace);

#endif
