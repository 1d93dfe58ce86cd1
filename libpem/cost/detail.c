/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * detail.c - a session keeps its overhead budget (contract: cost.h, pem_session__set_budget)
 *
 * Every 100 ms the events of each demand are counted, in producers' cells and in sources, and
 * judged. A demand whose detail is reduced keeps all that its handles want; only its action asks
 * for less (pem_demand__action). Each step becomes a record of the CPO layer, in a stream of the
 * recorder's own. It is written at once. A flight recorder keeps the last steps instead, and writes
 * them out with its records.
 */
#include "core/core.h"
#include "core/demand.h"
#include "cost/budget.h"
#include "cost/cost.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "writer/trace_writer.h"
#include "util.h"

#include <pem/clock.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JUDGE_NS 100000000u
#define CPU_NS_MIN 1000000u /* less CPU time is too little to judge by */
#define STEPS_MAX 512u /* only the last steps are kept */
#define STREAM "recorder"
#define DOWN "CPO::Recorder::LevelSteppedDown"
#define UP "CPO::Recorder::LevelSteppedUp"

struct step {
	uint64_t clock;
	const struct pem_event *event;
	uint8_t from, to;
	double share, budget;
};

/* One entry for each event, by the index of its first demand. */
struct counted {
	struct pem_budget_event event;
	struct pem_budget_counts since; /* since the last judgement */
	uint64_t source_logged; /* the source's count at the last judgement */
	/* In all: events that were counted and not logged, and what further statistics added. */
	uint64_t only, further;
};

struct pem_detail_state {
	double budget;
	uint64_t next_ns;
	uint64_t cpu_ns; /* at the last judgement */
	/* CPU time between two events since then, of programs and of the kernel; -1: unknown. */
	double gap_ns[2];
	struct counted counted[PEM_DEMANDS_MAX];
	/* The sources' statistics at the last judgement: by event, and of further demands. */
	uint64_t source_statistics[PEM_DEMANDS_MAX], source_further[PEM_FURTHER_CELLS];
	struct step steps[STEPS_MAX]; /* a ring */
	uint64_t step_count; /* steps in all */
	uint64_t raised[2], written[2]; /* steps down, steps up */
};

int pem_session__set_budget(struct pem_session *s, double share)
{
	int result = 0;

	if (!s || !(share >= 0 && share <= 1))
		return -EINVAL;
	pem_session__lock(s);
	if (share > 0 && !s->cost->detail) {
		s->cost->detail = calloc(1, sizeof(*s->cost->detail));
		result = s->cost->detail ? 0 : -ENOMEM;
	}
	if (s->cost->detail)
		s->cost->detail->budget = share;
	pem_session__unlock(s);
	return result;
}

void pem_session__forget_detail(struct pem_session *s)
{
	free(s->cost->detail);
	s->cost->detail = NULL;
}

/* --- counting --- */

static struct counted *counted_of(struct pem_session *s, const struct pem_demand *demand)
{
	return &s->cost->detail->counted[demand->first - s->demands];
}

/* Is an event logged by any of its demands? is_counted: has any of its demands a statistic? */
static bool is_logged(const struct pem_demand *first)
{
	const struct pem_demand *demand;

	for (demand = first; demand && !demand->log; demand = demand->next)
		;
	return demand != NULL;
}

static bool is_counted(const struct pem_demand *first)
{
	const struct pem_demand *demand;

	for (demand = first; demand && !demand->statistic; demand = demand->next)
		;
	return demand != NULL;
}

/* The demand whose statistic counts an event when its log is reduced to that. */
static struct pem_demand *counting(struct pem_demand *first)
{
	struct pem_demand *demand = pem_demand__of_log(first);

	return demand ? demand : first;
}

/*
 * Find an event's demand. If the log takes all events up to a level, the demand becomes a logged
 * one.
 */
static struct pem_demand *demand_of(struct pem_session *s, const struct pem_event *event)
{
	struct pem_demand *demand = pem_session__demand(s, event);
	struct pem_error ignored;

	if (demand && s->hooks->handle_comes(s, demand, &ignored))
		return NULL;
	return demand;
}

/*
 * Return how much a count has grown, and remember it. Shared memory may hold any value, so the
 * count may also have fallen; then 0 is returned.
 */
static uint64_t advance(uint64_t *before, uint64_t now)
{
	uint64_t more = now > *before ? now - *before : 0;

	*before = now;
	return more;
}

/*
 * Note events that a demand's statistic counted. Each statistic has its cost. A log's own statistic
 * counts only events that are not logged. So each of them is noted whenever it is found, even after
 * the end of the recording. A statistic that a handle asked for counts logged events too.
 */
