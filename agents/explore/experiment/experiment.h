/* SPDX-License-Identifier: MIT */
/*
 * experiment.h - an experiment: what is run, which settings it has, what is measured
 *
 *	document.c	the XML file of an experiment; parameters.c: its parameters and constraints
 *	words.c		a configuration as text, as arguments, as variables
 *	launch.c	one run of the command: started, watched, ended with all that it started
 *	metrics.c	what is measured of a run
 *	trial.c		configure, start, run, restore
 *	store.c		runs in the CPO database
 *
 * Everything belongs to one thread. Nothing here prints. Functions that can fail return -errno with
 * error.
 */
#ifndef EXPLORE_EXPERIMENT_H
#define EXPLORE_EXPERIMENT_H

#include <pem/database.h>
#include <pem/explore.h>

#include "settings/condition.h"
#include "settings/settings.h"
#include "space/space.h"

#include <stdbool.h>

/* --- document.c --- */

#define EXPLORE_METRICS_MAX 16u
#define EXPLORE_CONSTRAINTS_MAX 64u

enum explore_metric_source {
	EXPLORE_OF_TIME, /* seconds from the command's start to its end */
	EXPLORE_OF_CPU, /* seconds that it and what it waited for computed */
	EXPLORE_OF_MEMORY, /* the most that one process had resident, in bytes */
	EXPLORE_OF_STATUS, /* its exit status */
	EXPLORE_OF_OUTPUT, /* numbers that a regular expression finds in its output */
	EXPLORE_OF_EVENT, /* an event's number, or a field of it */
};

/* What several values of one run become. */
enum explore_use {
	EXPLORE_USE_LAST,
	EXPLORE_USE_MEAN,
	EXPLORE_USE_SUM,
	EXPLORE_USE_LEAST,
	EXPLORE_USE_MOST,
	EXPLORE_USE_MEDIAN,
	EXPLORE_USE_P99,
	EXPLORE_USE_COUNT,
};

struct explore_measure {
	char *name, *unit;
	bool greater_is_better;
	enum explore_metric_source source;
	char *match; /* of the output: a POSIX extended regular expression with one group */
	char *event; /* as for pem stat -e */
	char *until; /* the event that ends what event begins, in the same thread; or NULL */
	char *field; /* of the event; NULL: the event is counted */
	char *where; /* only events for which this predicate holds; NULL: all */
	enum explore_use use;
};

struct explore_experiment {
	char *path; /* of the document */
	char *name, *policy;
	uint64_t seed;
	uint32_t trials; /* configurations to try; 0: no limit */
	double time_s; /* for all of them; 0: no limit */
	uint32_t runs, race_runs; /* of each configuration; further ones to find which is better */
	double limit_s; /* a run that takes longer is ended, and has failed */
	double duration_s; /* a run is ended after so long, and has not failed; 0: it ends itself */
	uint32_t records; /* a run is ended after so many values of its first metric; 0: never */
	uint64_t disk_bytes; /* a run that takes more of the disk is ended, and has failed */
	uint32_t warm_ups; /* times that the command is run before it is measured */
	bool any_status; /* an exit status other than 0 is no failure */
	char *folder; /* where commands run, as an absolute path */
	char *prepare, *start, *ready, *command, *end; /* for /bin/sh; NULL: there is none */
	char *program; /* the command's first word */
	struct explore_space *space;
	struct settings_target targets[EXPLORE_PARAMETERS_MAX]; /* one for each parameter */
	uint32_t defaults[EXPLORE_PARAMETERS_MAX]; /* levels */
	bool has_default; /* every parameter has one, and they are allowed together */
	struct settings_condition *when[EXPLORE_PARAMETERS_MAX]; /* NULL: always */
	char *conditions[EXPLORE_PARAMETERS_MAX]; /* their texts */
	struct settings_condition *constraints[EXPLORE_CONSTRAINTS_MAX][2]; /* if, then */
	size_t constraint_count;
	struct explore_measure metrics[EXPLORE_METRICS_MAX]; /* the first one is the aim */
	size_t metric_count;
	uint32_t objectives; /* of the metrics, how many have an aim: the first ones */
	char key[40]; /* equal keys: trials of one are trials of the other */
};

