/* SPDX-License-Identifier: MIT */
/* set.c - makes and frees a set of specs, and keeps the errors found in it */
#include "model.h"
#include "text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void note(struct pem_spec_set *set, const char *path, struct pem_spec_location at,
		 int is_warning, const char *format, va_list ap)
{
	size_t kept = is_warning ? set->warning_count : set->error_count - set->warning_count;
	struct pem_spec_location whole = {0, 0};
	struct pem_spec_error *error;
	int r;

	if (kept > PEM_SPEC_ERRORS_MAX) /* a file of 1 MiB can have millions of errors */
		return;
	set->errors = pem_xgrow(set->errors, set->error_count, sizeof(*set->errors));
	error = &set->errors[set->error_count];
	error->path = path;
	error->at = kept < PEM_SPEC_ERRORS_MAX ? at : whole;
	error->order = set->error_count;
	error->is_warning = is_warning;
	if (kept < PEM_SPEC_ERRORS_MAX)
		r = vasprintf(&error->text, format, ap);
	else
		r = asprintf(&error->text, "more than %u %s: those after them are not shown",
			     PEM_SPEC_ERRORS_MAX, is_warning ? "warnings" : "errors");
	if (r < 0)
		error->text = pem_xstrdup("out of memory");
	pem_make_printable(error->text); /* it quotes the file */
	set->error_count++;
	set->warning_count += is_warning != 0;
}

void pem_spec_set__error(struct pem_spec_set *set, const char *path, struct pem_spec_location at,
			 const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	note(set, path, at, 0, format, ap);
	va_end(ap);
}

void pem_spec_set__warn(struct pem_spec_set *set, const char *path, struct pem_spec_location at,
			const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	note(set, path, at, 1, format, ap);
	va_end(ap);
}

/* The position of a file in the order in which files were given. */
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
	if (a->at.line != b->at.line)
		return a->at.line < b->at.line;
	if (a->at.column != b->at.column)
		return a->at.column < b->at.column;
	return a->order < b->order;
}

static int compare_errors(const void *a, const void *b, void *set)
{
	return error_before(set, a, b) ? -1 : error_before(set, b, a);
}

void pem_spec_set__sort_errors(struct pem_spec_set *set)
{
	if (set->error_count)
		qsort_r(set->errors, set->error_count, sizeof(*set->errors), compare_errors, set);
}

void pem_spec_set__print_errors(struct pem_spec_set *set, int warnings, FILE *out)
{
	const struct pem_spec_error *error;
	char *path;
	size_t i;

	pem_spec_set__sort_errors(set);
	for (i = 0; i < set->error_count; i++) {
		error = &set->errors[i];
		if (error->is_warning && !warnings)
			continue;
		path = pem_make_printable(pem_xstrdup(error->path));
		fputs(path, out);
		free(path);
		if (error->at.line > 0)
			fprintf(out, ":%d", error->at.line);
		if (error->at.line > 0 && error->at.column > 0)
			fprintf(out, ":%d", error->at.column);
		fprintf(out, ": %s: %s\n", error->is_warning ? "warning" : "error", error->text);
	}
}

void pem_spec_field__free(struct pem_spec_field *field)
{
	free(field->name);
	free(field->c_name);
	free(field->description);
	free(field->unit);
	free(field->from);
	free(field->of);
	free(field->labels_name);
}

static void free_fields(struct pem_spec_field *fields, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		pem_spec_field__free(&fields[i]);
	free(fields);
}

static void free_source(struct pem_spec_source *source)
{
	size_t i;

	for (i = 0; i < source->from_count; i++) {
		free(source->froms[i].field);
		free(source->froms[i].value);
	}
	free(source->froms);
	free(source->name);
	free(source->arguments);
	free(source->kernel);
	free(source->when);
	free(source->of);
	free(source->binary);
}

static void free_metric(struct pem_spec_metric *metric)
{
	free(metric->name);
	free(metric->unit);
	free(metric->description);
	free(metric->of);
	free(metric->to);
}

static void free_event(struct pem_spec_event *event)
{
	size_t i;

	free_fields(event->fields, event->field_count);
	for (i = 0; i < event->source_count; i++)
		free_source(&event->sources[i]);
	free(event->sources);
	free(event->name);
	free(event->description);
	free(event->layer);
	free(event->class_name);
	free(event->specifier);
	free(event->group);
	free(event->since);
	free(event->deprecated);
	free(event->c_name);
	free(event->c_upper);
}

static void free_labels(struct pem_spec_labels *labels)
{
	size_t i;

	for (i = 0; i < labels->count; i++) {
		free(labels->labels[i].name);
		free(labels->labels[i].description);
	}
	free(labels->labels);
	free(labels->name);
	free(labels->description);
}

static void free_spec(struct pem_spec *spec)
{
	size_t i;

	for (i = 0; i < spec->event_count; i++)
		free_event(&spec->events[i]);
	for (i = 0; i < spec->labels_count; i++)
		free_labels(&spec->labels[i]);
	for (i = 0; i < spec->struct_count; i++) {
		free_fields(spec->structs[i].fields, spec->structs[i].field_count);
		free(spec->structs[i].name);
		free(spec->structs[i].description);
	}
	free(spec->events);
	for (i = 0; i < spec->metric_count; i++)
		free_metric(&spec->metrics[i]);
	free(spec->metrics);
	free(spec->labels);
	free(spec->structs);
	free(spec->path);
	free(spec->file);
	free(spec->provider);
	free(spec->version);
	free(spec->description);
}

void pem_spec_set__free(struct pem_spec_set *set)
{
	size_t i;

	for (i = 0; i < set->count; i++)
		free_spec(&set->specs[i]);
	free(set->specs);
	for (i = 0; i < set->error_count; i++)
		free(set->errors[i].text);
	free(set->errors);
	memset(set, 0, sizeof(*set));
}
