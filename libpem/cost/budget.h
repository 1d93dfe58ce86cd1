/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * budget.h - how closely each event may be watched so that observation stays below a share of the
 * programs' CPU time
 *
 * The judge is a pure function of counts, costs and its own memory: who counts and who obeys is in
 * detail.c.
 */
#ifndef PEM_BUDGET_H
#define PEM_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A detail that an event has held so long is proven; one that fails sooner makes the next try come
 * later.
 */
#define PEM_BUDGET_PROVEN 20u /* judgements: 2 s */
#define PEM_BUDGET_WAIT_MIN 10u
#define PEM_BUDGET_WAIT_MAX 600u

struct pem_budget_event {
	/* set before each judgement */
	uint8_t wanted; /* enum pem_detail */
	bool tells_context; /* others' records need it */
	bool needs_context; /* its records can't be told whose they are without */
	double ns[3]; /* what one costs, by enum pem_detail */
	uint64_t count; /* since the last judgement, at the detail it has */
	/* the judge's; zero at first, but for detail, which is what is wanted then */
	uint8_t detail;
	bool is_tried; /* stepped up and not proven yet */
	uint32_t age; /* judgements since its last step */
	uint32_t wait; /* judgements until it may step up */
	uint32_t backoff; /* the next wait */
};

struct pem_budget_step {
	size_t event; /* index */
	uint8_t from, to;
	double share; /* that observation had, as estimated, before it */
};

/*
 * Judge an interval in which the programs had cpu_ns of CPU time. Above the budget the costliest
 * event steps down one detail, and so on until the estimate fits; below half of it one event steps
 * up, if at its rate there is room. Events that are off have no rate: they are tried again after a
 * wait that doubles each time the try fails. Returns the steps, at most max (twice count is always
 * enough); events' detail is what it is from now on.
 */
size_t pem_budget__judge(struct pem_budget_event *events, size_t count, double budget,
			 double cpu_ns, struct pem_budget_step *steps, size_t max);

#endif
