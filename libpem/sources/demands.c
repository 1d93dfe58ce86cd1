/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * demands.c - the session's demands of a source of kernel events, their statistics and balances
 * (contract: demands.h)
 *
 * Cells are mapped, so nothing here makes a system call.
 */
#include "sources/demands.h"
#include "sources/statistic.h"

#include <pem/ring.h>
#include <pem/distribution.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An update of a cell takes some 10 ns. After this number of tries its CPU must stand still. */
#define STAT_TRIES 1000

static struct pem_source_common *common_of(struct pem_source *source)
{
	return (struct pem_source_common *)source;
}

void pem_source__log(const struct pem_source *source, enum pem_log_level level, const char *format,
		     ...)
{
	const struct pem_source_common *common = (const struct pem_source_common *)source;
	char text[1024];
	va_list args;

	if (!common->log)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	common->log(level, text, common->log_arg);
}

void pem_source__stream_name(const struct pem_source *source, uint32_t cpu, uint32_t depth,
			     char *name, size_t bytes)
{
	uint32_t beside = ((const struct pem_source_common *)source)->beside;
	char number[12] = "", level[12] = "";

	if (beside)
		snprintf(number, sizeof(number), "%u", beside);
	if (depth)
		snprintf(level, sizeof(level), "_%u", depth);
	snprintf(name, bytes, "k%s_%u%s", number, cpu, level);
}

/* --- taking over the session's demands --- */

int pem_source_demands__init(struct pem_source *source, const struct pem_source_demand_ops *ops,
			     const struct pem_source_config *config)
{
	struct pem_source_common *common = common_of(source);
	size_t i;

	common->ops = ops;
	common->log = config->log;
	common->log_arg = config->log_arg;
	common->beside = config->beside;
	common->thread_is_told = config->thread_is_told;
	common->demands = calloc(config->event_count + 1, sizeof(*common->demands));
	if (!common->demands)
		return -ENOMEM;
	common->demand_count = config->event_count;
	for (i = 0; i < config->event_count; i++) {
		common->demands[i].event = config->events[i].event;
		common->demands[i].context = config->events[i].context;
		common->demands[i].tests = config->events[i].tests;
		common->demands[i].test_count = config->events[i].test_count;
		common->demands[i].gates = config->events[i].gates;
		atomic_init(&common->demands[i].action, config->events[i].action);
		atomic_init(&common->demands[i].distribution, config->events[i].distribution);
		atomic_init(&common->demands[i].index, PEM_NO_INDEX);
	}
	return 0;
}

void pem_source_demands__free(struct pem_source *source)
{
	free(common_of(source)->demands);
}

void pem_source_demands__take(struct pem_source *source, const struct pem_source_config *config,
			      int (*take)(struct pem_source *source, size_t i,
					  const struct pem_source_event *event,
					  struct pem_error *reason),
			      const char *(*why)(int error))
{
	struct pem_source_common *common = common_of(source);
	struct pem_source_demand *demand;
	struct pem_error reason;
	size_t i;

	for (i = 0; i < common->demand_count; i++) {
		demand = &common->demands[i];
		reason.text[0] = '\0';
		demand->error = take(source, i, &config->events[i], &reason);
		if (demand->error)
			pem_source__log(source, PEM_LOG_WARNING, "%s: %s", demand->event->name,
					*reason.text ? reason.text : why(demand->error));
	}
}

struct pem_source_demand *pem_source_demands__get(struct pem_source *source, size_t i, int *error)
{
	struct pem_source_common *common = common_of(source);

	*error = i < common->demand_count ? common->demands[i].error : -EINVAL;
	return *error ? NULL : &common->demands[i];
}

/* --- statistics --- */

static void add_cell(struct pem_cell *sum, const struct pem_cell *part)
{
	sum->stat_end += part->stat_end;
	sum->sum += part->sum;
	sum->min = part->min < sum->min ? part->min : sum->min;
	sum->max = part->max > sum->max ? part->max : sum->max;
}

/* Read one part's cell if it belongs to the action's epoch. False: it does not. */
static bool read_cell(struct pem_source *source, struct pem_source_demand *demand, uint32_t cpu,
		      uint32_t part, uint64_t action, struct pem_cell *copy)
{
	const struct pem_cell *cell = common_of(source)->ops->cell(source, demand, cpu, part);

	if (!cell)
		return false;
	pem_cell_read(cell, copy, STAT_TRIES);
	return copy->tag == PEM_ACTION_TAG(action) && copy->stat_end;
}

/* Events that gates left undecided in the action's epoch: see struct pem_cell. */
static uint64_t undecided_in(struct pem_source *source, struct pem_source_demand *demand,
			     uint32_t cpu, uint32_t part, uint64_t action)
{
	const struct pem_cell *cell = common_of(source)->ops->cell(source, demand, cpu, part);

	/* se */
	if (!demand->gates || !cell ||
	    __atomic_load_n(&cell->discarded, __ATOMIC_ACQUIRE) != PEM_ACTION_TAG(action))
		return 0;
	return __atomic_load_n(&cell->produced, __ATOMIC_RELAXED);
}

