/* SPDX-License-Identifier: MIT */
/*
 * c_text.h - what the C backends write alike, so that a program compiles with any of them:
 * signatures, names of labels
 *
 * Not here: what a stub does (c.c, usdt.c, lttng.c, none.c).
 */
#ifndef PEM_CODEGEN_C_TEXT_H
#define PEM_CODEGEN_C_TEXT_H

#include "backend.h"

/* Has the event a field of that type? */
int pem_c_has_type(const struct pem_spec_event *event, unsigned type);
/* Text inside a comment, which it must not end, nor seem to start another. */
void pem_c_put_comment(FILE *f, const char *text);
/* " / * UNIT: DESCRIPTION * /", or nothing if there is neither. */
void pem_c_put_field_comment(FILE *f, const struct pem_spec_field *field);
/* The spec's enums and flags, as macros. */
void pem_c_put_labels(FILE *f, const struct pem_spec *spec);

/*
 * A stub's parameters with their types, or its arguments; before: text in front of the first.
 * Without fields and text, the parameters are "void".
 */
void pem_c_put_parameters(FILE *f, const struct pem_spec_event *event, const char *before);
void pem_c_put_arguments(FILE *f, const struct pem_spec_event *event, const char *before);
/* How many parameters there are: a list is two. */
size_t pem_c_parameter_count(const struct pem_spec_event *event);
/* pem_enabled_X, which says whether an expression, a number, is not 0. */
void pem_c_put_enabled(FILE *f, const struct pem_spec_event *event, const char *expression);
/* A comment, and pem_notify_X up to and with its opening brace. */
void pem_c_begin_notify(FILE *f, const struct pem_spec_event *event);

/* For tracers that take fields as they are: members of a structure that hold the parameters. */
void pem_c_put_members(FILE *f, const struct pem_spec_event *event, size_t first);
/*
 * Statements that bring parameters into order: NULL strings and arrays to empty ones, lists to
 * their limit.
 */
void pem_c_put_tidy(FILE *f, const struct pem_spec_event *event);

/* PROVIDER.h from its banner to the labels, includes being lines of text; and its end. */
void pem_c_begin_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec,
			const char *includes);
void pem_c_end_header(FILE *f);

#endif
