/* SPDX-License-Identifier: MIT */
/*
 * reference.h - what the event reference says, in words, for the backends that print it
 *
 * Not here: a page's form and its escapes (man.c, html.c). Texts are plain UTF-8 and may hold what
 * a spec's author wrote, so a backend escapes all of it. Those returned as char * are the caller's
 * to free.
 */
#ifndef PEM_CODEGEN_REFERENCE_H
#define PEM_CODEGEN_REFERENCE_H

#include "model.h"

/* One class of events, and one page: those of all specs that share layer and class, by name. */
struct reference_page {
	const char *layer;
	const char *class_name;
	char *name; /* of the page: "os-sched" */
	const struct pem_spec_event **events;
	size_t count;
};

struct reference {
	const struct pem_spec_set *set;
	struct reference_page *pages; /* by layer, then class */
	size_t count;
};

/* The set must outlive it. */
struct reference *reference__new(const struct pem_spec_set *set);
void reference__free(struct reference *reference);

const struct reference_page *reference__page_of(const struct reference *reference,
						const struct pem_spec_event *event);
/*
 * The specs that the page's events are from, each once: the next one after *at, which starts as 0;
 * NULL: no more.
 */
const struct pem_spec *reference__next_spec(const struct reference *reference,
					    const struct reference_page *page, size_t *at);
/*
 * The events that the event pairs with: its end or begin, its release or allocation, and so on. The
 * next one after *at, which starts as 0; NULL: no more.
 */
const struct pem_spec_event *reference__next_partner(const struct reference *reference,
						     const struct pem_spec_event *event,
						     size_t *at);

/* The layer in full, such as "operating system". */
const char *reference__layer(const char *layer);
/* "list of up to 8 uint64" */
char *reference__type(const struct pem_spec_field *field);
/* Is it shown so, and its type does not say it already? */
int reference__is_hexadecimal(const struct pem_spec_field *field);
/* When a recording takes it. */
const char *reference__level(const struct pem_spec_event *event);
/* What the meaning says; "" if the event has none. */
const char *reference__meaning(const struct pem_spec_event *event);
/*
 * How the partners are told from others: group, scope and keys; "" if the meaning matches nothing.
 */
char *reference__matching(const struct pem_spec_event *event);
/* Who raises it. */
const char *reference__origin(const struct pem_spec_event *event);
/* One alternative: "sched:sched_switch (kernels 6.8-)"; "" for a stub without a name. */
char *reference__source(const struct pem_spec_event *event, size_t source);
/* Bytes of a record. */
char *reference__size(const struct pem_spec_event *event);
/* What raising it costs, and by which path. */
char *reference__cost(const struct pem_spec_event *event);

/* For tables: how a label's value is written. */
char *reference__label_value(const struct pem_spec_field *field,
			     const struct pem_spec_label *label);

#endif
