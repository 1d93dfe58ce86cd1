/* SPDX-License-Identifier: MIT */
/*
 * html_lanes.h - one lane for each thread: what state it was in, which intervals it was in, who
 * woke it
 *
 * Memory and size are bounded for every trace. Of each lane the longest states and intervals are
 * kept; states are also summed in bins, so that a lane is whole where it is not exact.
 */
#ifndef PEM_HTML_LANES_H
#define PEM_HTML_LANES_H

#include <pem/context.h>

#include <stdio.h>

#define PEM_HTML_LANES_MAX 40u /* on the page */
#define PEM_HTML_LANE_BINS 400u

struct pem_html_lane;

struct pem_html_lanes {
	uint64_t span_ns; /* of the whole trace */
	struct pem_html_lane **lanes;
	size_t count, capacity;
	uint64_t left_out; /* threads without a lane */
	char **names; /* of intervals */
	size_t name_count, name_capacity;
};

void pem_html_lanes__init(struct pem_html_lanes *lanes, uint64_t span_ns);
void pem_html_lanes__free(struct pem_html_lanes *lanes);
/* Add what a pass says beside a record, or at the trace's end. Returns 0 or -ENOMEM. */
int pem_html_lanes__add(struct pem_html_lanes *lanes, const struct pem_around *around);
/* Choose the lanes of the page, after the last record. */
void pem_html_lanes__finish(struct pem_html_lanes *lanes);
/* Write "lanes":{...}. The pass of the threads still exists. */
void pem_html_lanes__write(FILE *out, const struct pem_html_lanes *lanes);

#endif
