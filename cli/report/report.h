/* SPDX-License-Identifier: MIT */
/*
 * report.h - the data of pem report: collected from a trace in one pass, then printed for people or
 * as JSON
 */
#ifndef PEM_CLI_REPORT_H
#define PEM_CLI_REPORT_H

#include "percentiles.h"

struct pem_around;
struct pem_pass_process;
struct pem_pass_thread;

enum report_by {
	REPORT_ALL,
	REPORT_LAYER,
	REPORT_PROCESS,
	REPORT_THREAD,
	REPORT_EVENT,
	REPORT_SITE,
	REPORT_STATE,
	REPORT_INTERVAL,
	REPORT_FILE,
	REPORT_SYSCALL,
	REPORT_PAIR, /* system calls by two of enum report_key */
	REPORT_FUNCTION,
	REPORT_STACK,
	REPORT_WAIT,
	REPORT_PATH, /* the command's critical path */
	REPORT_MESSAGE,
	REPORT_LOCK,
	REPORT_DATA, /* samples of data, by data structure */
	REPORT_PHASE, /* the phases alone, which are in every report */
	REPORT_BY_COUNT
};

enum report_key { KEY_SYSCALL, KEY_FILE, KEY_PROCESS, KEY_THREAD, KEY_PHASE, REPORT_KEYS };

enum { LAYER_APP, LAYER_OS, LAYER_HW, LAYER_CPO, LAYER_OTHER, LAYERS };

/* How the values of an event become one number for the whole trace. */
enum report_value { VALUE_NONE, VALUE_SUM, VALUE_LAST };

/* An amount of an event's value. A sum of 2^64 values of 64 bits fits. */
union report_amount {
	__extension__ __int128 i;
	double f; /* if the field is a floating one */
};

struct report_event {
	const struct pem_event *event;
	unsigned int layer;
	unsigned int sample; /* enum report_page_sample */
	uint64_t count; /* records read */
	struct pem_balance balance; /* as recorded */
	enum report_value value;
	/*
	 * Index of the field whose values are summed for metrics, and that holds the value if there
	 * is one; -1: none.
	 */
	int field;
	int result; /* see cli_allocation__result */
	/*
	 * The sum, or the last value. A counter's last values are summed over all that it counted.
	 * A sum that passes a limit of 64 bits stays at the limit.
	 */
	uint64_t total;
	double total_f; /* as total, but never at a limit */
	bool overflowed; /* the sum passed a limit; total is the limit */
	uint64_t summed; /* number of values in the sum */
	struct pem_sketch sketch; /* of these values */
	uint64_t failed; /* allocations that got no memory; their sizes are not summed */
	double sum_f; /* as so_far */
	union report_amount so_far; /* sum of the values, or what a counter counted, until now */
	union report_amount amount; /* what the record that is being counted added to so_far */
	uint64_t threadless; /* records that name a process, but not its thread */
	uint64_t markers; /* records that count does not include: see pem_record__is_marker() */
	uint32_t occurred_at; /* index in report->occurred + 1; 0: it did not occur */
};

struct report_process {
	const struct pem_pass_process *process; /* NULL: unknown */
	uint32_t pid;
	/* 1: one of its threads stands for records without a thread, such as counters. */
	uint32_t nameless;
	/* Number of its threads. If it is not 0, first_thread and last_thread are indexes. */
	uint32_t threads;
	uint32_t first_thread, last_thread;
	char name[PEM_NAME_BYTES];
	uint64_t count;
	uint64_t by_layer[LAYERS];
};

struct report_thread {
	const struct pem_pass_thread *thread; /* NULL: unknown */
	uint32_t process; /* index of its process */
	uint32_t tid;
	char name[16]; /* "" if it is unknown */
	/* Index of the next thread of its process. Undefined for the last thread. */
	uint32_t next;
	uint64_t count;
	uint64_t by_layer[LAYERS];
};

/* Of one event, within phases. */
struct report_inside {
	uint64_t count; /* records */
	union report_amount sum; /* as report_event.so_far, of what was within */
};