/*
 * Read an experiment. Returns 0, or -EINVAL with error, which has line and column of the first
 * mistake; -ENOENT and others: the file can't be read. The caller frees it, also if this fails.
 */
int explore_experiment__read(struct explore_experiment *experiment, const char *path,
			     struct pem_error *error);
void explore_experiment__free(struct explore_experiment *experiment);
/* Which parameters mean something in a configuration. */
void explore_experiment__meaning(const struct explore_experiment *experiment,
				 const uint32_t *levels, bool *means_something);

/* --- words.c --- */

#define EXPLORE_TEXT_BYTES 1024u /* of a configuration as text */

/* Write a configuration as "page_size=4096 threads=3". Returns 0, or -E2BIG. */
int explore_words__text(const struct explore_experiment *experiment, const uint32_t *levels,
			char text[EXPLORE_TEXT_BYTES]);
/*
 * A command for the shell: {name} becomes the parameter's value, {scratch} the folder, each quoted;
 * variables come before it if is_command, and arguments where it has {arguments}. If no command of
 * the experiment has that, arguments follow the one that is measured. NULL: no memory. The caller
 * frees it.
 */
char *explore_words__command(const struct explore_experiment *experiment, const uint32_t *levels,
			     const char *command, bool is_command, const char *scratch);

/* --- launch.c --- */

struct explore_launch {
	const char *command; /* for /bin/sh */
	const char *folder, *scratch;
	const char *cgroup; /* a control group to be in, or NULL */
	double limit_s; /* 0: none */
	double duration_s; /* 0: none */
	uint64_t disk_bytes; /* 0: no limit */
	struct pem_session *session; /* the command runs under it; NULL: alone */
	bool no_preload; /* the session puts nothing into the command */
	volatile const int *interrupted; /* not 0: end the command */
	/*
	 * Called with each line of its output, without its newline, as it comes, and about every
	 * 50 ms with NULL. Returns whether the command has to end now. NULL: never.
	 */
	bool (*line)(const char *line, double time_s, void *arg);
	void *arg;
};

enum explore_how {
	EXPLORE_ENDED, /* by itself */
	EXPLORE_WAS_STOPPED, /* after duration_s, or since line asked for it */
	EXPLORE_TOO_LONG,
	EXPLORE_TOO_BIG, /* it filled the disk */
	EXPLORE_INTERRUPTED,
	EXPLORE_NOT_STARTED,
};

struct explore_ended {
	enum explore_how how;
	int status; /* as of waitpid */
	double seconds, cpu_s;
	uint64_t memory_bytes; /* 0: unknown */
	char last[160]; /* the last line of its output that was not empty */
};

/*
 * Run a command to its end, in this process's folder and session. What it leaves goes on. Returns
 * 0, or -errno with error: it was not started.
 */
int explore_launch__run(const struct explore_launch *launch, struct explore_ended *ended,
			struct pem_error *error);
/* A server: started, and left to run. Returns its pid, or -errno with error. */
pid_t explore_launch__start(const struct explore_launch *launch, struct pem_error *error);
/* Ask a child, and what descends from it, to end (SIGTERM). It must not have been waited for. */
void explore_launch__ask(pid_t pid);
/*
 * End all children of this process, and theirs; it has to be a subreaper. text, of bytes, gets the
 * names of those that ran, but of the process keep and its children; it may be NULL.
 */
void explore_launch__end_all(pid_t keep, char *text, size_t bytes);

/* --- metrics.c --- */

struct explore_readings;

/* Begin to measure a run. session: NULL, unless a metric is of events. NULL with error. */
struct explore_readings *explore_readings__begin(const struct explore_experiment *experiment,
						 struct pem_session *session,
						 struct pem_error *error);
