/* SPDX-License-Identifier: MIT */
/*
 * trigger.h - what makes pem record --overwrite write snapshots by itself: events, statistics, a
 * signal
 */
#ifndef PEM_CLI_TRIGGER_H
#define PEM_CLI_TRIGGER_H

#include "attach.h"

#define CLI_TRIGGERS_MAX 16
#define CLI_TRIGGER_SESSIONS 4
#define CLI_SNAPSHOTS_MAX 1000
#define CLI_SNAPSHOT_INTERVAL_S 10

enum cli_trigger_kind {
	CLI_TRIGGER_EVENT, /* it happened */
	CLI_TRIGGER_RATE,
	CLI_TRIGGER_SUM,
	CLI_TRIGGER_MIN,
	CLI_TRIGGER_MAX,
	CLI_TRIGGER_MEAN,
};

struct cli_trigger {
	const char *text; /* as given */
	enum cli_trigger_kind kind;
	char event[160]; /* a pattern */
	char field[64]; /* "": none */
	char predicate[512]; /* "": none */
	double threshold;
	/* once registered */
	struct pem_statistics *statistics;
	struct pem_statistic *values;
	size_t count;
};

/* All zero but for the options: nothing happens. */
struct cli_triggers {
	struct cli_trigger triggers[CLI_TRIGGERS_MAX];
	size_t count;
	uint64_t keep; /* snapshots; 0: all */
	uint64_t interval_s; /* least time between two that triggers wrote */
	/* once started */
	struct pem_session *sessions[CLI_TRIGGER_SESSIONS]; /* [0]: the recorder's, the rest ours */
	struct pem_session_options options; /* of ours */
	const char *trace;
	bool quiet;
	uint64_t judged_ns, written_ns; /* when; 0: never */
	uint64_t held_back; /* since then */
	uint64_t signals_seen;
	char **paths; /* of those kept, a ring of keep */
	uint64_t written;
	unsigned int number; /* of the last one's folder */
};

/* Add a trigger's text. CLI_DONE, or a status, said. */
int cli_triggers__add(struct cli_triggers *t, const struct cli_verb *verb, const char *text);
/*
 * Register them with the flight recorder's session, whose log there is, and count from now on. A
 * status.
 */
int cli_triggers__start(struct cli_triggers *t, struct pem_session *session, const char *trace,
			bool quiet);
/* The command runs, or (0) attach holds: observe the same. A status. */
int cli_triggers__attach(struct cli_triggers *t, pid_t command, struct cli_attach *attach);
/* Judge, and write a snapshot if it is time to. arg: a struct cli_triggers. Every 20 ms or so. */
void cli_triggers__tick(void *arg);
/* Say what was held back. */
void cli_triggers__end(struct cli_triggers *t);
void cli_triggers__free(struct cli_triggers *t);

#endif