static void note_counted(struct pem_session *s, const struct pem_demand *demand, uint64_t more)
{
	struct counted *c = counted_of(s, demand);

	c->since.added += more;
	if (demand != counting(demand->first)) {
		c->further += more;
		return;
	}
	c->since.reduced += more;
	if (!demand->want_log || !demand->want_statistic ||
	    demand->first->detail == PEM_DETAIL_STATISTICS)
		c->only += more;
}

/*
 * Has the demand ever had a statistic? The statistic can still be read when no handle wants it any
 * more.
 */
static bool was_counted(const struct pem_demand *demand)
{
	return demand->want_statistic || demand->first->was_reduced;
}

/* Note by how much a statistic's count has grown, also where the statistic has begun anew. */
static void note_growth(struct pem_session *s, const struct pem_demand *demand, uint64_t *before,
			uint64_t count)
{
	if (count < *before)
		*before = 0;
	note_counted(s, demand, advance(before, count));
}

static void count_statistic(struct pem_session *s, struct pem_producer *p,
			    struct pem_event_entry *e, const struct pem_demand *demand)
{
	struct pem_statistic statistic = {0};

	pem_producer__statistic(p, demand, &statistic);
	note_growth(s, demand,
		    demand->cell ? &p->judged_further[demand->cell - 1] : &e->judged_statistics,
		    statistic.count);
}

void pem_session__count_producer(struct pem_session *s, struct pem_producer *p)
{
	struct pem_event_entry *e;
	struct pem_demand *demand;
	uint32_t i;

	if (!s->cost->detail)
		return;
	pem_producer__refresh_events(s, p);
	for (i = 0; i < PEM_EVENT_TABLE; i++) {
		e = &p->table[i];
		if (!e->id || !e->event || e->refused)
			continue;
		demand = demand_of(s, e->event);
		if (!demand)
			continue;
		counted_of(s, demand)->since.logged +=
			advance(&e->judged_logged, pem_producer__produced(p, e->event_index));
		for (; demand; demand = demand->next) {
			if (was_counted(demand))
				count_statistic(s, p, e, demand);
		}
	}
}

static void count_source(struct pem_session *s, const struct pem_demand *demand)
{
	const struct pem_instance *instance = &s->sources->instances[demand->instance];
	struct pem_detail_state *d = s->cost->detail;
	struct counted *c = counted_of(s, demand);
	struct pem_statistic statistic = {0};
	struct pem_balance balance;

	if (demand == counting(demand->first) &&
	    !instance->ops->balance(instance->source, demand->instance_index, &balance))
		c->since.logged += advance(&c->source_logged, balance.produced);
	if (instance->ops->read_statistic(instance->source, demand->instance_index, &statistic))
		return;
	note_growth(s, demand,
		    demand->cell ? &d->source_further[demand->cell - 1]
				 : &d->source_statistics[demand - s->demands],
		    statistic.count);
}

static void count_events(struct pem_session *s)
{
	const struct pem_demand *demand;
	struct pem_producer *p;
	size_t i;

	for (p = s->processes->producers; p; p = p->next)
		pem_session__count_producer(s, p);
	for (i = 0; i < s->demand_count; i++) {
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if (demand->instance >= 0 && pem_event__is_of_kernel(demand->event))
				count_source(s, demand);
		}
	}
}

/* --- recording --- */

static void put(const struct pem_event *event, uint8_t *record, const char *field,
		const void *value, size_t bytes)
{
	int i = pem_event__field(event, field);

	if (i >= 0 && event->fields[i].offset + bytes <= event->fixed_bytes)
		memcpy(record + event->fields[i].offset, value, bytes);
}

/*
 * Write a packet with one record, whose only string is the event's name. Returns whether it was
 * written.
 */
static bool write_step(struct pem_session *s, const struct step *step)
{
	const struct pem_event *event =
		pem_model__by_name(s->model, step->to < step->from ? DOWN : UP);
	struct {
		struct pem_packet header;
		uint8_t record[256];
	} packet = {.header = {.timestamp_begin = step->clock,
			       .timestamp_end = step->clock,
			       .pid = (uint32_t)getpid(),
			       .tid = (uint32_t)gettid(),
			       .cpu = PEM_NO_CPU,
			       .record_count = 1}};
	double share = step->share * 100, budget = step->budget * 100;
	struct pem_record_header *header = (struct pem_record_header *)packet.record;
	size_t bytes;

	if (!event || event->fixed_bytes + 128u > sizeof(packet.record))
		return false;
	header->clock_low = (uint32_t)step->clock;
	header->event_id = event->id;
	put(event, packet.record, "overhead", &share, sizeof(share));
	put(event, packet.record, "budget", &budget, sizeof(budget));
	put(event, packet.record, "oldDetail", &step->from, 1);
	put(event, packet.record, "newDetail", &step->to, 1);
	bytes = event->fixed_bytes;
	pem_copy_text((char *)packet.record + bytes, 128, step->event->name);
	bytes += strlen((char *)packet.record + bytes) + 1;
	packet.header.content_size = (PEM_PACKET_HEADER_BYTES + bytes) * 8;
	pem_log__describe(s->log, event);
	return !pem_trace_writer__packet(s->log->writer, STREAM, &packet.header, sizeof(packet));
}

