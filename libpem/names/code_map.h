/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code_map.h - what the files of pem/code.h share
 *
 *	code.c		processes and locations
 *	memory.c	what lies in memory of each process
 *	code_names.c	names of locations in objects
 *	kernel_names.c	names of the kernel's functions
 *	jit_names.c	names of code that programs made as they ran
 *	stacks.c	the tree of stacks
 */
#ifndef PEM_CODE_MAP_H
#define PEM_CODE_MAP_H

#include "number_map.h"

#include <pem/code.h>

#include <stdbool.h>

#define CODE_NAMES_MAX 8u /* inlined calls that are told of one location */

struct code_object {
	struct pem_code_object told;
	char *path, *trouble;
	char build_id[65];
	/* Offsets of its locations are places in the file, until it is named. */
	bool is_by_file;
};

struct code_name {
	char *function, *file;
	uint32_t line;
};

struct code_location {
	struct pem_code_location told;
	uint32_t same; /* the first location with this object and offset */
};

/* Where an object lies in a process. */
struct code_mapping {
	uint64_t start, end, base;
	uint32_t object;
};

/* Mappings of one process, or of several that were forked and have changed nothing since. */
struct code_memory {
	struct code_mapping *mappings; /* by rising start; they do not overlap */
	size_t count, capacity;
	uint32_t users; /* processes */
};

/* Memory of a process. */
struct code_space {
	struct code_memory *memory; /* NULL: nothing is mapped */
	bool is_told; /* it is not its parent's, even if nothing is mapped */
};

struct code_node {
	uint32_t caller, location;
};

/* Programs are at the same few addresses again and again: the location that one had last. */
#define CODE_RECENT 8192u
struct code_recent {
	uint64_t address;
	uint32_t pid, location;
	uint32_t generation; /* of struct pem_code */
};

struct pem_code {
	struct code_object *objects;
	size_t object_count, object_capacity;
	struct code_space *spaces;
	size_t space_count, space_capacity;
	size_t mapping_count; /* of all memories */
	struct code_location *locations;
	size_t location_count, location_capacity;
	struct code_node *nodes;
	size_t node_count, node_capacity;
	struct code_recent *recent;
	uint32_t generation; /* counts what changes in memory, from 1 on */
	uint64_t multiplier; /* of hashes that stand for what is compared (hash.h) */
	bool is_data; /* locations are of variables, and memory without a file is an object */
	bool has_maps; /* the kernel tells what is mapped: of each exec, but of no fork */
	const char *kernel_trouble;
	uint64_t left_out, cut;
	struct pem_number_map object_at, space_at, location_at, node_at;
};

/* The mapping that an address is in, or NULL. */
const struct code_mapping *code__mapping_at(const struct code_space *space, uint64_t address);
/*
 * Put a mapping in place of those that it overlaps. Where a process or the trace has too many, it
 * is counted as left out. Returns 0 or -ENOMEM.
 */
int code__map_object(struct pem_code *code, struct code_space *space,
		     const struct code_mapping *mapping);
/* A process has another one's memory from now on, or none (NULL). */
void code__share_memory(struct pem_code *code, struct code_space *space,
			const struct code_space *from);
/* Name what is in objects. Returns 0 or -ENOMEM. */
int code__name_objects(struct pem_code *code);
/* Name what is in the kernel, if its list is of the recorded boot. Returns 0 or -ENOMEM. */
int code__name_kernel(struct pem_code *code, const struct pem_trace_info *info);
/* Name code that programs made, where they left a list. Returns 0 or -ENOMEM. */
int code__name_jit(struct pem_code *code, const struct pem_trace_info *info);
/* Give a location, which has none, room for names. NULL: no memory. */
struct code_name *code__make_names(struct code_location *location, uint32_t count);
/* Copy a text of a file, which can hold anything, so that it can be printed. 0 or -ENOMEM. */
int code__copy(const char *text, char **to);

#endif
