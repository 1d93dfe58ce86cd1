/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * ledger.c - what a recording cost the observed programs: of each kind how often, and how much each
 *
 * An event costs more when its code and data are no longer in the caches. How far they are is
 * estimated by the CPU time that the programs used between two events of programs, or two of the
 * kernel. Both ends, warm caches and cold ones, are stated beside.
 *
 * Not here: measuring (calibrate.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "processes/processes.h"
#include "source_host/source_host.h"
#include "statistics/statistics.h"
#include "writer/log.h"
#include "pool.h"
#include "util.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READING "reading" /* of counters, at an event */

/* Two figures of each kind: how often, and the CPU time in ns between two events. */
struct counts {
	uint64_t count[PEM_COST_KINDS];
	double gap_ns[PEM_COST_KINDS];
	uint64_t lost; /* of programs' events; they are not in count */
};

/* The line to fill in next: a new one, or one of which there was none. Returns cost_count: none. */
static uint32_t free_line(const struct pem_trace_info *info)
{
	uint32_t i;

	if (info->cost_count < PEM_ARRAY_SIZE(info->costs))
		return info->cost_count;
	for (i = 0; i < info->cost_count && info->costs[i].count; i++)
		;
	return i;
}

/* Add to the last line, which becomes that of all others. */
static void add_to_others(struct pem_trace_info *info, double ns, double least_ns, double most_ns,
			  uint64_t count)
{
	uint32_t last = PEM_ARRAY_SIZE(info->costs) - 1;
	struct pem_trace_cost *cost = &info->costs[last];
	struct pem_trace_cost_range *range = &info->cost_ranges[last];
	double old = (double)cost->count, new = (double)count, all = old + new;

	/* If one was not measured, all of them count as not measured: the sum tells what it lacks.
	 */
	cost->ns_each = cost->ns_each > 0 && ns > 0 ? (cost->ns_each * old + ns * new) / all : 0;
	range->least_ns = (range->least_ns * old + least_ns * new) / all;
	range->most_ns = (range->most_ns * old + most_ns * new) / all;
	cost->count += count;
	pem_copy_text(cost->kind, sizeof(cost->kind), "others");
}

void pem_cost__add(struct pem_trace_info *info, const char *kind, double ns, double least_ns,
		   double most_ns, uint64_t count)
{
	uint32_t line = free_line(info);
	struct pem_trace_cost *cost = &info->costs[line];

	most_ns = most_ns > least_ns ? most_ns : least_ns;
	ns = pem_cost__rounded(ns);
	if (line == PEM_ARRAY_SIZE(info->costs)) {
		if (count)
			add_to_others(info, ns, least_ns, most_ns, count);
		return;
	}
	*cost = (struct pem_trace_cost){.ns_each = ns, .count = count};
	pem_copy_text(cost->kind, sizeof(cost->kind), kind);
	info->cost_ranges[line] = (struct pem_trace_cost_range){least_ns, most_ns};
	info->cost_count += line == info->cost_count;
}

/* Add a line of a cost that is the same whatever the caches hold. */
static void add_plain(struct pem_trace_info *info, const char *kind, double ns, uint64_t count)
{
	pem_cost__add(info, kind, ns, ns, ns, count);
}

/*
 * Add a line for a kind. A cost that could not be measured is 0 ns; programs that show the ledger
 * say so.
 */
static void add_kind(const struct pem_session *s, struct pem_trace_info *info, unsigned kind,
		     bool stat, double gap_ns, uint64_t count)
{
	const struct pem_cost *cost = &s->cost->costs.each[kind];
	char name[sizeof(info->costs[0].kind)];

	pem_cost__name(name, sizeof(name), kind, stat);
	pem_cost__add(info, name, pem_cost__at(cost, stat, gap_ns),
		      stat ? cost->stat_ns : cost->log_ns,
		      stat ? cost->cold_stat_ns : cost->cold_log_ns, count);
}

/* --- how often --- */

static uint64_t populated_pages(const struct pem_producer *p)
{
	const uint32_t *populated = pem_pool__populated(&p->ring);
	uint64_t halves = 0, half_bytes = p->ring.chunk_bytes / 2;
	uint32_t i;

	for (i = 0; i < (p->ring.chunk_count + 15) / 16; i++)
		halves += (unsigned)__builtin_popcount(
			__atomic_load_n(&populated[i], __ATOMIC_RELAXED));
	return halves * half_bytes / (uint64_t)sysconf(_SC_PAGESIZE);
}

void pem_session__note_pool(struct pem_session *s, const struct pem_producer *p)
{
	s->cost->pool_pages += populated_pages(p);
}

static uint64_t pool_pages(const struct pem_session *s)
{
	const struct pem_producer *p;
	uint64_t pages = s->cost->pool_pages;

	for (p = s->processes->producers; p; p = p->next)
		pages += populated_pages(p);
	return pages;
}

/* Processes that raised events. Switches and page faults are those of the command that ended. */
static uint64_t starts_of(const struct pem_session *s)
{
	return __atomic_load_n(&s->page->pools_ready, __ATOMIC_RELAXED);
}

static uint64_t switches_of(const struct pem_session *s)
{
	const struct rusage *usage = &s->command.usage;

	return s->command.done ? (uint64_t)usage->ru_nvcsw + (uint64_t)usage->ru_nivcsw : 0;
}

static uint64_t faults_of(const struct pem_session *s)
{
	const struct rusage *usage = &s->command.usage;

	return s->command.done ? (uint64_t)usage->ru_minflt + (uint64_t)usage->ru_majflt : 0;
}

/* How often stacks of allocations were looked for, and how many calls they had. */
static struct pem_statistic walks_of(const struct pem_session *s)
{
	const struct pem_demand *demand = s->log ? s->log->walks : NULL;
	struct pem_statistic all = {0};
	struct pem_producer *p;

	if (demand && demand->retired_epoch == demand->epoch)
		all = demand->retired;
	for (p = s->processes->producers; demand && p; p = p->next)
		pem_producer__statistic(p, demand, &all);
	return all;
}

static bool is_of_programs(unsigned kind)
{
	return kind == PEM_COST_USER || kind == PEM_COST_LIBC;
}

/* Events of the C library have these beside, and are counted themselves. */
static bool is_of_stacks(unsigned kind)
{
	return PEM_COST_STACK_KINDS >> kind & 1;
}

/* What observing cost the programs at least, events and all else. */
static double least_cost(const struct pem_session *s, const struct counts *c)
{
	const struct pem_session_cost *cost = s->cost;
	double sum =
		(double)pool_pages(s) * cost->costs.page_ns + (double)c->lost * cost->costs.lost_ns;
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++)
		sum += (double)c->count[i] * cost->costs.each[i].log_ns;
	return sum + (double)starts_of(s) * cost->process.start_ns +
	       (double)switches_of(s) * cost->process.switch_ns +
	       (double)faults_of(s) * cost->process.fault_ns;
}

