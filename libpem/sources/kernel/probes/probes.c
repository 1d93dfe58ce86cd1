/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probes.c - places that no spec describes: patterns, and names of their events (contract:
 * probes.h)
 *
 * A probe is found again by its name wherever it is needed. The name is the source name of its
 * event. So an event contains all that is needed, wherever its description was meanwhile.
 */
#include "probes.h"

#include "sources/kernel/base/base.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_words[PEM_PROBE_KINDS] = {
	[PEM_PROBE_FENTRY] = "fentry", [PEM_PROBE_FEXIT] = "fexit",
	[PEM_PROBE_KPROBE] = "kprobe", [PEM_PROBE_KRETPROBE] = "kretprobe",
	[PEM_PROBE_UPROBE] = "uprobe", [PEM_PROBE_URETPROBE] = "uretprobe",
	[PEM_PROBE_USDT] = "usdt",
};

const char *pem_probe_kind__word(enum pem_probe_kind kind)
{
	return kind_words[kind];
}

void pem_probe__free(struct pem_probe *probe)
{
	if (!probe)
		return;
	free(probe->name);
	free(probe->layer);
	free(probe->class_name);
	free(probe->specifier);
	free(probe->description);
	free(probe->trouble);
	free(probe->module);
	free(probe->path);
	free(probe->binary);
	free(probe->sites);
	free(probe);
}

/* Replace characters that an identifier can't have by '_'. NULL: no memory. */
static char *identifier(const char *text)
{
	size_t length = strlen(text), i;
	char *name = malloc(length + 2), *to = name;

	if (!name)
		return NULL;
	if (!length || (*text >= '0' && *text <= '9'))
		*to++ = '_';
	for (i = 0; i < length; i++)
		*to++ = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'z') ||
					(text[i] >= 'A' && text[i] <= 'Z')
				? text[i]
				: '_';
	*to = '\0';
	return name;
}

struct pem_probe *pem_probe__new(enum pem_probe_kind kind, const char *name, const char *layer,
				 const char *class_name, const char *specifier)
{
	struct pem_probe *probe = calloc(1, sizeof(*probe));

	if (!probe)
		return NULL;
	probe->kind = kind;
	probe->name = strdup(name);
	probe->layer = strdup(layer);
	probe->class_name = identifier(class_name);
	probe->specifier = identifier(specifier);
	if (probe->name && probe->layer && probe->class_name && probe->specifier)
		return probe;
	pem_probe__free(probe);
	return NULL;
}

static bool has_field(const struct pem_probe *probe, const char *name)
{
	unsigned i;

	for (i = 0; i < probe->field_count; i++) {
		if (!strcmp(probe->fields[i].name, name))
			return true;
	}
	return false;
}

struct pem_probe_field *pem_probe__add_field(struct pem_probe *probe, const char *name)
{
	struct pem_probe_field *field = &probe->fields[probe->field_count];
	char *plain, taken[PEM_PROBE_NAME_BYTES];
	unsigned n;

	if (probe->field_count == PEM_PROBE_FIELDS_MAX)
		return NULL;
	plain = identifier(name);
	if (!plain)
		return NULL;
	memset(field, 0, sizeof(*field));
	pem_copy_text(taken, sizeof(taken), plain);
	for (n = 2; has_field(probe, taken); n++)
		snprintf(taken, sizeof(taken), "%.48s_%u", plain, n);
	free(plain);
	memcpy(field->name, taken, sizeof(taken));
	field->base = 10;
	field->max_count = 1;
	probe->field_count++;
	return field;
}

/* Does another field have the list's name, or the name of its length? */
static bool is_taken(const struct pem_probe *probe, const struct pem_probe_field *list)
{
	char length[PEM_PROBE_NAME_BYTES + sizeof("_length")];
	unsigned i;

	snprintf(length, sizeof(length), "%s_length", list->name);
	for (i = 0; i < probe->field_count; i++) {
		if (&probe->fields[i] != list && (!strcmp(probe->fields[i].name, list->name) ||
						  !strcmp(probe->fields[i].name, length)))
			return true;
	}
	return false;
}

void pem_probe__rename_lists(struct pem_probe *probe)
{
	struct pem_probe_field *field;
	char was[PEM_PROBE_NAME_BYTES];
	unsigned i, n;

	for (i = 0; i < probe->field_count; i++) {
		field = &probe->fields[i];
		if (field->type != PEM_TYPE_LIST)
			continue;
		memcpy(was, field->name, sizeof(was));
		for (n = 2; is_taken(probe, field); n++)
			snprintf(field->name, sizeof(field->name), "%.48s_%u", was, n);
	}
}

void pem_probe_field__set_number(struct pem_probe_field *field, unsigned bytes, bool is_signed)
{
	static const uint8_t types[2][9] = {
		{[1] = PEM_TYPE_UINT8,
		 [2] = PEM_TYPE_UINT16,
		 [4] = PEM_TYPE_UINT32,
		 [8] = PEM_TYPE_UINT64},
		{[1] = PEM_TYPE_INT8,
		 [2] = PEM_TYPE_INT16,
		 [4] = PEM_TYPE_INT32,
		 [8] = PEM_TYPE_INT64},
	};

	field->type = types[is_signed][bytes <= 8 ? bytes : 0];
	field->bytes = (uint8_t)bytes;
	field->is_signed = is_signed;
}

