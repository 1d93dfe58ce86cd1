/* SPDX-License-Identifier: MIT */
/*
 * policy.c - a policy of pem explore: all configurations, in their order (brute force)
 *
 *	cc -shared -fPIC policy.c -o mine.so $(pkg-config --cflags libpem)
 *	pem explore replay SPACE.csv --policy ./mine.so
 */
#include <pem/explore.h>

#include <stdlib.h>

struct brute {
	const struct pem_explore_space *space;
	uint64_t next; /* number of the next configuration */
};

static void *begin(const struct pem_explore_space *space, const struct pem_explore_options *options)
{
	struct brute *brute = calloc(1, sizeof(*brute));

	(void)options; /* the seed: nothing is left to chance here */
	if (brute)
		brute->space = space;
	return brute;
}

/* Return 1 with a configuration, or 0 when none is left. */
static int next_config(void *policy, uint32_t *levels)
{
	struct brute *brute = policy;

	if (brute->next >= brute->space->count)
		return 0;
	brute->space->at(brute->space, brute->next++, levels);
	return 1;
}

/* A policy that learns keeps trial->levels and trial->values[0] here. */
static int process_trial(void *policy, const struct pem_explore_trial *trial)
{
	(void)policy;
	(void)trial;
	return 0;
}

const struct pem_explore_policy pem_explore_policy = {
	.size = sizeof(pem_explore_policy),
	.abi_version = PEM_EXPLORE_ABI_VERSION,
	.name = "brute",
	.summary = "all configurations, in their order",
	.begin = begin,
	.next_config = next_config,
	.process_trial = process_trial,
	.end = free,
};