/* All phases of one name. */
struct report_phase {
	char *name;
	uint64_t times; /* ended phases */
	uint64_t unfinished; /* unfinished phases, which count up to the end of the trace */
	uint64_t first_ns; /* begin of the first phase */
	uint64_t total_ns, least_ns, most_ns;
	struct pem_sketch sketch; /* of the durations of ended phases */
	/* Of the first counted events of report->occurred. */
	struct report_inside *inside;
	size_t counted;
	/* Some events within are not counted: there are too many, or it is unknown whose they are.
	 */
	bool is_partial;
	/* An instance counts what its thread raised. Records without a thread may lack. */
	bool is_of_threads;
};

/* The last value of one counter for one process, thread or CPU. */
struct report_counter {
	uint32_t event;
	uint64_t last;
	double last_f;
};

/* A change of an event's detail level, made to keep an overhead budget. */
struct report_step {
	uint64_t time_ns;
	char event[128];
	uint8_t from, to;
	double overhead, budget; /* percent */
};

struct report {
	struct pem_trace *trace;
	const struct pem_trace_info *info;
	struct report_event *events; /* in the model's order */
	size_t event_count;
	uint32_t *occurred; /* indexes of the events that occurred, in the order of their first */
	size_t occurred_count;
	struct report_process *processes;
	size_t process_count, process_capacity;
	struct report_thread *threads;
	bool names_threads; /* the name of at least one thread is known */
	size_t thread_count, thread_capacity;
	struct report_phase *phases;
	size_t phase_count, phase_capacity;
	struct report_counter *counters;
	size_t counter_count, counter_capacity;
	struct report_page_samples *samples;
	struct report_counted *counted;
	enum report_key pair[2]; /* of REPORT_PAIR */
	bool has_pair;
	struct report_sites *sites; /* NULL: nobody asked for them */
	struct report_data *data; /* NULL: nobody asked for it */
	struct report_times *times;
	struct report_metrics *metrics;
	struct report_step *steps;
	size_t step_count, step_capacity;
	uint64_t layer_count[LAYERS];
	struct pem_balance total; /* as recorded; of an incomplete trace: records read */
	uint64_t read;
	uint64_t bulk_ns; /* a tenth of the records lie before this time */
	uint64_t duration_ns; /* as recorded; of an incomplete trace: up to the last record read */
	uint64_t ends_without_begin;
	uint64_t damaged; /* places in the trace that could not be read */
	struct pem_error damage; /* the first error of them */
	const char *uncounted; /* why some losses were not counted, or NULL */
	bool balanced;
};

extern const char *const report_layers[LAYERS];

/* Is the event's value, which it has, a floating one? */
static inline bool report_event__is_float(const struct report_event *e)
{
	enum pem_type type = e->event->fields[e->field].type;

	return type == PEM_TYPE_FLOAT32 || type == PEM_TYPE_FLOAT64;
}

/*
 * Read the whole trace. sites may be set before; they belong to the report then. Returns a status;
 * errors were printed to standard error. Call report__free in both cases.
 */
int report__collect(struct report *report, const char *directory);
void report__free(struct report *report);
/* Has an event of this meaning occurred? */
bool report__has(const struct report *report, enum pem_meaning meaning);
/* Set the totals, and whether they account for every event (balance.c). After the whole trace. */
void report__weigh(struct report *report);
/* Why the trace does not balance, or "" if it does. */
const char *report__verdict(const struct report *report);
/* Was the event recorded only to find the process and thread of kernel records? */
bool report__is_context(const struct report *report, const struct report_event *event);
/* Sort events by decreasing count. Returns indexes, which the caller frees. */
size_t *report__order(const struct report *report);

void report__print(const struct report *report, const char *directory, enum report_by by);
void report__print_json(const struct report *report);
/* Duration of the recording up to the command's end. Records of other programs may be later. */
uint64_t report__ran_ns(const struct report *report);
/* Print a title of a part, after an empty line. */
void report__heading(const char *title);

/* --- what an overhead budget did to the trace (detail.c) --- */