/* Do programs raise some of the events? A command needs libpem for no others. */
bool explore_readings__have_stubs(const struct explore_readings *readings);
/* Take a line of output. Returns how many values of the first metric it had. */
size_t explore_readings__line(struct explore_readings *readings, const char *line, double time_s);
/*
 * Take the next value that came, for a policy. Returns 1, or 0: there is none. Values are the
 * smaller, the better.
 */
int explore_readings__next(struct explore_readings *readings, struct pem_explore_record *record);
/*
 * Write the value of each metric, as it was measured. Returns 0, or -ENODATA with error: one never
 * came.
 */
int explore_readings__end(struct explore_readings *readings, struct pem_session *session,
			  const struct explore_ended *ended, double *values,
			  struct pem_error *error);
void explore_readings__free(struct explore_readings *readings);
/* Does any metric need a session? */
bool explore_experiment__needs_session(const struct explore_experiment *experiment);

/* --- trial.c --- */

/* What came of one run. */
struct explore_outcome {
	uint32_t outcome; /* enum pem_explore_outcome */
	bool interrupted; /* by a person: it is no trial */
	double values[EXPLORE_METRICS_MAX]; /* as they were measured */
	double seconds; /* from configuring to the end of all */
	int status; /* exit status, or 128 + the signal */
	char reason[160]; /* why it failed or was refused, or what it left behind; "" */
	size_t refused; /* index of the parameter whose value was refused */
};

struct explore_trial {
	const struct explore_experiment *experiment;
	struct settings_agent *settings;
	const char *program; /* the command's file, whose own events can be metrics */
	const char *scratch; /* a folder of its own, in which a run has one */
	volatile const int *interrupted;
	/* Asked with each value as it comes: is the run worth its time? NULL: always. */
	bool (*record)(const struct pem_explore_record *record, void *arg);
	void *arg;
};

/* Run a configuration once. Returns 0, or -errno with error: no trial can be made here. */
int explore_trial__run(const struct explore_trial *trial, const uint32_t *levels,
		       struct explore_outcome *outcome, struct pem_error *error);
/* Remove a folder with all that is in it, as far as that can be done. Follows no link. */
void explore_trial__remove(const char *folder);

/* --- store.c --- */

struct explore_store {
	struct pem_database *database;
	bool read_only;
	const struct explore_experiment *experiment;
	struct pem_db_application application;
	struct pem_db_machine machine;
	struct pem_db_run run; /* that goes on */
	struct pem_db_directive directive; /* its configuration */
};

/* A run that was made. */
struct explore_stored {
	int64_t id; /* of the run; they rise */
	uint32_t *levels;
	uint32_t outcome;
	bool unfinished; /* this process or another was killed meanwhile: nothing is known of it */
	double values[EXPLORE_METRICS_MAX];
	double seconds;
	const char *reason, *machine;
};

/* Open the database, or only read it. Returns 0 or -errno with error. Close it also after that. */
int explore_store__open(struct explore_store *store, const struct explore_experiment *experiment,
			bool read_only, struct pem_error *error);
/* Find out which program and machine it is, in the folder where commands run. 0 or -errno. */
int explore_store__identify(struct explore_store *store, struct pem_error *error);
void explore_store__close(struct explore_store *store);
/* Is it on a server, where other machines may have it too? */
bool explore_store__is_shared(const struct explore_store *store);
/* Forget a run of which nothing is known. Returns 0 or -errno. */
int explore_store__forget(struct explore_store *store, int64_t run, struct pem_error *error);
/* Note that a run begins, and what came of it. */
int explore_store__begin(struct explore_store *store, const uint32_t *levels,
			 struct pem_error *error);
int explore_store__end(struct explore_store *store, const struct explore_outcome *outcome,
		       struct pem_error *error);
/*
 * Visit the runs of the experiment on machines of this kind, in the order in which they began. Runs
 * of configurations that the space does not have are left out. Returns how many there were.
 */
int64_t explore_store__each(struct explore_store *store,
			    void (*visit)(const struct explore_stored *stored, void *arg),
			    void *arg, struct pem_error *error);

#endif
