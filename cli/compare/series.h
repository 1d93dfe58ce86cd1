/* SPDX-License-Identifier: MIT */
/*
 * series.h - a trace as series: what each metric came to in each window of time, and in each
 * instance of a phase
 *
 *	series.c     windows and metrics: adding values, giving series
 *	instances.c  the same for each instance of a phase
 *	collect.c    reads a trace and finds the metrics that its events have
 *	derived.c    metrics that specs declare, made of others
 *	losses.c     windows that lack records
 *
 * Memory is bounded, whatever the trace: windows become twice as long where a trace is longer than
 * it said, and of a phase with many instances each second, fourth, ... one is kept.
 */
#ifndef PEM_COMPARE_SERIES_H
#define PEM_COMPARE_SERIES_H

#include "doubt.h"
#include "sketch.h"

#include <pem/trace.h>

#include <stdbool.h>

/* A trace has 256 to 512 windows, if its length is known. */
#define COMPARE_WINDOWS 512u
#define COMPARE_METRICS_MAX 2048u
#define COMPARE_PHASES_MAX 32u
#define COMPARE_INSTANCES_MAX 1024u

enum compare_kind {
	COMPARE_COUNT, /* how many events */
	COMPARE_SUM, /* sum of a field, such as bytes */
	COMPARE_GROWTH, /* what a counter counted */
	COMPARE_LEVEL, /* mean of a gauge */
	COMPARE_DURATION, /* mean duration of intervals, in nanoseconds */
	COMPARE_RATIO, /* of two other metrics */
	COMPARE_DIFFERENCE, /* of two other metrics, which are amounts */
};

struct compare_metric {
	char name[192];
	char unit[24]; /* "": a count */
	enum compare_kind kind;
	/* Metrics of one origin say the same in two ways: the event's or interval's group. */
	char origin[96];
	uint32_t event_id; /* of the event, or of the interval's begin; 0: it is of none */
	uint32_t other_event_id; /* of a declared metric's second term; 0: it has none */
	enum pem_doubt_source source;
	bool is_phase; /* DURATION: of a phase */
	bool is_context; /* events that nobody asked for */
	size_t above, below; /* RATIO, DIFFERENCE: indexes of the two metrics */
	/* For each window. weight is NULL for COUNT, SUM and GROWTH; else the number of values. */
	double *sum, *weight;
	double total, total_weight; /* of the whole trace, so far */
	struct pem_sketch sketch; /* DURATION and LEVEL: of the whole trace */
};

/* Is a metric a mean of values, not an amount? */
static inline bool compare_metric__is_mean(const struct compare_metric *metric)
{
	return metric->kind == COMPARE_LEVEL || metric->kind == COMPARE_DURATION ||
	       metric->kind == COMPARE_RATIO;
}

struct compare_instances;

struct compare_series {
	char *directory;
	struct pem_trace *trace;
	const struct pem_trace_info *info;
	struct compare_metric *metrics;
	size_t metric_count, metric_capacity;
	uint64_t metrics_left_out; /* metrics for which there was no room */
	uint64_t window_ns;
	size_t window_count; /* windows that the trace has, the last one may be cut */
	uint64_t end_ns; /* the last record, or the recorded duration */
	bool lost[PEM_DOUBT_SOURCES][COMPARE_WINDOWS]; /* records of the window were lost */
	/* By source: the latest of the times at which its streams begin. */
	uint64_t reaches_ns[PEM_DOUBT_SOURCES];
	struct compare_instances *instances;
	uint64_t read; /* records */
	uint64_t damaged; /* places that could not be read */
	bool balanced; /* all events are accounted for */
	bool has_losses;
	bool has_failed; /* there was no memory for a value */
	bool unlocated[PEM_DOUBT_SOURCES]; /* records were lost, and nothing says when */
};

/* --- series.c --- */

