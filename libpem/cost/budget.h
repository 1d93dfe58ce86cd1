/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * budget.h - the detail level of each event, so that observation stays below a share of the
 * programs' CPU time
 *
 * The judge is a pure function of counts, costs and its own memory. detail.c counts, and does what
 * the judge says.
 */
#ifndef PEM_BUDGET_H
#define PEM_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Judgements after which a detail level counts as proven. If the event fails sooner, the next try
 * comes later.
 */
#define PEM_BUDGET_PROVEN 20u /* judgements: 2 s */
#define PEM_BUDGET_WAIT_MIN 10u
#define PEM_BUDGET_WAIT_MAX 600u

struct pem_budget_event {
	/* The caller sets these members before each judgement. */
	uint8_t wanted; /* enum pem_detail */
	bool tells_context; /* records of other events need its records */
	/*
	 * Its records need those of events that tell context: without them, their process is
	 * unknown.
	 */
	bool needs_context;
	/* Set by pem_budget__price: cost of one event, by enum pem_detail. */
	double ns[3];
	uint64_t count; /* events since the last judgement, at the current detail */
	/*
	 * The judge keeps these members. They are zero at first, except detail, which is as wanted
	 * then.
	 */
	uint8_t detail;
	bool is_tried; /* it stepped up and is not proven yet */
	uint32_t age; /* judgements since its last step */
	uint32_t wait; /* judgements until it may step up */
	uint32_t backoff; /* the next wait */
};

/* What was counted of an event since the last judgement, over all of its demands. */
struct pem_budget_counts {
	uint64_t logged; /* records */
	/* Events in the statistic that stands for the log while the log is reduced to it. */
	uint64_t reduced;
	uint64_t added; /* events added to statistics, once for each statistic; reduced is among
			   them */
	/* A handle wants the statistic above, too, so that it goes on while the event is logged. */
	bool is_kept;
};

/*
 * Set ns and count of an event by its wanted and detail, from what one record and one addition to a
 * statistic cost. An event that several statistics count costs as much as all of them. One whose
 * predicate most events fail costs what it adds; the test itself counts as nothing.
 */
void pem_budget__price(struct pem_budget_event *event, const struct pem_budget_counts *counts,
		       double log_ns, double stat_ns);

struct pem_budget_step {
	size_t event; /* index */
	uint8_t from, to;
	double share; /* share that observation had before the step, as estimated */
};

/*
 * Judge an interval in which the programs had cpu_ns of CPU time. Above the budget, the costliest
 * event steps down one detail level, and so on until the estimate fits. Below half of the budget,
 * one event steps up, if there is room for it at its rate. An event that is off has no rate: it is
 * tried again after a wait, which doubles each time the try fails. Returns the number of steps, at
 * most max (twice count is always enough). Each event's detail is the new one.
 */
size_t pem_budget__judge(struct pem_budget_event *events, size_t count, double budget,
			 double cpu_ns, struct pem_budget_step *steps, size_t max);

#endif
