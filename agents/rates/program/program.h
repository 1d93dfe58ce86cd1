/* SPDX-License-Identifier: MIT */
/*
 * program.h - what the files of pem rates share
 *
 *	main.c		options
 *	gather.c	records, of a trace or while they happen, to stages and their rates
 *	figures.c	what is told of a stage and of the pipeline, in numbers
 *	threads.h	stages that are threads, by the queues between them
 *	outlook.c	what the pipeline would do with other pipes, and with copies
 *	tune.c		other sizes of pipes, tried in further runs
 *	report.c	the same as tables, sentences and JSON
 */
#ifndef PEM_RATES_PROGRAM_H
#define PEM_RATES_PROGRAM_H

#include "attach.h"
#include "cli.h"

#include "settings/pipes.h"
#include "models/service.h"
#include "observe/observe.h"
#include "models/pipeline.h"

#include <pthread.h>

/* What an item is. */
enum rates_items { RATES_BYTES, RATES_OPERATIONS, RATES_BLOCKS };

struct rates_request {
	struct cli_attach attach;
	enum rates_items items;
	uint64_t block_bytes; /* of RATES_BLOCKS */
	uint64_t interval_ms; /* between two live views */
	const char *output, *page;
	pid_t roots[SETTINGS_ROOTS_MAX]; /* whose pipes and queues are looked for, with descendants
					  */
	size_t root_count;
	char title[256]; /* what is observed, in words */
	bool json, quiet, tune;
	char **words; /* a command, or a trace's folder alone */
	FILE *out;
};

extern const struct cli_verb rates_help;

/* Where the numbers come from, and what they are so far. */
struct rates_run {
	const struct rates_request *request;
	bool is_first_taken; /* by the thread that takes records, which alone uses it */
	/* Held for all members from here on: records come by a thread of the session's. */
	pthread_mutex_t lock;
	struct pem_trace *trace; /* NULL: records come from the session */
	struct pem_session *session;
	struct pem_callback *callback;
	struct pem_pass *pass;
	struct rate_observation *observation;
	const struct rate_observed *seen; /* by it; NULL: nothing yet */
	struct settings_pipes *pipes; /* NULL: sizes of pipes are not known */
	struct rates_threads *threads; /* NULL: queues of pem/stream.h are not looked for */
	uint64_t last_clock, last_ns; /* of the last record that came */
	uint64_t shown_ns; /* when it was last shown */
	uint64_t held_ns; /* sum over all stages and the outside, at a report */
	uint64_t lost; /* records, as far as is known */
	int error; /* -errno: an observation went wrong */
};

/* --- gather.c --- */

/* Read a trace. Returns a status; what is wrong was printed. */
int rates_gather__trace(struct rates_run *run, const char *folder);
/* Observe a command, or what runs already, and show it from time to time. Returns a status. */
int rates_gather__live(struct rates_run *run);
void rates_run__free(struct rates_run *run);
/*
 * Begin to observe what runs under a session, which the caller has opened. Returns a status; what
 * is wrong was printed.
 */
int rates_gather__begin(struct rates_run *run, struct pem_session *session);
/* Take all records from before, bring stages up to date, and stop. Returns a status. */
int rates_gather__end(struct rates_run *run);

/* --- figures.c --- */

/* An interval of service of a stage (observe.h). arg: the run. Returns 0 or -ENOMEM. */
int rates_figures__served(void *arg, struct rate_process *stage, uint64_t bytes,
			  uint64_t service_ns, bool has_lost);
/* Free what stages have. */
void rates_figures__free(struct rates_run *run);

/* What is known of a stage, whatever it is. */
struct rates_stage {
	char *name; /* unique among stages; RATE_STAGE_BYTES */
	const char *own_name;
	uint32_t pid, tid; /* tid 0: it is a process */
	uint32_t level; /* in the order of stages */
	uint64_t items;
	bool has_items; /* their number is known */
	bool has_bytes; /* its items are bytes */
	const struct rate_process *process; /* NULL: it is a thread */
	uint64_t lifetime_ns, service_ns, service_max_ns, runs_ns, for_cpu_ns, unknown_ns;
	uint64_t blocked_in_ns, blocked_out_ns;
	/* The share of the time of the last stages in which they waited for this one. */
	double held;
	const void *rates; /* for rates_stage__rate */
};

struct rates_rate {
	struct model_estimate estimate;
	struct model_phase phases[MODEL_PHASES];
	uint32_t phase_count;
};

/* Processes come first. */
size_t rates_stage__count(const struct rates_run *run);
void rates_stage__get(const struct rates_run *run, size_t i, struct rates_stage *stage);
void rates_stage__rate(const struct rates_stage *stage, struct rates_rate *rate);

/*
 * The same of any stage, in items. *user: NULL at first; rates_figures__drop frees it. Returns 0 or
 * -ENOMEM.
 */
int rates_figures__add(void **user, uint64_t items, uint64_t service_ns, bool has_lost);
void rates_figures__drop(void *user);
/* What these intervals tell. user: NULL: there were none. */
void rates_figures__estimate(const void *user, struct model_estimate *estimate);

/* Bring the run up to date before its stages are asked for. Returns 0 or -ENOMEM. */
int rates_figures__refresh(struct rates_run *run);
#define RATES_SAMPLE 512u
/* The last intervals of service of a stage, in bytes, at most RATES_SAMPLE. Returns their number.
 */
uint32_t rates_figures__sample(const struct rate_process *stage, const struct model_sums **sample);
/* The stage that holds up the pipeline; NULL: something outside does, or it is unknown. */
const struct rate_process *rates_figures__bottleneck(const struct rates_run *run);
/*
 * The thread that holds up the pipeline. NULL: no thread does, or none is known to. Threads of
 * another process than the slow one may have waited for that one, or for the outside, themselves:
 * one counts if it was waited for twice as long.
 */
const struct rates_thread *rates_figures__slow_thread(const struct rates_run *run);
/*
 * The items that a stage moved: took, or gave if it takes from no queue. Its estimate may be of
 * fewer, since service before the first is not known.
 */
uint64_t rates_figures__items(const struct rates_request *request,
			      const struct rate_process *stage);
/* "bytes", "operations", "blocks of 512 bytes" */
const char *rates_figures__unit(const struct rates_request *request);

/* --- outlook.c --- */

#define RATES_WAYS 4u

/* What the pipeline would do otherwise. Rates are bytes a second that its last stage takes. */
struct rates_outlook {
	const struct rate_process *measured; /* NULL: no prediction can be made */
	const char *reason; /* why none can, or why they are not to be believed */
	double was; /* as it was observed */
	double free; /* the same without the time in which it waited for CPUs */
	struct model_prediction same; /* predicted for the pipeline as it is */
	bool is_believed; /* the two agree */
	struct rates_way {
		const char *what;
		struct model_prediction prediction;
	} ways[RATES_WAYS];
	size_t way_count;
};

/* Predict other sizes of pipes, and another copy of the bottleneck. Returns 0 or -ENOMEM. */
int rates_outlook__find(const struct rates_run *run, struct rates_outlook *outlook);

/* --- tune.c --- */

/* Run the command once under the loop of agents. Returns its status; what is wrong was printed. */
int rates_tune(struct rates_run *run);

/* --- report.c --- */

/* Print all of it. A status: CLI_UNACCOUNTED if records were lost. */
int rates_report__print(struct rates_run *run);
/* All of it as an object, which the caller frees. NULL: no memory. */
struct json_object *rates_report__json(struct rates_run *run);
/* A line about the pipeline as it is now, on a terminal. */
void rates_report__view(struct rates_run *run);

#endif