/* Keep a record if it is a step of a detail level. Returns 0 or -ENOMEM. */
int report_detail__record(struct report *report, const struct pem_record *record);
/* Was the event, to keep a budget, only counted or off for a time? */
bool report__is_reduced(const struct report *report, const struct report_event *event);
/*
 * Did more records of the event exist than the trace has, or is this unknown? The numbers are then
 * lower bounds.
 */
bool report__is_partial(const struct report *report, const struct report_event *event);
/* How the values of a counter were counted (estimate.c). All zero: it is no estimate. */
struct cli_estimate report__estimate(const struct report *report, const struct report_event *event);
/* Say below the events what an estimate is, if there is one. */
void report_estimate__print(const struct report *report);
/*
 * A sentence about a cost of observing that is above the budget. "": the budget was kept, or there
 * was none.
 */
const char *report_detail__excess(const struct report *report, double percent);
void report_detail__print(const struct report *report);
void report_detail__json(const struct report *report, struct cli_json_stream *json);

/* --- counted.c: what threads' counters counted, in intervals and between events --- */

/* NULL: no memory. */
struct report_counted *report_counted__new(const struct pem_trace_info *info);
void report_counted__free(struct report_counted *counted);
/* record NULL: there is none. Returns 0 or -ENOMEM. */
int report_counted__record(struct report_counted *counted, const struct pem_record *record,
			   const struct pem_around *around);
/* After the last record. Returns 0 or -ENOMEM. */
int report_counted__finish(struct report_counted *counted);
void report_counted__print(const struct report *report);
void report_counted__json(const struct report *report, struct cli_json_stream *json);

/* --- what pem.ko sampled (pages.c) --- */

enum report_page_sample { SAMPLE_NONE, SAMPLE_COUNTERS, SAMPLE_REGION, SAMPLE_PASS };
enum report_page_sample report_page_sample__of(const struct pem_event *event);
struct report_page_samples *report_page_samples__new(const struct pem_trace_info *info);
void report_page_samples__free(struct report_page_samples *samples);
/* Count a record of a sampled event. Returns 0 or -ENOMEM. */
int report_page_samples__record(struct report_page_samples *samples, enum report_page_sample sample,
				const struct report *report, const struct pem_record *record);
void report_page_samples__print(const struct report *report);
/* Add the members "counters" and "memory". */
void report_page_samples__json(const struct report *report, struct cli_json_stream *json);

/* --- data.c, data_print.c: data structures that samples of data fell in --- */

/* Returns NULL without memory. */
struct report_data *report_data__new(void);
void report_data__free(struct report_data *data);
/* Handle a record. Returns 0 or -ENOMEM. */
int report_data__record(struct report_data *data, const struct report *report,
			const struct pem_record *record, const struct pem_around *around);
/* Name what was met, at the end of the trace. Returns 0 or -ENOMEM. */
int report_data__finish(struct report_data *data, const struct report *report);
void report_data__print(const struct report *report);
void report_data__json(const struct report *report, struct cli_json_stream *json);

/* --- where events were in the code (sites.c, site_print.c, functions.c) --- */

/* samples: also where samples were, not only call sites. lists_stacks: also in JSON. NULL: no
 * memory. */
struct report_sites *report_sites__new(bool samples, bool lists_stacks);
void report_sites__free(struct report_sites *sites);
/* Count a record of the report's event with an index in its sites. Returns 0 or -ENOMEM. */
int report_sites__record(const struct report *report, const struct report_event *e, uint32_t event,
			 const struct pem_record *record, const struct pem_around *around);
/* Name and sort the sites, after the last record. Returns 0 or -ENOMEM. */
int report_sites__finish(struct report_sites *sites, const struct report *report);
void report_sites__print(const struct report *report);
void report_sites__json(const struct report *report, struct cli_json_stream *json);
/* The same, by function. */
void report_functions__print(const struct report *report);
void report_functions__json(const struct report *report, struct cli_json_stream *json);
/* The same, by stack of calls. */
void report_stacks__print(const struct report *report);
void report_stacks__json(const struct report *report, struct cli_json_stream *json);

