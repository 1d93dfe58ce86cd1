// SPDX-License-Identifier: MIT
/*
 * multigrid.c - V-cycles for the Poisson equation on a cube: multigrid [SIDE [CYCLES]]
 *
 * The side is a power of two, at least 8. Sweeps read planes from front to back, so that few pages
 * are used at a time.
 */
#include "program.h"

#include <string.h>

#define LEVELS_MAX 10

struct grid {
	uint64_t side; /* of the cube, with its border of zeros */
	double *solution, *right, *residual;
};

static uint64_t at(const struct grid *g, uint64_t x, uint64_t y, uint64_t z)
{
	return (z * g->side + y) * g->side + x;
}

static double neighbours(const struct grid *g, const double *v, uint64_t i)
{
	uint64_t row = g->side, plane = g->side * g->side;

	return v[i - 1] + v[i + 1] + v[i - row] + v[i + row] + v[i - plane] + v[i + plane];
}

/* Points of one colour need only those of the other. */
static void smooth(struct grid *g, uint64_t colour)
{
	uint64_t x, y, z, i;

	for (z = 1; z + 1 < g->side; z++)
		for (y = 1; y + 1 < g->side; y++)
			for (x = 1 + (z + y + colour) % 2; x + 1 < g->side; x += 2) {
				i = at(g, x, y, z);
				g->solution[i] = (neighbours(g, g->solution, i) + g->right[i]) / 6;
			}
}

static void find_residual(struct grid *g)
{
	uint64_t x, y, z, i;

	for (z = 1; z + 1 < g->side; z++)
		for (y = 1; y + 1 < g->side; y++)
			for (x = 1; x + 1 < g->side; x++) {
				i = at(g, x, y, z);
				g->residual[i] = g->right[i] + neighbours(g, g->solution, i) -
						 6 * g->solution[i];
			}
}

/* Every second point, each way; h is twice as large, and h * h four times. */
static void restrict_to(const struct grid *fine, struct grid *coarse)
{
	uint64_t x, y, z;

	for (z = 1; z + 1 < coarse->side; z++)
		for (y = 1; y + 1 < coarse->side; y++)
			for (x = 1; x + 1 < coarse->side; x++)
				coarse->right[at(coarse, x, y, z)] =
					4 * fine->residual[at(fine, 2 * x, 2 * y, 2 * z)];
}

static void add_correction(const struct grid *coarse, struct grid *fine)
{
	uint64_t x, y, z;

	for (z = 1; z + 1 < fine->side; z++)
		for (y = 1; y + 1 < fine->side; y++)
			for (x = 1; x + 1 < fine->side; x++)
				fine->solution[at(fine, x, y, z)] +=
					coarse->solution[at(coarse, x / 2, y / 2, z / 2)];
}

static void cycle(struct grid *levels, int count)
{
	uint64_t side = levels->side;

	smooth(levels, 0);
	smooth(levels, 1);
	if (count > 1) {
		find_residual(levels);
		restrict_to(levels, levels + 1);
		side = levels[1].side;
		memset(levels[1].solution, 0, side * side * side * sizeof(double));
		cycle(levels + 1, count - 1);
		add_correction(levels + 1, levels);
	}
	smooth(levels, 0);
	smooth(levels, 1);
}

int main(int argc, char **argv)
{
	uint64_t side = program_argument(argc, argv, 1, 256), size, i, sum = 0, seed = 8;
	uint64_t cycles = program_argument(argc, argv, 2, 10);
	struct grid levels[LEVELS_MAX];
	int count = 0;

	for (; side >= 8 && count < LEVELS_MAX; side /= 2, count++) {
		struct grid *g = &levels[count];

		size = side * side * side;
		g->side = side;
		g->solution = program_array(size, sizeof(double));
		g->right = program_array(size, sizeof(double));
		g->residual = program_array(size, sizeof(double));
		memset(g->solution, 0, size * sizeof(double));
		memset(g->right, 0, size * sizeof(double));
		memset(g->residual, 0, size * sizeof(double));
	}
	if (!count || levels[0].side & (levels[0].side - 1)) {
		fprintf(stderr, "multigrid: the side must be a power of two, at least 8\n");
		return 1;
	}
	size = levels[0].side * levels[0].side * levels[0].side;
	for (i = 0; i < 20; i++)
		levels[0].right[program_below(&seed, size)] = i % 2 ? 1 : -1;
	while (cycles--)
		cycle(levels, count);
	for (i = 0; i < size; i++)
		sum += (uint64_t)(int64_t)(levels[0].solution[i] * 1e9);
	return program_end("multigrid", sum);
}
