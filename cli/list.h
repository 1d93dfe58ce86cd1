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
	struct pem_error reason; /* why not */
	char why[512]; /* the same without the source's name, so that one reason for many sources is one */
};

struct list {
	struct list_entry *entries; /* by layer, class, and then as the specs have them */
	size_t count;
};

/* list_tables.c: counts by class and what is missing why; a row an event; everything about each event. */
void list_print_summary(const struct list *list);
void list_print_rows(const struct list *list);
void list_print_fields(const struct list *list);
/* list_json.c */
void list_print_json(const struct list *list);

#endif
