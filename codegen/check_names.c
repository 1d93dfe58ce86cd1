/* SPDX-License-Identifier: MIT */
/*
 * check_names.c - names that labels have in programs: ENUM_LABEL, in snake case, in one module or header
 */
#include "model.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 63u /* the longest name of Fortran */

struct use {
	char *name; /* enum_label */
	const struct pem_spec_labels *labels;
	const struct pem_spec_label *label;
};

/* By name, then by place: the second of a pair is the one that is wrong. */
static int compare(const void *a, const void *b)
{
	const struct use *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	if (order)
		return order;
	if (x->label->at.line != y->label->at.line)
		return x->label->at.line < y->label->at.line ? -1 : 1;
	return x->label->at.column < y->label->at.column ? -1 : 1;
}

static char *name_of(const char *labels, const char *label)
{
	char *first = pem_snake_case(labels), *second = pem_snake_case(label);
	char *name = pem_xprintf("%s_%s", first, second);

	free(first);
	free(second);
	return name;
}

static size_t collect(const struct pem_spec *spec, struct use **uses)
{
	const struct pem_spec_labels *labels;
	size_t i, k, count = 0, capacity = 0;

	for (i = 0; i < spec->labels_count; i++)
		capacity += spec->labels[i].count;
	*uses = pem_xrealloc(NULL, capacity + 1, sizeof(**uses));
	for (i = 0; i < spec->labels_count; i++) {
		labels = &spec->labels[i];
		for (k = 0; labels->name && k < labels->count; k++) {
			if (!labels->labels[k].name)
				continue;
			(*uses)[count].name = name_of(labels->name, labels->labels[k].name);
			(*uses)[count].labels = labels;
			(*uses)[count++].label = &labels->labels[k];
		}
	}
	return count;
}

void pem_spec_set__check_label_names(struct pem_spec_set *set, const struct pem_spec *spec)
{
	const struct use *earlier;
	struct use *uses;
	size_t count = collect(spec, &uses), i;

	qsort(uses, count, sizeof(*uses), compare);
	for (i = 0; i < count; i++) {
		if (strlen(uses[i].name) > NAME_MAX_BYTES)
			pem_spec_set__error(set, spec->path, uses[i].label->at,
					    "label '%s' of '%s' is called '%s' in programs, and "
					    "Fortran allows %u "
					    "characters: expected a shorter name",
					    uses[i].label->name, uses[i].labels->name, uses[i].name,
					    NAME_MAX_BYTES);
		earlier = i ? &uses[i - 1] : NULL;
		/* Of one list, labels that differ by no more than capitals have been told of. */
		if (earlier && !strcmp(earlier->name, uses[i].name) &&
		    (earlier->labels != uses[i].labels ||
		     strcasecmp(earlier->label->name, uses[i].label->name)))
			pem_spec_set__error(
				set, spec->path, uses[i].label->at,
				"label '%s' of '%s' is called '%s' in programs, like label '%s' of "
				"'%s' in line %d: expected another name",
				uses[i].label->name, uses[i].labels->name, uses[i].name,
				earlier->label->name, earlier->labels->name,
				earlier->label->at.line);
	}
	for (i = 0; i < count; i++)
		free(uses[i].name);
	free(uses);
}
