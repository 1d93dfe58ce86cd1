/* SPDX-License-Identifier: MIT */
/*
 * html_lanes.h - lanes of threads: states, nested intervals, and arrows between threads
 *
 * Memory and page size are bounded (html_rows.h). The busiest threads have lanes on the page; the
 * others are counted. Of many threads, those that were not busy so far are given up meanwhile.
 */
#ifndef PEM_HTML_LANES_H
#define PEM_HTML_LANES_H

#include "html_rows.h"

#include <pem/context.h>

#define PEM_HTML_LANES_MAX 64u
#define PEM_HTML_LANE_DEPTH 10u
/*
 * Lanes with slices. When there are so many, half of them are dropped, the least busy ones: but
 * none of the newest threads, which had no time yet.
 */
#define PEM_HTML_LANES_HELD_MAX 1024u

struct pem_html_lane {
	const struct pem_pass_thread *thread;
	struct pem_html_row states;
	struct pem_html_row *depth[PEM_HTML_LANE_DEPTH]; /* NULL: no interval was so deep */
	uint64_t busy_ns; /* running, and in outermost intervals */
	uint64_t process_ran_ns, process_busy_ns; /* of its process's lanes together */
	uint64_t state_ns[PEM_THREAD_STATES];
	uint64_t too_deep; /* intervals below the deepest row */
	uint32_t reserved;
	uint32_t index; /* on the page; PEM_HTML_NOTHING: it has none */
};

struct pem_html_lanes {
	struct pem_html_rows rows;
	struct pem_html_lane **lane; /* by the thread's number; NULL: nothing is known of it */
	size_t count, capacity;
	struct pem_html_lane dropped; /* stands for each lane that was dropped, and has nothing */
	uint32_t dropped_count;
	uint32_t held_count;
	struct pem_html_lane *held[PEM_HTML_LANES_HELD_MAX]; /* the others, in any order */
	struct pem_html_row messages; /* what, extra: number of the sending, receiving thread */
	/* The command's critical path. what: number of the thread; kind: as of states */
	struct pem_html_row path;
	struct pem_html_path_sum {
		const struct pem_pass_thread *thread;
		uint64_t ns[PEM_THREAD_STATES];
	} * path_sums; /* of each thread of the path, the longest first */
	size_t path_sum_count, path_sum_capacity;
	uint64_t path_ns, path_known_ns;
	struct pem_html_lane *chosen[PEM_HTML_LANES_MAX]; /* in the order of the page */
	uint32_t chosen_count;
	uint32_t left_out; /* threads that have no lane on the page */
};

void pem_html_lanes__init(struct pem_html_lanes *lanes, uint32_t bins, uint64_t bin_ns);
void pem_html_lanes__free(struct pem_html_lanes *lanes);
/* Add a time in one state. Returns 0 or -ENOMEM. So do the next two. */
int pem_html_lanes__span(struct pem_html_lanes *lanes, const struct pem_span *span);
/* Add an interval that ended. node: its index in the tree. */
int pem_html_lanes__interval(struct pem_html_lanes *lanes, const struct pem_ended *ended,
			     uint32_t node);
/* Add a message whose second end is the record. event: index of the record's event. */
int pem_html_lanes__message(struct pem_html_lanes *lanes, const struct pem_record *record,
			    const struct pem_around *around);
/* Add the command's critical path. Returns 0 or -ENOMEM. */
int pem_html_lanes__path(struct pem_html_lanes *lanes, const struct pem_pass *pass);
/* Choose which lanes the page has, and reduce them to what fits. Returns 0 or -ENOMEM. */
int pem_html_lanes__finish(struct pem_html_lanes *lanes);
/* Write "lanes":{...}, with the names of files that the slices are on. */
void pem_html_lanes__write(FILE *out, const struct pem_html_lanes *lanes,
			   const struct pem_pass *pass);

#endif
