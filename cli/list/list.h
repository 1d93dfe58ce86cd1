/* SPDX-License-Identifier: MIT */
/* list.h - what the parts of pem list share: events, and whether they are available here */
#ifndef PEM_CLI_LIST_H
#define PEM_CLI_LIST_H

#include "cli.h"

struct list_entry {
	const struct pem_event *event;
	bool available;
	char path[16]; /* its source: "module", "bpf", "counters", "stub"; "": none */
	/* The event is raised by programs that call its stub, not by parts of pem. */
	bool of_programs;
	struct pem_error reason; /* why it is not available */
	/* As reason, without the source's name, so that many sources share one reason. */
	char why[512];
	/* Of the event of a counter: what it is counted as here. */
	struct pem_counted_as as;
	bool is_counter, is_counted; /* the latter: as is known */
	uint32_t turn; /* in which it is counted, if all in the list are; 0: at any time */
};

struct list {
	struct list_entry *entries; /* sorted by layer, then class, then as in the specs */
	size_t count;
	int turns; /* that counters of the processor take; 0: none can be counted */
};

/* list.c: "yes", "no", or "program" if the program decides whether the event is raised. */
const char *list_here(const struct list_entry *entry);
/*
 * Find the next name in an event's alternative sources. Returns its length, or 0 if there is none
 * left. *p starts as event->source_name. A source that is listed several times, because its fields
 * lie differently in other kernels, is returned once.
 */
size_t list_next_source(const struct pem_event *event, const char **p, const char **name);
/* search.c: does the event's description contain every word? */
bool list_search(const struct pem_event *event, char *const *words, size_t count);
/*
 * tables.c: prints counts by class and reasons for missing events; a row for each event; everything
 * about each event.
 */
void list_print_summary(const struct list *list);
void list_print_rows(const struct list *list);
void list_print_fields(const struct list *list);
/* counters.c: has the list events of counters? */
bool list_has_counters(const struct list *list);
/* A cell: what the event of a counter is counted as. "-": this processor has none; "": no counter.
 */
const char *list_counted_as(const struct list *list, const struct list_entry *entry);
/* The same in full, of an entry with is_counted. */
const char *list_counted_fact(const struct list_entry *entry);
/* Say how many counters of the processor the events take, and in how many turns; or nothing. */
void list_print_counters(const struct list *list);
/* json.c */
void list_print_json(const struct list *list);

#endif
