/* SPDX-License-Identifier: MIT */
/* html_tree.c - nodes of nested intervals (contract: html_tree.h) */
#include "html_tree.h"
#include "hash.h"
#include "html_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 24u /* of a recursion; deeper calls are in joined nodes */
#define CELLS_WRITTEN_MAX 160000u
#define NAME_BYTES 120u
#define OTHERS "all others"
/* The last nodes are left for joined ones, and the very last for names without a node. */
#define NODES_FOR_JOINED 256u
#define NODES_FOR_NAMELESS 2u /* nested or not */

int pem_html_tree__init(struct pem_html_tree *tree, uint32_t bins, uint64_t bin_ns)
{
	memset(tree, 0, sizeof(*tree));
	tree->bins = bins;
	tree->bin_ns = bin_ns;
	tree->node = calloc(PEM_HTML_NODES_MAX, sizeof(*tree->node));
	return tree->node ? 0 : -ENOMEM;
}

void pem_html_tree__free(struct pem_html_tree *tree)
{
	uint32_t i;

	for (i = 0; i < tree->count; i++) {
		free(tree->node[i].name);
		free(tree->node[i].durations);
		pem_sketch__free(&tree->node[i].sketch);
		free(tree->node[i].time_ns);
		free(tree->node[i].covers);
	}
	free(tree->node);
	memset(tree, 0, sizeof(*tree));
}

const char *pem_html__interval_name(const struct pem_interval *interval)
{
	const char *group = interval->begin.event->group;
	const char *title = pem_interval__title(interval);
	const char *last = strrchr(group, ':');

	return last && !strcmp(last + 1, title) ? group : title;
}

static int is_node(const struct pem_html_node *node, uint64_t hash, uint32_t parent,
		   uint32_t process, const char *group, const char *name)
{
	return node->hash == hash && node->parent == parent && node->process == process &&
	       !strcmp(node->group, group) && !strncmp(node->name, name, NAME_BYTES);
}

static uint32_t find(struct pem_html_tree *tree, uint64_t hash, uint32_t parent, uint32_t process,
		     const char *group, const char *name)
{
	uint32_t *recent = &tree->recent[hash % PEM_HTML_RECENT], i;

	if (*recent < tree->count &&
	    is_node(&tree->node[*recent], hash, parent, process, group, name))
		return *recent;
	for (i = tree->count; i-- > 0;) {
		if (!is_node(&tree->node[i], hash, parent, process, group, name))
			continue;
		*recent = i;
		return i;
	}
	return PEM_HTML_NO_NODE;
}

static uint32_t make(struct pem_html_tree *tree, struct pem_html_node node, const char *name)
{
	node.name = strndup(name, NAME_BYTES);
	node.durations = calloc(tree->bins, sizeof(*node.durations));
	node.time_ns = calloc(tree->bins, sizeof(*node.time_ns));
	node.covers = calloc(tree->bins + 1, sizeof(*node.covers));
	if (!node.name || !node.durations || !node.time_ns || !node.covers) {
		free(node.name);
		free(node.durations);
		free(node.time_ns);
		free(node.covers);
		return PEM_HTML_NO_NODE;
	}
	tree->node[tree->count] = node;
	return tree->count++;
}

/*
 * The node of a name, for intervals of all processes that have no node of their own. The time of
 * one that lies within another interval is in that one's, too.
 */
static uint32_t join(struct pem_html_tree *tree, const char *group, const char *name,
		     bool is_nested)
{
	struct pem_html_node node = {.group = group,
				     .parent = PEM_HTML_NO_NODE,
				     .process = PEM_HTML_NO_PROCESS,
				     .is_nested = is_nested};
	uint32_t i;

	tree->joined++;
	node.hash = pem_hash__text(pem_hash__text(PEM_HASH_START, group), name) + is_nested;
	i = find(tree, node.hash, node.parent, node.process, group, name);
	if (i != PEM_HTML_NO_NODE)
		return i;
	if (tree->count + NODES_FOR_NAMELESS < PEM_HTML_NODES_MAX)
		return make(tree, node, name);
	/* Of no name and no process: in no table that claims to be exact. */
	tree->nameless++;
	node.group = "";
	node.hash = is_nested;
	i = find(tree, node.hash, node.parent, node.process, "", OTHERS);
	return i != PEM_HTML_NO_NODE ? i : make(tree, node, OTHERS);
}

static uint32_t set_node(const struct pem_interval *interval, uint32_t i)
{
	if (i != PEM_HTML_NO_NODE)
		pem_interval__set_user(interval, 0, i + 1ull);
	return i;
}

uint32_t pem_html_tree__begin(struct pem_html_tree *tree, const struct pem_interval *interval,
			      uint32_t process)
{
	const char *name = pem_html__interval_name(interval);
	struct pem_html_node node = {.group = interval->begin.event->group,
				     .parent = PEM_HTML_NO_NODE,
				     .process = process};
	uint32_t i;

	if (interval->outer && interval->outer->user[0])
		node.parent = (uint32_t)interval->outer->user[0] - 1;
	/* What lies in an interval of a joined node is in no place of its own, either. */
	if (node.parent != PEM_HTML_NO_NODE &&
	    tree->node[node.parent].process == PEM_HTML_NO_PROCESS)
		return set_node(interval, join(tree, node.group, name, true));
	/* A thread belongs to one process, but a damaged trace may say otherwise. */
	if (node.parent != PEM_HTML_NO_NODE && tree->node[node.parent].process != process)
		node.parent = PEM_HTML_NO_NODE;
	node.hash = pem_hash__text(pem_hash__text(PEM_HASH_START, node.group), name);
	node.hash = (node.hash ^ node.parent) * 1099511628211ull;
	node.hash = (node.hash ^ process) * 1099511628211ull;
	node.depth = node.parent == PEM_HTML_NO_NODE ? 0 : tree->node[node.parent].depth + 1;
	i = find(tree, node.hash, node.parent, process, node.group, name);
	if (i == PEM_HTML_NO_NODE) {
		if (tree->count + NODES_FOR_JOINED >= PEM_HTML_NODES_MAX || node.depth >= DEPTH_MAX)
			i = join(tree, node.group, name, interval->outer != NULL);
		else
			i = make(tree, node, name);
	}
	return set_node(interval, i);
}

