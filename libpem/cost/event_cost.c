/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * event_cost.c - measure what one event of each kind costs on this machine
 *
 * Each kind is measured by a step that raises it (steps.c), with warm caches and with cold ones:
 * what the step takes more when the event is logged, and when it is counted. The steps take turns.
 *
 * user: a record of two fields into a private ring, by the inlines that stubs use, with the clock
 * read; one value added to a statistic by the same inlines.
 *
 * libc, stack: see libc_cost.c. syscall, path, file, kernel, uprobe, uretprobe: see source_cost.c.
 * sample: see sample_cost.c.
 *
 * Not here: what counters cost beside their records (process_cost.c); which kinds are measured
 * when (calibrate.c).
 */
#include "cost/cost.h"

#include <pem/clock.h>
#include <pem/ring.h>

#include <stdlib.h>
#include <string.h>

#define USER_EVENTS 5000
#define USER_EVENTS_OF_TURN 500
#define RING_BYTES (256u << 10)
#define PART_LEAST 0.02 /* of the way from warm to cold: a less one can't be told from none */

static void do_nothing(void *arg)
{
	(void)arg;
}

struct recording {
	uint8_t *memory;
	struct pem_writer writer;
	struct pem_cell cell;
	uint64_t value;
};

static void put_record(void *arg)
{
	struct recording *r = arg;
	uint64_t now = pem_clock();
	uint8_t *record = pem_ring_reserve(&r->writer, now, 24);

	if (!record) {
		r->writer.cursor = r->memory + PEM_PACKET_HEADER_BYTES;
		r->writer.last_clock = now;
		record = r->writer.cursor;
	}
	((uint64_t *)record)[1] = now;
	((uint64_t *)record)[2] = now;
	pem_ring_commit(&r->writer, &r->cell, now, 16, 24);
}

static void add_value(void *arg)
{
	struct recording *r = arg;

	pem_cell_add(&r->cell, 1, r->value, r->value);
	r->value++;
}

static double greater(double a, double b)
{
	return a > b ? a : b;
}

/* What one event of a step costs more. It costs no less the colder the caches are. */
static struct pem_step event_of(struct pem_step step, struct pem_step plain, double events)
{
	double warm = pem_cost__more(step.warm, plain.warm) / events;
	double cooler = greater(warm, pem_cost__more(step.cooler, plain.cooler) / events);

	return (struct pem_step){warm, cooler,
				 greater(cooler, pem_cost__more(step.cold, plain.cold) / events)};
}

/*
 * How much longer than in a loop programs work whose events cost half way from warm to cold: so
 * that those that cost what was measured work as long as was measured.
 */
static double half_gap(double longer_ns, struct pem_step event)
{
	double part = event.cold > event.warm
			      ? (event.cooler - event.warm) / (event.cold - event.warm)
			      : 1;

	part = part < PART_LEAST ? PART_LEAST : part > 1 - PART_LEAST ? 1 - PART_LEAST : part;
	return longer_ns * (1 - part) / part;
}

struct pem_cost pem_cost__of(struct pem_step plain, struct pem_step logged, struct pem_step counted,
			     double events)
{
	const struct pem_step log = event_of(logged, plain, events);
	const struct pem_step stat = event_of(counted, plain, events);
	double longer_ns = pem_cost__more(plain.cooler, plain.warm) / events;

	return (struct pem_cost){.log_ns = log.warm,
				 .stat_ns = stat.warm,
				 .cold_log_ns = log.cold,
				 .cold_stat_ns = stat.cold,
				 .warm_gap_ns = plain.warm / events,
				 .half_gap_ns = half_gap(longer_ns, log)};
}

static bool take_own_turn(void *arg, unsigned step, enum pem_caches caches, double *ns)
{
	const struct pem_stepper *steppers = arg;

	*ns = pem_step__turn_ns(&steppers[step], caches);
	return true;
}

static struct pem_cost user_cost(void)
{
	struct recording r = {.memory = malloc(RING_BYTES)};
	volatile uint8_t *memory = pem_step__memory();
	struct pem_stepper steppers[] = {{do_nothing, &r, memory, USER_EVENTS, 1, 0},
					 {put_record, &r, memory, USER_EVENTS_OF_TURN, 1, 0},
					 {add_value, &r, memory, USER_EVENTS_OF_TURN, 1, 0}};
	struct pem_cost cost = {0};
	struct pem_step taken[3];

	if (!r.memory || !memory)
		goto out;
	/* The first use of a page has a cost of its own (pem_page_ns()). */
	memset(r.memory, 1, RING_BYTES);
	r.writer.packet = (struct pem_packet *)r.memory;
	r.writer.cursor = r.writer.end = r.memory + RING_BYTES;
	taken[0] = pem_step__measure(&steppers[0]);
	steppers[0].warm = USER_EVENTS_OF_TURN;
	if (pem_step__compare(take_own_turn, steppers, 3, taken))
		cost = pem_cost__of(taken[0], taken[1], taken[2], 1);
out:
	free((void *)memory);
	free(r.memory);
	return cost;
}

/* --- all kinds --- */

static struct pem_cost measure_sample(unsigned kind)
{
	double ns = pem_sample_ns((enum pem_stacks)(kind - PEM_COST_SAMPLE));

	return (struct pem_cost){.log_ns = ns, .cold_log_ns = ns};
}

/* As it is remembered. */
static struct pem_cost kept(const struct pem_cost *cost)
{
	return (struct pem_cost){pem_cost__rounded(cost->log_ns),
				 pem_cost__rounded(cost->stat_ns),
				 pem_cost__rounded(greater(cost->cold_log_ns, cost->log_ns)),
				 pem_cost__rounded(greater(cost->cold_stat_ns, cost->stat_ns)),
				 pem_cost__rounded(cost->warm_gap_ns),
				 pem_cost__rounded(cost->half_gap_ns)};
}

void pem_session__measure_kinds(struct pem_session *s, uint32_t kinds,
				const struct pem_source_ops *kernel, struct pem_costs *costs)
{
	struct pem_cost *each = costs->each;
	unsigned i;

	if (kinds >> PEM_COST_USER & 1)
		each[PEM_COST_USER] = user_cost();
	if (kinds >> PEM_COST_LIBC & 1)
		each[PEM_COST_LIBC] = pem_libc_cost(&costs->lost_ns);
	if (kinds & PEM_COST_KERNEL_KINDS)
		pem_session__measure_calls(s, kernel, each);
	if (kinds >> PEM_COST_UPROBE & 1)
		each[PEM_COST_UPROBE] = pem_session__measure_function(s, "uprobe");
	if (kinds >> PEM_COST_URETPROBE & 1)
		each[PEM_COST_URETPROBE] = pem_session__measure_function(s, "uretprobe");
	for (i = PEM_COST_SAMPLE; i <= PEM_COST_SAMPLE_TABLES; i++) {
		if (kinds >> i & 1)
			each[i] = measure_sample(i);
	}
	if (kinds & PEM_COST_STACK_KINDS)
		pem_stack_cost(&each[PEM_COST_LIBC], &each[PEM_COST_STACK], &each[PEM_COST_CALL]);
	for (i = 0; i < PEM_COST_KINDS; i++) {
		if (kinds >> i & 1)
			each[i] = kept(&each[i]);
	}
	costs->lost_ns = pem_cost__rounded(costs->lost_ns);
}