/*
 * Find the metric of a name and origin, or make it. Returns its index; -ENOSPC: there is no room
 * for more, which is counted; -ENOMEM.
 */
long compare_series__metric(struct compare_series *series, const char *name, enum compare_kind kind,
			    const char *unit, const char *origin);
/*
 * Add a value to a metric at a time. A value that is no finite number is left out. Without memory
 * the series has_failed.
 */
void compare_series__add(struct compare_series *series, size_t metric, uint64_t time_ns,
			 double value);
/* Spread an amount evenly over the time from begin_ns to end_ns. */
void compare_series__spread(struct compare_series *series, size_t metric, uint64_t begin_ns,
			    uint64_t end_ns, double amount);
/* Records of a source from begin_ns to end_ns may be lost: leave the windows out. */
void compare_series__lose(struct compare_series *series, enum pem_doubt_source source,
			  uint64_t begin_ns, uint64_t end_ns);
/* The time is so late: make windows long enough. Called by compare_series__add, too. */
void compare_series__reach(struct compare_series *series, uint64_t time_ns);
/*
 * Write a metric's value for each window, joined windows taken together; NAN: unknown. The last
 * window is left out, as it is cut. values has room for COMPARE_WINDOWS. Returns their number.
 */
size_t compare_series__values(const struct compare_series *series, size_t metric, size_t joined,
			      double *values);

/* --- instances.c --- */

struct compare_instance {
	uint64_t begin_ns, end_ns;
};

struct compare_phase {
	size_t metric; /* its duration */
	uint64_t begun; /* instances, kept or not */
	uint64_t stride; /* each so many are kept */
	struct compare_instance *kept;
	size_t count;
	/*
	 * By metric: its value in each kept instance, or NULL if it had none in any. Means are NAN
	 * where there was no value.
	 */
	double **columns;
	size_t column_count;
};

struct compare_instances *compare_instances__new(void);
void compare_instances__free(struct compare_instances *instances);
/*
 * An interval begins. Returns its data for compare_instances__end: also where no instance is kept
 * of it. NULL: no memory.
 */
void *compare_instances__begin(struct compare_series *series, size_t metric, uint64_t time_ns);
/* It ends. data is freed. Returns 0 or -ENOMEM. */
int compare_instances__end(struct compare_series *series, void *data, uint64_t time_ns);
/* It never ended. data, which may be NULL, is freed. */
void compare_instances__forget(void *data);
/* The metric of an interval's data, and its begin. */
size_t compare_instances__metric(const void *data);
uint64_t compare_instances__begin_ns(const void *data);
size_t compare_instances__phases(const struct compare_series *series,
				 const struct compare_phase **phases);
/*
 * Write a metric's value for each kept instance of a phase; NAN: unknown, also because of a loss.
 * Returns their number. metric SIZE_MAX: the duration in nanoseconds.
 */
size_t compare_phase__values(const struct compare_series *series, const struct compare_phase *phase,
			     size_t metric, double *values);

/* --- derived.c --- */

/* Add the metrics that are made of others. Returns 0 or -ENOMEM. */
int compare_series__derive(struct compare_series *series, const struct pem_model *model);

/* --- collect.c --- */

/*
 * Read a whole trace. Returns a status; an error was printed. Call compare_series__free in both
 * cases. series is all zero before.
 */
int compare_series__read(struct compare_series *series, const char *directory);
void compare_series__free(struct compare_series *series);

/* --- losses.c --- */

/* Find the windows that lack records. The trace was read to its end. */
void compare_series__find_losses(struct compare_series *series);
bool compare_series__is_lost(const struct compare_series *series, enum pem_doubt_source source,
			     size_t window);
/* Does the window lack records that the metric of this series is made of? */
bool compare_series__lacks(const struct compare_series *series, const struct compare_metric *metric,
			   size_t window);
/* A sentence on what of the trace is left out because of losses, or NULL. */
const char *compare_series__losses(const struct compare_series *series);

#endif
