/* SPDX-License-Identifier: MIT */
/*
 * sites.h - where events of a trace were in the code: what sites.c collects, site_names.c and
 * kernel_names.c name, site_print.c prints, and functions.c sums up by function
 */
#ifndef PEM_CLI_REPORT_SITES_H
#define PEM_CLI_REPORT_SITES_H

#include "report.h"

#define NO_OBJECT UINT32_MAX
#define SITE_NAMES_MAX 8u /* inlined calls that are shown of one site */

/* A program or library that lay in memory of some process. */
struct report_object {
	char *path;
	char build_id[65]; /* "": it has none */
	uint64_t number; /* as in page-size's sites; 0: unknown */
	bool is_by_file; /* offsets of its sites are places in the file, until it is named */
	uint64_t count; /* records of its sites */
	char *trouble; /* why it has no names, or NULL */
};

struct report_site_name {
	char *function; /* NULL: unknown */
	char *file; /* NULL: unknown */
	uint32_t line;
};

struct report_site {
	uint32_t event; /* index in the report's events */
	uint32_t object; /* index, or NO_OBJECT: offset is an address in the process pid */
	uint32_t pid;
	uint32_t name_count;
	uint64_t offset; /* behind the call or the sampled instruction, in the object's addresses */
	uint64_t count, bytes;
	uint64_t live, live_bytes; /* blocks allocated here that were not released */
	struct report_site_name *names; /* innermost first */
};

/* Where an object lies in a process. */
struct report_mapping {
	uint64_t start, end, base;
	uint32_t object;
};

struct report_space {
	struct report_mapping *mappings; /* by rising start; they do not overlap */
	size_t count, capacity;
};

struct report_sites {
	struct report_object *objects;
	size_t object_count, object_capacity;
	struct report_space *spaces;
	size_t space_count, space_capacity;
	struct report_site *sites;
	size_t count, capacity;
	bool has_maps; /* the kernel tells what is mapped: of each exec, but of no fork */
	bool samples; /* also where samples were, which are no call sites */
	const char *kernel_trouble; /* why the kernel's functions have no names, or NULL */
	uint64_t left_out; /* objects beyond the most that a process may have */
	struct pem_number_map object_at; /* key: hash of build id and path */
	struct pem_number_map space_at; /* key: pid */
	struct pem_number_map site_at; /* key: hash of pid, event, object and offset */
};

/* Print what is missing in the names. nothing: the text for a trace without any site. */
void report_sites__print_notes(const struct report_sites *sites, const char *nothing);
/* Name all sites in objects. Returns 0 or -ENOMEM. */
int report_sites__name(struct report_sites *sites);
/* Name all sites in the kernel, if that is known (kernel_names.c). Returns 0 or -ENOMEM. */
int report_sites__name_kernel(struct report_sites *sites, const struct pem_trace_info *info);
/* Name sites in code that programs made, where they left a list (jit_names.c). 0 or -ENOMEM. */
int report_sites__name_jit(struct report_sites *sites, const struct pem_trace_info *info);

#endif
