/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * calibrate.c - measure what one event of each kind costs on this machine, for the overhead ledger
 *
 * process-start: see start_cost.c.
 *
 * user-log: a record of two fields into a private ring, by the inlines that stubs use, with the
 * clock read.
 *
 * user-stat: one value added to a statistic by the same inlines.
 *
 * kernel-log, kernel-stat: the extra time of a getppid when the source that serves it logs its
 * entry, or counts it.
 *
 * uprobe-log, uretprobe-log and so on: the same for a function of pem that does nothing. A probe is
 * really attached to it, in this process alone. This takes some ten milliseconds, so it is measured
 * when such an event is wanted for the first time.
 *
 * sample: see sample_cost.c.
 *
 * Each result is the least of several rounds, since other load on the machine only adds time. A
 * result from a busy moment is remembered until the next boot (cost_cache.c).
 */
#include "core/core.h"
#include "core/demand.h"
#include "cost/cost.h"
#include "producer/producer.h"
#include "source_host/source_host.h"
#include "writer/log.h"
#include "model_internal.h"
#include "util.h"

#include <pem/clock.h>
#include <pem/ring.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 9
#define USER_EVENTS 20000
#define KERNEL_EVENTS 2000
#define RING_BYTES (256u << 10)
#define NO_SOURCE "-"
#define READING "reading" /* of counters, at an event: the ledger's word for it */

static double least(const double *values, size_t count)
{
	double found = values[0];
	size_t i;

	for (i = 1; i < count; i++) {
		if (values[i] < found)
			found = values[i];
	}
	return found;
}

static double cycles_to_ns(double cycles)
{
	return cycles * 1e9 / (double)pem_clock__hz();
}

static double user_log_ns(void)
{
	uint8_t *memory = calloc(1, RING_BYTES), *record;
	struct pem_cell cell = {0};
	struct pem_writer w = {0};
	double rounds[ROUNDS];
	uint64_t start, now;
	int r, i;

	if (!memory)
		return 0;
	for (r = 0; r < ROUNDS; r++) {
		start = pem_clock();
		w.packet = (struct pem_packet *)memory;
		w.end = memory + RING_BYTES;
		w.cursor = w.end;
		for (i = 0; i < USER_EVENTS; i++) {
			now = pem_clock();
			record = pem_ring_reserve(&w, now, 24);
			if (!record) {
				w.cursor = memory + PEM_PACKET_HEADER_BYTES;
				w.last_clock = now;
				record = w.cursor;
			}
			((uint64_t *)record)[1] = (uint64_t)i;
			((uint64_t *)record)[2] = now;
			pem_ring_commit(&w, &cell, now, 16, 24);
		}
		rounds[r] = cycles_to_ns((double)(pem_clock() - start)) / USER_EVENTS;
	}
	free(memory);
	return least(rounds, ROUNDS);
}

static double user_stat_ns(void)
{
	struct pem_cell cell = {0};
	double rounds[ROUNDS];
	uint64_t start;
	int r, i;

	for (r = 0; r < ROUNDS; r++) {
		start = pem_clock();
		for (i = 0; i < USER_EVENTS; i++) {
			pem_cell_add(&cell, 1, (uint64_t)i, (uint64_t)i);
			__asm__ volatile(
				""
				:
				: "r"(&cell)
				: "memory"); /* keeps the compiler from merging the additions */
		}
		rounds[r] = cycles_to_ns((double)(pem_clock() - start)) / USER_EVENTS;
	}
	return least(rounds, ROUNDS);
}

static double getppid_ns(void)
{
	double rounds[ROUNDS];
	uint64_t start;
	int r, i;

	for (r = 0; r < ROUNDS; r++) {
		start = pem_clock();
		for (i = 0; i < KERNEL_EVENTS; i++)
			syscall(SYS_getppid);
		rounds[r] = cycles_to_ns((double)(pem_clock() - start)) / KERNEL_EVENTS;
	}
	return least(rounds, ROUNDS);
}

static int forget(void *arg, const char *name, struct pem_packet *packet, size_t bytes)
{
	(void)arg;
	(void)name;
	(void)packet;
	(void)bytes;
	return 0;
}

static uint64_t same_time(void *arg, uint64_t monotonic_ns)
{
	(void)arg;
	return monotonic_ns;
}

