/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calibrate.c - which kinds of events a session has, and what they cost on this machine: measured
 * when they are wanted for the first time, and remembered
 *
 * A result from a busy moment is remembered until the next boot (cost_cache.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "util.h"

#include <pem/clock.h>

#include <stdio.h>
#include <string.h>

#define NO_SOURCE "-"

double pem_cost__at(const struct pem_cost *cost, bool stat, double gap_ns)
{
	double warm = stat ? cost->stat_ns : cost->log_ns;
	double cold = stat ? cost->cold_stat_ns : cost->cold_log_ns;
	double beyond = gap_ns - cost->warm_gap_ns, part = 0.5;

	if (gap_ns >= 0)
		part = beyond > 0 ? beyond / (beyond + cost->half_gap_ns) : 0;
	return cold > warm ? warm + part * (cold - warm) : warm;
}

/* As the cache does it. */
double pem_cost__rounded(double ns)
{
	return (double)(uint64_t)(ns * 1000 + 0.5) / 1000;
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

static const char *const kind_names[PEM_COST_KINDS] = {
	[PEM_COST_USER] = "user",
	[PEM_COST_LIBC] = "libc",
	[PEM_COST_SYSCALL] = "syscall",
	[PEM_COST_PATH] = "path",
	[PEM_COST_FILE] = "file",
	[PEM_COST_KERNEL] = "kernel",
	[PEM_COST_UPROBE] = "uprobe",
	[PEM_COST_URETPROBE] = "uretprobe",
	[PEM_COST_SAMPLE] = "sample",
	[PEM_COST_SAMPLE_FRAMES] = "sample-fp",
	[PEM_COST_SAMPLE_TABLES] = "sample-dwarf",
	[PEM_COST_STACK] = "stack",
	[PEM_COST_CALL] = "stack-call",
};

void pem_cost__name(char *text, size_t bytes, unsigned kind, bool stat)
{
	snprintf(text, bytes, "%s%s", kind_names[kind],
		 kind >= PEM_COST_SAMPLE ? ""
		 : stat                  ? "-stat"
					 : "-log");
}

enum pem_cost_kind pem_session__cost_kind(const struct pem_session *s,
					  const struct pem_event *event)
{
	switch (event->source_kind) {
	case PEM_SOURCE_STUB:
		/* It is counted for what it tells of. */
		if (!strcmp(event->name, PEM_STACK_WALK_EVENT))
			return PEM_COST_NONE;
		return strcmp(event->source_name, "libpem-libc.so") ? PEM_COST_USER : PEM_COST_LIBC;
	case PEM_SOURCE_SAMPLE:
		/* A sample of data has registers in place of callers. */
		if (event->meaning == PEM_MEANS_ACCESS)
			return PEM_COST_SAMPLE;
		/* That a file is mapped is told beside samples, and takes no timer. */
		return event->meaning == PEM_MEANS_SAMPLE
			       ? PEM_COST_SAMPLE + s->options.sample_stacks
			       : PEM_COST_NONE;
	case PEM_SOURCE_USDT:
	case PEM_SOURCE_UPROBE:
		return PEM_COST_UPROBE;
	case PEM_SOURCE_PROBE:
		if (starts(event->source_name, "uretprobe:"))
			return PEM_COST_URETPROBE;
		return starts(event->source_name, "uprobe:") || starts(event->source_name, "usdt:")
			       ? PEM_COST_UPROBE
			       : PEM_COST_KERNEL;
	default:
		if (!pem_event__is_of_kernel(event))
			return PEM_COST_NONE;
		if (event->meaning == PEM_MEANS_DESCRIPTOR_NAME)
			return PEM_COST_FILE;
		if (event->meaning == PEM_MEANS_CALL_PATH)
			return PEM_COST_PATH;
		return starts(event->source_name, "raw_syscalls:") ? PEM_COST_SYSCALL
								   : PEM_COST_KERNEL;
	}
}

uint32_t pem_session__cost_kinds(const struct pem_session *s)
{
	const struct pem_demand *demand;
	enum pem_cost_kind kind;
	uint32_t kinds = 1u << PEM_COST_USER;
	size_t i;

	for (i = 0; i < s->demand_count; i++) {
		kind = pem_session__cost_kind(s, s->demands[i].event);
		for (demand = &s->demands[i]; demand; demand = demand->next) {
			if ((demand->want_log || demand->want_statistic) && kind != PEM_COST_NONE)
				kinds |= 1u << kind;
		}
		if (s->demands[i].event->meaning == PEM_MEANS_FRAME && s->demands[i].want_log)
			kinds |= PEM_COST_STACK_KINDS;
	}
	if (s->log && s->log->of_libc)
		kinds |= 1u << PEM_COST_LIBC;
	/* Tracepoints tell which thread runs on a CPU, whatever other kernel events are wanted. */
	if (kinds & (PEM_COST_KERNEL_KINDS | 1u << PEM_COST_UPROBE | 1u << PEM_COST_URETPROBE))
		kinds |= 1u << PEM_COST_KERNEL;
	return kinds;
}

/* Forget what was measured with another source than the one that serves the kernel's events now. */
static void forget_other_source(struct pem_costs *costs, const struct pem_source_ops *kernel)
{
	unsigned i;

	if (!*costs->kernel_source || (kernel && !strcmp(costs->kernel_source, kernel->name)))
		return;
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (PEM_COST_KERNEL_KINDS >> i & 1)
			costs->each[i] = (struct pem_cost){0};
	}
}

/* Of the kinds wanted, return those whose cost is not known. */
static uint32_t unknown_of(const struct pem_costs *costs, uint32_t kinds)
{
	uint32_t unknown = 0;
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (kinds >> i & 1 && costs->each[i].log_ns <= 0)
			unknown |= 1u << i;
	}
	return unknown;
}

