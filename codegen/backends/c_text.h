/* SPDX-License-Identifier: MIT */
/*
 * c_text.h - text that all C backends write, so that a program compiles with each of them:
 * signatures, names of labels
 *
 * Not here: what a stub does (c.c, usdt.c, lttng.c, none.c).
 */
#ifndef PEM_CODEGEN_C_TEXT_H
#define PEM_CODEGEN_C_TEXT_H

#include "backend.h"

/* Does the event have a field of this type? */
int pem_c_has_type(const struct pem_spec_event *event, unsigned type);
/*
 * Print text inside a comment. It is changed so that it neither ends the comment nor seems to start
 * another.
 */
void pem_c_put_comment(FILE *f, const char *text);
/* Print " / * UNIT: DESCRIPTION * /", or nothing if there is neither. */
void pem_c_put_field_comment(FILE *f, const struct pem_spec_field *field);
/* Print the spec's enums and flags as macros. */
void pem_c_put_labels(FILE *f, const struct pem_spec *spec);

/*
 * Print a stub's parameters with their types, or its arguments. before: text before the first one.
 * Without fields and without text, the parameters are "void".
 */
void pem_c_put_parameters(FILE *f, const struct pem_spec_event *event, const char *before);
void pem_c_put_arguments(FILE *f, const struct pem_spec_event *event, const char *before);
/* The number of parameters. A list is two parameters. */
size_t pem_c_parameter_count(const struct pem_spec_event *event);
/* Print pem_on_X, and the functions that it calls (c_paths.c). */
void pem_c_put_paths(FILE *f, const struct pem_spec_event *event);

/* Print pem_enabled_X, which tells whether expression, a number, is not 0. */
void pem_c_put_enabled(FILE *f, const struct pem_spec_event *event, const char *expression);
/* Print a comment, and pem_notify_X up to its opening brace. */
void pem_c_begin_notify(FILE *f, const struct pem_spec_event *event);

/* Print structure members that hold the parameters, for tracers that take fields as they are. */
void pem_c_put_members(FILE *f, const struct pem_spec_event *event, size_t first);
/*
 * Print statements that make parameters safe: NULL strings and arrays become empty, lists are cut
 * to their limit.
 */
void pem_c_put_tidy(FILE *f, const struct pem_spec_event *event);

/* Print PROVIDER.h from its banner to the labels, and its end. includes: lines of text. */
void pem_c_begin_header(FILE *f, const struct pem_spec_set *set, const struct pem_spec *spec,
			const char *includes);
void pem_c_end_header(FILE *f);

#endif
