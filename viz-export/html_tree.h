/* SPDX-License-Identifier: MIT */
/*
 * html_tree.h - intervals by what they are nested in: a node for each process and path of titles
 *
 * Each node has durations by the bin in which the interval ended, and the time that its intervals
 * took of each bin. The page makes strips of durations, the table of intervals and the flame graph
 * of them. Where there is no more room, or nesting is too deep, intervals of one name share a
 * joined node.
 */
#ifndef PEM_HTML_TREE_H
#define PEM_HTML_TREE_H

#include "html_cells.h"
#include "sketch.h"

#include <pem/context.h>

#include <stdbool.h>

#define PEM_HTML_NODES_MAX 1024u
#define PEM_HTML_NO_NODE UINT32_MAX
#define PEM_HTML_NO_PROCESS UINT32_MAX /* of several processes */
#define PEM_HTML_RECENT 512u

struct pem_html_node {
	char *name;
	const char *group; /* group of its events; "": it stands for intervals of any name */
	uint64_t hash;
	uint32_t parent; /* PEM_HTML_NO_NODE: none */
	/* Index of the page's process. PEM_HTML_NO_PROCESS: it is joined, of all processes. */
	uint32_t process;
	bool is_nested; /* joined: its intervals lie within others, whose time theirs is, too */
	uint32_t depth;
	uint64_t count; /* intervals that ended */
	uint64_t unknown; /* intervals whose end is unknown or not in the trace */
	struct pem_html_cell *durations; /* ns, of those that ended */
	struct pem_sketch sketch; /* the same, without those for which there was no memory */
	double *time_ns; /* of each bin */
	int32_t *covers; /* change of the number of intervals that cover the whole bin */
};

struct pem_html_tree {
	struct pem_html_node *node;
	uint32_t count;
	uint32_t bins;
	uint64_t bin_ns;
	/* The node found last for a hash: most intervals have one of a few. */
	uint32_t recent[PEM_HTML_RECENT];
	uint64_t joined; /* intervals in joined nodes */
	uint64_t nameless; /* of these, intervals in the node for any name */
};

/* Make an empty tree. Returns 0 or -ENOMEM. */
int pem_html_tree__init(struct pem_html_tree *tree, uint32_t bins, uint64_t bin_ns);
void pem_html_tree__free(struct pem_html_tree *tree);
/*
 * Give an interval that begins its node: the interval's user[0] becomes the node's index + 1.
 * Returns the index, or PEM_HTML_NO_NODE: no memory.
 */
uint32_t pem_html_tree__begin(struct pem_html_tree *tree, const struct pem_interval *interval,
			      uint32_t process);
/* Add an interval that ended, with a node. */
void pem_html_tree__end(struct pem_html_tree *tree, uint32_t node, const struct pem_ended *ended);
/* Add up what covers whole bins. After the last end, once. */
void pem_html_tree__finish(struct pem_html_tree *tree);
/* Write "tree":{...}. */
void pem_html_tree__write(FILE *out, const struct pem_html_tree *tree);

/* What people call an interval: its title, or its group where the title is the group's last word.
 */
const char *pem_html__interval_name(const struct pem_interval *interval);

#endif
