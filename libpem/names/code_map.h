/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * code_map.h - what the files of pem/code.h share
 *
 *	code.c		processes and locations
 *	memory.c	what lies in memory of each process
 *	code_names.c	names of locations in objects
 *	code_apart.c	those in files that other users can change
 *	code_functions.c	the functions that locations are in
 *	kernel_names.c	names of the kernel's functions
 *	jit_names.c	names of code that programs made as they ran
 *	code_save.c	names that a trace keeps: named as it was recorded
 *	code_kept.c	the same, read again
 *	stacks.c	the tree of stacks
 */
#ifndef PEM_CODE_MAP_H
#define PEM_CODE_MAP_H

#include "apart.h"
#include "number_map.h"
#include "segments.h"

#include <pem/code.h>
#include <pem/names.h>

#include <stdbool.h>
#include <stdio.h>

#define CODE_NAMES_MAX 8u /* inlined calls that are told of one location */

struct code_object {
	struct pem_code_object told;
	char *path, *trouble;
	char build_id[65];
	/* Offsets of its locations are places in the file, until it is named. */
	bool is_by_file;
	/* While names are given: the first object of the same file, told by another event. */
	uint32_t same;
	bool is_named; /* its file was looked for */
	uint64_t first_ns; /* of the trace's time, when it was first mapped */
	/* Copies of those of its file, while names are kept. */
	struct pem_segment *segments;
	size_t segment_count;
};

/* One layout with struct pem_code_name. */
struct code_name {
	const char *function; /* of the function with that number, once all are named */
	char *file;
	uint32_t line;
	uint32_t number; /* PEM_CODE_NONE: it has no function */
	uint64_t start; /* as name */
};

struct code_function {
	uint32_t object; /* the first one of its file; PEM_CODE_NONE: it is in no file */
	bool is_kernel;
	bool is_inlined; /* only copies of it in other functions were met */
	uint64_t identity; /* of the object, as in struct pem_name */
	uint64_t start; /* of one that was not inlined */
	char *name, *file; /* file: where it is declared, or NULL */
	uint32_t line;
};

