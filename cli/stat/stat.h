/* SPDX-License-Identifier: MIT */
/*
 * stat.h - what the parts of pem stat share
 */
#ifndef PEM_CLI_STAT_H
#define PEM_CLI_STAT_H

#include "attach.h"
#include "cli.h"

/* The events of one statistics handle: those that share an attribute. */
struct stat_group {
	struct pem_statistics *statistics;
	bool with_field;
	size_t count;
	struct pem_statistic *now;
	struct pem_statistic *before; /* at the last interval's end */
};

enum { STAT_GROUP_FIELD, STAT_GROUP_COUNTER, STAT_GROUP_COUNT, STAT_GROUPS };

struct stat {
	struct cli_patterns patterns;
	const char *field;
	unsigned int keep; /* of it: PEM_STATISTIC_* */
	const char *path;
	uint64_t interval_ms;
	double budget; /* share of the programs' CPU time; 0: none */
	bool json;
	bool no_libc;
	bool quiet;
	char **command; /* [0] NULL: none, only what is attached to */
	struct cli_attach attach;
	FILE *out;
	uint64_t start_ns;
	uint64_t last_ns;
	bool show_all; /* events that did not come, too */
	bool titled;
	bool silent; /* nothing came in the last interval */
	unsigned int name_width; /* of the intervals' lines */
	struct stat_group groups[STAT_GROUPS];
};

/* --- which events (events.c) --- */

/* Register and enable what the patterns name, in groups. CLI_DONE or a status, said. */
int stat_events__register(struct stat *s, struct pem_session *session);
/* Read every group's values into now. */
void stat_events__read(struct stat *s);
void stat_events__free(struct stat *s);
/* Unit of the attribute of one of a group's events. */
const char *stat_unit(const struct stat *s, const struct stat_group *group,
		      const struct pem_event *event);
/* A counter occurs all the time: what counts is how far it got. */
bool stat_is_counter(const struct stat_group *group, const struct pem_event *event);

/* --- the end of the run (total.c) --- */

void stat_total__print(const struct stat *s, uint64_t ns);

/* --- what can't be counted (lacks.c) --- */

struct stat_lacks;
/* Once all is read: find what could not be counted, and mark it. NULL: no memory. */
struct stat_lacks *stat_lacks__find(struct stat *s, struct pem_session *session);
/*
 * Say it, and forget it: lacks may be NULL. CLI_NOT_HERE, said, if events were named and none of
 * them could be counted; else CLI_DONE.
 */
int stat_lacks__say(const struct stat *s, struct stat_lacks *lacks);

/* --- what else is kept of the field (distribution.c) --- */

void stat_distribution__print(const struct stat *s);
/* Add it to the object of one of a group's events. */
void stat_distribution__json(const struct stat *s, const struct stat_group *group, size_t i,
			     struct json_object *object);

/* --- intervals (interval.c) --- */

/* Print what came since the last one; nothing without -i. arg: a struct stat. */
void stat_interval__print(void *arg);

#endif
