/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * budget.c - the judge of the overhead budget (contract: budget.h)
 */
#include "core/demand.h"
#include "cost/budget.h"

/* A step up may fill this part of the budget, so that a little more load does not undo the step. */
#define ROOM 0.8

void pem_budget__price(struct pem_budget_event *e, const struct pem_budget_counts *c, double log_ns,
		       double stat_ns)
{
	bool logs = e->wanted == PEM_DETAIL_LOG, is_logged = e->detail == PEM_DETAIL_LOG;
	uint64_t logged = is_logged ? c->logged : logs ? c->reduced : 0;
	/* The statistic that there is only while the log is reduced to it. */
	uint64_t instead = !logs || c->is_kept ? 0 : is_logged ? c->logged : c->reduced;
	uint64_t others = is_logged || c->added < instead ? c->added : c->added - instead;
	double n;

	e->count = logged > others + instead ? logged : others + instead;
	n = e->count ? (double)e->count : 1;
	e->ns[PEM_DETAIL_OFF] = 0;
	e->ns[PEM_DETAIL_STATISTICS] = (double)(others + instead) * stat_ns / n;
	e->ns[PEM_DETAIL_LOG] = ((double)logged * log_ns + (double)others * stat_ns) / n;
}

static double cost(const struct pem_budget_event *e)
{
	return (double)e->count * e->ns[e->detail];
}

/*
 * The weight by which the next event to step down is chosen. The cost of an event that others need
 * counts a quarter.
 */
static double weight(const struct pem_budget_event *e)
{
	return e->tells_context ? cost(e) / 4 : cost(e);
}

/*
 * Find the costliest logged event whose records need the events that tell context. Returns count
 * where there is none.
 */
static size_t find_dependent(const struct pem_budget_event *events, size_t count)
{
	size_t found = count, i;

	for (i = 0; i < count; i++) {
		if (events[i].needs_context && events[i].detail == PEM_DETAIL_LOG &&
		    (found == count || cost(&events[i]) > cost(&events[found])))
			found = i;
	}
	return found;
}

/* Find the event to step down. Returns count where there is none. */
static size_t find_costliest(const struct pem_budget_event *events, size_t count)
{
	size_t found = count, dependent, i;

	for (i = 0; i < count; i++) {
		if (events[i].detail != PEM_DETAIL_OFF && cost(&events[i]) > 0 &&
		    (found == count || weight(&events[i]) > weight(&events[found])))
			found = i;
	}
	if (found == count || !events[found].tells_context ||
	    events[found].detail != PEM_DETAIL_LOG)
		return found;
	dependent = find_dependent(events, count);
	return dependent == count ? found : dependent;
}

static void step_down(struct pem_budget_event *e)
{
	uint32_t longer = e->backoff * 2;

	if (!e->is_tried || !e->backoff)
		longer = PEM_BUDGET_WAIT_MIN;
	e->backoff = longer < PEM_BUDGET_WAIT_MAX ? longer : PEM_BUDGET_WAIT_MAX;
	e->wait = e->backoff;
	e->age = 0;
	e->detail--;
}

static void step_up(struct pem_budget_event *e)
{
	e->is_tried = true;
	e->age = 0;
	e->detail++;
}

static bool context_is_told(const struct pem_budget_event *events, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		if (events[i].tells_context && events[i].detail < events[i].wanted)
			return false;
	}
	return true;
}

/*
 * What an event would cost more at the next detail, at its present rate. An event that is off has
 * no rate, so its cost is 0 and the step is tried.
 */
static double extra(const struct pem_budget_event *e)
{
	if (e->detail == PEM_DETAIL_OFF)
		return 0;
	return (double)e->count * (e->ns[e->detail + 1] - e->ns[e->detail]);
}

/* Find the event to step up within room_ns. Returns count where there is none. */
static size_t find_cheapest(const struct pem_budget_event *events, size_t count, double room_ns)
{
	bool told = context_is_told(events, count);
	const struct pem_budget_event *e;
	size_t found = count, i;

	for (i = 0; i < count; i++) {
		e = &events[i];
		if (e->detail >= e->wanted || e->wait || extra(e) > room_ns ||
		    (e->needs_context && !told && e->detail == PEM_DETAIL_STATISTICS))
			continue;
		if (found == count || extra(e) < extra(&events[found]))
			found = i;
	}
	return found;
}

static void grow_older(struct pem_budget_event *e)
{
	e->age++;
	if (e->wait)
		e->wait--;
	if (e->age >= PEM_BUDGET_PROVEN)
		e->is_tried = false;
	if (e->detail > e->wanted)
		e->detail = e->wanted;
}

size_t pem_budget__judge(struct pem_budget_event *events, size_t count, double budget,
			 double cpu_ns, struct pem_budget_step *steps, size_t max)
{
	double sum = 0, before;
	size_t done = 0, i;

	if (cpu_ns <= 0)
		return 0;
	for (i = 0; i < count; i++) {
		grow_older(&events[i]);
		sum += cost(&events[i]);
	}
	while (sum > budget * cpu_ns && done < max) {
		i = find_costliest(events, count);
		if (i == count)
			break;
		steps[done].event = i;
		steps[done].from = events[i].detail;
		steps[done].share = sum / cpu_ns;
		before = cost(&events[i]);
		step_down(&events[i]);
		steps[done++].to = events[i].detail;
		sum += cost(&events[i]) - before;
	}
	if (done || max == 0 || sum > budget * cpu_ns / 2)
		return done;
	i = find_cheapest(events, count, budget * cpu_ns * ROOM - sum);
	if (i == count)
		return 0;
	*steps = (struct pem_budget_step){i, events[i].detail, events[i].detail + 1, sum / cpu_ns};
	step_up(&events[i]);
	return 1;
}
