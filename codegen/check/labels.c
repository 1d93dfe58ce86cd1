/* SPDX-License-Identifier: MIT */
/*
 * labels.c - checks of a spec's labels and structures
 */
#include "check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* One integer type must hold all values: 64 bits, with or without sign. */
static void check_label_values(const struct check *c, const struct pem_spec_labels *labels)
{
	const struct pem_spec_label *label, *negative = NULL, *large = NULL;
	size_t i;

	for (i = 0; i < labels->count; i++) {
		label = &labels->labels[i];
		if (label->is_damaged)
			continue;
		if (label->is_too_large)
			ERROR(c, label->at, "label '%s' needs more than 64 bits: expected less",
			      label->name ? label->name : "");
		if (label->is_negative)
			negative = label;
		else if (label->value > INT64_MAX)
			large = label;
	}
	if (negative && large)
		ERROR(c, large->at,
		      "no integer holds both label '%s' and label '%s', which is negative: "
		      "expected one of them",
		      large->name ? large->name : "", negative->name ? negative->name : "");
}

static void check_label_list(const struct check *c, const struct pem_spec_labels *labels)
{
	const struct pem_spec_label *label, *other;
	size_t i, k;

	if (labels->count > PEM_SPEC_LABELS_MAX) {
		ERROR(c, labels->at, "'%s' has %zu labels: expected at most %u",
		      labels->name ? labels->name : "", labels->count, PEM_SPEC_LABELS_MAX);
		return;
	}
	check_label_values(c, labels);
	for (i = 0; i < labels->count; i++) {
		label = &labels->labels[i];
		for (k = 0; k < i; k++) {
			other = &labels->labels[k];
			if (label->name && other->name && !strcasecmp(label->name, other->name))
				ERROR(c, label->at,
				      "a second label '%s', the first is '%s' in line %d: expected "
				      "a "
				      "name that differs by more than capitals",
				      label->name, other->name, other->at.line);
			else if (label->value == other->value && !label->is_too_large &&
				 !label->is_damaged && !other->is_damaged)
				ERROR(c, label->at,
				      "labels '%s' and '%s' have one value: expected one name for "
				      "it",
				      label->name ? label->name : "",
				      other->name ? other->name : "");
		}
	}
}

/* Do two names become one type in a language that writes types in camel case? */
static int is_same_type(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, "_");
		b += strspn(b, "_");
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return 0;
		if (!*a)
			return 1;
	}
}

/* The names of enums and flags must differ from each other, because they become types. */
void pem_check_labels(const struct check *c)
{
	const struct pem_spec_labels *labels, *other;
	size_t i, k;

	for (i = 0; i < c->spec->labels_count; i++) {
		labels = &c->spec->labels[i];
		check_label_list(c, labels);
		for (k = 0; k < i; k++) {
			other = &c->spec->labels[k];
			if (!labels->name || !other->name ||
			    !is_same_type(labels->name, other->name))
				continue;
			ERROR(c, labels->at,
			      "a second <enum> or <flags> '%s', the first is '%s' in line %d: "
			      "expected a name that differs by more than capitals and '_'",
			      labels->name, other->name, other->at.line);
			break;
		}
	}
}

void pem_check_structs(const struct check *c)
{
	const struct pem_spec_struct *structure, *other;
	size_t i, k;

	for (i = 0; i < c->spec->struct_count; i++) {
		structure = &c->spec->structs[i];
		for (k = 0; k < i; k++) {
			other = &c->spec->structs[k];
			if (structure->name && other->name && !strcmp(structure->name, other->name))
				ERROR(c, structure->at,
				      "a second <struct> '%s', the first is in line %d: expected "
				      "another name",
				      structure->name, other->at.line);
		}
	}
}
