/* SPDX-License-Identifier: MIT */
/*
 * trigger.h - makes pem record --overwrite write snapshots by itself: on events, statistics or a
 * signal
 */
#ifndef PEM_CLI_TRIGGER_H
#define PEM_CLI_TRIGGER_H

#include "attach.h"
#include "folder.h"

#define CLI_TRIGGERS_MAX 16
#define CLI_TRIGGER_SESSIONS 4
#define CLI_SNAPSHOTS_MAX 1000
/*
 * Snapshots that are kept by default, and the share that they may have of the most space that was
 * free when one was written or the recording started.
 */
#define CLI_SNAPSHOTS_KEPT 8
#define CLI_SNAPSHOTS_SHARE 10
#define CLI_SNAPSHOT_INTERVAL_S 10

enum cli_trigger_kind {
	CLI_TRIGGER_EVENT, /* the event happened */
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
	/* set when registered */
	struct pem_statistics *statistics;
	struct pem_statistic *values;
	size_t count;
	bool has_stubs;
};

/* A snapshot that was written, so that it can be removed. */
struct cli_snapshot_kept {
	char *path;
	struct cli_folder folder;
};

/* All zero except for the options: there are no triggers. */
struct cli_triggers {
	struct cli_trigger triggers[CLI_TRIGGERS_MAX];
	size_t count;
	uint64_t keep; /* number of snapshots to keep, at least 1 */
	uint64_t interval_s; /* least seconds between two snapshots */
	/* set when started */
	/* [0] is the recorder's. The others belong to the triggers. */
	struct pem_session *sessions[CLI_TRIGGER_SESSIONS];
	struct pem_session_options options; /* of the triggers' sessions */
	const char *trace;
	bool quiet;
	/* Time of the last judgement and of the last snapshot; 0: never. */
	uint64_t judged_ns, written_ns;
	bool has_stubs; /* programs raise some of the triggers' events */
	uint64_t held_back; /* triggers held back since the last snapshot */
	uint64_t signals_seen;
	struct cli_snapshot_kept *kept; /* the oldest first; there is space for keep + 1 */
	size_t kept_count;
	uint64_t largest_bytes; /* of a snapshot so far */
	uint64_t most_bytes; /* of all snapshots; it only grows */
	unsigned int number; /* number in the name of the last folder */
};

/* Add a trigger from its text. Returns CLI_DONE, or a status after printing a sentence. */
int cli_triggers__add(struct cli_triggers *t, const struct cli_verb *verb, const char *text);
/*
 * Register the triggers with the flight recorder's session, which has a log, and count from now on.
 * Returns a status.
 */
int cli_triggers__start(struct cli_triggers *t, struct pem_session *session, const char *trace,
			bool quiet);
/*
 * Observe the targets of the recorder: the command that runs, or if command is 0 those of attach.
 * Returns a status.
 */
int cli_triggers__attach(struct cli_triggers *t, pid_t command, struct cli_attach *attach);
/*
 * Judge the triggers, and write a snapshot if one is due. arg: a struct cli_triggers. Call it every
 * 20 ms or so.
 */
void cli_triggers__tick(void *arg);
/* Print what was held back. */
void cli_triggers__end(struct cli_triggers *t);
void cli_triggers__free(struct cli_triggers *t);

#endif
