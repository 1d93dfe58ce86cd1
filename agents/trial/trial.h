/* SPDX-License-Identifier: MIT */
/*
 * trial.h - runs of a program with given settings, for agents that compare them
 *
 *	document.c	an experiment, read from XML: command, settings, metrics;
 *			parameters.c: its parameters and constraints
 *	check.c		what a trial would miss here
 *	words.c		a configuration as text, as arguments, as variables; may two run at once?
 *	launch.c	one run of the command: started, watched, ended with all that it started
 *	metrics.c	the metrics of a run
 *	run.c		configure, start, run, restore
 *	outcome.h	outcomes of trials
 *	figures.c	what several runs of a configuration come to; sentences.c: in words
 *	pair.c		two runs at the same time
 *	store.c		runs in the CPO database; stored.c: those that it has
 *	work.h		all of an experiment that is worked on here; comparisons with the defaults
 *	machines.c	several kinds of machines as a parameter of the space
 *	races.h		which configuration is the best, where runs of one differ
 *	table.h		a space that was measured before, from CSV
 *	guard.c		a process that ends and restores everything if the agent is killed
 *
 * Everything belongs to one thread. Only guard.c prints. Functions that can fail return -errno with
 * error.
 */
#ifndef TRIAL_TRIAL_H
#define TRIAL_TRIAL_H

#include <pem/database.h>
#include <pem/explore.h>

#include "number_map.h"
#include "settings/condition.h"
#include "settings/settings.h"
#include "trial/outcome.h"
#include "trial/space.h"

#include <stdbool.h>
#include <sys/stat.h>

/* --- document.c --- */

#define TRIAL_METRICS_MAX 16u
#define TRIAL_CONSTRAINTS_MAX 64u

enum trial_metric_source {
	TRIAL_OF_TIME, /* seconds from the command's start to its end */
	TRIAL_OF_CPU, /* seconds that it and what it waited for computed */
	TRIAL_OF_MEMORY, /* the most that one process had resident, in bytes */
	TRIAL_OF_STATUS, /* its exit status */
	TRIAL_OF_OUTPUT, /* numbers that a regular expression finds in its output */
	TRIAL_OF_EVENT, /* an event's number, or a field of it */
};

/* What several values of one run become. */
enum trial_use {
	TRIAL_USE_LAST,
	TRIAL_USE_MEAN,
	TRIAL_USE_SUM,
	TRIAL_USE_LEAST,
	TRIAL_USE_MOST,
	TRIAL_USE_MEDIAN,
	TRIAL_USE_P99,
	TRIAL_USE_COUNT,
};

struct trial_measure {
	char *name, *unit;
	bool greater_is_better;
	enum trial_metric_source source;
	char *match; /* of the output: a POSIX extended regular expression with one group */
	char *event; /* as for pem stat -e */
	char *until; /* the event that ends what event begins, in the same thread; or NULL */
	char *field; /* of the event; NULL: the event is counted */
	char *where; /* only events for which this predicate holds; NULL: all */
	enum trial_use use;
};

struct trial_experiment {
	char *path; /* of the document */
	char *name, *policy;
	uint64_t seed;
	uint32_t trials; /* configurations to try; 0: no limit */
	double time_s; /* for all of them; 0: no limit */
	uint32_t runs, race_runs; /* of each configuration; further ones to find which is better */
	bool pairs; /* those run in pairs: the command may run twice at the same time */
	double limit_s; /* a run that takes longer is ended, and has failed */
	double duration_s; /* a run is ended after so long, and has not failed; 0: it ends itself */
	uint32_t records; /* a run is ended after so many values of its first metric; 0: never */
	uint64_t disk_bytes; /* a run that takes more of the disk is ended, and has failed */
	uint32_t warm_ups; /* times that the command is run before it is measured */
	bool any_status; /* an exit status other than 0 is no failure */
	char *folder; /* where commands run, as an absolute path */
	char *prepare, *start, *ready, *command, *end; /* for /bin/sh; NULL: there is none */
	char *program; /* whose build trials are of */
	bool names_program; /* the document does; otherwise it is the command's first word */
	char unknown[64]; /* {word} of a command that is not a parameter; "": there is none */
	struct trial_space *space;
	struct settings_target targets[TRIAL_PARAMETERS_MAX]; /* one for each parameter */
	uint32_t defaults[TRIAL_PARAMETERS_MAX]; /* levels */
	bool has_default; /* every parameter has one, and they are allowed together */
	struct settings_condition *when[TRIAL_PARAMETERS_MAX]; /* NULL: always */
	char *conditions[TRIAL_PARAMETERS_MAX]; /* their texts */
	struct settings_condition *constraints[TRIAL_CONSTRAINTS_MAX][2]; /* if, then */
	size_t constraint_count;
	struct trial_measure metrics[TRIAL_METRICS_MAX]; /* the first one is the aim */
	size_t metric_count;
	uint32_t objectives; /* of the metrics, how many have an aim: the first ones */
	char key[40]; /* equal keys: trials of one are trials of the other */
};

