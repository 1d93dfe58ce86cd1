/* SPDX-License-Identifier: MIT */
/*
 * sites.h - where events of a trace were in the code: what sites.c collects, site_print.c prints,
 * and functions.c sums up by function
 */
#ifndef PEM_CLI_REPORT_SITES_H
#define PEM_CLI_REPORT_SITES_H

#include "report.h"

#include <pem/code.h>

struct report_site {
	uint32_t event; /* index in the report's events */
	uint32_t location; /* of the code */
	uint64_t count, bytes;
	uint64_t live, live_bytes; /* blocks allocated here that were not released */
	/* Of them blocks that their process released before it allocated another one. */
	uint64_t temporary;
	uint64_t peak; /* bytes of its blocks when those of all sites together were most */
	uint64_t now, peaks; /* bytes of its blocks, and how many peaks these took part in */
};

/* Samples with one stack. */
struct report_stack {
	uint32_t event;
	uint32_t node; /* of the code */
	uint64_t count;
};

struct report_sites {
	struct pem_code *code;
	struct report_site *sites;
	size_t count, capacity;
	struct report_stack *stacks;
	size_t stack_count, stack_capacity;
	uint64_t *of_object; /* records by object, once all are there */
	bool samples; /* also where samples were, which are no call sites */
	/* Bytes of all blocks now, the most so far, and how often there were more than before. */
	uint64_t now, most, peaks;
	struct pem_number_map event_at; /* of allocations: index of an event, by its id */
	struct pem_number_map newest_at; /* by process: index in newest */
	uint64_t *newest; /* a process's last block, if it is not released; 0: none */
	size_t newest_count, newest_capacity;
	struct pem_number_map site_at; /* key: event, location */
	struct pem_number_map stack_at; /* key: event, node */
};

/* Print what is missing in the names. nothing: the text for a trace without any site. */
void report_sites__print_notes(const struct report_sites *sites, const char *nothing);

/*
 * A function's name for a table: as people write it, and with its middle left out where it is still
 * long. Valid for a few more calls, as cli_format's.
 */
const char *report_site__short(const char *function);
/* An event's name for a table, by a person's word if it is the CPU's samples. */
const char *report_site__event(const struct pem_event *event);
/* What a named location is called, and its line. Valid for a few more calls, as cli_format's. */
const char *report_site__function(const struct pem_code_location *site);
const char *report_site__line(const struct pem_code *code, const struct pem_code_location *site);

#endif
