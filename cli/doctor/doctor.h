/* SPDX-License-Identifier: MIT */
/* doctor.h - the results of pem doctor: lines, and the groups of checks that add them */
#ifndef PEM_CLI_DOCTOR_H
#define PEM_CLI_DOCTOR_H

#include "cli.h"

enum doctor_state { DOCTOR_OK, DOCTOR_LIMITED, DOCTOR_NO };

struct doctor_line {
	char check[24];
	enum doctor_state state;
	char detail[512];
	char advice[256]; /* the next step, or "" */
	/* What one event costs, as detail says in words. 0: the check is not about cost. */
	double cost_ns;
};

#define DOCTOR_LINES_MAX 64
struct doctor {
	struct doctor_line lines[DOCTOR_LINES_MAX];
	size_t count;
};

void doctor__add(struct doctor *doctor, const char *check, enum doctor_state state,
		 const char *advice, const char *format, ...) __attribute__((format(printf, 5, 6)));

void doctor__machine(struct doctor *doctor); /* clock, memory for buffers */
void doctor__kernel(struct doctor *doctor); /* BPF, counters, ptrace */
void doctor__pem(struct doctor *doctor); /* events, sources, exporters, tools */

#endif
