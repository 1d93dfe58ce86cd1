/* SPDX-License-Identifier: MIT */
/* search.h - a search for mappings of low cost, and the best that it came across */
#ifndef PAGE_SIZE_SEARCH_H
#define PAGE_SIZE_SEARCH_H

#include "internal.h"

#define SEARCH_KEPT_MAX PAGE_CHECKED_MAX
#define SEARCH_ANSWER_BITS 12u

enum search_rate { BY_GAIN, BY_GAIN_PER_BYTE };

struct state {
	struct page_mapping mapping;
	double cost;
	uint64_t bytes;
};

/* What the cost function has said: a search comes back to mappings, from other starts. */
struct search_answer {
	struct page_mapping mapping;
	double cost;
	bool known;
};

/* The caller fills in what is above the line, and keeps answers from one run to the next. */
struct search {
	const struct page_geometry *geometry;
	const struct page_sites *sites;
	page_cost_fn cost;
	void *data;
	struct search_answer *answers; /* 1 << SEARCH_ANSWER_BITS, zeroed at first */
	/* --- */
	uint64_t budget;
	double error; /* negative: what cost returned */
	/* Those that matter most are first. */
	uint32_t order[PAGE_SITES_MAX];
	enum search_rate rate;
	struct state none; /* size 0 for all */
	struct state at; /* in the end: what was found */
	struct state best; /* of the changes to at that were tried */
	double best_rate;
	/* Those of least cost within the budget, in ascending order. */
	struct state kept[SEARCH_KEPT_MAX];
	uint32_t kept_count;
};

/* 0, or the error of cost. */
int search__run(struct search *search, const struct page_budget *budget);

#endif
