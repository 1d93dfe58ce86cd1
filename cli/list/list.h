/* SPDX-License-Identifier: MIT */
/*
 * list.h - what the parts of pem list share: events with the answer whether they can be had here
 */
#ifndef PEM_CLI_LIST_H
#define PEM_CLI_LIST_H

#include "cli.h"

struct list_entry {
	const struct pem_event *event;
	bool available;
	char path[16]; /* what serves it: "module", "bpf", "counters", "stub"; "" : nothing */
	bool of_programs; /* raised by programs that call its stub, not by what comes with pem */
	struct pem_error reason; /* why not */
	/* the same without the source's name, so that one reason for many sources is one */
	char why[512];
};

struct list {
	struct list_entry *entries; /* by layer, class, and then as the specs have them */
	size_t count;
};

/* list.c: "yes", "no", or "program": whether it comes is up to the program. */
const char *list_here(const struct list_entry *entry);
/*
 * Of an event's alternative sources the next name, and its length; 0: no more. *p starts as
 * event->source_name. One that stands there several times, for fields that lie otherwise in other
 * kernels, comes once.
 */
size_t list_next_source(const struct pem_event *event, const char **p, const char **name);
/* search.c: does what an event tells of itself have every word of these texts? */
bool list_search(const struct pem_event *event, char *const *words, size_t count);
/*
 * tables.c: counts by class and what is missing why; a row an event; everything about each event.
 */
void list_print_summary(const struct list *list);
void list_print_rows(const struct list *list);
void list_print_fields(const struct list *list);
/* json.c */
void list_print_json(const struct list *list);

#endif
