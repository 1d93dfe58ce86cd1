/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libc_cost.c - measure what it costs a program that its calls of malloc and free are events, and
 * that they have stacks
 *
 * Programs allocate (exercise/main.c) in turn: a plain one, one that is recorded, one that is
 * counted, and one whose pool is full. So the cost is that of the whole way: the function in front
 * of the C library's, finding the site, and the record. The sessions are made for this alone. The
 * recorded one keeps its last records, in a pool that is used whole before the first turn and takes
 * no further memory.
 *
 * A stack costs the allocation something in any case, and something for each call. So two programs
 * that are recorded allocate, one with stacks, and that one also below some further calls.
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"

#include <pem/event.h>

#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define CHUNKS 128
#define FRAME_EVENT "APP::Stack::Frame"

enum { PLAIN, LOGGED, COUNTED, LOST, WAYS };

/* A session, and the program that is in it. */
struct way {
	struct pem_session *own; /* NULL: plain */
	struct pem_environment *environment;
	struct pem_exercise run;
};

/* Have the calls of stacks recorded. UI: before the rules are counted. */
static uint32_t add_stacks(struct pem_session *s, uint32_t count)
{
	const struct pem_event *frame = pem_model__by_name(s->model, FRAME_EVENT);
	const struct pem_event *walk = pem_model__by_name(s->model, PEM_STACK_WALK_EVENT);

	if (!frame || !walk)
		return count;
	s->page->rules[count++] = (struct pem_rule){
		.event_id = frame->id, .action = PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1)};
	s->page->rules[count++] =
		(struct pem_rule){.event_id = walk->id,
				  .action = PEM_ACTION(PEM_ACTION_STAT, 0, PEM_TYPE_UINT32,
						       walk->fields[0].offset, 1)};
	return count;
}

static bool begin(struct way *way, int cpu, uint32_t flags, bool overwrite, bool stacks)
{
	const struct pem_session_options few = {
		.size = sizeof(few), .chunk_count = CHUNKS, .overwrite = overwrite};
	const struct pem_run_options options = {.size = sizeof(options), .preload_libc = true};

	if (!flags)
		return pem_exercise__begin(&way->run, cpu, environ);
	way->own = pem_session__open(&few, NULL);
	if (!way->own)
		return false;
	way->own->page->rules[0] =
		(struct pem_rule){.event_id = PEM_RULE_ANY_EVENT,
				  .action = PEM_ACTION(flags, PEM_NO_FIELD, 0, 0, 1),
				  .max_level = PEM_LEVEL_INFO};
	/* UI */
	__atomic_store_n(&way->own->page->rule_count, stacks ? add_stacks(way->own, 1) : 1,
			 __ATOMIC_RELEASE);
	way->environment = pem_environment__new(way->own, way->own->directory, NULL, &options);
	return way->environment &&
	       pem_exercise__begin(&way->run, cpu, pem_environment__variables(way->environment));
}

/* The last one first: it has the others' descriptors until it becomes pem-exercise. */
static void end(struct way *ways, unsigned count)
{
	unsigned w;

	for (w = count; ways && w--;) {
		pem_exercise__end(&ways[w].run);
		pem_environment__free(ways[w].environment);
		pem_session__close(ways[w].own);
	}
	free(ways);
}

struct pem_cost pem_libc_cost(double *lost_ns)
{
	struct way *ways = calloc(WAYS, sizeof(*ways));
	struct pem_exercise_step steps[WAYS];
	struct pem_step pairs[WAYS];
	struct pem_cost cost = {0};
	int cpu = sched_getcpu();
	unsigned w;

	*lost_ns = 0;
	for (w = 0; ways && w < WAYS; w++)
		steps[w] = (struct pem_exercise_step){.exercise = &ways[w].run,
						      .what = PEM_EXERCISE_ALLOCATE};
	if (ways && begin(&ways[PLAIN], cpu, 0, false, false) &&
	    begin(&ways[LOGGED], cpu, PEM_ACTION_LOG, true, false) &&
	    begin(&ways[COUNTED], cpu, PEM_ACTION_STAT, true, false) &&
	    begin(&ways[LOST], cpu, PEM_ACTION_LOG, false, false) &&
	    pem_exercise__compare(steps, WAYS, pairs)) {
		cost = pem_cost__of(pairs[PLAIN], pairs[LOGGED], pairs[COUNTED], 2);
		/* A cost less than 0 would make the remembered ones invalid. */
		*lost_ns = pem_cost__more(pairs[LOST].warm, pairs[PLAIN].warm) / 2;
	}
	end(ways, WAYS);
	return cost;
}

/* --- stacks --- */

enum { NO_STACKS, STACKS, STACK_WAYS, DEEP_STACKS = STACK_WAYS, STACK_STEPS };

/* What is left of a stack's cost without that of its calls. */
static struct pem_cost without_calls(struct pem_cost stack, const struct pem_cost *call,
				     double calls)
{
	stack.log_ns = pem_cost__more(stack.log_ns, calls * call->log_ns);
	stack.cold_log_ns = pem_cost__more(stack.cold_log_ns, calls * call->cold_log_ns);
	return stack;
}

/* A step has steps of these, and two events of the C library: gaps are those between events. */
static struct pem_cost beside_events(struct pem_step plain, struct pem_step with, double steps,
				     const struct pem_cost *libc)
{
	struct pem_cost cost = pem_cost__of(plain, with, with, steps);

	cost.stat_ns = cost.cold_stat_ns = 0; /* it is what it costs, logged or counted */
	cost.warm_gap_ns = libc->warm_gap_ns;
	cost.half_gap_ns *= steps / 2;
	return cost;
}

void pem_stack_cost(const struct pem_cost *libc, struct pem_cost *stack, struct pem_cost *call)
{
	struct way *ways = calloc(STACK_WAYS, sizeof(*ways));
	struct pem_exercise_step steps[STACK_STEPS];
	struct pem_step pairs[STACK_STEPS];
	int cpu = sched_getcpu();

	if (ways && begin(&ways[NO_STACKS], cpu, PEM_ACTION_LOG, true, false) &&
	    begin(&ways[STACKS], cpu, PEM_ACTION_LOG, true, true)) {
		steps[NO_STACKS] =
			(struct pem_exercise_step){&ways[NO_STACKS].run, PEM_EXERCISE_ALLOCATE, 0};
		steps[STACKS] =
			(struct pem_exercise_step){&ways[STACKS].run, PEM_EXERCISE_ALLOCATE, 0};
		steps[DEEP_STACKS] =
			(struct pem_exercise_step){&ways[STACKS].run, PEM_EXERCISE_DEEP, 0};
		if (pem_exercise__compare(steps, STACK_STEPS, pairs)) {
			*call = beside_events(pairs[STACKS], pairs[DEEP_STACKS], PEM_EXERCISE_DEPTH,
					      libc);
			*stack = without_calls(
				beside_events(pairs[NO_STACKS], pairs[STACKS], 1, libc), call,
				steps[STACKS].count);
		}
	}
	end(ways, STACK_WAYS);
}
