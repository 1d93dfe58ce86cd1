// SPDX-License-Identifier: MIT
/*
 * table_lookup.c - cross sections by energy, as particle transport asks for them:
 * table_lookup [POINTS [NUCLIDES [THOUSAND_LOOKUPS]]]
 *
 * The shape is that of XSBench (Tramm et al. 2014): a search in the energies of all nuclides, one
 * row of a large index, then two neighbouring points of the table of each nuclide of a material.
 */
#include "program.h"

#include <string.h>

#define MATERIALS 12u
#define PARTS_MAX 32u

struct point {
	double energy, sections[5];
};

struct tables {
	uint64_t points, nuclides, energies;
	double *all; /* energies of all nuclides, in order */
	uint32_t *index; /* of each of these, and each nuclide: its point below */
	struct point *grid; /* points of the first nuclide, of the second... */
};

static double unit(uint64_t *seed)
{
	return (double)(program_random(seed) >> 11) / (double)(UINT64_C(1) << 53);
}

/* Point k of a nuclide lies in the k-th of as many equal parts, so all are in order. */
static void build(struct tables *t, uint64_t *seed)
{
	uint64_t i, k, n, next = 0;
	uint32_t *last = program_array(t->nuclides, sizeof(*last));

	for (n = 0; n < t->nuclides; n++)
		for (k = 0; k < t->points; k++) {
			struct point *point = &t->grid[n * t->points + k];

			point->energy =
				((double)k + (double)n / (double)t->nuclides) / (double)t->points;
			for (i = 0; i < 5; i++)
				point->sections[i] = unit(seed);
		}
	memset(last, 0, t->nuclides * sizeof(*last));
	for (k = 0; k < t->points; k++)
		for (n = 0; n < t->nuclides; n++, next++) {
			last[n] = k;
			t->all[next] = t->grid[n * t->points + k].energy;
			memcpy(&t->index[next * t->nuclides], last, t->nuclides * sizeof(*last));
		}
	free(last);
}

static uint64_t search(const struct tables *t, double energy)
{
	uint64_t low = 0, high = t->energies;

	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (t->all[middle] <= energy)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static double cross_sections(const struct tables *t, double energy, const uint32_t *parts,
			     uint32_t count)
{
	const uint32_t *row = &t->index[search(t, energy) * t->nuclides];
	double total = 0;
	uint32_t i, s;

	for (i = 0; i < count; i++) {
		uint64_t k = row[parts[i]];
		const struct point *low = &t->grid[parts[i] * t->points + k];
		const struct point *high = k + 1 < t->points ? low + 1 : low;
		double share = (energy - low->energy) * (double)t->points;

		for (s = 0; s < 5; s++)
			total += low->sections[s] + share * (high->sections[s] - low->sections[s]);
	}
	return total;
}

int main(int argc, char **argv)
{
	struct tables t = {.points = program_argument(argc, argv, 1, 8000),
			   .nuclides = program_argument(argc, argv, 2, 100)};
	uint64_t lookups = program_argument(argc, argv, 3, 2000) * 1000, i, seed = 7, sum = 0;
	uint32_t parts[MATERIALS][PARTS_MAX], m, p;

	t.energies = t.points * t.nuclides;
	t.all = program_array(t.energies, sizeof(*t.all));
	t.grid = program_array(t.energies, sizeof(*t.grid));
	t.index = program_array(t.energies * t.nuclides, sizeof(*t.index));
	build(&t, &seed);
	for (m = 0; m < MATERIALS; m++)
		for (p = 0; p < PARTS_MAX; p++)
			parts[m][p] = program_below(&seed, t.nuclides);
	for (i = 0; i < lookups; i++) {
		m = program_below(&seed, MATERIALS);
		/* Materials have 4 to 26 parts. */
		sum += (uint64_t)(cross_sections(&t, unit(&seed), parts[m], 4 + 2 * m) * 1000);
	}
	return program_end("table_lookup", sum);
}
