/* SPDX-License-Identifier: MIT */
/* rows.c - configurations at random, and as rows of numbers */
#include "models/models.h"

#define ATTEMPTS 10000u /* of a space whose configurations can't be counted */

int model_any(const struct pem_explore_space *space, uint64_t *random, uint32_t *levels)
{
	uint32_t attempt, i;

	if (!space->count)
		return 0;
	if (space->count != UINT64_MAX) {
		space->at(space, model_random__below(random, space->count), levels);
		return 1;
	}
	for (attempt = 0; attempt < ATTEMPTS; attempt++) {
		for (i = 0; i < space->parameter_count; i++)
			levels[i] =
				(uint32_t)model_random__below(random, space->parameters[i].levels);
		if (space->allows(space, levels))
			return 1;
	}
	return 0;
}

size_t model_columns(const struct pem_explore_space *space)
{
	size_t columns = 0;
	uint32_t i;

	for (i = 0; i < space->parameter_count; i++)
		columns += space->parameters[i].is_ordered ? 1 : space->parameters[i].levels;
	return columns;
}

void model_rows(const struct pem_explore_space *space, const uint32_t *levels, size_t count,
		float *rows)
{
	uint32_t i, k;

	for (; count; count--, levels += space->parameter_count) {
		for (i = 0; i < space->parameter_count; i++) {
			const struct pem_explore_parameter *parameter = &space->parameters[i];

			if (parameter->is_ordered)
				*rows++ = (float)parameter->positions[levels[i]];
			for (k = 0; !parameter->is_ordered && k < parameter->levels; k++)
				*rows++ = levels[i] == k;
		}
	}
}
