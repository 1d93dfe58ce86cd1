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
};

static void add_line(struct pem_trace_info *info, const char *kind, struct pem_step each,
		     double gap_ns, uint64_t count)
{
	struct pem_trace_cost_range *range = &info->cost_ranges[info->cost_count];
	struct pem_trace_cost *cost = &info->costs[info->cost_count];

	if (info->cost_count == PEM_ARRAY_SIZE(info->costs))
		return;
	memset(cost, 0, sizeof(*cost));
	pem_copy_text(cost->kind, sizeof(cost->kind), kind);
	cost->ns_each = pem_cost__rounded(pem_cost__at(each.warm, each.cold, gap_ns));
	cost->count = count;
	range->least_ns = each.warm;
	range->most_ns = each.cold > each.warm ? each.cold : each.warm;
	info->cost_count++;
}

/* Add a line of a cost that is the same whatever the caches hold. */
static void add_plain(struct pem_trace_info *info, const char *kind, double ns, uint64_t count)
{
	add_line(info, kind, (struct pem_step){ns, ns}, 0, count);
}

/*
 * Add a line for a kind. A cost that could not be measured is 0 ns; programs that show the ledger
 * say so.
 */
static void add_kind(const struct pem_session *s, struct pem_trace_info *info, unsigned kind,
		     bool stat, double gap_ns, uint64_t count)
{
	const struct pem_cost *cost = &s->cost->costs.each[kind];
	struct pem_step each = {cost->log_ns, cost->cold_log_ns};
	char name[sizeof(info->costs[0].kind)];

	if (stat)
		each = (struct pem_step){cost->stat_ns, cost->cold_stat_ns};
	pem_cost__name(name, sizeof(name), kind, stat);
	add_line(info, name, each, gap_ns, count);
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

static bool is_of_programs(unsigned kind)
{
	return kind == PEM_COST_USER || kind == PEM_COST_LIBC;
}

/*
 * Estimate the CPU time between two events: of what the programs used without the observation,
 * which took as much as its events cost at least.
 */
static void find_gaps(const struct pem_session *s, const struct pem_trace_info *info,
		      struct counts *c)
{
	double base = (double)(info->machine_cpu_ns ? info->machine_cpu_ns : info->program_cpu_ns);
	uint64_t events[2] = {0, 0};
	double work = base;
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++) {
		events[is_of_programs(i)] += c->count[i];
		work -= (double)c->count[i] * s->cost->costs.each[i].log_ns;
	}
	for (i = 0; i < PEM_COST_KINDS; i++) {
		c->gap_ns[i] = -1;
		if (base > 0 && events[is_of_programs(i)])
			c->gap_ns[i] = work > 0 ? work / (double)events[is_of_programs(i)] : 0;
	}
}

static void count_events(const struct pem_session *s, struct counts *c)
{
	enum pem_cost_kind kind;
	size_t i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < s->demand_count; i++) {
		kind = pem_session__cost_kind(s, s->demands[i].event);
		if (kind != PEM_COST_NONE)
			c->count[kind] += s->demands[i].delivered + s->demands[i].lost +
					  s->demands[i].overwritten;
	}
	c->count[PEM_COST_LIBC] = s->log->of_libc;
	c->count[PEM_COST_USER] = s->log->produced - s->log->of_libc;
}

/* --- the account --- */

static void add_lines(struct pem_session *s, struct pem_trace_info *info, const struct counts *c)
{
	const struct pem_session_cost *cost = s->cost;
	const struct rusage *usage = &s->command.usage;
	uint32_t kinds = pem_session__cost_kinds(s);
	bool ended = s->command.done;
	unsigned i;

	info->cost_count = 0;
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (kinds >> i & 1)
			add_kind(s, info, i, false, c->gap_ns[i], c->count[i]);
	}
	if (s->sources->thread_counter_count)
		add_plain(info, READING, cost->reading_ns, s->log->readings);
	if (cost->start_ns > 0)
		add_plain(info, "process-start", cost->start_ns,
			  __atomic_load_n(&s->page->pools_ready, __ATOMIC_RELAXED));
	if (cost->costs.page_ns > 0)
		add_plain(info, "pool-page", cost->costs.page_ns, pool_pages(s));
	if (cost->counting.switch_ns > 0)
		add_plain(info, "counted-switch", cost->counting.switch_ns,
			  ended ? (uint64_t)usage->ru_nvcsw + (uint64_t)usage->ru_nivcsw : 0);
	if (cost->counting.fault_ns > 0)
		add_plain(info, "counted-fault", cost->counting.fault_ns,
			  ended ? (uint64_t)usage->ru_minflt + (uint64_t)usage->ru_majflt : 0);
	if (cost->counting.start_ns > 0)
		add_plain(info, "counted-start", cost->counting.start_ns,
			  ended ? __atomic_load_n(&s->page->pools_ready, __ATOMIC_RELAXED) : 0);
}

void pem_session__calibrate(struct pem_session *s, struct pem_trace_info *info)
{
	const struct counts none = {.count = {0}};

	pem_session__measure(s, pem_session__cost_kinds(s));
	/* The costs are written again: a command may be started after targets were attached. */
	add_lines(s, info, &none);
}

void pem_session__calibrate_start(struct pem_session *s, struct pem_trace_info *info, bool adapters)
{
	double *start_ns = &s->cost->costs.start_ns[adapters];
	const struct counts none = {.count = {0}};

	if (!*start_ns) {
		*start_ns = pem_cost__rounded(pem_start_ns(adapters));
		pem_costs__store(&s->cost->costs);
	}
	s->cost->start_ns = *start_ns;
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
