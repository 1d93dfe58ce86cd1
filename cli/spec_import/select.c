// SPDX-License-Identifier: MIT
/*
 * select.c - chooses the tracepoints of an import: those that patterns name, without those of the
 * catalogue
 */
#include "import.h"

#include <pem/model.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/* The next of the comma-separated patterns. False: none is left. */
static bool next_pattern(const char **rest, char *pattern, size_t bytes)
{
	size_t n;

	while (**rest == ',' || **rest == ' ')
		++*rest;
	n = strcspn(*rest, ", ");
	snprintf(pattern, bytes, "%.*s", (int)n, *rest);
	*rest += n;
	return n > 0;
}

enum import_match import_select__match(const char *patterns, const char *name)
{
	enum import_match found = IMPORT_NO_MATCH;
	char pattern[256];

	while (next_pattern(&patterns, pattern, sizeof(pattern))) {
		if (strcmp(pattern, name) == 0)
			return IMPORT_NAMED;
		if (fnmatch(pattern, name, 0) == 0)
			found = IMPORT_MATCHED;
	}
	return found;
}

/* Is the tracepoint among the sources of a catalogue's event, which '|' separates? */
static bool has_source(const struct pem_event *event, const char *tracepoint)
{
	size_t bytes = strlen(tracepoint), n;
	const char *p = event->source_name;

	if (event->source_kind != PEM_SOURCE_TRACEPOINT)
		return false;
	for (; *p != '\0'; p += n + (p[n] == '|')) {
		n = strcspn(p, "|");
		if (n == bytes && strncmp(p, tracepoint, n) == 0)
			return true;
	}
	return false;
}

const char *import_select__known(const struct pem_model *catalogue, const char *tracepoint)
{
	size_t i;

	for (i = 0; i < pem_model__count(catalogue); i++)
		if (has_source(pem_model__event(catalogue, i), tracepoint))
			return pem_model__event(catalogue, i)->name;
	return NULL;
}

int import_select__take_names(const struct pem_model *catalogue, struct cli_names *names)
{
	int rc = 0;
	size_t i;

	for (i = 0; i < pem_model__count(catalogue) && rc >= 0; i++) {
		const struct pem_event *event = pem_model__event(catalogue, i);

		if (strncmp(event->name, "OS::", 4) == 0)
			rc = import_take(names, event->name + 4);
	}
	return rc < 0 ? rc : 0;
}

/*
 * Members are noted as "struct name\tdeclaration". After sorting those of one structure are
 * neighbours.
 */
void import_put_members(FILE *out, struct cli_names *members)
{
	char text[1800] = "";
	size_t i, used = 0;

	if (members->count == 0)
		return;
	cli_names__sort(members);
	import_put_comment(
		out, "",
		"The kernel programs follow these members. What kmod/bpf/types_*.h lacks "
		"of them is to be added there, or make fails:");
	for (i = 0; i < members->count; i++) {
		const char *name = members->names[i], *tab = strchr(name, '\t');
		size_t n = (size_t)(tab - name) + 1;

		if (i == 0 || strncmp(members->names[i - 1], name, n) != 0 ||
		    used + strlen(tab) + 8 > sizeof(text)) {
			if (i != 0)
				import_put_comment(out, "  ", "%s };", text);
			used = (size_t)snprintf(text, sizeof(text), "%.*s {", (int)n - 1, name);
		}
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %s;", tab + 1);
	}
	import_put_comment(out, "  ", "%s };", text);
}
