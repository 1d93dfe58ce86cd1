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

/* Does somebody call a stub to raise this event? */
int pem_is_stub(const struct pem_spec_event *event);

/*
 * The integer type that holds each field with these labels, and each label; the fields' own if they
 * agree.
 */
unsigned pem_labels__type(const struct pem_spec *spec, const struct pem_spec_labels *labels);

/*
 * Does begin say all that its end (pem_interval__end) is to say, so that one object can raise both?
 * Lists don't count: it would have to keep a copy of them.
 */
int pem_interval__is_covered(const struct pem_spec_event *begin, const struct pem_spec_event *end);

/*
 * Names in other forms, from any: "upper_snake" -> UPPER_SNAKE, CamelCase. The caller frees them.
 */
char *pem_upper_snake(const char *name);
char *pem_camel_case(const char *name);

/* The banner of backend.h, for languages whose comments begin with mark and end with their line. */
void pem_put_line_banner(FILE *f, const char *mark, const struct pem_spec *spec);
/*
 * Text as lines of at most width bytes that begin with prefix, broken at spaces; nothing if the
 * text is empty.
 */
void pem_put_wrapped(FILE *f, const char *prefix, size_t width, const char *text);
/*
 * What a person is told of a field: "UNIT: DESCRIPTION", either of them, or ""; and of an event.
 * The caller frees it.
 */
char *pem_field__text(const struct pem_spec_field *field);
char *pem_event__text(const struct pem_spec_event *event);

/*
 * Beside the enable byte that pem_raise_X gets: the caller's strings are padded with blanks, which
 * don't count.
 */
#define PEM_RAISE_BLANKS 0x100u

/*
 * Start PROVIDER.h and, if there are stubs, PROVIDER_symbols.c in folder, "" or ended by '/': see
 * symbols.c for what programs find in it.
 */
void pem_emit_symbols(const struct pem_spec_set *set, const struct pem_spec *spec,
		      struct pem_output *out, const char *folder);

#endif