/* --- where time went: states of threads, and intervals (times.c, times_print.c) --- */

struct pem_pass;
/* Begin the report's pass over its trace. Returns 0 or -ENOMEM. */
int report_times__new(struct report *report);
void report_times__free(struct report_times *times);
struct pem_pass *report_times__pass(const struct report *report);
/*
 * Add up what the pass said beside a record. record NULL: at the trace's end. Returns 0 or -ENOMEM.
 */
int report_times__add(struct report_times *times, const struct pem_record *record,
		      const struct pem_around *around);
/* Index the processes' names, and name locks, after the last record. Returns 0 or -ENOMEM. */
int report_times__finish(struct report_times *times, struct pem_trace *trace);
/*
 * A process's name; of several of one name, the beginning of its arguments if they are known.
 * process may be NULL: then name.
 */
const char *report_times__process_words(const struct report_times *times,
					const struct pem_pass_process *process, const char *name);
void report_times__print(const struct report *report, enum report_by by);
/* Add the members "thread_states", "waits", "intervals" and "messages". */
void report_times__json(const struct report *report, struct cli_json_stream *json);

/* --- who waited for whom (waits.c) --- */

void report_waits__print(const struct report *report, enum report_by by);
void report_waits__json(const struct report *report, struct cli_json_stream *json);
/* locks.c */
void report_locks__print(const struct report *report, enum report_by by);
void report_locks__json(const struct report *report, struct cli_json_stream *json);
/* path.c */
void report_path__print(const struct report *report, enum report_by by);
/* Add the member "critical_path". */
void report_path__json(const struct report *report, struct cli_json_stream *json);
/* What the command's time went to, along its critical path. "": it is unknown. */
const char *report_path__sentence(const struct report *report);

/* --- metrics that specs declare (metrics.c) --- */

/* NULL: no memory. */
struct report_metrics *report_metrics__new(const struct report *report);
void report_metrics__free(struct report_metrics *metrics);
/* Take a record. Returns 0 or -ENOMEM. */
int report_metrics__record(struct report_metrics *metrics, const struct pem_record *record,
			   const struct pem_pass_thread *thread);
void report_metrics__print(const struct report *report);
/* Those of the first names of phases, so many at most. */
void report_metrics__print_phases(const struct report *report, size_t most);
/* Of phases of a name, or of the whole trace if phase is NULL. The caller owns the result. */
struct json_object *report_metrics__json(const struct report *report,
					 const struct report_phase *phase);

/* --- messages (messages.c) --- */

void report_messages__print(const struct report *report, enum report_by by);
void report_messages__json(const struct report *report, struct cli_json_stream *json);

/* --- system calls, and the files that they were on (calls.c) --- */

struct report_calls;
void report_calls__print(const struct report *report, enum report_by by);
/* Add the member "system_calls": of the report's pair, or calls of one name on one file. */
void report_calls__json(const struct report *report, struct cli_json_stream *json);

/* --- processes and threads (processes_print.c) --- */

void report_processes__print(const struct report *report, enum report_by by);

/* --- what observing cost (cost.c) --- */

void report_cost__print(const struct report *report);
struct json_object *report_cost__json(const struct report *report);

/* --- phases (phases.c) --- */

struct report_open;
/* State of the phases that are still open. NULL: no memory. */
struct report_open *report_open__new(void);
void report_open__free(struct report_open *open);
/*
 * Handle an event that begins a phase, after it was counted, or that ends one, before it is. Return
 * 0 or -ENOMEM.
 */
int report_open__begin(struct report_open *open, struct report *report,
		       const struct pem_record *record, const struct pem_around *around);
int report_open__end(struct report_open *open, struct report *report,
		     const struct pem_record *record, const struct pem_around *around);
/* Count a record of an event, and its amount, in the phases that contain it. Returns 0 or -ENOMEM.
 */
int report_open__count(struct report_open *open, const struct report_event *e,
		       const struct pem_around *around);
/* End all open phases at the end of the trace. Returns 0 or -ENOMEM. */
int report_open__finish(struct report_open *open, struct report *report, uint64_t end_ns);

#endif