const struct pem_costs *pem_session__measure(struct pem_session *s, uint32_t kinds)
{
	const struct pem_source_ops *kernel =
		kinds & PEM_COST_KERNEL_KINDS ? pem_session__kernel_source(s) : NULL;
	struct pem_costs *costs = &s->cost->costs;
	uint32_t unknown;

	kinds |= 1u << PEM_COST_USER;
	if (kinds & PEM_COST_KERNEL_KINDS)
		kinds |= PEM_COST_KERNEL_KINDS;
	/*
	 * A kind that was tried once in this session is not tried again: it could not be measured.
	 */
	kinds &= ~s->cost->costs_tried;
	s->cost->costs_tried |= kinds;
	if (!kinds)
		return costs;
	if (unknown_of(costs, kinds) && costs->each[PEM_COST_USER].log_ns <= 0)
		pem_costs__load(costs);
	if (kinds & PEM_COST_KERNEL_KINDS)
		forget_other_source(costs, kernel);
	unknown = unknown_of(costs, kinds);
	pem_session__measure_kinds(s, unknown, kernel, costs);
	if (unknown && costs->page_ns <= 0)
		costs->page_ns = pem_cost__rounded(pem_page_ns());
	if (unknown & PEM_COST_KERNEL_KINDS)
		pem_copy_text(costs->kernel_source, sizeof(costs->kernel_source),
			      kernel ? kernel->name : NO_SOURCE);
	else if (!*costs->kernel_source)
		pem_copy_text(costs->kernel_source, sizeof(costs->kernel_source), NO_SOURCE);
	pem_session__measure_reading(s);
	if (unknown)
		pem_costs__store(costs);
	return costs;
}

int pem_session__costs(struct pem_session *session, struct pem_event_cost *out, size_t max)
{
	struct pem_costs costs;
	struct pem_event_cost one = {0};
	size_t count = 0;
	unsigned i, stat;

	if (!session || pem_sized__check_array(out, max))
		return -EINVAL;
	pem_session__lock(session);
	costs = *pem_session__measure(session, (1u << PEM_COST_KINDS) - 1);
	pem_session__unlock(session);
	for (i = 0; i < PEM_COST_KINDS; i++) {
		for (stat = 0; stat < 2; stat++) {
			pem_cost__name(one.kind, sizeof(one.kind), i, stat);
			one.ns_each = stat ? costs.each[i].stat_ns : costs.each[i].log_ns;
			if (one.ns_each > 0 && count < max)
				pem_sized__write(out, count++, &one, sizeof(one));
		}
	}
	return (int)count;
}