/* Find the event of system call entry by its source: its name may be any. */
static const struct pem_event *syscall_entry(const struct pem_model *model)
{
	size_t i;

	for (i = 0; i < pem_model__count(model); i++) {
		if (!strcmp(pem_model__event(model, i)->source_name, "raw_syscalls:sys_enter"))
			return pem_model__event(model, i);
	}
	return NULL;
}

/* The source that serves an event here and now. NULL: there is none. */
static const struct pem_source_ops *source_of(struct pem_session *s, const struct pem_event *event)
{
	const char *name;

	return event ? pem_session__find_plugin(s, NULL, event, &name, NULL) : NULL;
}

/*
 * Measure the extra time of once_ns when its event is logged, and when it is counted. A cost of 0
 * could not be measured.
 */
static struct pem_cost measure_event(const struct pem_source_ops *ops,
				     const struct pem_event *event, double (*once_ns)(void))
{
	const struct pem_source_sink sink = {.write = forget, .clock_at = same_time};
	struct pem_source_event wanted = {
		.event = event,
		.context = {.pid = (uint32_t)getpid(), .tid = (uint32_t)gettid()},
		.action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1)};
	struct pem_source_config config = {
		.size = sizeof(config), .events = &wanted, .event_count = 1};
	struct pem_source *source = NULL;
	double logged = 0, counted = 0, without;

	if (!ops || ops->open(&config, &source, NULL))
		return (struct pem_cost){0, 0};
	without = once_ns();
	if (!ops->start(source, NULL)) {
		logged = once_ns();
		ops->set_action(source, 0, PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 1));
		counted = once_ns();
	}
	ops->drain(source, &sink, 1);
	ops->close(source);
	return (struct pem_cost){.log_ns = logged > without ? logged - without : 0,
				 .stat_ns = counted > without ? counted - without : 0};
}

/* --- functions of programs --- */

/*
 * The function that probes are attached to. It is exported anyway. It begins with an instruction
 * that the kernel does not have to step through (session.c). So do static probes, and functions
 * that begin by saving the frame pointer. Functions that begin with another instruction cost more
 * than is measured here, such as endbr64 where the kernel does not know it.
 */
static double call_ns(void)
{
	const char *(*volatile call)(void) = pem_version;
	double rounds[ROUNDS];
	uint64_t start;
	int r, i;

	for (r = 0; r < ROUNDS; r++) {
		start = pem_clock();
		for (i = 0; i < KERNEL_EVENTS; i++)
			call();
		rounds[r] = cycles_to_ns((double)(pem_clock() - start)) / KERNEL_EVENTS;
	}
	return least(rounds, ROUNDS);
}

static int describe(void *arg, const struct pem_event *event)
{
	return pem_model__describe(arg, event, NULL);
}

/* Find the event of this function's entry, or of its return. NULL: no source finds it. */
static const struct pem_event *own_function(struct pem_session *s, struct pem_model *model,
					    const char *kind)
{
	char path[PATH_MAX], pattern[PATH_MAX + 64];
	const struct pem_source_plugin *plugin;
	Dl_info info;

	/*
	 * A program may have entries of its own for exported functions of libpem. So dladdr() gets
	 * the address of a function that is not exported.
	 */
	if (!dladdr((void *)(uintptr_t)call_ns, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, path))
		return NULL;
	snprintf(pattern, sizeof(pattern), "%s:%s:pem_version", kind, path);
	pem_session__load_plugins(s);
	for (plugin = s->sources->plugins; plugin; plugin = plugin->next) {
		if (plugin->ops->find && plugin->ops->find(pattern, describe, model, NULL) == 1)
			return pem_model__event(model, pem_model__count(model) - 1);
	}
	return NULL;
}

static struct pem_cost measure_function(struct pem_session *s, const char *kind)
{
	struct pem_model *model = pem_model__new();
	const struct pem_event *event = model ? own_function(s, model, kind) : NULL;
	struct pem_cost cost = measure_event(source_of(s, event), event, call_ns);

	pem_model__free(model);
	return cost;
}

/* --- all kinds --- */

static const char *const kind_names[PEM_COST_KINDS] = {
	[PEM_COST_USER] = "user",
	[PEM_COST_KERNEL] = "kernel",
	[PEM_COST_UPROBE] = "uprobe",
	[PEM_COST_URETPROBE] = "uretprobe",
	[PEM_COST_SAMPLE] = "sample",
	[PEM_COST_SAMPLE_FRAMES] = "sample-fp",
	[PEM_COST_SAMPLE_TABLES] = "sample-dwarf",
};