/* Read one part's distribution if it belongs to the action's epoch. False: there is none. */
static bool read_distribution(const struct pem_source *source, struct pem_source_demand *demand,
			      uint32_t cpu, uint32_t part, uint64_t action,
			      struct pem_distribution *copy)
{
	const struct pem_source_common *common = (const struct pem_source_common *)source;
	uint32_t word = atomic_load_explicit(&demand->distribution, memory_order_relaxed);

	return word &&
	       pem_distribution_read(common->ops->distribution(source,
							       PEM_DISTRIBUTION_INDEX(word) &
								       (PEM_DISTRIBUTION_COUNT - 1),
							       cpu, part),
				     copy, PEM_DISTRIBUTION_TAG(word, action), STAT_TRIES);
}

int pem_source_demands__read(struct pem_source *source, size_t i, struct pem_statistic *value)
{
	struct pem_source_common *common = common_of(source);
	struct pem_cell sum = {.min = ~0ULL}, cell;
	struct pem_source_demand *demand;
	uint32_t cpu, part;
	uint64_t action;

	if (i >= common->demand_count)
		return -EINVAL;
	demand = &common->demands[i];
	memset(value, 0, sizeof(*value));
	value->event = demand->event;
	value->unavailable = demand->error;
	if (demand->error)
		return demand->error;
	action = atomic_load_explicit(&demand->action, memory_order_relaxed);
	for (cpu = 0; cpu < common->cpu_count; cpu++) {
		for (part = 0; part < common->ops->parts; part++) {
			if (read_cell(source, demand, cpu, part, action, &cell))
				add_cell(&sum, &cell);
			value->undecided += undecided_in(source, demand, cpu, part, action);
		}
	}
	pem_statistic__fill(value, &sum, action);
	return 0;
}

struct receiver {
	void (*function)(const struct pem_statistic *part,
			 const struct pem_distribution *distribution, uint32_t cpu, void *arg);
	void *arg;
	uint64_t action;
	int count;
};

static void hand_on(struct receiver *to, const struct pem_cell *cell,
		    const struct pem_distribution *distribution, uint32_t cpu)
{
	struct pem_statistic part;

	if (!cell->stat_end)
		return;
	memset(&part, 0, sizeof(part));
	pem_statistic__fill(&part, cell, to->action);
	to->function(&part, distribution, cpu, to->arg);
	to->count++;
}

/*
 * A part with a distribution is passed on by itself, because sums of most frequent values have
 * their own bounds.
 */
int pem_source_demands__each(struct pem_source *source, size_t i,
			     void (*function)(const struct pem_statistic *part,
					      const struct pem_distribution *distribution,
					      uint32_t cpu, void *arg),
			     void *arg)
{
	struct receiver to = {.function = function, .arg = arg};
	struct pem_distribution distribution;
	struct pem_cell sum, cell;
	struct pem_source_demand *demand;
	uint32_t cpu, part;
	int error;

	demand = pem_source_demands__get(source, i, &error);
	if (!demand)
		return error;
	to.action = atomic_load_explicit(&demand->action, memory_order_relaxed);
	for (cpu = 0; cpu < common_of(source)->cpu_count; cpu++) {
		sum = (struct pem_cell){.min = ~0ULL};
		for (part = 0; part < common_of(source)->ops->parts; part++) {
			if (!read_cell(source, demand, cpu, part, to.action, &cell))
				continue;
			if (read_distribution(source, demand, cpu, part, to.action, &distribution))
				hand_on(&to, &cell, &distribution, cpu);
			else
				add_cell(&sum, &cell);
		}
		hand_on(&to, &sum, NULL, cpu);
	}
	return to.count;
}

/* --- what was lost --- */

int pem_source_demands__balance(struct pem_source *source, size_t i, struct pem_balance *balance)
{
	struct pem_source_common *common = common_of(source);
	struct pem_source_demand *demand = NULL;
	int error = 0;

	memset(balance, 0, sizeof(*balance));
	/*
	 * The index after the last demand means the event that sets threads, if it is logged only
	 * for the other events and no other source reports threads.
	 */
	if (i != common->demand_count || !common->has_thread_event ||
	    common->demands_thread_event || common->beside)
		demand = pem_source_demands__get(source, i, &error);
	/* No record is made of an event with gates. */
	if (!error && !(demand && demand->gates))
		common->ops->count(source, demand, balance);
	return error;
}

void pem_source_demands__say_targets_lost(const struct pem_source *source, uint32_t lost)
{
	if (lost)
		pem_source__log(source, PEM_LOG_WARNING,
				"%s: %u processes of the program were not observed: more were "
				"alive than there is "
				"room for",
				((const struct pem_source_common *)source)->ops->name, lost);
}