struct code_location {
	struct pem_code_location told;
	uint32_t same; /* the first location with this object and offset */
	/*
	 * When a process started that had it, since the trace's start: the first, if several had
	 * its number. 0: unknown, or before the trace.
	 */
	uint64_t process_start_ns;
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
	struct code_function *functions;
	size_t function_count, function_capacity;
	struct code_node *nodes;
	size_t node_count, node_capacity;
	struct code_recent *recent;
	uint32_t generation; /* counts what changes in memory, from 1 on */
	uint64_t multiplier; /* of hashes that stand for what is compared (hash.h) */
	bool is_data; /* locations are of variables, and memory without a file is an object */
	bool keeps_segments; /* names are for the trace to keep */
	char kept_files[48]; /* pem_trace__files_kept; "": there are none */
	struct apart apart; /* what naming other users' files took */
	bool is_apart; /* this is the process that does */
	struct code_kept *kept; /* names that the trace has; NULL: it has none */
	char kept_trouble[96]; /* why they are not used, or "" */
	uint64_t start_time_ns; /* of the trace, CLOCK_REALTIME; 0: unknown */
	bool has_maps; /* the kernel tells what is mapped: of each exec, but of no fork */
	const char *kernel_trouble;
	uint64_t left_out, cut;
	struct pem_number_map object_at, space_at, location_at, node_at, function_at;
	struct pem_number_map numbered_at; /* nodes. key: hash of a process and a stack's number */
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
/* Is the trace of the boot of this machine that runs now? */
bool code__is_this_boot(const struct pem_trace_info *info);
/* Name code that programs made, where they left a list. Returns 0 or -ENOMEM. */
int code__name_jit(struct pem_code *code, const struct pem_trace_info *info);
/* What a location's offset is of, in names that are kept. */
enum kept_owner_kind { KEPT_OBJECT, KEPT_KERNEL, KEPT_PROCESS };
static inline uint64_t kept_owner(enum kept_owner_kind kind, uint32_t number)
{
	return (uint64_t)kind << 32 | number;
}

/* Read the names that a trace keeps, if it does. Returns 0 or -ENOMEM. */
int code__read_kept(struct pem_code *code, const struct pem_trace *trace);
/* Names in that format. text becomes theirs. Returns 0, -EINVAL at line *number, or -ENOMEM. */
int code__parse_kept(char *text, struct code_kept **kept, unsigned *number);
void code__free_kept(struct code_kept *kept);
/*
 * Write the names in that format: all, or, if object is not PEM_CODE_NONE, those of objects of its
 * file. Returns 0 or -ENOMEM.
 */
int code__write(const struct pem_code *code, FILE *out, uint32_t object);
/* Keep segments of an object's file. Returns 0 or -ENOMEM. */
int code__keep_segments(struct code_object *object, const struct pem_segment *segments,
			size_t count);
/* The same, of those that are kept. */
int code__take_segments(const struct pem_code *code, struct code_object *object, uint32_t kept);
/*
 * The number of an object among those that are kept, by which it also gets its own number.
 * PEM_CODE_NONE: it is not one of them; or -ENOMEM.
 */
int64_t code__kept_object(struct pem_code *code, struct code_object *object);
/* Why such an object had no names as it was recorded, or NULL. */
const char *code__kept_trouble(const struct pem_code *code, uint32_t object);
/* Turn a place in the file of such an object into its own address. false: it is unknown. */
bool code__kept_offset(const struct pem_code *code, uint32_t object, uint64_t *offset);
/*
 * Give a location the names that are kept for its offset and owner, see kept_owner.
 * Returns 1; 0: none are; or -ENOMEM.
 */
int code__name_kept(struct pem_code *code, struct code_location *location, uint64_t owner);
/* Are names of the kernel's functions kept? */
bool code__keeps_kernel(const struct pem_code *code);
/* The object whose locations are named: one is open at a time, their debug information is large. */
struct naming {
	struct code_location **sorted; /* those of one file follow each other */
	size_t at, count; /* in sorted */
	uint32_t object; /* PEM_CODE_NONE: none yet */
	uint32_t kept; /* among those whose names are kept, or PEM_CODE_NONE */
	bool was_opened; /* or could not be */
	struct pem_object *opened; /* NULL: there is none */
	/* Names of this file come from another process. The trace's own names are here meanwhile.
	 */
	bool is_apart;
	struct code_kept *before;
};

/* Name the locations from n->at on that are in the same file. Returns 0 or -ENOMEM. */
int code__name_file(struct pem_code *code, struct naming *n);
/*
 * Have another process name the locations from n->at on that are in the same file, which holder can
 * change. n->is_apart is set if it did: code->kept is what it found, until code__end_apart. If it
 * did not, error says why. Returns 0 or -ENOMEM.
 */
int code__begin_apart(struct pem_code *code, struct naming *n, uint32_t holder,
		      struct pem_error *error);
/* Take from what it found what is of object n->object as a whole. Returns 0 or -ENOMEM. */
int code__adopt(struct pem_code *code, struct naming *n);
void code__end_apart(struct pem_code *code, struct naming *n);
/* As pem_code__name, without the names that the trace keeps. */
int code__name_anew(struct pem_code *code, const struct pem_trace *trace);
/* Give a location, which has none, room for names. NULL: no memory. */
struct code_name *code__make_names(struct code_location *location, uint32_t count);
void code__free_names(struct code_location *location);
/*
 * Give a name its function: the one like this that has been met, or a new one with copies of name
 * and file, which is NULL if it is unknown. Returns 0 or -ENOMEM.
 */
int code__name_function(struct pem_code *code, struct code_name *in,
			const struct code_function *like, const char *name, const char *file);
/* The same for code in no file, which has its name alone. */
int code__name_text(struct pem_code *code, struct code_name *in, const char *name);
/* After all names were given: print them differently if they differ. Returns 0 or -ENOMEM. */
int code__finish_functions(struct pem_code *code);
void code__free_functions(struct pem_code *code);
/* Copy a text of a file, which can hold anything, so that it can be printed. 0 or -ENOMEM. */
int code__copy(const char *text, char **to);

#endif
