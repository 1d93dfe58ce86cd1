/* SPDX-License-Identifier: MIT */
/*
 * internal.h - what the files of a plan share
 *
 *	plan.c		the way from a profile to a plan
 *	cost.c		the time of a mapping
 *	select.c	the choice within a budget, and for each budget
 */
#ifndef PAGE_PLAN_INTERNAL_H
#define PAGE_PLAN_INTERNAL_H

#include "plan.h"

/* A site is dropped from the choice if less of the run is lost without it. */
#define PLAN_PART_MIN 0.0005

/* --- cost.c --- */

/*
 * What a block of an arena costs above one of the C library, to make and to free: arenas have locks
 * and no caches of threads. Measured: 40 ns beside 10.
 */
#define PLAN_BLOCK_NS 30.0
/* What it costs to tell callers of a wrapper apart. Measured: 21 ns a call in redis-server. */
#define PLAN_LOOKUP_NS 21.0

/*
 * The time of a mapping and its standard error by sampling. First touches are counted in whole, and
 * only walks are scaled from what was kept.
 */
int plan_cost__of(const struct page_plan *plan, const struct page_mapping *mapping, double *cost_ns,
		  double *error_ns);
/* The same for page_choose: data is a plan. quick: without correction. */
double plan_cost__quick(void *data, const struct page_mapping *mapping);
double plan_cost__exact(void *data, const struct page_mapping *mapping);
/*
 * What writing to a site's large pages after forks costs above small ones: the first write splits
 * each. Every page is taken to be written while the child lives, as by a server that forks to save.
 */
double plan_cost__copies(const struct page_plan *plan, uint32_t site, uint32_t size);
/* Misses of TLBs of the whole run. */
int plan_cost__walks(const struct page_plan *plan, const struct page_mapping *mapping,
		     double *walks);

/* --- select.c --- */

/* What is chosen: sites that have large pages, and one more that has them in part. */
struct plan_selection {
	struct page_mapping mapping;
	uint32_t top; /* the largest size that may be chosen, which a site in part has */
	uint32_t part; /* this site; UINT32_MAX: none */
	uint64_t part_bytes; /* of its large pages */
	uint64_t bytes; /* of all large pages */
	double saved_ns, error_ns;
};

/* May a site have large pages at all? */
bool plan__can_be_large(const struct page_plan *plan, uint32_t site);
/*
 * The best choice within so many bytes of large pages. Where there are fewer than that of the
 * largest size, it is one that keeps to these, or one of smaller pages only.
 */
int plan__select(const struct page_plan *plan, uint64_t bytes, uint64_t largest_bytes,
		 struct plan_selection *selection);
/* Fill plan->points, for budgets up to so many bytes. */
int plan__find_points(struct page_plan *plan, uint64_t most_bytes);

#endif