/*
 * Read an experiment. Returns 0, or -EINVAL with error, which has line and column of the first
 * mistake; -ENOENT and others: the file can't be read. The caller frees it, also if this fails.
 */
int trial_experiment__read(struct trial_experiment *experiment, const char *path,
			   struct pem_error *error);
void trial_experiment__free(struct trial_experiment *experiment);
/* Write the text of each parameter's value in a configuration; NULL: it means nothing there. */
void trial_experiment__values(const struct trial_experiment *experiment, const uint32_t *levels,
			      const char **values);

/* --- check.c --- */

/*
 * Read each setting where it is, and observe each event as a trial does. program: the file whose
 * own events can be metrics. Returns 0; -EINVAL with the first setting or metric that is not there
 * and its place in the document; or another -errno with error.
 */
int trial_experiment__check(const struct trial_experiment *experiment, const char *program,
			    struct pem_error *error);

/* --- words.c --- */

#define TRIAL_TEXT_BYTES 1024u /* of a configuration as text */

/* Write a configuration as "page_size=4096 threads=3". Returns 0, or -E2BIG. */
int trial_words__text(const struct trial_experiment *experiment, const uint32_t *levels,
		      char text[TRIAL_TEXT_BYTES]);
/*
 * A command for the shell: {name} becomes the parameter's value, {scratch} the folder, each quoted;
 * variables come before it if is_command, and arguments where it has {arguments}. If no command of
 * the experiment has that, arguments follow the one that is measured. NULL: no memory. The caller
 * frees it.
 */
char *trial_words__command(const struct trial_experiment *experiment, const uint32_t *levels,
			   const char *command, bool is_command, const char *scratch);

/*
 * Can two configurations run at the same time, by what the document tells: does nothing outside of
 * the commands depend on the configuration? Returns 0, or -EINVAL with error.
 */
int trial_experiment__pairs(const struct trial_experiment *experiment, struct pem_error *error);

/* --- launch.c --- */

