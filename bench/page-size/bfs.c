// SPDX-License-Identifier: MIT
/*
 * bfs.c - breadth-first search through a random graph: bfs [THOUSAND_NODES [SEARCHES]]
 *
 * Each search starts anew from another node, and counts the levels.
 */
#include "program.h"

#include <string.h>

#define DEGREE 8u
#define NONE UINT32_MAX

struct graph {
	uint64_t nodes;
	uint32_t *first, *edges;
	uint32_t *parents;
	uint32_t *queue;
	uint8_t *seen; /* a bit for each node */
};

static void build(struct graph *graph)
{
	uint64_t i, seed = 4;

	for (i = 0; i <= graph->nodes; i++)
		graph->first[i] = i * DEGREE;
	for (i = 0; i < graph->nodes * DEGREE; i++)
		graph->edges[i] = program_below(&seed, graph->nodes);
}

static uint64_t search(struct graph *graph, uint32_t from)
{
	uint64_t head = 0, tail = 0, end = 1, levels = 0;
	uint32_t k;

	memset(graph->seen, 0, graph->nodes / 8 + 1);
	memset(graph->parents, 0xff, graph->nodes * sizeof(*graph->parents));
	graph->queue[tail++] = from;
	graph->parents[from] = from;
	graph->seen[from / 8] |= 1u << from % 8;
	while (head < tail) {
		uint32_t node = graph->queue[head++];

		for (k = graph->first[node]; k < graph->first[node + 1]; k++) {
			uint32_t next = graph->edges[k];

			if (graph->seen[next / 8] >> next % 8 & 1)
				continue;
			graph->seen[next / 8] |= 1u << next % 8;
			graph->parents[next] = node;
			graph->queue[tail++] = next;
		}
		if (head == end) {
			levels++;
			end = tail;
		}
	}
	return levels * tail + graph->parents[graph->nodes / 2] % 1000;
}

int main(int argc, char **argv)
{
	uint64_t searches = program_argument(argc, argv, 2, 1), i, sum = 0;
	struct graph graph = {.nodes = program_argument(argc, argv, 1, 8000) * 1000};

	graph.first = program_array(graph.nodes + 1, sizeof(*graph.first));
	graph.edges = program_array(graph.nodes * DEGREE, sizeof(*graph.edges));
	graph.parents = program_array(graph.nodes, sizeof(*graph.parents));
	graph.queue = program_array(graph.nodes, sizeof(*graph.queue));
	graph.seen = program_array(graph.nodes / 8 + 1, 1);
	build(&graph);
	for (i = 0; i < searches; i++)
		sum += search(&graph, i * 7919 % graph.nodes);
	return program_end("bfs", sum);
}
