/* SPDX-License-Identifier: MIT */
/*
 * sites.h - where events of a trace were in the code: what sites.c collects, site_print.c prints,
 * and functions.c sums up by function
 */
#ifndef PEM_CLI_REPORT_SITES_H
#define PEM_CLI_REPORT_SITES_H

#include "heap.h"
#include "report.h"

#include <pem/code.h>

#include <json-c/json.h>

/* Records of one place, and the blocks that these allocated. */
struct report_amounts {
	uint64_t count, bytes;
	uint64_t live, live_bytes; /* blocks that were not released */
	uint64_t temporary, peak; /* as struct pem_heap_row, of all runs */
};

struct report_site {
	uint32_t event; /* index in the report's events */
	uint32_t location; /* of the code */
	struct report_amounts sum;
};

/* Samples or allocations with one stack. */
struct report_stack {
	uint32_t event;
	uint32_t node; /* of the code */
	struct report_amounts sum;
};

struct report_sites {
	struct pem_code *code;
	struct report_site *sites;
	size_t count, capacity;
	struct report_stack *stacks;
	size_t stack_count, stack_capacity;
	uint64_t stackless; /* allocations whose stack was lost */
	uint64_t *of_object; /* records by object, once all are there */
	bool samples; /* also where samples were, which are no call sites */
	bool lists_stacks; /* each of them, in JSON */
	/* A site's origin is twice its index, a stack's one more than that. */
	struct pem_heap heap;
	struct pem_number_map event_at; /* of allocations: index of an event, by its id */
	struct pem_number_map site_at; /* key: event, location */
	struct pem_number_map stack_at; /* key: event, node */
};

/* Add up the amounts of two places that are one. */
void report_amounts__join(struct report_amounts *to, const struct report_amounts *from);

/* Print what is missing in the names. nothing: the text for a trace without any site. */
void report_sites__print_notes(const struct report_sites *sites, const char *nothing);

/*
 * A function's name for a table: as people write it, and with its middle left out where it is still
 * long. Valid for a few more calls, as cli_format's.
 */
const char *report_site__short(const char *function);
/* An event's name for a table, by a person's word if it is the CPU's samples. */
const char *report_site__event(const struct pem_event *event);
/* Put the cells of a table, and the members of an object, that tell amounts. */
#define REPORT_AMOUNT_COLUMNS 5u
void report_amounts__columns(struct cli_table *table);
void report_amounts__cells(struct cli_table *table, const struct report_amounts *sum);
void report_amounts__json(struct json_object *entry, const struct report_amounts *sum);
/* What a named location is called, and its line. Valid for a few more calls, as cli_format's. */
const char *report_site__function(const struct pem_code_location *site);
const char *report_site__line(const struct pem_code *code, const struct pem_code_location *site);

#endif
