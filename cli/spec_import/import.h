// SPDX-License-Identifier: MIT
/*
 * import.h - what the kinds of `pem spec import` share: their table, and writing a spec as XML
 *
 * A kind is one function that prints a whole spec. Not here: `pem spec` itself (spec.c).
 */
#ifndef PEM_CLI_SPEC_IMPORT_H
#define PEM_CLI_SPEC_IMPORT_H

#include "cli.h"

/*
 * Limits of spec/pem.xsd: bytes of a name with its NUL, of a provider's name, and of the C name of
 * an event.
 */
#define IMPORT_NAME_BYTES 49
#define IMPORT_PROVIDER_BYTES 16
#define IMPORT_C_NAME_MAX 52
#define IMPORT_FIELDS_MAX 64

/*
 * Print the spec of the things that pattern names. Returns CLI_DONE; or another status after
 * printing why, and the output is then discarded.
 */
int cli_import_tracepoint(const char *pattern, FILE *out);
int cli_import_usdt(const char *binary, FILE *out);
int cli_import_lttng(const char *provider, FILE *out);
int cli_import_pfm(const char *pattern, FILE *out);

struct pem_model;

/* Names taken so far are kept, so that two different things never get the same name. */

/*
 * Take a name. Returns 1 if it was free (capitals do not count) and is taken now; 0 if it was taken
 * before; -ENOMEM.
 */
int import_take(struct cli_names *names, const char *name);
/* Append a number to name if it is not free, and take it. Returns 0 or -ENOMEM. */
int import_unique_name(char *name, size_t bytes, struct cli_names *names);

/*
 * Does one of the comma-separated patterns match a tracepoint, SYSTEM:EVENT? IMPORT_NAMED: a
 * pattern without wildcards does.
 */
enum import_match { IMPORT_NO_MATCH, IMPORT_MATCHED, IMPORT_NAMED };
enum import_match import_select__match(const char *patterns, const char *name);
/* Find the catalogue's event of this tracepoint, or NULL. */
const char *import_select__known(const struct pem_model *catalogue, const char *tracepoint);
/*
 * Take the names of the catalogue's events, so that no import gets one of them. Returns 0 or
 * -ENOMEM.
 */
int import_select__take_names(const struct pem_model *catalogue, struct cli_names *names);
/*
 * Sort and print members of kernel structures as comments. Each name is "struct NAME", a tab, and
 * the declaration.
 */
void import_put_members(FILE *out, struct cli_names *members);

/*
 * Convert text to a name of a spec: words joined in CamelCase or lowerCamelCase, of letters and
 * digits only.
 */
void import_camel(char *name, size_t bytes, const char *text, bool upper_first);
/*
 * As import_camel, and make the name unique: a number is appended if the name is in names or if a
 * target language reserves it. Returns 0 or -ENOMEM.
 */
int import_field_name(char *name, size_t bytes, const char *text, struct cli_names *names);
/* Convert text to a provider's name. */
void import_provider(char provider[IMPORT_PROVIDER_BYTES], const char *text);

/* Print text inside an attribute or a comment. Characters that XML does not allow become '?'. */
void import_put_text(FILE *out, const char *text);
void import_put_comment(FILE *out, const char *indent, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Print the first lines up to <spec>. how: what the spec was made from. */
void import_begin(FILE *out, const char *provider, const char *how);
/*
 * Begin an event that is named after a group of events and the event in it: print it up to
 * <specifier>. The group's name at the beginning of the event's name is left out if the shorter
 * name is free. Returns 0 or -ENOMEM.
 */
int import_event_begin(FILE *out, const char *layer, const char *level, const char *group,
		       const char *event, struct cli_names *names);

#endif
