// SPDX-License-Identifier: MIT
/*
 * annealing.c - lays out a netlist by random swaps: annealing [THOUSAND_CELLS [THOUSAND_SWAPS]]
 *
 * Each step picks two cells, reads where those lie that they are wired to, and swaps the two if the
 * wires become shorter or chance has it.
 */
#include "program.h"

#define WIRES 6u

struct cell {
	uint32_t wired[WIRES]; /* to these cells */
};

struct position {
	uint16_t x, y;
};

struct netlist {
	uint64_t cells;
	struct cell *netlist;
	struct position *positions; /* of each cell */
	uint32_t *swaps; /* of each cell, how often it was moved */
};

static uint32_t apart(struct position a, struct position b)
{
	return abs((int)a.x - b.x) + abs((int)a.y - b.y);
}

/* The length of a cell's wires if it lay there. */
static uint32_t length(const struct netlist *n, uint32_t cell, struct position there)
{
	uint32_t w, sum = 0;

	for (w = 0; w < WIRES; w++)
		sum += apart(there, n->positions[n->netlist[cell].wired[w]]);
	return sum;
}

static uint64_t step(struct netlist *n, uint64_t *seed, uint32_t heat)
{
	uint32_t a = program_below(seed, n->cells), b = program_below(seed, n->cells);
	struct position at_a = n->positions[a], at_b = n->positions[b];
	int64_t now = (int64_t)length(n, a, at_a) + length(n, b, at_b);
	int64_t then = (int64_t)length(n, a, at_b) + length(n, b, at_a);

	if (then >= now && program_below(seed, 1u << 16) >= heat)
		return 0;
	n->positions[a] = at_b;
	n->positions[b] = at_a;
	n->swaps[a]++;
	n->swaps[b]++;
	return (uint64_t)(now - then);
}

int main(int argc, char **argv)
{
	struct netlist n = {.cells = program_argument(argc, argv, 1, 12000) * 1000};
	uint64_t steps = program_argument(argc, argv, 2, 4000) * 1000, i, seed = 10, sum = 0;
	uint32_t w;

	n.netlist = program_array(n.cells, sizeof(*n.netlist));
	n.positions = program_array(n.cells, sizeof(*n.positions));
	n.swaps = program_array(n.cells, sizeof(*n.swaps));
	for (i = 0; i < n.cells; i++) {
		for (w = 0; w < WIRES; w++)
			n.netlist[i].wired[w] = program_below(&seed, n.cells);
		n.positions[i] = (struct position){i % 4096, i / 4096};
		n.swaps[i] = 0;
	}
	for (i = 0; i < steps; i++)
		sum += step(&n, &seed, (uint32_t)((steps - i) * 4096 / steps));
	for (i = 0; i < n.cells; i++)
		sum += n.swaps[i] * i;
	return program_end("annealing", sum);
}
