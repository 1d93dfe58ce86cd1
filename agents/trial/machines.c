/* SPDX-License-Identifier: MIT */
/* machines.c - several kinds of machines: which one a trial ran on is a parameter of the space */
#include "trial/trial.h"

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

struct pem_explore_space trial_machines__whole(const struct trial_machines *machines)
{
	const struct pem_explore_space *space = machines->here.arg;
	struct pem_explore_space whole = machines->here;

	whole.at = at_any;
	whole.allows = allows_any;
	if (__builtin_mul_overflow(space->count, machines->count, &whole.count))
		whole.count = UINT64_MAX;
	return whole;
}

int trial_machines__take(struct trial_machines *machines, const struct trial_store *store)
{
	const struct pem_explore_space *space = &store->experiment->space->view;
	uint32_t n = space->parameter_count, count = (uint32_t)store->machine_count, i;
	struct pem_explore_parameter *parameters = calloc(n + 1, sizeof(*parameters));
	const char **names = calloc(count, sizeof(*names));

	trial_machines__free(machines);
	machines->parameters = parameters;
	machines->names = names;
	if (!parameters || !names)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		names[i] = store->machines[i].text;
	memcpy(parameters, space->parameters, n * sizeof(*parameters));
	parameters[n] = (struct pem_explore_parameter){
		.name = "(machine)", .levels = count, .values = names};
	machines->count = count;
	machines->here = (struct pem_explore_space){.size = sizeof(machines->here),
						    .parameters = parameters,
						    .parameter_count = n + 1,
						    .count = space->count,
						    .at = at_here,
						    .allows = allows_here,
						    .arg = (void *)(uintptr_t)space};
	return 0;
}

void trial_machines__free(struct trial_machines *machines)
{
	free(machines->parameters);
	free((void *)machines->names);
	*machines = (struct trial_machines){.count = 0};
}