static uint32_t bin_of(const struct pem_html_tree *tree, uint64_t time_ns)
{
	uint64_t bin = time_ns / tree->bin_ns;

	return bin < tree->bins ? (uint32_t)bin : tree->bins - 1;
}

void pem_html_tree__end(struct pem_html_tree *tree, uint32_t i, const struct pem_ended *ended)
{
	struct pem_html_node *node = &tree->node[i];
	uint64_t begin_ns = ended->interval->begin.time_ns;
	/* A damaged clock may go backwards. */
	uint64_t end_ns = ended->end_ns > begin_ns ? ended->end_ns : begin_ns;
	uint32_t first = bin_of(tree, begin_ns), last = bin_of(tree, end_ns);

	if (ended->outcome == PEM_INTERVAL_ENDED || ended->outcome == PEM_INTERVAL_WITH_THREAD) {
		pem_html_cell__add(&node->durations[last], (double)(end_ns - begin_ns));
		pem_sketch__add(&node->sketch, (double)(end_ns - begin_ns));
		node->count++;
	} else {
		node->unknown++;
	}
	if (first == last) {
		node->time_ns[first] += (double)(end_ns - begin_ns);
		return;
	}
	node->time_ns[first] += (double)((first + 1ull) * tree->bin_ns - begin_ns);
	node->time_ns[last] += (double)(end_ns - last * tree->bin_ns);
	node->covers[first + 1]++;
	node->covers[last]--;
}

void pem_html_tree__finish(struct pem_html_tree *tree)
{
	uint32_t i, bin;

	for (i = 0; i < tree->count; i++) {
		struct pem_html_node *node = &tree->node[i];
		int64_t covering = 0;

		for (bin = 0; bin < tree->bins; bin++) {
			covering += node->covers[bin];
			node->time_ns[bin] += (double)covering * (double)tree->bin_ns;
		}
	}
}

/* How many bins of the tree are one on the page. */
static uint32_t choose_fold(const struct pem_html_tree *tree)
{
	uint32_t fold = 1, i, bin;
	uint64_t used;

	for (;; fold *= 2) {
		used = 0;
		for (i = 0; i < tree->count; i++) {
			const struct pem_html_node *node = &tree->node[i];

			used += pem_html_cells__used(node->durations, tree->bins, fold);
			for (bin = 0; bin < tree->bins; bin += fold)
				used += node->time_ns[bin] >= 0.5;
		}
		if (used <= CELLS_WRITTEN_MAX || fold >= tree->bins)
			return fold;
	}
}

/* Write "sketch":[...]: the greatest value, then of each bin its distance and its count. */
static void write_sketch(FILE *out, const struct pem_html_node *node)
{
	int32_t before = 0;
	size_t i;

	fprintf(out, ",\"sketch\":[%.0f", node->sketch.most);
	/* Percentiles of some of the values would be wrong. */
	for (i = 0; node->sketch.count == node->count && i < node->sketch.bin_count; i++) {
		const struct pem_sketch_bin *bin = &node->sketch.bins[i];

		fprintf(out, ",%" PRId32 ",%" PRIu64, bin->index - before, bin->count);
		before = bin->index;
	}
	fputc(']', out);
}

void pem_html_tree__write(FILE *out, const struct pem_html_tree *tree)
{
	uint32_t i, fold = choose_fold(tree);

	fprintf(out,
		"\"tree\":{\"bin_ns\":%" PRIu64 ",\"bins\":%" PRIu32 ",\"joined\":%" PRIu64
		",\"nameless\":%" PRIu64 ",\"nodes\":[",
		tree->bin_ns * fold, (tree->bins + fold - 1) / fold, tree->joined, tree->nameless);
	for (i = 0; i < tree->count; i++) {
		const struct pem_html_node *node = &tree->node[i];

		fputs(i ? ",\n{" : "\n{", out);
		pem_json__key_string(out, "name", node->name, NAME_BYTES);
		fputc(',', out);
		pem_json__key_string(out, "group", node->group, NAME_BYTES);
		fprintf(out,
			",\"parent\":%" PRId32 ",\"process\":%" PRId32
			",\"nested\":%d,\"count\":%" PRIu64 ",\"unknown\":%" PRIu64 ",",
			node->parent == PEM_HTML_NO_NODE ? -1 : (int32_t)node->parent,
			node->process == PEM_HTML_NO_PROCESS ? -1 : (int32_t)node->process,
			node->is_nested, node->count, node->unknown);
		pem_html_cells__write(out, "durations", node->durations, tree->bins, fold, 1);
		fputc(',', out);
		pem_html_times__write(out, "time", node->time_ns, tree->bins, fold);
		write_sketch(out, node);
		fputc('}', out);
	}
	fputs("]}", out);
}
