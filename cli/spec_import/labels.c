// SPDX-License-Identifier: MIT
/* labels.c - sets of labels that an import has found, each written once */
#include "labels.h"
#include "grow.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char *import_sets__name(struct import_sets *sets, const char *element, const char *field,
			      const char *labels)
{
	char name[IMPORT_NAME_BYTES], *text;
	size_t i;

	if (asprintf(&text, "%s\n%s", element, labels) < 0)
		return NULL;
	for (i = 0; i < sets->count; i++)
		if (strcmp(sets->texts[i], text) == 0) {
			free(text);
			return sets->names.names[i];
		}
	import_camel(name, sizeof(name), field, true);
	if (import_unique_name(name, sizeof(name), &sets->names) < 0 ||
	    pem_grow(&sets->texts, sizeof(*sets->texts), sets->count + 1, &sets->capacity) < 0) {
		free(text);
		return NULL;
	}
	sets->texts[sets->count] = text;
	fprintf(sets->out, "\n  <%s name='%s'>\n%s  </%s>\n", element, name, labels, element);
	return sets->names.names[sets->count++];
}

void import_sets__free(struct import_sets *sets)
{
	cli_names__free(&sets->names);
	while (sets->count > 0)
		free(sets->texts[--sets->count]);
	free(sets->texts);
}

int import_put_label(FILE *out, struct cli_names *taken, const char *text, const char *value)
{
	char name[IMPORT_NAME_BYTES], *p;
	int rc;

	snprintf(name, sizeof(name), "%s%.40s", isalpha((unsigned char)*text) ? "" : "v", text);
	for (p = name; *p != '\0'; p++)
		if (!isalnum((unsigned char)*p))
			*p = '_';
	rc = import_unique_name(name, sizeof(name), taken);
	if (rc == 0)
		fprintf(out, "    <label name='%s' value='%s'/>\n", name, value);
	return rc;
}
