/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libc_cost.c - measure what it costs a program that its calls of malloc and free are events
 *
 * Programs allocate (exercise/main.c) in turn: a plain one, one that is recorded, one that is
 * counted, and one whose pool is full. So the cost is that of the whole way: the function in front
 * of the C library's, finding the site, and the record. The sessions are made for this alone. The
 * recorded one keeps its last records, in a pool that is soon used whole and takes no further
 * memory.
 */
#include "core/core.h"
#include "cost/cost.h"
#include "processes/processes.h"

#include <pem/event.h>

#include <stdlib.h>
#include <unistd.h>

#define ROUNDS 3 /* the first is not counted */
#define CHUNKS 128

enum { PLAIN, LOGGED, COUNTED, LOST, WAYS };

/* A session, and the program that is in it. */
struct way {
	struct pem_session *own; /* NULL: plain */
	struct pem_environment *environment;
	struct pem_exercise run;
	struct pem_step pairs[ROUNDS];
};

static bool begin(struct way *way, uint32_t flags, bool overwrite)
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
	__atomic_store_n(&way->own->page->rule_count, 1, __ATOMIC_RELEASE);
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
	if (!ways || !begin(&ways[PLAIN], 0, false) ||
	    !begin(&ways[LOGGED], PEM_ACTION_LOG, true) ||
	    !begin(&ways[COUNTED], PEM_ACTION_STAT, true) ||
	    !begin(&ways[LOST], PEM_ACTION_LOG, false))
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
