/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libc_cost.c - measure what it costs a program that its calls of malloc and free are events, and
 * that they have stacks
 *
 * Programs allocate (exercise/main.c) in turn: a plain one, one that is recorded, one that is
 * counted, and one whose pool is full. So the cost is that of the whole way: the function in front
 * of the C library's, finding the site, and the record. The sessions are made for this alone. The
 * recorded one keeps its last records, in a pool that is soon used whole and takes no further
 * memory.
 *
 * A stack costs the allocation something in any case, and something for each call. So two programs
 * that are recorded allocate, one with stacks, and that one also below some further calls.
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"

#include <pem/event.h>

#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 3 /* the first is not counted */
#define CHUNKS 128
#define FRAME_EVENT "APP::Stack::Frame"

enum { PLAIN, LOGGED, COUNTED, LOST, WAYS };

/* A session, and the program that is in it. */
struct way {
	struct pem_session *own; /* NULL: plain */
	struct pem_environment *environment;
	struct pem_exercise run;
	struct pem_step pairs[ROUNDS];
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

static bool begin(struct way *way, uint32_t flags, bool overwrite, bool stacks)
{
	const struct pem_session_options few = {
		.size = sizeof(few), .chunk_count = CHUNKS, .overwrite = overwrite};
	const struct pem_run_options options = {.size = sizeof(options), .preload_libc = true};

	if (!flags)
		return pem_exercise__begin(&way->run, environ);
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
	       pem_exercise__begin(&way->run, pem_environment__variables(way->environment));
}

static void end(struct way *way)
{
	pem_exercise__end(&way->run);
	pem_environment__free(way->environment);
	pem_session__close(way->own);
}

/*
 * Of each part, the least of the rounds: other load adds time. The first round uses a pool
 * up that is not used again.
 */
static struct pem_step least_ns(const struct way *way)
{
	struct pem_step least = way->pairs[1];
	unsigned i;

	for (i = 2; i < ROUNDS; i++)
		least = pem_step__least(least, way->pairs[i]);
	return least;
}

struct pem_cost pem_libc_cost(double *lost_ns)
{
	struct way *ways = calloc(WAYS, sizeof(*ways));
	struct pem_cost cost = {0};
	struct pem_exercised done;
	struct pem_step plain, lost;
	unsigned i, w;

	*lost_ns = 0;
	if (!ways || !begin(&ways[PLAIN], 0, false, false) ||
	    !begin(&ways[LOGGED], PEM_ACTION_LOG, true, false) ||
	    !begin(&ways[COUNTED], PEM_ACTION_STAT, true, false) ||
	    !begin(&ways[LOST], PEM_ACTION_LOG, false, false))
		goto out;
	for (i = 0; i < ROUNDS; i++) {
		for (w = 0; w < WAYS; w++) {
			if (!pem_exercise__do(&ways[w].run, PEM_EXERCISE_ALLOCATE, &done))
				goto out;
			ways[w].pairs[i] = done.step;
		}
	}
	plain = least_ns(&ways[PLAIN]);
	cost = pem_cost__of(plain, least_ns(&ways[LOGGED]), least_ns(&ways[COUNTED]), 2);
	lost = least_ns(&ways[LOST]);
	/* A cost less than 0 would make the remembered ones invalid. */
	*lost_ns = lost.warm > plain.warm ? (lost.warm - plain.warm) / 2 : 0;
out:
	/* The last one first: it has the others' descriptors until it becomes pem-exercise. */
	for (w = WAYS; ways && w--;)
		end(&ways[w]);
	free(ways);
	return cost;
}

/* --- stacks --- */

enum { NO_STACKS, STACKS, DEEP_STACKS, STACK_WAYS };

static double more(double with, double without)
{
	return with > without ? with - without : 0;
}

/* What is left of a stack's cost without that of its calls. */
static struct pem_cost without_calls(struct pem_cost stack, const struct pem_cost *call,
				     double calls)
{
	stack.log_ns = more(stack.log_ns, calls * call->log_ns);
	stack.cold_log_ns = more(stack.cold_log_ns, calls * call->cold_log_ns);
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
	static const char words[] = {PEM_EXERCISE_ALLOCATE, PEM_EXERCISE_ALLOCATE,
				     PEM_EXERCISE_DEEP};
	struct way *ways = calloc(STACK_WAYS, sizeof(*ways));
	struct pem_exercised done = {.count = 0};
	double calls = 0;
	unsigned i, w;

	if (!ways || !begin(&ways[NO_STACKS], PEM_ACTION_LOG, true, false) ||
	    !begin(&ways[STACKS], PEM_ACTION_LOG, true, true))
		goto out;
	for (i = 0; i < ROUNDS; i++) {
		for (w = 0; w < STACK_WAYS; w++) {
			if (!pem_exercise__do(&ways[w ? STACKS : NO_STACKS].run, words[w], &done))
				goto out;
			ways[w].pairs[i] = done.step;
			if (w == STACKS)
				calls = done.count;
		}
	}
	*call = beside_events(least_ns(&ways[STACKS]), least_ns(&ways[DEEP_STACKS]),
			      PEM_EXERCISE_DEPTH, libc);
	*stack = without_calls(
		beside_events(least_ns(&ways[NO_STACKS]), least_ns(&ways[STACKS]), 1, libc), call,
		calls);
out:
	for (w = STACK_WAYS; ways && w--;)
		end(&ways[w]);
	free(ways);
}
