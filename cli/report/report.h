/* SPDX-License-Identifier: MIT */
/*
 * report.h - what pem report found in a trace; collected in one pass, then printed for people or as
 * JSON
 */
#ifndef PEM_CLI_REPORT_H
#define PEM_CLI_REPORT_H

#include "cli.h"

enum report_by { REPORT_ALL, REPORT_LAYER, REPORT_PROCESS, REPORT_THREAD, REPORT_EVENT };

enum { LAYER_APP, LAYER_OS, LAYER_HW, LAYER_CPO, LAYER_OTHER, LAYERS };

/* What an event's value means as one number over the whole trace. */
enum report_value { VALUE_NONE, VALUE_SUM, VALUE_LAST };

struct report_event {
	const struct pem_event *event;
	unsigned int layer;
	unsigned int sample; /* enum report_page_sample */
	uint64_t count; /* read */
	struct pem_balance balance; /* as recorded */
	enum report_value value;
	int field; /* index of the value's field */
	/* the sum, or the last value (a counter's: summed over what it was counted of) */
	uint64_t total;
	double total_f; /* of a floating field */
	uint64_t summed; /* how many values the sum is of */
};

struct report_process {
	uint32_t pid;
	/* 1: one of its threads is that of records of no thread, such as counters */
	uint32_t nameless;
	uint32_t threads; /* how many; first_thread and last_thread are indexes if there is one */
	uint32_t first_thread, last_thread;
	char name[PEM_NAME_BYTES];
	uint64_t count;
	uint64_t by_layer[LAYERS];
};

struct report_thread {
	uint32_t process; /* index */
	uint32_t tid;
	char name[16]; /* "" if nobody told */
	uint32_t next; /* index of its process's next thread; of the last one, nothing */
	uint64_t count;
	uint64_t by_layer[LAYERS];
};

/* All phases of one name. */
struct report_phase {
	char *name;
	uint64_t times; /* ended */
	uint64_t unfinished; /* counted up to the trace's end */
	uint64_t first_ns; /* begin of the first */
	uint64_t total_ns, least_ns, most_ns;
	uint64_t *counts; /* per event, of everything that happened meanwhile */
};

/* The value that one counter last had for one process, thread or CPU. */
struct report_counter {
	uint32_t event;
	uint64_t last;
	double last_f;
};

/* A step of an event's detail, that kept an overhead budget. */
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
	struct report_process *processes;
	size_t process_count, process_capacity;
	struct report_thread *threads;
	bool names_threads; /* there is a thread whose name is known */
	size_t thread_count, thread_capacity;
	struct report_phase *phases;
	size_t phase_count, phase_capacity;
	struct report_counter *counters;
	size_t counter_count, counter_capacity;
	struct report_page_samples *samples;
	struct report_step *steps;
	size_t step_count, step_capacity;
	uint64_t layer_count[LAYERS];
	struct pem_balance total; /* as recorded; of an incomplete trace: what was read */
	uint64_t read;
	uint64_t bulk_ns; /* a tenth of the records come before that time, the rest later */
	uint64_t duration_ns; /* as recorded, or of what was read */
	uint64_t ends_without_begin;
	uint64_t damaged; /* places in the trace that could not be read */
	struct pem_error damage; /* the first of them */
	const char *uncounted; /* why some losses were not counted, or NULL */
	bool balanced;
};

extern const char *const report_layers[LAYERS];

/*
 * Read the whole trace. A status; what was said on failure is on standard error. Freed by
 * report__free either way.
 */
int report__collect(struct report *report, const char *directory);
void report__free(struct report *report);
/* Why the trace does not balance, or "" if it does. */
const char *report__verdict(const struct report *report);
/* Was the event recorded only because it tells whose the kernel's records are? */
bool report__is_context(const struct report *report, const struct report_event *event);
/* Events in decreasing count, as indexes; the caller frees it. */
size_t *report__order(const struct report *report);

void report__print(const struct report *report, const char *directory, enum report_by by);
void report__print_json(const struct report *report);
/* How long was recorded: until the command's end, behind which others' records may be. */
uint64_t report__ran_ns(const struct report *report);
/* A title of a part, behind an empty line. */
void report__heading(const char *title);

/* --- what an overhead budget did to the trace (detail.c) --- */

/* Take a record over if it is a step. 0 or -ENOMEM. */
int report_detail__record(struct report *report, const struct pem_record *record);
/*
 * Were there more of the event than the trace has, or is it unknown? Then what is said of it is a
 * lower bound.
 */
bool report__is_partial(const struct report *report, const struct report_event *event);
/*
 * What is to be said of a cost of observing above the budget; "" where it was kept, or there was
 * none.
 */
const char *report_detail__excess(const struct report *report, double percent);
void report_detail__print(const struct report *report);
struct json_object *report_detail__json(const struct report *report);

/* --- what pem.ko looked at (pages.c) --- */

enum report_page_sample { SAMPLE_NONE, SAMPLE_COUNTERS, SAMPLE_REGION, SAMPLE_PASS };
enum report_page_sample report_page_sample__of(const struct pem_event *event);
struct report_page_samples *report_page_samples__new(const struct pem_trace_info *info);
void report_page_samples__free(struct report_page_samples *samples);
/* Count a record of an event that is looked at so. 0 or -ENOMEM. */
int report_page_samples__record(struct report_page_samples *samples, enum report_page_sample sample,
				const struct report *report, const struct pem_record *record);
void report_page_samples__print(const struct report *report);
/* Adds members "counters" and "memory". */
void report_page_samples__json(const struct report *report, struct json_object *object);

/* --- what observing cost (cost.c) --- */

void report_cost__print(const struct report *report);
struct json_object *report_cost__json(const struct report *report);

/* --- phases (phases.c) --- */

struct report_open;
/* State of the phases that are under way; NULL without memory. */
struct report_open *report_open__new(void);
void report_open__free(struct report_open *open);
/* An event that begins or ends an interval of the application. 0 or -ENOMEM. */
int report_open__record(struct report_open *open, struct report *report,
			const struct pem_record *record);
/* The trace ends: so do they. */
void report_open__finish(struct report_open *open, struct report *report, uint64_t end_ns);

#endif
