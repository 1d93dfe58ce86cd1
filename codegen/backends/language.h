/* SPDX-License-Identifier: MIT */
/*
 * language.h - what the backends for C++, Fortran, Java, Python and Rust share
 *
 * Not here: the text of any language (each backend), the C symbols that some of them call
 * (symbols.c).
 */
#ifndef PEM_CODEGEN_LANGUAGE_H
#define PEM_CODEGEN_LANGUAGE_H

#include "backend.h"

/* Is the event raised by a stub? */
int pem_is_stub(const struct pem_spec_event *event);

/* Bytes of the provider's control page, with its enable bytes and actions. */
uint64_t pem_page_bytes(const struct pem_spec *spec);

/*
 * The integer type that holds all fields with these labels, and all labels. It is the fields' own
 * type if they have one in common.
 */
unsigned pem_labels__type(const struct pem_spec *spec, const struct pem_spec_labels *labels);

/*
 * Does begin have all fields of its end (pem_interval__end), so that one object can raise both? A
 * list does not count, because the object would have to keep a copy of it.
 */
int pem_interval__is_covered(const struct pem_spec_event *begin, const struct pem_spec_event *end);

/* Convert a name from any form: to UPPER_SNAKE, to CamelCase. The caller frees the result. */
char *pem_upper_snake(const char *name);
char *pem_camel_case(const char *name);

/*
 * Print the banner of backend.h for languages whose comments begin with mark and end with the line.
 */
void pem_put_line_banner(FILE *f, const char *mark, const struct pem_spec *spec);
/*
 * Print text as lines of at most width bytes that begin with prefix, broken at spaces. An empty
 * text prints nothing.
 */
void pem_put_wrapped(FILE *f, const char *prefix, size_t width, const char *text);
/*
 * The text for users about a field, "UNIT: DESCRIPTION", one of both, or ""; and about an event.
 * The caller frees it.
 */
char *pem_field__text(const struct pem_spec_field *field);
char *pem_event__text(const struct pem_spec_event *event);

/*
 * A flag beside the enable byte that pem_raise_X gets: the caller's strings are padded with blanks,
 * which are not part of them.
 */
#define PEM_RAISE_BLANKS 0x100u

/*
 * Start PROVIDER.h and, if there are stubs, PROVIDER_symbols.c in folder. folder is "" or ends in
 * '/'. symbols.c says what programs find in it.
 */
void pem_emit_symbols(const struct pem_spec_set *set, const struct pem_spec *spec,
		      struct pem_output *out, const char *folder);

#endif
