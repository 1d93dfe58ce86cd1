/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model_describe.c - adding an event that no spec has to a model
 *
 * The event was found at run time. It is laid out and declared as codegen would do it. Then it is
 * written as text and parsed again, so that all events of a model have passed the parser.
 */
#define _GNU_SOURCE
#include "event_id.h"
#include "model_internal.h"
#include "util.h"

#include <pem/record_layout.h>
#include <pem/tsdl.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Return whether an event of this model may have this id: no other event has it, and it is not
 * reserved.
 */
static bool is_free(const struct pem_model *model, uint32_t id)
{
	return id >= PEM_MODEL_RESERVED_IDS && !pem_model__by_id(model, id);
}

/* Compute offsets and sizes. -E2BIG: a record may become too long. */
static int lay_out(struct pem_event *event, struct pem_field *fields)
{
	struct pem_layout_field *locations = calloc(event->field_count + 1u, sizeof(*locations));
	struct pem_layout layout;
	unsigned i;

	if (!locations)
		return -ENOMEM;
	for (i = 0; i < event->field_count; i++)
		locations[i] = (struct pem_layout_field){.name = fields[i].name,
							 .type = fields[i].type,
							 .element_type = fields[i].element_type,
							 .max_count = fields[i].max_count};
	pem_layout_append(locations, event->field_count, &layout);
	for (i = 0; i < event->field_count; i++)
		fields[i].offset = (uint16_t)locations[i].offset;
	free(locations);
	if (layout.max_bytes > PEM_RECORD_BYTES_MAX)
		return -E2BIG;
	event->fixed_bytes = (uint16_t)layout.fixed_bytes;
	event->max_bytes = (uint16_t)layout.max_bytes;
	return 0;
}

/* Return a model's text with this event, which the caller frees; NULL: no memory. */
static char *write_text(struct pem_event *event)
{
	char *tsdl = NULL, *text = NULL;
	size_t bytes, length;
	FILE *out = open_memstream(&tsdl, &bytes);

	if (!out)
		return NULL;
	pem_tsdl_put(out, event);
	if (fclose(out))
		goto out;
	length = strlen(tsdl);
	if (length && tsdl[length - 1] == '\n')
		tsdl[length - 1] = '\0';
	event->tsdl = tsdl;
	out = open_memstream(&text, &bytes);
	if (!out)
		goto out;
	fprintf(out, "pem-model\t%d\n", PEM_MODEL_VERSION);
	pem_model__write_event(out, event);
	if (fclose(out)) {
		free(text);
		text = NULL;
	}
out:
	event->tsdl = "";
	free(tsdl);
	return text;
}

int pem_model__describe(struct pem_model *model, const struct pem_event *told,
			struct pem_error *error)
{
	struct pem_field *fields = calloc(told->field_count + 1u, sizeof(*fields));
	struct pem_event event = *told;
	const struct pem_event *known;
	char *name = NULL, *text = NULL;
	int rc = -ENOMEM;

	if (!fields ||
	    asprintf(&name, "%s::%s::%s", told->layer, told->class_name, told->specifier) < 0) {
		name = NULL;
		goto out;
	}
	if (told->field_count)
		memcpy(fields, told->fields, told->field_count * sizeof(*fields));
	known = pem_model__by_name(model, name);
	if (known && strcmp(known->source_name, told->source_name) != 0) {
		rc = pem_error__set(
			error, -EEXIST,
			"%s: its event would be called %s, as that of %s is: record one of "
			"them at a time",
			told->source_name, name, known->source_name);
		goto out;
	}
	event.name = name;
	event.fields = fields;
	event.id = pem_event_id(name, event.version);
	event.group = event.since = event.deprecated = event.tsdl = "";
	rc = lay_out(&event, fields);
	if (rc == -E2BIG)
		pem_error__set(error, rc, "%s: a record of it may take more than %u bytes",
			       told->source_name, PEM_RECORD_BYTES_MAX);
	if (rc)
		goto out;
	text = write_text(&event);
	rc = text ? pem_model__add_text(model, text, strlen(text), told->source_name, error)
		  : -ENOMEM;
out:
	if (rc == -ENOMEM)
		pem_error__set(error, rc, "out of memory");
	free(text);
	free(name);
	free(fields);
	return rc;
}

const struct pem_event *pem_model__add_copy(struct pem_model *model, const struct pem_event *told,
					    const char *suffix, struct pem_error *error)
{
	struct pem_event event = *told;
	char *name = NULL, *text = NULL;
	int rc = -ENOMEM;

	if (suffix) {
		if (asprintf(&name, "%s%s", told->name, suffix) < 0)
			return NULL;
		event.name = name;
		event.specifier = strrchr(name, ':') + 1;
		for (event.id = pem_event_id(name, event.version); !is_free(model, event.id);
		     event.id++)
			;
	}
	event.tsdl = "";
	text = write_text(&event);
	if (text)
		rc = pem_model__add_text(model, text, strlen(text), event.name, error);
	free(text);
	free(name);
	if (rc == 1)
		return pem_model__by_id(model, event.id);
	if (rc == -ENOMEM)
		pem_error__set(error, rc, "out of memory");
	return NULL;
}