/* --- judging --- */

static bool tells_context(const struct pem_event *event)
{
	return event->source_kind == PEM_SOURCE_TRACEPOINT &&
	       event->meaning == PEM_MEANS_SETS_THREAD;
}

static bool is_walk(const struct pem_event *event)
{
	return !strcmp(event->name, PEM_STACK_WALK_EVENT);
}

/* Are the calls of its stack looked for with each event? */
static bool has_stack(const struct pem_event *event)
{
	return event->meaning != PEM_MEANS_FRAME &&
	       pem_event__field_by_role(event, PEM_ROLE_STACK) >= 0;
}

/* Find how much the programs work between two events: these are dearer then (ledger.c). */
static void find_gaps(struct pem_session *s, uint64_t cpu_ns)
{
	struct pem_detail_state *d = s->cost->detail;
	const struct pem_budget_counts *since;
	uint64_t events[2] = {0, 0};
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		since = &d->counted[i].since;
		if (is_walk(s->demands[i].event))
			continue;
		events[pem_event__is_of_kernel(s->demands[i].event)] +=
			since->logged + since->added;
	}
	for (i = 0; i < 2; i++)
		d->gap_ns[i] = events[i] ? (double)cpu_ns / (double)events[i] : -1;
}

/* Give the judge a demand's properties, and its count at its present detail. */
static void present(struct pem_session *s, const struct pem_demand *demand,
		    const struct pem_costs *costs)
{
	enum pem_cost_kind kind = pem_session__cost_kind(s, demand->event);
	bool kernel = pem_event__is_of_kernel(demand->event);
	struct counted *c = counted_of(s, demand);
	struct pem_budget_event *e = &c->event;
	double gap_ns = s->cost->detail->gap_ns[kernel], log_ns = 0, stat_ns = 0;
	const struct pem_cost *cost = kind == PEM_COST_NONE ? NULL : &costs->each[kind];

	e->wanted = is_logged(demand)    ? PEM_DETAIL_LOG
		    : is_counted(demand) ? PEM_DETAIL_STATISTICS
					 : PEM_DETAIL_OFF;
	/*
	 * Counters: nothing happens in the programs. A reading of counters comes and goes with the
	 * event at which they are read, and that pays for it. So does the search for a stack.
	 */
	if ((demand->event->source_kind != PEM_SOURCE_STUB && !kernel) ||
	    !strcmp(demand->event->name, PEM_THREAD_COUNTERS_EVENT) || is_walk(demand->event))
		e->wanted = PEM_DETAIL_OFF;
	e->detail = e->wanted < demand->detail ? e->wanted : demand->detail;
	e->tells_context = tells_context(demand->event);
	e->needs_context = kernel && !e->tells_context;
	c->since.is_kept = counting(demand->first)->statistic;
	if (cost) {
		log_ns = pem_cost__at(cost, false, gap_ns);
		stat_ns = pem_cost__at(cost, true, gap_ns);
	}
	if (has_stack(demand->event)) {
		log_ns += pem_session__walk_ns(s, gap_ns);
		stat_ns += pem_session__walk_ns(s, gap_ns);
	}
	if (demand->counters)
		log_ns += s->cost->reading_ns + costs->each[PEM_COST_USER].log_ns;
	pem_budget__price(e, &c->since, log_ns, stat_ns);
	memset(&c->since, 0, sizeof(c->since));
}

static void say_step(struct pem_session *s, const struct step *step)
{
	static const char *const words[] = {"off", "statistics", "log"};

	pem_session__say(s, PEM_LOG_INFO,
			 "overhead %.2g %% of a budget of %.2g %%: %s goes %s from %s to %s",
			 step->share * 100, step->budget * 100, step->event->name,
			 step->to < step->from ? "down" : "up", words[step->from], words[step->to]);
}

static void take_step(struct pem_session *s, const struct pem_budget_step *taken, uint64_t clock)
{
	struct pem_detail_state *d = s->cost->detail;
	struct step *step = &d->steps[d->step_count++ % STEPS_MAX];

	bool up = taken->to > taken->from;

	s->demands[taken->event].detail = taken->to;
	s->demands[taken->event].was_reduced = true;
	s->demands[taken->event].was_off |= taken->to == PEM_DETAIL_OFF;
	*step = (struct step){.clock = clock,
			      .event = s->demands[taken->event].event,
			      .from = taken->from,
			      .to = taken->to,
			      .share = taken->share,
			      .budget = d->budget};
	say_step(s, step);
	d->raised[up]++;
	if (s->log && !s->options.overwrite && !s->log->closed)
		d->written[up] += write_step(s, step);
}

