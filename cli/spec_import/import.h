// SPDX-License-Identifier: MIT
/*
 * import.h - what the kinds of `pem spec import` share: their table, and writing a spec as XML
 *
 * A kind is one function that prints a whole spec. Not here: `pem spec` itself (spec.c).
 */
#ifndef PEM_CLI_SPEC_IMPORT_H
#define PEM_CLI_SPEC_IMPORT_H

#include "cli.h"

/* Limits of spec/pem.xsd: a name with its NUL, a provider's, the C name of an event. */
#define IMPORT_NAME_BYTES 49
#define IMPORT_PROVIDER_BYTES 16
#define IMPORT_C_NAME_MAX 52
#define IMPORT_FIELDS_MAX 64

/*
 * Print the spec of what pattern names. CLI_DONE; or another status after saying why, then what was
 * printed is thrown away.
 */
int cli_import_tracepoint(const char *pattern, FILE *out);
int cli_import_usdt(const char *binary, FILE *out);
int cli_import_lttng(const char *provider, FILE *out);
int cli_import_pfm(const char *pattern, FILE *out);

struct pem_model;

/* Names taken so far are kept, so that two different things never get the same one. */

/* 1 if name was free, capitals aside, and is taken now; 0 if it was taken; -ENOMEM. */
int import_take(struct cli_names *names, const char *name);
/* Put a number behind name if it is not free, and take it. 0 or -ENOMEM. */
int import_unique_name(char *name, size_t bytes, struct cli_names *names);

/*
 * Is a tracepoint, SYSTEM:EVENT, among patterns that commas part? NAMED: by one without wildcards.
 */
enum import_match { IMPORT_NO_MATCH, IMPORT_MATCHED, IMPORT_NAMED };
enum import_match import_select__match(const char *patterns, const char *name);
/* The catalogue's event that has this tracepoint, or NULL. */
const char *import_select__known(const struct pem_model *catalogue, const char *tracepoint);
/* Take the names of the catalogue's other events, so that no import gets one. 0 or -ENOMEM. */
int import_select__take_names(const struct pem_model *catalogue, const char *patterns,
			      struct cli_names *names);
/*
 * Print, as comments, members of kernel structures: "struct NAME", a tab, the declaration. Sorts
 * them.
 */
void import_put_members(FILE *out, struct cli_names *members);

/*
 * text as a name of a spec: words joined in CamelCase, or lowerCamelCase; of letters and digits
 * only.
 */
void import_camel(char *name, size_t bytes, const char *text, bool upper_first);
/*
 * The same, but not yet in names, with a number behind it if it has to be, and no word that a
 * target language reserves. 0 or -ENOMEM.
 */
int import_field_name(char *name, size_t bytes, const char *text, struct cli_names *names);
/* text as a provider's name. */
void import_provider(char provider[IMPORT_PROVIDER_BYTES], const char *text);

/* Print text as the inside of an attribute or a comment; what XML has no place for becomes '?'. */
void import_put_text(FILE *out, const char *text);
void import_put_comment(FILE *out, const char *indent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The first lines, up to and with <spec>; how: what it was made from. */
void import_begin(FILE *out, const char *provider, const char *how);
/*
 * Begin an event named after a group of events and the event in it, up to and with <specifier>. The
 * group's name in front of the event's is left out, where that leaves a name that is free. 0 or
 * -ENOMEM.
 */
int import_event_begin(FILE *out, const char *layer, const char *level, const char *group,
		       const char *event, struct cli_names *names);

#endif
