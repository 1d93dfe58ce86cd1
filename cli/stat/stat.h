/* SPDX-License-Identifier: MIT */
/*
 * stat.h - what the parts of pem stat share
 */
#ifndef PEM_CLI_STAT_H
#define PEM_CLI_STAT_H

#include "attach.h"
#include "cli.h"

/* The events of one statistics handle, which share an attribute. */
struct stat_group {
	struct pem_statistics *statistics;
	bool with_field;
	size_t count;
	struct pem_statistic *now;
	struct pem_statistic *before; /* values at the end of the last interval */
};

enum { STAT_GROUP_FIELD, STAT_GROUP_COUNTER, STAT_GROUP_COUNT, STAT_GROUPS };

struct stat {
	struct pem_session *session; /* while it is there: from finish() on */
	const char *hardware_path; /* description of a simulated machine; NULL: none */
	struct cli_hardware hardware;
	const struct pem_model *model; /* the session's */
	struct cli_patterns patterns;
	const char *field;
	unsigned int keep; /* what is kept of the field: PEM_STATISTIC_* */
	const char *path;
	uint64_t interval_ms;
	double budget; /* share of the programs' CPU time; 0: none */
	bool json;
	bool no_libc;
	bool has_stubs; /* some events are raised by programs */
	bool quiet;
	/* [0] is NULL without a command. Only attached targets are then observed. */
	char **command;
	struct cli_attach attach;
	FILE *out;
	uint64_t start_ns;
	uint64_t last_ns;
	bool show_all; /* print events with count 0, too */
	bool titled;
	bool silent; /* nothing was counted in the last interval */
	unsigned int name_width; /* width of the names in lines of intervals */
	struct stat_group groups[STAT_GROUPS];
};

/* --- which events (events.c) --- */

/*
 * Register and enable the events of the patterns, in groups. Returns CLI_DONE, or a status after
 * printing a sentence.
 */
int stat_events__register(struct stat *s, struct pem_session *session);
/* Read every group's values into now. */
void stat_events__read(struct stat *s);
void stat_events__free(struct stat *s);
/* Unit of the attribute of one of a group's events. */
const char *stat_unit(const struct stat *s, const struct stat_group *group,
		      const struct pem_event *event);

/* How the statistic was counted; of an event that is no counter, all zero. */
static inline struct cli_estimate stat_estimate(const struct pem_statistic *v)
{
	return (struct cli_estimate){v->enabled_ns, v->running_ns, v->error, v->together};
}

/* --- metrics of specs (metrics.c) --- */

/* Print a table of the metrics that can be worked out of what was counted in ns; or nothing. */
void stat_metrics__print(const struct stat *s, uint64_t ns);
struct json_object *stat_metrics__json(const struct stat *s, uint64_t ns);

/* --- the end of the run (total.c) --- */

void stat_total__print(const struct stat *s, uint64_t ns);

/* --- what can't be counted (lacks.c) --- */

struct stat_lacks;
/* After the last read: find events that could not be counted, and mark them. NULL: no memory. */
struct stat_lacks *stat_lacks__find(struct stat *s, struct pem_session *session);
/*
 * Print the result of stat_lacks__find and free it; lacks may be NULL. Returns CLI_NOT_HERE after a
 * sentence if events were named and none of them could be counted; else CLI_DONE.
 */
int stat_lacks__say(const struct stat *s, struct stat_lacks *lacks);

/* --- distributions (distribution.c) --- */

void stat_distribution__print(const struct stat *s);
/* Add the distribution to the JSON object of one of a group's events. */
void stat_distribution__json(const struct stat *s, const struct stat_group *group, size_t i,
			     struct json_object *object);

/* --- intervals (interval.c) --- */

/* Print what was counted since the last interval. Prints nothing without -i. arg: a struct stat. */
void stat_interval__print(void *arg);

#endif
