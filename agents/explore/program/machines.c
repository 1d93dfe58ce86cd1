/* SPDX-License-Identifier: MIT */
/* machines.c - several kinds of machines: which one a trial ran on is a parameter of the space */
#include "program/exploration.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A policy chooses among this machine's configurations; those of others were tried elsewhere. */
static void at_here(const struct pem_explore_space *wide, uint64_t number, uint32_t *levels)
{
	const struct pem_explore_space *space = wide->arg;

	space->at(space, number, levels);
	levels[space->parameter_count] = 0;
}

static int allows_here(const struct pem_explore_space *wide, uint32_t *levels)
{
	const struct pem_explore_space *space = wide->arg;

	return !levels[space->parameter_count] && space->allows(space, levels);
}

static void at_any(const struct pem_explore_space *wide, uint64_t number, uint32_t *levels)
{
	const struct pem_explore_space *space = wide->arg;
	uint32_t machines = wide->parameters[space->parameter_count].levels;

	space->at(space, number / machines, levels);
	levels[space->parameter_count] = (uint32_t)(number % machines);
}

static int allows_any(const struct pem_explore_space *wide, uint32_t *levels)
{
	const struct pem_explore_space *space = wide->arg;

	return levels[space->parameter_count] < wide->parameters[space->parameter_count].levels &&
	       space->allows(space, levels);
}

struct pem_explore_space exploration__whole(const struct exploration *exploration)
{
	const struct pem_explore_space *space = &exploration->experiment.space->view;
	struct pem_explore_space whole = exploration->wide;

	/* One kind alone tells nothing of another. */
	if (exploration->count == exploration->here ||
	    (!exploration->here && exploration->wide_machines < 3))
		return *space;
	whole.at = at_any;
	whole.allows = allows_any;
	if (__builtin_mul_overflow(space->count, exploration->wide_machines, &whole.count))
		whole.count = UINT64_MAX;
	return whole;
}

int exploration__widen(struct exploration *exploration)
{
	struct pem_explore_space *space = &exploration->experiment.space->view;
	uint32_t n = space->parameter_count, machines = (uint32_t)exploration->store.machine_count,
		 i;
	struct pem_explore_parameter *own =
		realloc(exploration->wide_parameters, (n + 1) * sizeof(*own));
	const char **names = realloc((void *)exploration->machine_names, machines * sizeof(*names));

	exploration->wide_parameters = own ? own : exploration->wide_parameters;
	exploration->machine_names = names ? names : exploration->machine_names;
	if (!own || !names)
		return -ENOMEM;
	for (i = 0; i < machines; i++)
		names[i] = exploration->store.machines[i].text;
	exploration->wide_machines = machines;
	memcpy(own, space->parameters, n * sizeof(*own));
	own[n] = (struct pem_explore_parameter){
		.name = "(machine)", .levels = machines, .values = names};
	exploration->wide = (struct pem_explore_space){.size = sizeof(exploration->wide),
						       .parameters = own,
						       .parameter_count = n + 1,
						       .count = space->count,
						       .at = at_here,
						       .allows = allows_here,
						       .arg = space};
	return 0;
}
