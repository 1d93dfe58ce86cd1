/* SPDX-License-Identifier: MIT */
/*
 * top.h - what the parts of pem top share
 *
 * Every event has a statistics handle of its own (events.c). A sample is a flat list of its parts:
 * who did how much of which event. Whatever is shown is rows that two samples are added up to, by
 * event, process or thread (rows.c).
 */
#ifndef PEM_CLI_TOP_H
#define PEM_CLI_TOP_H

#include "cli.h"

#define TOP_LAYERS 4 /* APP, OS, HW, CPO */
#define TOP_NONE UINT32_MAX
#define TOP_ENDED (UINT32_MAX - 1) /* as a pid: processes that ended */

struct top_event {
	const struct pem_event *event;
	const char *where; /* its predicate, one of the patterns'; NULL: none */
	struct pem_statistics *statistics; /* NULL: it can't be counted here */
	unsigned int layer;
	int field; /* its attribute, or -1 */
	bool is_counter; /* what counts is how far it got */
	bool distribution; /* a histogram is kept */
	uint64_t base_count; /* of handles it had before */
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

/* A list of rows on the screen, and of what. */
struct top_view {
	enum top_by by;
	uint32_t event, pid, tid; /* only of these; TOP_NONE: of all */
};

struct top_row {
	uint32_t event, pid, tid, cpu; /* TOP_NONE where it stands for several */
	unsigned int layer;
	bool is_layer; /* of a whole layer; its events follow unless folded */
	bool unavailable;
	char program[PEM_NAME_BYTES];
	uint64_t total;
	uint64_t before;
	double sum, sum_before;
	uint32_t threads; /* of a process */
	double rate, sum_rate, mean, share; /* share of all rows' rate */
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
	size_t known; /* events of the session's model that were looked at */
	size_t unavailable;
	struct top_sample now, before;
	/* what is to be seen */
	enum top_order order;
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

/* Register and enable what the patterns name, or the default. CLI_DONE or a status, said. */
int top_events__register(struct top *top);
/* All begin at zero. */
void top_events__reset(struct top *top);
/* Also events that programs brought along since. */
void top_events__refresh(struct top *top);
/*
 * Count an event anew with a field of it as its attribute (-1: none), with a histogram or not. 0 or
 * -errno with error.
 */
int top_event__measure(struct top *top, uint32_t event, int field, bool distribution,
		       struct pem_error *error);
/* The field that most people would sum up, -1: none. */
int top_event__natural_field(const struct pem_event *event);
/* The next field after this one that is a number, all around; -1: there is none. */
int top_event__next_field(const struct pem_event *event, int field);
/* Take a sample; the last one becomes the one before. */
void top__sample(struct top *top);
uint64_t top__interval_ns(const struct top *top);
void top__free(struct top *top);

/* --- rows (rows.c) --- */

/*
 * The rows of a view, in order. A view by event has rows for layers, unless it is of one process or
 * thread.
 */
void top_rows__make(const struct top *top, const struct top_view *view, struct top_rows *rows);
void top_rows__free(struct top_rows *rows);
/* Is it one of those that the filter leaves? Case does not count. */
bool top__passes(const struct top *top, const char *name);

/* --- words (words.c) --- */

/* 999, 1.23k, 45.6M: at most five columns. */
const char *top_number(double value);
/*
 * A rate, sum or mean of an event's attribute, or of its count, in the unit that fits. "" for
 * nothing.
 */
const char *top_rate(const struct top *top, const struct top_row *row);
const char *top_total(const struct top *top, const struct top_row *row);
const char *top_sum_rate(const struct top *top, const struct top_row *row);
const char *top_mean(const struct top *top, const struct top_row *row);
/* A row's name: of a layer, an event (without its layer), a process or a thread. */
const char *top_name(const struct top *top, const struct top_row *row);
/* Unit of an event's attribute, "" for none. */
const char *top_unit(const struct top_event *event);
/*
 * Text that the terminal can show: no control characters, and no bytes that are no characters in
 * its locale.
 */
char *top_showable(char *text);

/* --- without a screen (once.c) --- */

void top_once__print(const struct top *top, bool json);

/* --- with one (screen.c, keys.c, histogram.c), if ncurses is there --- */

/* Is there such a screen? CLI_DONE, or a status after saying what to do instead. */
int top_screen__check(void);
/*
 * Show until the user quits or a signal asks for it (128 and its number). tick does the session's
 * work, and says whether the command still runs.
 */
int top_screen__run(struct top *top, uint64_t interval_ns, bool (*tick)(void *arg), void *arg);

#endif
