/* SPDX-License-Identifier: MIT */
/*
 * check.h - what the checks share: check.c for specs and events, partner.c, labels.c, field.c
 */
#ifndef PEM_CODEGEN_CHECK_H
#define PEM_CODEGEN_CHECK_H

#include "model.h"

/* What the checks of one event and its fields share. */
struct check {
	struct pem_spec_set *set;
	const struct pem_spec *spec;
	const struct pem_spec_event *event;
};

#define ERROR(check, location, ...)                                                                \
	pem_spec_set__error((check)->set, (check)->spec->path, location, __VA_ARGS__)
#define WARN(check, location, ...)                                                                 \
	pem_spec_set__warn((check)->set, (check)->spec->path, location, __VA_ARGS__)

/* Check what a file says outside of its events. */
void pem_check_spec(const struct check *c);
/* Check a spec's lists of labels: names, values, types. */
void pem_check_labels(const struct check *c);
/* Check a spec's metrics. */
void pem_check_metrics(const struct check *c);
/* Check a spec's structures. */
void pem_check_structs(const struct check *c);
/* Check an event's source that pem.ko is to observe. */
void pem_check_module(const struct check *c, const struct pem_spec_source *source);
/* Check that only events that belong together have a group or scope. */
void pem_check_group(const struct check *c);
/* Check of each event that belongs to another one that there is such an event, with its keys. */
void pem_check_partners(struct pem_spec_set *set);
/* Do the parentheses and brackets of a C expression pair? */
int pem_is_balanced(const char *text);
/* Check an event's fields, each alone and against the other fields. */
void pem_check_fields(const struct check *c);

#endif
