// SPDX-License-Identifier: MIT
/*
 * umt.c - the loops of a radiation transport on an unstructured mesh, which says how long they take
 *
 * Use: umt [ITERATIONS [EDGE]]. EDGE: zones along an edge of the cube (64).
 *
 * For each direction, the sweep goes through all zones from the side that the radiation comes from.
 * A zone's flux in each group of energy follows from those of its three neighbours upwind. Zones
 * are numbered at random, as those of an unstructured mesh may be, so each neighbour lies on
 * another page. The scattering source then goes through the zones by their numbers. This is what
 * UMT2K does (docs/umt.md), with simpler physics.
 */
#include "umt.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define GROUPS 16
#define DIRECTIONS 8
#define BATCH 16384u /* zones between two readings of the clock */

struct mesh {
	uint32_t edge, zones;
	uint32_t *number; /* of the zone at x + edge * (y + edge * z) */
	double (*flux[DIRECTIONS])[GROUPS]; /* by zone */
	double (*source)[GROUPS];
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void *allocate(size_t count, size_t bytes)
{
	void *memory = calloc(count, bytes);

	if (!memory) {
		fprintf(stderr, "umt: no memory for the mesh: give it a shorter edge\n");
		exit(1);
	}
	return memory;
}

/* Number the zones in an order that has nothing to do with where they lie (Fisher and Yates). */
static void number_zones(struct mesh *mesh)
{
	uint64_t state = 88172645463325252u; /* xorshift64, Marsaglia 2003 */
	uint32_t i, other, kept;

	for (i = 0; i < mesh->zones; i++)
		mesh->number[i] = i;
	for (i = mesh->zones - 1; i > 0; i--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		other = (uint32_t)(state % (i + 1));
		kept = mesh->number[i];
		mesh->number[i] = mesh->number[other];
		mesh->number[other] = kept;
	}
}

static void make_mesh(struct mesh *mesh, uint32_t edge)
{
	unsigned d;
	uint32_t i, g;

	mesh->edge = edge;
	mesh->zones = edge * edge * edge;
	mesh->number = allocate(mesh->zones, sizeof(*mesh->number));
	mesh->source = allocate(mesh->zones, sizeof(*mesh->source));
	for (d = 0; d < DIRECTIONS; d++)
		mesh->flux[d] = allocate(mesh->zones, sizeof(*mesh->flux[d]));
	for (i = 0; i < mesh->zones; i++)
		for (g = 0; g < GROUPS; g++)
			mesh->source[i][g] = 1.0 / (1 + g);
	number_zones(mesh);
}

static void update(double *flux, const double *source, const double *const upwind[3])
{
	unsigned g;

	for (g = 0; g < GROUPS; g++)
		flux[g] = (source[g] + 0.3 * (upwind[0][g] + upwind[1][g] + upwind[2][g])) / 1.9;
}

/* Sweep in one direction: its bits say whether it goes down along x, y and z. */
static void sweep(struct mesh *mesh, unsigned direction)
{
	static const double nothing[GROUPS];
	double(*flux)[GROUPS] = mesh->flux[direction];
	const uint32_t n = mesh->edge, step[3] = {1, n, n * n};
	uint64_t before = now_ns(), now;
	uint32_t at[3], i, axis, done = 0;

	for (i = 0; i < mesh->zones; i++) {
		const double *upwind[3];
		uint32_t index = 0, zone;

		at[0] = i % n;
		at[1] = i / n % n;
		at[2] = i / (n * n);
		for (axis = 0; axis < 3; axis++)
			index += (direction >> axis & 1 ? n - 1 - at[axis] : at[axis]) * step[axis];
		for (axis = 0; axis < 3; axis++)
			upwind[axis] = !at[axis] ? nothing
						 : flux[mesh->number[direction >> axis & 1
									     ? index + step[axis]
									     : index - step[axis]]];
		zone = mesh->number[index];
		update(flux[zone], mesh->source[zone], upwind);
		if (++done < BATCH)
			continue;
		now = now_ns();
		pem_notify_umt_zone_time((double)(now - before) / done);
		before = now;
		done = 0;
	}
}

/* Scattering makes the next iteration's source of all directions' fluxes. */
static double scatter(struct mesh *mesh)
{
	double total = 0;
	unsigned d, g;
	uint32_t zone;

	for (zone = 0; zone < mesh->zones; zone++) {
		for (g = 0; g < GROUPS; g++) {
			double sum = 0;

			for (d = 0; d < DIRECTIONS; d++)
				sum += mesh->flux[d][zone][g];
			mesh->source[zone][g] = 1.0 / (1 + g) + 0.05 * sum;
			total += sum;
		}
	}
	return total;
}

int main(int argc, char **argv)
{
	unsigned iterations = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 6, d, i;
	unsigned edge = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 64;
	struct mesh mesh;
	double total = 0;

	if (!iterations || edge < 2 || edge > 512) {
		fprintf(stderr, "use: umt [ITERATIONS [EDGE]], EDGE from 2 to 512\n");
		return 1;
	}
	make_mesh(&mesh, edge);
	for (i = 0; i < iterations; i++) {
		pem_notify_umt_loop_begin(i, "sweep");
		for (d = 0; d < DIRECTIONS; d++)
			sweep(&mesh, d);
		pem_notify_umt_loop_end(i, "sweep");
		pem_notify_umt_loop_begin(i, "scattering");
		total = scatter(&mesh);
		pem_notify_umt_loop_end(i, "scattering");
	}
	printf("flux %.9e after %u iterations over %u zones\n", total, iterations, mesh.zones);
	for (d = 0; d < DIRECTIONS; d++)
		free(mesh.flux[d]);
	free(mesh.source);
	free(mesh.number);
	return 0;
}