/* --- patterns --- */

/*
 * The kind whose word the pattern begins with; *rest is after the colon. Without such a word it is
 * a tracepoint.
 */
static enum pem_probe_kind kind_of(const char *pattern, const char **rest)
{
	unsigned kind;
	size_t n;

	for (kind = PEM_PROBE_FENTRY; kind < PEM_PROBE_KINDS; kind++) {
		n = strlen(kind_words[kind]);
		if (!strncmp(pattern, kind_words[kind], n) && pattern[n] == ':') {
			*rest = pattern + n + 1;
			return kind;
		}
	}
	*rest = pattern;
	return PEM_PROBE_TRACEPOINT;
}

bool pem_probe__is_pattern(const char *pattern)
{
	const char *colon = strchr(pattern, ':'), *rest;

	if (!colon || colon == pattern || colon[1] == ':' || !colon[1])
		return false;
	if (kind_of(pattern, &rest) != PEM_PROBE_TRACEPOINT)
		return true;
	return !strchr(colon + 1, ':') && !strchr(pattern, '/') && !strchr(pattern, ' ');
}

int pem_probe__find(const char *pattern, pem_probe_found found, void *arg, struct pem_error *error)
{
	enum pem_probe_kind kind;
	const char *rest;

	if (!pem_probe__is_pattern(pattern))
		return pem_error__set(error, -ENOENT, "'%.100s' names no probe", pattern);
	kind = kind_of(pattern, &rest);
	if (kind == PEM_PROBE_TRACEPOINT)
		return pem_probe__find_tracepoints(pattern, found, arg, error);
	if (kind <= PEM_PROBE_KRETPROBE)
		return pem_probe__find_functions(kind, rest, found, arg, error);
	return pem_probe__find_in_binary(kind, rest, found, arg, error);
}

void pem_probe_near__offer(struct pem_probe_near *near, const char *name)
{
	unsigned edits = pem_edit_distance(near->wanted, name);

	if (near->edits && edits >= near->edits)
		return;
	near->edits = edits ? edits : 1;
	pem_copy_text(near->best, sizeof(near->best), name);
}

const char *pem_probe_near__say(const struct pem_probe_near *near, char *text, size_t bytes)
{
	size_t length = strlen(near->wanted);

	/* If more than one in three letters differ, it is another word. */
	if (!near->edits || near->edits > (length < 6 ? 2 : length / 3))
		return "";
	snprintf(text, bytes, "; did you mean '%s'?", near->best);
	return text;
}

/* --- events --- */

void pem_probe__as_event(const struct pem_probe *probe, struct pem_event *event,
			 struct pem_field *fields)
{
	unsigned i;

	memset(event, 0, sizeof(*event));
	event->layer = probe->layer;
	event->class_name = probe->class_name;
	event->specifier = probe->specifier;
	event->source_name = probe->name;
	event->description = probe->description ? probe->description : "";
	event->source_kind =
		probe->kind == PEM_PROBE_TRACEPOINT ? PEM_SOURCE_TRACEPOINT : PEM_SOURCE_PROBE;
	event->level = PEM_LEVEL_DETAIL;
	event->version = 1;
	event->fields = fields;
	event->field_count = (uint16_t)probe->field_count;
	for (i = 0; i < probe->field_count; i++)
		fields[i] = (struct pem_field){.name = probe->fields[i].name,
					       .description = "",
					       .unit = "",
					       .type = probe->fields[i].type,
					       .element_type = probe->fields[i].element_type,
					       .base = probe->fields[i].base,
					       .max_count = probe->fields[i].max_count};
}

bool pem_probe__fits(const struct pem_probe *probe, const struct pem_event *event)
{
	unsigned i;

	if (probe->field_count != event->field_count)
		return false;
	for (i = 0; i < probe->field_count; i++) {
		if (strcmp(probe->fields[i].name, event->fields[i].name) != 0 ||
		    probe->fields[i].type != event->fields[i].type ||
		    probe->fields[i].element_type != event->fields[i].element_type ||
		    probe->fields[i].max_count != event->fields[i].max_count)
			return false;
	}
	return true;
}

static int keep_first(void *arg, struct pem_probe *probe)
{
	struct pem_probe **first = arg;

	if (*first)
		pem_probe__free(probe);
	else
		*first = probe;
	return 0;
}

struct pem_probe *pem_probe__of_event(const struct pem_event *event, struct pem_error *error)
{
	struct pem_probe *probe;

	if (event->source_kind == PEM_SOURCE_USDT)
		return pem_probe__of_static(event, error);
	if (event->source_kind == PEM_SOURCE_UPROBE)
		return pem_probe__of_function(event, error);
	probe = pem_probe_cache__find(event->source_name);
	if (!probe && pem_probe__find(event->source_name, keep_first, &probe, error) < 0) {
		pem_probe__free(probe);
		return NULL;
	}
	if (probe && strcmp(probe->name, event->source_name) == 0 &&
	    strcmp(probe->class_name, event->class_name) == 0)
		return probe;
	pem_error__set(error, 0,
		       "%s: this build has no BPF program for it: add it to spec/os and build "
		       "anew, or name the tracepoint itself, %.100s",
		       event->name, event->source_name);
	pem_probe__free(probe);
	return NULL;
}
