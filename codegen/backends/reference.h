/* SPDX-License-Identifier: MIT */
/*
 * reference.h - the texts of the event reference, for the backends that print it
 *
 * Not here: a page's form and its escapes (man.c, html.c). Texts are plain UTF-8. They may hold
 * text of a spec's author, so a backend escapes all of it. The caller frees results of type char *.
 */
#ifndef PEM_CODEGEN_REFERENCE_H
#define PEM_CODEGEN_REFERENCE_H

#include "model.h"

/* One page: the events of one class of one layer, from all specs, sorted by name. */
struct reference_page {
	const char *layer;
	const char *class_name;
	char *name; /* name of the page: "os-sched" */
	const struct pem_spec_event **events;
	size_t count;
};

struct reference {
	const struct pem_spec_set *set;
	struct reference_page *pages; /* sorted by layer, then class */
	size_t count;
};

/* Make the reference of a set. The set must outlive it. */
struct reference *reference__new(const struct pem_spec_set *set);
void reference__free(struct reference *reference);

const struct reference_page *reference__page_of(const struct reference *reference,
						const struct pem_spec_event *event);
/*
 * Find the specs that the page's events are from, each once. Returns the next one after *at, which
 * starts as 0, or NULL at the end.
 */
const struct pem_spec *reference__next_spec(const struct reference *reference,
					    const struct reference_page *page, size_t *at);
/*
 * Find the events that the event pairs with, such as its end or begin, its release or allocation.
 * Returns the next one after *at, which starts as 0, or NULL at the end.
 */
const struct pem_spec_event *reference__next_partner(const struct reference *reference,
						     const struct pem_spec_event *event,
						     size_t *at);

/* The layer's full name, such as "operating system". */
const char *reference__layer(const char *layer);
/* "list of up to 8 uint64" */
char *reference__type(const struct pem_spec_field *field);
/* Is the field shown as hexadecimal although its type does not say so? */
int reference__is_hexadecimal(const struct pem_spec_field *field);
/* The detail level at which a recording includes the event. */
const char *reference__level(const struct pem_spec_event *event);
/* The meaning in words. "": the event has none. */
const char *reference__meaning(const struct pem_spec_event *event);
/* How partners are matched: group, scope and keys. "": the meaning matches nothing. */
char *reference__matching(const struct pem_spec_event *event);
/* What raises the event. */
const char *reference__origin(const struct pem_spec_event *event);
/* One alternative source: "sched:sched_switch (kernels 6.8-)". "": a stub without a name. */
char *reference__source(const struct pem_spec_event *event, size_t source);
/* The bytes of a record. */
char *reference__size(const struct pem_spec_event *event);
/* The cost of raising the event, and by which path. */
char *reference__cost(const struct pem_spec_event *event);

/* A label's value as it is written in tables. */
char *reference__label_value(const struct pem_spec_field *field,
			     const struct pem_spec_label *label);

#endif
