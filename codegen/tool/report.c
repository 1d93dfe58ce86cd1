/* SPDX-License-Identifier: MIT */
/*
 * report.c - prints errors for programs, sums for people, names and models for pem
 *
 * Not here: errors for people and their editors (set.c).
 */
#include "report.h"
#include "text.h"

#include <stdlib.h>

/* A file's name may have bytes that are no UTF-8, which JSON can't say, and what terminals obey. */
static void put_json_text(FILE *out, const char *text)
{
	unsigned bytes;

	fputc('"', out);
	for (; *text; text += bytes) {
		bytes = pem_utf8_bytes(text, PEM_UTF8_BYTES_MAX);
		if (!bytes) {
			fputs("\\ufffd", out);
			bytes = 1;
		} else if (*text == '"' || *text == '\\') {
			fprintf(out, "\\%c", *text);
		} else if (pem_is_control(pem_utf8_point(text, bytes))) {
			fprintf(out, "\\u%04x", pem_utf8_point(text, bytes));
		} else {
			fwrite(text, 1, bytes, out);
		}
	}
	fputc('"', out);
}

void pem_print_json(struct pem_spec_set *set, FILE *out)
{
	const struct pem_spec_error *error;
	size_t i;

	pem_spec_set__sort_errors(set);
	fputc('[', out);
	for (i = 0; i < set->error_count; i++) {
		error = &set->errors[i];
		fputs(i ? ",\n  {\"file\": " : "\n  {\"file\": ", out);
		put_json_text(out, error->path);
		fprintf(out, ", \"line\": %d, \"column\": %d, \"severity\": \"%s\", \"message\": ",
			error->at.line, error->at.column, error->is_warning ? "warning" : "error");
		put_json_text(out, error->text);
		fputc('}', out);
	}
	fputs(set->error_count ? "\n]\n" : "]\n", out);
}

static void put_count(FILE *out, size_t count, const char *what)
{
	fprintf(out, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

void pem_print_summary(const struct pem_spec_set *set, FILE *out)
{
	size_t events = 0, i;

	for (i = 0; i < set->count; i++)
		events += set->specs[i].event_count;
	put_count(out, events, "event");
	fputs(" in ", out);
	put_count(out, set->count, "spec");
	fputs(": ", out);
	put_count(out, set->error_count - set->warning_count, "error");
	fputs(", ", out);
	put_count(out, set->warning_count, "warning");
	fputc('\n', out);
}

void pem_print_names(const struct pem_spec_set *set, const struct pem_output *generated, FILE *out)
{
	const struct pem_spec_event *event;
	size_t i, k;

	for (i = 0; i < set->count; i++)
		fprintf(out, "provider %s\n", set->specs[i].provider);
	for (i = 0; i < set->count; i++)
		for (k = 0; k < set->specs[i].event_count; k++) {
			event = &set->specs[i].events[k];
			if (event->source_kind == PEM_SOURCE_STUB)
				fprintf(out, "event %s\n", event->c_name);
		}
	for (i = 0; pem_output__name(generated, i); i++)
		fprintf(out, "file %s\n", pem_output__name(generated, i));
}

void pem_print_model(const struct pem_spec_set *set, FILE *out)
{
	const struct pem_spec *spec = &set->specs[0];
	const struct pem_spec_event *event;
	size_t i;

	fprintf(out, "pem-model\t%d\n", PEM_MODEL_VERSION);
	for (i = 0; i < spec->event_count; i++)
		pem_put_model(out, &spec->events[i]);
	pem_put_metrics(out, spec);
	for (i = 0; i < spec->event_count; i++) {
		event = &spec->events[i];
		fprintf(out, "location\t%08x\t%d\t%d\n", event->id, event->at.line,
			event->at.column);
	}
}