/* Estimate the CPU time between two events: of what the programs used without the observation. */
static void find_gaps(const struct pem_session *s, const struct pem_trace_info *info,
		      struct counts *c)
{
	double base = (double)(info->machine_cpu_ns ? info->machine_cpu_ns : info->program_cpu_ns);
	double work = base - least_cost(s, c);
	uint64_t events[2] = {0, 0};
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++)
		if (!is_of_stacks(i))
			events[is_of_programs(i)] += c->count[i];
	for (i = 0; i < PEM_COST_KINDS; i++) {
		bool programs = is_of_programs(i) || is_of_stacks(i);

		c->gap_ns[i] = -1;
		if (base > 0 && events[programs])
			c->gap_ns[i] = work > 0 ? work / (double)events[programs] : 0;
	}
}

/* Count programs' events that found no room in their pool, if the cost of one is known. */
static void count_lost(const struct pem_session *s, struct counts *c)
{
	const struct pem_log *log = s->log;

	if (s->cost->costs.lost_ns > 0 && log->produced > log->delivered + log->overwritten)
		c->lost = log->produced - log->delivered - log->overwritten;
}

/* How many of the lost events are of a kind that has this number of events. */
static uint64_t lost_of(const struct pem_session *s, const struct counts *c, uint64_t produced)
{
	return c->lost ? (uint64_t)((double)c->lost * (double)produced / (double)s->log->produced)
		       : 0;
}