/*
 * Write a kind's name, such as "uprobe-log" or "uprobe-stat". A sample is only logged, so its name
 * has no ending.
 */
static void name_kind(char *text, size_t bytes, unsigned kind, bool stat)
{
	snprintf(text, bytes, "%s%s", kind_names[kind],
		 kind >= PEM_COST_SAMPLE ? ""
		 : stat                  ? "-stat"
					 : "-log");
}

static bool starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

enum pem_cost_kind pem_session__cost_kind(const struct pem_session *s,
					  const struct pem_event *event)
{
	switch (event->source_kind) {
	case PEM_SOURCE_STUB:
		return PEM_COST_USER;
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
		return pem_event__is_of_kernel(event) ? PEM_COST_KERNEL : PEM_COST_NONE;
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
	}
	/* Tracepoints tell which thread runs on a CPU, whatever other kernel events are wanted. */
	if (kinds & (1u << PEM_COST_UPROBE | 1u << PEM_COST_URETPROBE))
		kinds |= 1u << PEM_COST_KERNEL;
	return kinds;
}

/* Round to picoseconds, as the cache does, so that a measured cost equals the remembered one. */
static double rounded(double ns)
{
	return (double)(uint64_t)(ns * 1000 + 0.5) / 1000;
}

static struct pem_cost measure_kind(struct pem_session *s, unsigned kind,
				    const struct pem_source_ops *kernel)
{
	struct pem_cost cost = {0, 0};

	switch (kind) {
	case PEM_COST_USER:
		cost = (struct pem_cost){user_log_ns(), user_stat_ns()};
		break;
	case PEM_COST_KERNEL:
		cost = measure_event(kernel, syscall_entry(s->model), getppid_ns);
		break;
	case PEM_COST_UPROBE:
	case PEM_COST_URETPROBE:
		cost = measure_function(s, kind_names[kind]);
		break;
	default:
		cost.log_ns = pem_sample_ns((enum pem_stacks)(kind - PEM_COST_SAMPLE));
		break;
	}
	return (struct pem_cost){rounded(cost.log_ns), rounded(cost.stat_ns)};
}

/*
 * Of the kinds wanted, return those whose cost is not known, or was measured with another source
 * than the one that serves them now.
 */
static uint32_t unknown_of(const struct pem_costs *costs, uint32_t kinds,
			   const struct pem_source_ops *kernel)
{
	uint32_t unknown = 0;
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (kinds >> i & 1 &&
		    (costs->each[i].log_ns <= 0 ||
		     (i == PEM_COST_KERNEL &&
		      (!kernel || strcmp(costs->kernel_source, kernel->name) != 0))))
			unknown |= 1u << i;
	}
	return unknown;
}

/* Measure once what the session's counters cost at an event. */
static void measure_reading(struct pem_session *s)
{
	const struct pem_session_sources *sources = s->sources;

	if (s->cost->reading_tried || !sources->thread_counter_count)
		return;
	s->cost->reading_tried = true;
	s->cost->reading_ns = rounded(cycles_to_ns(pem_counted__reading_cycles(
		sources->thread_counters, sources->thread_counter_count)));
}

const struct pem_costs *pem_session__measure(struct pem_session *s, uint32_t kinds)
{
	const struct pem_source_ops *kernel =
		kinds >> PEM_COST_KERNEL & 1 ? source_of(s, syscall_entry(s->model)) : NULL;
	struct pem_costs *costs = &s->cost->costs;
	uint32_t unknown;
	unsigned i;

	measure_reading(s);
	kinds |= 1u << PEM_COST_USER;
	/*
	 * A kind that was tried once in this session is not tried again: it could not be measured.
	 */
	kinds &= ~s->cost->costs_tried;
	s->cost->costs_tried |= kinds;
	if (!kinds)
		return costs;
	if (unknown_of(costs, kinds, kernel) && costs->each[PEM_COST_USER].log_ns <= 0)
		pem_costs__load(costs);
	unknown = unknown_of(costs, kinds, kernel);
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (unknown >> i & 1)
			costs->each[i] = measure_kind(s, i, kernel);
	}
	if (unknown >> PEM_COST_KERNEL & 1)
		pem_copy_text(costs->kernel_source, sizeof(costs->kernel_source),
			      kernel ? kernel->name : NO_SOURCE);
	else if (!*costs->kernel_source)
		pem_copy_text(costs->kernel_source, sizeof(costs->kernel_source), NO_SOURCE);
	if (unknown)
		pem_costs__store(costs);
	return costs;
}

