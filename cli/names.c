// SPDX-License-Identifier: MIT
/* names.c - lists of names */
#include "cli.h"
#include "grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int cli_names__add(struct cli_names *names, const char *name)
{
	if (pem_grow(&names->names, sizeof(*names->names), names->count + 1, &names->capacity) < 0)
		return -ENOMEM;
	names->names[names->count] = strdup(name);
	if (names->names[names->count] == NULL)
		return -ENOMEM;
	names->count++;
	return 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void cli_names__sort(struct cli_names *names)
{
	if (names->count > 1)
		qsort(names->names, names->count, sizeof(*names->names), compare_names);
}

void cli_names__free(struct cli_names *names)
{
	while (names->count > 0)
		free(names->names[--names->count]);
	free(names->names);
	memset(names, 0, sizeof(*names));
}
