// SPDX-License-Identifier: MIT
/*
 * overlap.c - what walks cost that overlap with others
 *
 * A processor looks some hundred instructions ahead. Of the walks among these, the program waits
 * for the first, and the others pass meanwhile: so what one costs depends on how many there are
 * (Karkhanis, Smith, A First-Order Superscalar Processor Model, ISCA 2004). Of events at random,
 * each of which takes W instructions out of the sequence, 1 / (1 + p W) come while none is under
 * way; p: their number for each instruction. Of evenly spaced ones, as the walks of a loop are by
 * and large, fewer do if they are dense. 1 / (1 + (p W)^1.5) is between the two, and what was
 * measured: bench/page_size_machine.py. From where this would fall more quickly than 1 / p, all
 * walks together cost the same, however many they are.
 *
 * A long walk hides short ones, and a short one hides little of a long one: p is of the walks that
 * take at least as long. (Measured: updates of 384 MiB among others of a near table or of 96 MiB
 * cost the same.)
 *
 * A cost is not below that of walks in a loop of nothing else, as measured: walk_throughput_ns, and
 * what hidden_ns leaves of hit_ns.
 */
#include "internal.h"

#include <math.h>
#include <string.h>

/* Of x / (1 + x^1.5), the x where it is greatest. */
#define DENSE 1.5874

enum { KINDS_MAX = PAGE_LEVELS_MAX + PAGE_SIZES_MAX };

/* Lookups that end in one level, or in a walk for one page size. */
struct kind {
	double latency_ns, throughput_ns;
	double count;
	bool walk;
	double *cost_ns; /* of one that overlaps: the answer */
};

/*
 * What one of them costs, if so many that are as long or longer come for each instruction.
 * A hit in a TLB is too short for a program to wait.
 */
static double cost_ns(const struct page_geometry *geometry, const struct kind *kind, double density)
{
	double near = density * geometry->window_instructions, least = fmin(near, DENSE), share;

	if (!kind->walk)
		return kind->throughput_ns;
	share = 1 / (1 + least * sqrt(least));
	if (near > DENSE)
		share *= DENSE / near;
	return fmax(kind->throughput_ns, kind->latency_ns * share);
}

static void sort(struct kind *kinds, uint32_t count)
{
	struct kind one;
	uint32_t i, j;

	for (i = 1; i < count; i++) {
		one = kinds[i];
		for (j = i; j && kinds[j - 1].latency_ns > one.latency_ns; j--)
			kinds[j] = kinds[j - 1];
		kinds[j] = one;
	}
}

static uint32_t find_kinds(const struct page_geometry *geometry, const struct page_sites *sites,
			   const struct page_mapping *mapping, const struct page_result *result,
			   struct overlap *overlap, struct kind *kinds)
{
	uint32_t i, count = 0;

	for (i = 0; i < geometry->level_count; i++) {
		const struct page_level *level = &geometry->levels[i];
		double before = i ? result->misses[i - 1] : (double)result->references;

		kinds[count++] = (struct kind){level->hit_ns, level->hit_ns - level->hidden_ns,
					       fmax(0, before - result->misses[i]),
					       level->group_shift > 0, &overlap->hit_ns[i]};
	}
	for (i = 0; i < geometry->size_count; i++)
		kinds[count++] =
			(struct kind){geometry->walk_latency_ns[i], geometry->walk_throughput_ns[i],
				      0, true, &overlap->walk_ns[i]};
	for (i = 0; i < sites->count; i++)
		kinds[geometry->level_count + mapping->size[i]].count += result->site_walks[i];
	return count;
}

void overlap__find(const struct page_geometry *geometry, const struct page_sites *sites,
		   const struct page_mapping *mapping, const struct page_result *result,
		   struct overlap *overlap)
{
	double instructions = (double)result->references * sites->instructions_per_reference;
	struct kind kinds[KINDS_MAX];
	uint32_t i, count;
	double left = 0;

	memset(overlap, 0, sizeof(*overlap));
	count = find_kinds(geometry, sites, mapping, result, overlap, kinds);
	for (i = 0; i < count; i++) {
		left += kinds[i].count;
		*kinds[i].cost_ns = kinds[i].throughput_ns;
	}
	if (!(instructions > 0) || !(geometry->window_instructions > 0))
		return;
	sort(kinds, count);
	for (i = 0; i < count; i++) {
		*kinds[i].cost_ns = cost_ns(geometry, &kinds[i], left / instructions);
		left -= kinds[i].count;
	}
}

double overlap__walk_ns(const struct overlap *overlap, const struct page_geometry *geometry,
			const struct page_sites *sites, uint32_t site, uint32_t size)
{
	double share = sites->latency_share[site];

	return share * geometry->walk_latency_ns[size] + (1 - share) * overlap->walk_ns[size];
}

double overlap__hit_ns(const struct overlap *overlap, const struct page_geometry *geometry,
		       const struct page_sites *sites, uint32_t site, uint32_t level)
{
	double share = sites->latency_share[site];

	return share * geometry->levels[level].hit_ns + (1 - share) * overlap->hit_ns[level];
}