/* --- the ledger --- */

static struct pem_trace_cost *add_cost(struct pem_trace_cost *costs, uint32_t *count, uint32_t max,
				       const char *kind, double ns)
{
	struct pem_trace_cost *cost = &costs[*count];

	if (*count >= max)
		return NULL;
	memset(cost, 0, sizeof(*cost));
	pem_copy_text(cost->kind, sizeof(cost->kind), kind);
	cost->ns_each = ns;
	(*count)++;
	return cost;
}

/*
 * Add a line for a kind. A cost that could not be measured is 0 ns; programs that show the ledger
 * say so.
 */
static struct pem_trace_cost *add_kind(const struct pem_costs *costs, struct pem_trace_info *info,
				       unsigned kind, bool stat)
{
	char name[sizeof(info->costs[0].kind)];

	name_kind(name, sizeof(name), kind, stat);
	return add_cost(info->costs, &info->cost_count, PEM_ARRAY_SIZE(info->costs), name,
			stat ? costs->each[kind].stat_ns : costs->each[kind].log_ns);
}

void pem_session__calibrate(struct pem_session *s, struct pem_trace_info *info)
{
	uint32_t kinds = pem_session__cost_kinds(s);
	const struct pem_costs *costs = pem_session__measure(s, kinds);
	unsigned i;

	/* The costs are written anew: a command may be started after targets were attached. */
	info->cost_count = 0;
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (kinds >> i & 1)
			add_kind(costs, info, i, false);
	}
	if (s->sources->thread_counter_count)
		add_cost(info->costs, &info->cost_count, PEM_ARRAY_SIZE(info->costs), READING,
			 s->cost->reading_ns);
}

void pem_session__calibrate_start(struct pem_session *s, struct pem_trace_info *info, bool adapters)
{
	double *start_ns = &s->cost->costs.start_ns[adapters];

	if (!*start_ns) {
		*start_ns = rounded(pem_start_ns(adapters));
		pem_costs__store(&s->cost->costs);
	}
	if (*start_ns > 0)
		add_cost(info->costs, &info->cost_count, PEM_ARRAY_SIZE(info->costs),
			 "process-start", *start_ns);
}

void pem_session__count_costs(struct pem_session *s, struct pem_trace_info *info)
{
	uint64_t count[PEM_COST_KINDS] = {0};
	char name[sizeof(info->costs[0].kind)];
	enum pem_cost_kind kind;
	size_t i, k;

	for (i = 0; i < s->demand_count; i++) {
		kind = pem_session__cost_kind(s, s->demands[i].event);
		if (kind != PEM_COST_NONE)
			count[kind] += s->demands[i].delivered + s->demands[i].lost +
				       s->demands[i].overwritten;
	}
	count[PEM_COST_USER] = s->log->produced;
	for (i = 0; i < info->cost_count; i++) {
		if (!strcmp(info->costs[i].kind, "process-start"))
			info->costs[i].count =
				__atomic_load_n(&s->page->pools_ready, __ATOMIC_RELAXED);
		if (!strcmp(info->costs[i].kind, READING))
			info->costs[i].count = s->log->readings;
		for (k = 0; k < PEM_COST_KINDS; k++) {
			name_kind(name, sizeof(name), (unsigned)k, false);
			if (!strcmp(info->costs[i].kind, name))
				info->costs[i].count = count[k];
		}
	}
	for (i = k = 0; i < info->cost_count; i++) {
		if (info->costs[i].count || info->costs[i].ns_each > 0)
			info->costs[k++] = info->costs[i];
	}
	info->cost_count = (uint32_t)k;
}

void pem_session__add_stat_costs(struct pem_session *s, struct pem_trace_info *info,
				 const uint64_t *counted)
{
	struct pem_trace_cost *cost;
	unsigned i;

	for (i = 0; i < PEM_COST_KINDS; i++) {
		cost = counted[i] ? add_kind(&s->cost->costs, info, i, true) : NULL;
		if (cost)
			cost->count = counted[i];
	}
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
			name_kind(one.kind, sizeof(one.kind), i, stat);
			one.ns_each = stat ? costs.each[i].stat_ns : costs.each[i].log_ns;
			if (one.ns_each > 0 && count < max)
				pem_sized__write(out, count++, &one, sizeof(one));
		}
	}
	return (int)count;
}