struct trial_launch {
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

enum trial_how {
	TRIAL_ENDED, /* by itself */
	TRIAL_WAS_STOPPED, /* after duration_s, or since line asked for it */
	TRIAL_TOO_LONG,
	TRIAL_TOO_BIG, /* it filled the disk */
	TRIAL_INTERRUPTED,
	TRIAL_NOT_STARTED,
};

struct trial_ended {
	enum trial_how how;
	int status; /* as of waitpid */
	double seconds, cpu_s;
	uint64_t memory_bytes; /* 0: unknown */
	char last[160]; /* the last line of its errors, or else its output, that was not empty */
};

double trial_now_s(void); /* CLOCK_MONOTONIC */
/*
 * Run a command to its end, in this process's folder and session. What it leaves goes on. Returns
 * 0, or -errno with error: it was not started.
 */
int trial_launch__run(const struct trial_launch *launch, struct trial_ended *ended,
		      struct pem_error *error);
/* A server: started, and left to run. Returns its pid, or -errno with error. */
pid_t trial_launch__start(const struct trial_launch *launch, struct pem_error *error);
/* Ask a child, and what descends from it, to end (SIGTERM). It must not have been waited for. */
void trial_launch__ask(pid_t pid);
/* Now, on the clock by which the kernel tells when a process began. */
uint64_t trial_launch__now_ticks(void);
/*
 * End all children of this process that began since then, and theirs; it has to be a subreaper.
 * text, of bytes, gets the names of those that ran; it may be NULL.
 */
void trial_launch__end_all(uint64_t since_ticks, char *text, size_t bytes);

/* --- metrics.c --- */

struct trial_readings;

/* Begin to measure a run. session: NULL, unless a metric is of events. NULL with error. */
struct trial_readings *trial_readings__begin(const struct trial_experiment *experiment,
					     struct pem_session *session, struct pem_error *error);
/* Do programs raise some of the events? A command needs libpem for no others. */
bool trial_readings__have_stubs(const struct trial_readings *readings);
/* Take a line of output. Returns how many values of the first metric it had. */
size_t trial_readings__line(struct trial_readings *readings, const char *line, double time_s);
/*
 * Take the next value that came, for a policy. Returns 1, or 0: there is none. Values are the
 * smaller, the better.
 */
int trial_readings__next(struct trial_readings *readings, struct pem_explore_record *record);
/*
 * Write the value of each metric, as it was measured. Returns 0, or -ENODATA with error: one never
 * came.
 */
int trial_readings__end(struct trial_readings *readings, const struct trial_ended *ended,
			double *values, struct pem_error *error);
void trial_readings__free(struct trial_readings *readings);
/* Does any metric need a session? */
bool trial_experiment__needs_session(const struct trial_experiment *experiment);

/* --- run.c --- */

/* What came of one run. */
struct trial_outcome {
	uint32_t outcome; /* enum pem_explore_outcome */
	bool interrupted; /* by a person: it is no trial */
	double values[TRIAL_METRICS_MAX]; /* as they were measured */
	double seconds; /* from configuring to the end of all */
	int status; /* exit status, or 128 + the signal */
	char reason[160]; /* why it failed or was refused, or what it left behind; "" */
	size_t refused; /* index of the parameter whose value was refused */
};

struct trial {
	const struct trial_experiment *experiment;
	struct settings_agent *settings;
	const char *program; /* the command's file, whose own events can be metrics */
	const char *scratch; /* a folder of its own, in which a run has one */
	volatile const int *interrupted;
	const struct trial_half *half; /* of a pair that this run is; NULL: it runs alone */
	/* Asked with each value as it comes: is the run worth its time? NULL: always. */
	bool (*record)(const struct pem_explore_record *record, void *arg);
	void *arg;
};

/* Run a configuration once. Returns 0, or -errno with error: no trial can be made here. */
int trial__run(const struct trial *trial, const uint32_t *levels, struct trial_outcome *outcome,
	       struct pem_error *error);
/* Remove a folder with all that is in it, as far as that can be done. Follows no link. */
void trial__remove(const char *folder);

/* --- figures.c --- */

/* What several runs of a configuration come to, for each metric. All zero: no run yet. */
struct trial_figures {
	uint32_t runs;
	double means[TRIAL_METRICS_MAX];
	double squares[TRIAL_METRICS_MAX]; /* sums of squared differences from the mean */
	double errors[TRIAL_METRICS_MAX]; /* standard errors of the means; 0: unknown */
};

/* Add the values of count metrics of a run. */
void trial_figures__add(struct trial_figures *figures, const double *values, size_t count);
/*
 * The half of a 95 % interval of the difference of two configurations' means of the first metric,
 * each in a unit of its own (Welch, Biometrika 34, 1947). If one ran once, its runs are taken to
 * differ as much as the other's; NAN: both ran once.
 */
double trial_figures__half_interval(const struct trial_figures *a, double a_unit,
				    const struct trial_figures *b, double b_unit);

/* How much better than another configuration one is, by the first metric. */
struct trial_gain {
	double value, low, high; /* as a share, with a 95 % interval; NAN: unknown */
	uint32_t runs; /* fresh ones, of each of both; 0: none */
	bool in_pairs; /* those were made in pairs */
};

/* A gain over the defaults by the runs that chose the configuration: luck has a part in it. */
struct trial_gain trial_figures__gain(const struct trial_figures *found,
				      const struct trial_figures *usual, bool greater_is_better);
/* "12.3 s": a metric's value, to the second digit of its error. Error 0, NAN: it is unknown. */
const char *trial_measure__text(const struct trial_measure *metric, double value, double error);
/*
 * ", 12 % better than THAN (+8.1 to +16 %HOW)", or that no difference is seen. "": it is unknown.
 * Valid as long as the words of cli.h.
 */
const char *trial_gain__text(double value, double low, double high, const char *than,
			     const char *how);

/* --- pair.c --- */

/* Are there CPUs for both of a pair? Returns 0, -ENOTSUP with error, or another -errno. */
int trial_pair__check(struct pem_error *error);
/*
 * Run two configurations at the same time, each on one half of the CPUs that this process may use;
 * chance decides who has which. The experiment has to allow it (trial_experiment__pairs). If one of
 * them fails, both outcomes are PEM_EXPLORE_FAILED, and the reason of the one that failed is told.
 * Returns 0, or -errno with error: no pair can be made here.
 */
int trial_pair__run(const struct trial *trial, const uint32_t *const levels[2],
		    struct trial_outcome outcomes[2], struct pem_error *error);

/* Why a run failed beside which another one failed: that one's reason follows. */
#define TRIAL_HALF_LOST "the run beside it failed or was ended"

/* For run.c: the half that this process is. */
struct trial_half {
	int other; /* a socket to the other one */
	bool is_second; /* it prepares after the other one */
};

/* Tell the other half that this one has ended a step. */
void trial_half__tell(const struct trial_half *half);
enum trial_half_state { TRIAL_HALF_RUNS, TRIAL_HALF_TOLD, TRIAL_HALF_GONE };
/* Has the other half ended the step? Does not wait. */
enum trial_half_state trial_half__look(const struct trial_half *half);
/* Wait until the other half has ended the step; false: it is gone, or a person wants the end. */
bool trial_half__wait(const struct trial_half *half, volatile const int *interrupted);

/* --- store.c --- */

#define TRIAL_NODE_BYTES 32u

/* A run that was made, or that goes on. */
struct trial_stored {
	int64_t id; /* they rise */
	uint32_t *levels; /* and, after the last one, its machine */
	uint32_t *beside; /* the configuration that ran at the same time; NULL: it ran alone */
	uint32_t machine; /* index of its kind of machine in the store; 0: this one's */
	uint32_t outcome;
	double values[TRIAL_METRICS_MAX]; /* NAN: it has none */
	double beside_value; /* the first metric's of the one beside */
	double seconds;
	int64_t began_ns; /* since 1970 */
	char reason[160], node[TRIAL_NODE_BYTES];
};

/* Runs, in the order of their numbers. */
struct trial_runs {
	struct trial_stored *at;
	size_t count, capacity;
};

/* A kind of machine. */
struct trial_machine {
	int64_t id;
	char *text; /* processor and kernel; it stays where it is */
};

struct trial_store {
	struct pem_database *database;
	struct stat file; /* as it was opened */
	bool read_only;
	const struct trial_experiment *experiment;
	struct pem_db_application application; /* the shell, if the program is not known */
	bool has_program;
	char build[640]; /* which builds' trials count: "this build of /usr/bin/xz" */
	struct pem_db_machine machine;
	struct pem_db_run run; /* that goes on */
	struct pem_db_directive directive; /* its configuration */
	int64_t beside; /* the directive of the other half of a pair; 0: it runs alone */
	struct trial_machine *machines; /* the first one is this machine's kind */
	size_t machine_count, machine_capacity;
	struct trial_runs ended, unfinished; /* as of the last update */
	struct pem_number_map known; /* numbers of ended runs */
	/* Runs that the last update left out: their rows, or those of their machines, are wrong. */
	size_t unreadable;
};

/* Open the database, or only read it. Returns 0 or -errno with error. Close it also after that. */
int trial_store__open(struct trial_store *store, const struct trial_experiment *experiment,
		      bool read_only, struct pem_error *error);
/*
 * Find out which program and machine it is, in the folder where commands run. Returns 0 or -errno
 * with error: a program that the document names is not there.
 */
int trial_store__identify(struct trial_store *store, struct pem_error *error);
void trial_store__close(struct trial_store *store);
/* Is it on a server, where other machines may have it too? */
bool trial_store__is_shared(const struct trial_store *store);
/*
 * Read the runs of the experiment that ended since the last update, on this machine or others, and
 * those that go on, or of which nothing is known. Runs of configurations that the space does not
 * have are left out. Returns 0 or -errno with error.
 */
int trial_store__update(struct trial_store *store, struct pem_error *error);
/*
 * Forget the unfinished runs that were lost, and write how many. Without a server each one was, as
 * one exploration runs at a time; on a server those of this node, for the same reason, and those
 * that began longer ago than the limits of their commands allow. Returns 0 or -errno with error.
 */
int trial_store__forget_lost(struct trial_store *store, size_t *lost, struct pem_error *error);
/* Does a machine of this kind make an unfinished run now? */
bool trial_store__goes_on(const struct trial_store *store, const struct trial_stored *run);
/*
 * Note that a run begins, and what came of it: it becomes the last one of those that ended. A pair
 * is one run, of its first configuration; beside: the other one, or NULL. Return
 * 0 or -errno with error; -ESTALE: the database's file is another one now; -EALREADY: alone is
 * true, and another machine of this kind runs the configuration.
 */
int trial_store__begin(struct trial_store *store, const uint32_t *levels, const uint32_t *beside,
		       bool alone, struct pem_error *error);
int trial_store__end(struct trial_store *store, const uint32_t *levels, const uint32_t *beside,
		     const struct trial_outcome *outcomes, struct pem_error *error);

/*
 * Comparisons of a configuration with the defaults in fresh runs, in pairs or in turns: only with
 * the defaults that the document has now.
 *
 * Find the last one: one in pairs, unless there is none. Returns 1; 0: there is none; or -errno
 * with error. One that could not be made has no runs and no value.
 */
int trial_store__gain(struct trial_store *store, const uint32_t *levels, struct trial_gain *gain,
		      struct pem_error *error);
/*
 * Note that one begins, and write when it began: earlier, if the last one did not end and goes_on
 * is true. Returns 0 or -errno with error.
 */
int trial_store__compare(struct trial_store *store, const uint32_t *levels, bool in_pairs,
			 bool goes_on, int64_t *since_ns, struct pem_error *error);
/* Note its result, when it has ended. Returns 0 or -errno with error. */
int trial_store__validate(struct trial_store *store, const uint32_t *levels, bool in_pairs,
			  struct pem_db_validation *validation, struct pem_error *error);

/* --- machines.c --- */

/* The space of an experiment with the kind of machine as its last parameter, "(machine)". */
struct trial_machines {
	struct pem_explore_space here; /* its configurations are those of this machine's kind */
	struct pem_explore_parameter *parameters;
	const char **names; /* the store's */
	uint32_t count; /* kinds of machines; 0: none were taken */
};

/*
 * Take the kinds of machines that the store knows, in place of those before. The experiment and the
 * store live longer. Returns 0 or -ENOMEM.
 */
int trial_machines__take(struct trial_machines *machines, const struct trial_store *store);
/* The space of the configurations of all kinds, after take. It lives as long. */
struct pem_explore_space trial_machines__whole(const struct trial_machines *machines);
void trial_machines__free(struct trial_machines *machines);

/* --- guard.c --- */

/* Not 0: a person wants the exploration to end. */
extern volatile int trial_interrupted;
/* A folder for runs, which the guard removes in the end. */
extern char trial_scratch[];

/*
 * Call work in another process, which has a session of its own and no terminal as its input, and
 * wait for it. If that process is killed, end what it started and restore what it changed. Returns
 * an exit status.
 */
int trial_guard__run(int (*work)(void *arg), void *arg);

/* The name of this machine: of the Slurm node that this is, or of the host. */
void trial_guard__node(char node[TRIAL_NODE_BYTES]);
/*
 * Be the only agent that changes settings for this user on this machine, and restore what an
 * earlier one left changed, which is printed. NULL with errno and error.
 */
struct settings_agent *trial_guard__settings(struct pem_error *error);
/* Give all settings their first values; what can't be is printed. NULL does nothing. */
void trial_guard__restore(struct settings_agent *settings);

#endif