void pem_session__judge(struct pem_session *s, uint64_t now_ns)
{
	struct pem_detail_state *d = s->cost->detail;
	const struct pem_costs *costs;
	struct pem_budget_event *events;
	struct pem_budget_step *steps;
	size_t count, taken = 0, i;
	uint64_t cpu_ns, clock;

	if (!d || d->budget <= 0 || now_ns < d->next_ns)
		return;
	d->next_ns = now_ns + JUDGE_NS;
	count_events(s);
	cpu_ns = pem_session__program_cpu_ns(s);
	/* A process has ended, and its time is missing. */
	if (cpu_ns < d->cpu_ns)
		d->cpu_ns = cpu_ns;
	if (cpu_ns - d->cpu_ns < CPU_NS_MIN)
		return;
	costs = pem_session__measure(s, pem_session__cost_kinds(s));
	find_gaps(s, cpu_ns - d->cpu_ns);
	count = s->demand_count;
	events = calloc(count + 1, sizeof(*events));
	steps = calloc(2 * count + 1, sizeof(*steps));
	for (i = 0; events && i < count; i++) {
		present(s, &s->demands[i], costs);
		events[i] = d->counted[i].event;
	}
	if (events && steps)
		taken = pem_budget__judge(events, count, d->budget, (double)(cpu_ns - d->cpu_ns),
					  steps, 2 * count);
	d->cpu_ns = cpu_ns;
	for (i = 0; events && i < count; i++)
		d->counted[i].event = events[i];
	clock = pem_clock();
	for (i = 0; i < taken; i++)
		take_step(s, &steps[i], clock);
	if (taken) {
		pem_session__publish(s);
		pem_session__update_sources(s);
	}
	free(events);
	free(steps);
}

/* --- the account --- */

static void note_reduced(struct pem_session *s, struct pem_trace_info *info)
{
	uint64_t counted[PEM_COST_KINDS] = {0};
	const struct pem_demand *demand;
	struct pem_trace_reduced *r;
	enum pem_cost_kind kind;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		demand = &s->demands[i];
		kind = pem_session__cost_kind(s, demand->event);
		if (kind != PEM_COST_NONE)
			counted[kind] +=
				counted_of(s, demand)->only + counted_of(s, demand)->further;
		if (!demand->was_reduced || info->reduced_count == PEM_ARRAY_SIZE(info->reduced))
			continue;
		r = &info->reduced[info->reduced_count++];
		pem_copy_text(r->event, sizeof(r->event), demand->event->name);
		r->detail = demand->detail;
		r->counted = counted_of(s, demand)->only;
	}
	pem_session__add_stat_costs(s, info, counted);
}

/* Write the last steps, which a flight recorder has kept. */
static void write_kept(struct pem_session *s, struct pem_balance *down_and_up)
{
	const struct pem_detail_state *d = s->cost->detail;
	uint64_t kept[2] = {0, 0}, i = d->step_count > STEPS_MAX ? d->step_count - STEPS_MAX : 0;
	const struct step *step;
	bool up;

	for (; i < d->step_count; i++) {
		step = &d->steps[i % STEPS_MAX];
		up = step->to > step->from;
		kept[up]++;
		down_and_up[up].delivered += write_step(s, step);
	}
	for (i = 0; i < 2; i++)
		down_and_up[i].overwritten = d->raised[i] - kept[i];
}

void pem_session__account_detail(struct pem_session *s, struct pem_trace_info *info)
{
	static const char *const names[] = {DOWN, UP};
	struct pem_balance_entry entries[2] = {{0}};
	struct pem_balance balance[2] = {{0}};
	const struct pem_event *event;
	size_t i, count = 0;

	if (!s->cost->detail)
		return;
	count_events(s);
	note_reduced(s, info);
	if (s->options.overwrite)
		write_kept(s, balance);
	for (i = 0; i < 2; i++) {
		event = pem_model__by_name(s->model, names[i]);
		if (!event || !s->cost->detail->raised[i])
			continue;
		if (!s->options.overwrite)
			balance[i].delivered = s->cost->detail->written[i];
		balance[i].produced = s->cost->detail->raised[i];
		balance[i].discarded =
			balance[i].produced - balance[i].delivered - balance[i].overwritten;
		pem_log__describe(s->log, event);
		entries[count].event_id = event->id;
		entries[count++].balance = balance[i];
	}
	if (count)
		pem_trace_writer__balance(s->log->writer, (uint32_t)getpid(), "pem", 0, entries,
					  count);
}
