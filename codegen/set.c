/* SPDX-License-Identifier: MIT */
/*
 * set.c - the life of a set of specs, and the errors found in it
 */
#include "model.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Errors quote the file: what could break the line or drive a terminal becomes '?'. */
static void make_printable(char *text)
{
	unsigned char *p = (unsigned char *)text;

	for (; *p; p++) {
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) /* U+0080 to U+009F */
			p[0] = p[1] = '?';
	}
}

void pem_spec_set__error(struct pem_spec_set *set, const char *path, int line, const char *format,
			 ...)
{
	struct pem_spec_error *error;
	va_list ap;

	set->errors = pem_xgrow(set->errors, set->error_count, sizeof(*set->errors));
	error = &set->errors[set->error_count];
	error->path = path;
	error->line = line;
	error->order = set->error_count;
	va_start(ap, format);
	if (vasprintf(&error->text, format, ap) < 0)
		error->text = pem_xstrdup("out of memory");
	va_end(ap);
	make_printable(error->text);
	set->error_count++;
}

/* Files in the order they were given, which is the order of their paths' first errors. */
static size_t file_order(const struct pem_spec_set *set, const char *path)
{
	size_t i;

	for (i = 0; i < set->count; i++) {
		if (set->specs[i].path == path)
			return i;
	}
	return set->count;
}

static int error_before(const struct pem_spec_set *set, const struct pem_spec_error *a,
			const struct pem_spec_error *b)
{
	size_t fa = file_order(set, a->path), fb = file_order(set, b->path);

	if (fa != fb)
		return fa < fb;
	if (a->line != b->line)
		return a->line < b->line;
	return a->order < b->order;
}

static int compare_errors(const void *a, const void *b, void *set)
{
	return error_before(set, a, b) ? -1 : error_before(set, b, a);
}

void pem_spec_set__print_errors(struct pem_spec_set *set, FILE *out)
{
	const struct pem_spec_error *error;
	size_t i;

	if (set->error_count)
		qsort_r(set->errors, set->error_count, sizeof(*set->errors), compare_errors, set);
	for (i = 0; i < set->error_count; i++) {
		error = &set->errors[i];
		if (error->line > 0)
			fprintf(out, "%s:%d: error: %s\n", error->path, error->line, error->text);
		else
			fprintf(out, "%s: error: %s\n", error->path, error->text);
	}
}

static void free_event(struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		free(event->fields[i].name);
		free(event->fields[i].description);
		free(event->fields[i].unit);
		free(event->fields[i].from);
	}
	free(event->fields);
	free(event->name);
	free(event->description);
	free(event->layer);
	free(event->class_name);
	free(event->specifier);
	free(event->source_name);
	free(event->source_arguments);
	free(event->c_name);
	free(event->c_upper);
}

void pem_spec_set__free(struct pem_spec_set *set)
{
	struct pem_spec *spec;
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		spec = &set->specs[i];
		for (k = 0; k < spec->event_count; k++)
			free_event(&spec->events[k]);
		free(spec->events);
		free(spec->path);
		free(spec->provider);
		free(spec->description);
	}
	free(set->specs);
	for (i = 0; i < set->error_count; i++)
		free(set->errors[i].text);
	free(set->errors);
	memset(set, 0, sizeof(*set));
}
