/* SPDX-License-Identifier: MIT */
/*
 * top.h - what the parts of pem top share
 *
 * Each event has its own statistics handle (events.c). A sample is a flat list of parts. A part
 * says how much of one event one thread raised. All rows that are shown are sums of parts of two
 * samples, by event, process or thread (rows.c).
 */
#ifndef PEM_CLI_TOP_H
#define PEM_CLI_TOP_H

#include "cli.h"

#define TOP_LAYERS 4 /* APP, OS, HW, CPO */
#define TOP_NONE UINT32_MAX
/* Used as a pid: all processes that have ended. */
#define TOP_ENDED (UINT32_MAX - 1)

struct top_event {
	const struct pem_event *event;
	const char *where; /* its predicate, which a pattern owns; NULL: none */
	struct pem_statistics *statistics; /* NULL: it can't be counted here */
	unsigned int layer;
	int field; /* its attribute, or -1 */
	bool is_counter; /* its value is a total, not a number of occurrences */
	bool is_estimate; /* a counter that took turns with others: its value is scaled */
	bool distribution; /* a histogram is kept */
	/* Count from earlier handles of the event. */
	uint64_t base_count;
};

struct top_part {
	uint32_t event; /* index into top.events */
	uint32_t pid, tid, cpu;
	uint64_t count;
	double sum; /* of the attribute */
	char program[PEM_NAME_BYTES];
};

struct top_sample {
	struct top_part *parts;
	size_t count, capacity;
	uint64_t time_ns;
};

/* What a row stands for. */
enum top_by { TOP_BY_EVENT, TOP_BY_PROCESS, TOP_BY_THREAD, TOP_BYS };
enum top_order { TOP_RATE, TOP_TOTAL, TOP_SUM, TOP_MEAN, TOP_NAME, TOP_ORDERS };

/* What a list of rows on the screen shows. */
struct top_view {
	enum top_by by;
	/* Only parts of this event, process and thread. TOP_NONE: any. */
	uint32_t event, pid, tid;
};

struct top_row {
	/* TOP_NONE: the row stands for several. */
	uint32_t event, pid, tid, cpu;
	unsigned int layer;
	/* The row is a whole layer. Its events follow unless it is folded. */
	bool is_layer;
	bool unavailable;
	char program[PEM_NAME_BYTES];
	uint64_t total;
	uint64_t before;
	double sum, sum_before;
	uint32_t threads; /* of a process */
	/* share: part of the rate of all rows. */
	double rate, sum_rate, mean, share;
	double layer_rate[TOP_LAYERS];
};

struct top_rows {
	struct top_row *rows;
	size_t count, capacity;
};

struct top {
	struct pem_session *session;
	struct cli_patterns patterns;
	struct top_event *events;
	size_t event_count, event_capacity;
	/* Number of events of the session's model that were considered so far. */
	size_t known;
	size_t unavailable;
	struct top_sample now, before;
	/* what is shown */
	enum top_order order;
	bool has_stubs; /* programs raise some of the events */
	bool reverse;
	bool show_zero;
	bool folded[TOP_LAYERS];
	char filter[40];
	/* what is watched */
	const char *command; /* NULL: none */
	char target[80]; /* in words */
	uint64_t start_ns;
};

extern const char *const top_layers[TOP_LAYERS];

/* --- events and samples (events.c) --- */

/*
 * Register and enable the events of the patterns, or the default events. Returns CLI_DONE, or a
 * status after printing a sentence.
 */
int top_events__register(struct top *top);
/* Set all counts to zero. */
void top_events__reset(struct top *top);
/* Add events that programs brought since the last call. */
void top_events__refresh(struct top *top);
/*
 * Count an event with another field as its attribute (-1: none), with or without a histogram. Its
 * statistics start again. Returns 0, or -errno with error.
 */
int top_event__measure(struct top *top, uint32_t event, int field, bool distribution,
		       struct pem_error *error);
/* The field that most users would sum. -1: none. */
int top_event__natural_field(const struct pem_event *event);
/* The next numeric field after this one; after the last one it starts again. -1: there is none. */
int top_event__next_field(const struct pem_event *event, int field);
/* Take a sample. The former sample becomes the previous one. */
void top__sample(struct top *top);
uint64_t top__interval_ns(const struct top *top);
void top__free(struct top *top);

/* --- rows (rows.c) --- */

/*
 * Make the rows of a view, sorted. A view by event has rows for layers, unless it shows one process
 * or thread.
 */
void top_rows__make(const struct top *top, const struct top_view *view, struct top_rows *rows);
void top_rows__free(struct top_rows *rows);
/* Does the filter keep this name? Upper and lower case are equal. */
bool top__passes(const struct top *top, const char *name);

/* --- words (words.c) --- */

/* 999, 1.23k, 45.6M: at most five columns. */
const char *top_number(double value);
/*
 * The rate, sum or mean of an event's attribute, or the rate of its count, in a fitting unit. "":
 * there is no value.
 */
const char *top_rate(const struct top *top, const struct top_row *row);
const char *top_total(const struct top *top, const struct top_row *row);
const char *top_sum_rate(const struct top *top, const struct top_row *row);
const char *top_mean(const struct top *top, const struct top_row *row);
/* The name of a row: of a layer, an event (without its layer), a process or a thread. */
const char *top_name(const struct top *top, const struct top_row *row);
/* Why nothing could be counted, if an event can't be had here. NULL: all can, or some came. */
const char *top_why_empty(const struct top *top);
/* The unit of an event's attribute. "": none. */
const char *top_unit(const struct top_event *event);
/*
 * Change text so that the terminal can show it: replaces control characters and bytes that are not
 * characters in its locale.
 */
char *top_showable(char *text);

/* --- without a screen (once.c) --- */

void top_once__print(const struct top *top, bool json);

/* --- with a screen (screen.c, keys.c, histogram.c), if ncurses is available --- */

/* Can the screen be used? Returns CLI_DONE, or a status after printing what to do instead. */
int top_screen__check(void);
/*
 * Show the screen until the user quits, or a signal ends it (128 plus its number). tick does the
 * session's work and returns whether the command still runs.
 */
int top_screen__run(struct top *top, uint64_t interval_ns, bool (*tick)(void *arg), void *arg);

#endif
