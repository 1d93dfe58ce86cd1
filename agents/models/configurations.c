/* SPDX-License-Identifier: MIT */
/* configurations.c - configurations of a space, each once, and others than those */
#include "models/models.h"

#include "grow.h"

#include <stdlib.h>
#include <string.h>

#define DRAWS 64u
/* A larger space is not searched for the configurations that are left. */
#define SEARCHED_MAX (UINT64_C(1) << 22)

/* Different for different configurations, but for one pair in 2^64. */
static uint64_t key_of(const struct pem_explore_space *space, const uint32_t *levels)
{
	uint64_t key = 0;
	uint32_t i;

	for (i = 0; i < space->parameter_count; i++) {
		key ^= levels[i];
		key = model_random(&key);
	}
	return key;
}

size_t model_configurations__find(const struct model_configurations *set, const uint32_t *levels)
{
	uint32_t number = pem_number_map__value(&set->numbers, key_of(set->space, levels));

	return number == UINT32_MAX ? SIZE_MAX : number;
}

size_t model_configurations__add(struct model_configurations *set, const uint32_t *levels)
{
	size_t bytes = set->space->parameter_count * sizeof(*levels);
	uint32_t *number = pem_number_map__at(&set->numbers, key_of(set->space, levels));

	if (!number)
		return SIZE_MAX;
	if (*number != UINT32_MAX)
		return *number;
	if (pem_grow(&set->levels, bytes, set->count + 1, &set->capacity))
		return SIZE_MAX;
	memcpy(set->levels + set->count * set->space->parameter_count, levels, bytes);
	*number = (uint32_t)set->count;
	return set->count++;
}

/* The first configuration that is not in the set, after a random one. */
static int search(const struct model_configurations *set, uint64_t *random, uint32_t *levels)
{
	const struct pem_explore_space *space = set->space;
	uint64_t start, i;

	if (space->count > SEARCHED_MAX)
		return 0;
	start = model_random__below(random, space->count);
	for (i = 0; i < space->count; i++) {
		space->at(space, (start + i) % space->count, levels);
		if (model_configurations__find(set, levels) == SIZE_MAX)
			return 1;
	}
	return 0;
}

int model_configurations__draw(const struct model_configurations *set, uint64_t *random,
			       uint32_t *levels)
{
	uint32_t attempt;

	for (attempt = 0; attempt < DRAWS; attempt++) {
		if (!model_any(set->space, random, levels))
			return 0;
		if (model_configurations__find(set, levels) == SIZE_MAX)
			return 1;
	}
	return search(set, random, levels);
}

void model_configurations__free(struct model_configurations *set)
{
	free(set->levels);
	pem_number_map__free(&set->numbers);
}
