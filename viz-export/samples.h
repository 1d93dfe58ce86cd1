/* SPDX-License-Identifier: MIT */
/*
 * samples.h - where the CPU's time went: samples by stack of functions; or who allocated, in
 * several amounts
 *
 * Samples are counted by stack of addresses (pem/code.h) as the trace is read. In the end these
 * become a tree of functions with a root for each group, such as a process. A function is that of
 * symbols or debug information; one that was inlined has a node of its own. Calls in a row that
 * have no name, and are in one object, are one node.
 *
 * Not here: formats.
 */
#ifndef PEM_EXPORT_SAMPLES_H
#define PEM_EXPORT_SAMPLES_H

#include "heap.h"
#include "number_map.h"

#include <pem/code.h>

#include <stdbool.h>

#define PEM_SAMPLES_NONE UINT32_MAX

/* What is counted. */
enum pem_samples_of { PEM_SAMPLES_OF_CPU, PEM_SAMPLES_OF_ALLOCATIONS };

/* What stacks of allocations have. */
enum pem_amount {
	PEM_AMOUNT_BYTES, /* that were asked for */
	PEM_AMOUNT_CALLS, /* that allocated */
	/* The others as struct pem_heap_row has them: what allocations at that time left, ... */
	PEM_AMOUNT_PEAK,
	PEM_AMOUNT_LEAKED,
	PEM_AMOUNT_TEMPORARY,
	PEM_AMOUNTS,
};
struct pem_amounts {
	uint64_t of[PEM_AMOUNTS];
};

/* Samples, or allocations, with one stack in one bin of time. */
struct pem_samples_entry {
	uint32_t node; /* of the code; after pem_samples__finish: of the tree */
	uint16_t group, bin;
	uint64_t count; /* samples; of allocations: an index in amounts */
};

struct pem_samples_function {
	char *name; /* "[libc.so.6]" of what has no name, "[unknown]" */
	char *object; /* path; "[kernel]", "" of what is in none */
	uint32_t number; /* of the code's function; PEM_CODE_NONE: it has no name */
	bool is_kernel;
};

struct pem_samples_node {
	uint32_t parent; /* a smaller number; PEM_SAMPLES_NONE: it is a group's root */
	uint32_t function; /* of a root: the group */
	uint64_t own, total; /* samples, or the amount, in it; and in what it called */
};

struct pem_samples {
	enum pem_samples_of of;
	enum pem_amount amount; /* of allocations: that own and total are */
	/* Set by the caller, after init. bin_ns 0: one bin. */
	uint64_t bin_ns;
	uint32_t bin_count;
	struct pem_code *code;
	uint64_t count; /* samples, or allocations, taken */
	struct pem_heap heap;
	bool knows_ends; /* in the end: are the amounts known that releases are needed for? */
	struct pem_amounts *amounts;
	size_t amounts_capacity; /* as many as entries are used at first */
	struct pem_samples_entry *entries; /* in the end by node and bin */
	size_t entry_count, entry_capacity;
	struct pem_samples_function *functions;
	size_t function_count, function_capacity;
	struct pem_samples_node *nodes;
	size_t node_count, node_capacity;
	struct pem_number_map entry_at; /* key: node, group, bin */
};

/* Start empty. trace: lives as long. Returns 0 or -ENOMEM. Free it in both cases. */
int pem_samples__init(struct pem_samples *samples, enum pem_samples_of of,
		      const struct pem_trace *trace);
void pem_samples__free(struct pem_samples *samples);
/* The number that an entry has of samples, or of an amount. */
uint64_t pem_samples__value(const struct pem_samples *samples,
			    const struct pem_samples_entry *entry, enum pem_amount amount);
/* Do allocations of the trace have stacks, so that a pass over it needs its blocks? */
bool pem_samples__needs_blocks(const struct pem_trace *trace);
/* Is it a record that pem_samples__record takes? */
bool pem_samples__wants(const struct pem_samples *samples, const struct pem_event *event);
/*
 * Take a sample, an allocation whose stack is known, a release, or what says where code lies or
 * what a stack is. group: of the record's process. Returns 0 or -ENOMEM.
 */
int pem_samples__record(struct pem_samples *samples, const struct pem_record *record,
			const struct pem_around *around, uint16_t group);
/*
 * Name all, and make the tree; trace has the samples, pass is at its end. nodes_max: of small
 * nodes, samples then count for a node "(more)" of their parent until there are no more of both; 0:
 * no limit. Blocks on files. Returns 0 or -ENOMEM.
 */
int pem_samples__finish(struct pem_samples *samples, const struct pem_trace *trace,
			const struct pem_pass *pass, size_t nodes_max);

#endif