static void count_events(const struct pem_session *s, struct counts *c)
{
	struct pem_statistic walks = walks_of(s);
	enum pem_cost_kind kind;
	size_t i;

	memset(c, 0, sizeof(*c));
	c->count[PEM_COST_STACK] = walks.count;
	c->count[PEM_COST_CALL] = walks.sum;
	for (i = 0; i < s->demand_count; i++) {
		kind = pem_session__cost_kind(s, s->demands[i].event);
		if (kind != PEM_COST_NONE)
			c->count[kind] += s->demands[i].delivered + s->demands[i].lost +
					  s->demands[i].overwritten;
	}
	count_lost(s, c);
	c->count[PEM_COST_LIBC] = s->log->of_libc - lost_of(s, c, s->log->of_libc);
	c->count[PEM_COST_USER] = s->log->produced - c->lost - c->count[PEM_COST_LIBC];
}

/* --- the account --- */

static void add_lines(struct pem_session *s, struct pem_trace_info *info, const struct counts *c)
{
	const struct pem_session_cost *cost = s->cost;
	const struct pem_process_cost *process = &cost->process;
	uint32_t kinds = pem_session__cost_kinds(s);
	unsigned i;

	info->cost_count = 0;
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (kinds >> i & 1)
			add_kind(s, info, i, false, c->gap_ns[i], c->count[i]);
	}
	if (s->sources->thread_counter_count)
		add_plain(info, READING, cost->reading_ns, s->log->readings);
	if (cost->costs.page_ns > 0)
		add_plain(info, "pool-page", cost->costs.page_ns, pool_pages(s));
	if (c->lost)
		add_plain(info, "lost", cost->costs.lost_ns, c->lost);
	if (process->start_ns > 0)
		add_plain(info, "process-start", process->start_ns, starts_of(s));
	if (process->switch_ns > 0 && s->command.done)
		add_plain(info, "switch", process->switch_ns, switches_of(s));
	if (process->fault_ns > 0 && s->command.done)
		add_plain(info, "fault", process->fault_ns, faults_of(s));
}

double pem_session__walk_ns(const struct pem_session *s, double gap_ns)
{
	const struct pem_cost *each = s->cost->costs.each;
	struct pem_statistic walks = walks_of(s);

	if (!walks.count)
		return 0;
	return pem_cost__at(&each[PEM_COST_STACK], false, gap_ns) +
	       pem_cost__at(&each[PEM_COST_CALL], false, gap_ns) * (double)walks.sum /
		       (double)walks.count;
}

void pem_session__calibrate(struct pem_session *s, struct pem_trace_info *info,
			    const struct pem_run_options *started)
{
	const struct counts none = {.count = {0}};

	pem_session__measure(s, pem_session__cost_kinds(s));
	if (pem_session__measure_process(s, started))
		pem_costs__store(&s->cost->costs);
	/* The costs are written again: a command may be started after targets were attached. */
	add_lines(s, info, &none);
}

void pem_session__count_costs(struct pem_session *s, struct pem_trace_info *info)
{
	struct counts c;
	uint32_t i, kept = 0;

	count_events(s, &c);
	find_gaps(s, info, &c);
	add_lines(s, info, &c);
	for (i = 0; i < info->cost_count; i++) {
		if (!info->costs[i].count && info->costs[i].ns_each <= 0)
			continue;
		info->cost_ranges[kept] = info->cost_ranges[i];
		info->costs[kept++] = info->costs[i];
	}
	info->cost_count = kept;
}

void pem_session__add_stat_costs(struct pem_session *s, struct pem_trace_info *info,
				 const uint64_t *counted)
{
	struct counts c = {.count = {0}};
	unsigned i;

	memcpy(c.count, counted, sizeof(c.count));
	find_gaps(s, info, &c);
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (counted[i])
			add_kind(s, info, i, true, c.gap_ns[i], counted[i]);
	}
}
