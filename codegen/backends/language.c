/* SPDX-License-Identifier: MIT */
/*
 * language.c - types, intervals, names and comments, as several languages need them
 */
#include "language.h"

#include <pem/stub.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

int pem_is_stub(const struct pem_spec_event *event)
{
	return event->source_kind == PEM_SOURCE_STUB;
}

uint64_t pem_page_bytes(const struct pem_spec *spec)
{
	uint64_t capacity = PEM_EVENT_CAPACITY(spec->stub_count);
	uint64_t bytes = sizeof(struct pem_control_header) + capacity * (1 + 8 * PEM_SESSIONS_MAX);

	return (bytes + PEM_PAGE_ALIGN - 1) / PEM_PAGE_ALIGN * PEM_PAGE_ALIGN;
}

/* --- labels --- */

static int holds(unsigned type, const struct pem_spec_label *label)
{
	unsigned bits = pem_type__size(type) * 8;

	if (pem_type__is_signed(type)) {
		if (label->is_negative)
			return bits == 64 || (int64_t)label->value >= -(1LL << (bits - 1));
		return label->value <= (UINT64_MAX >> (65 - bits));
	}
	return !label->is_negative && label->value <= (UINT64_MAX >> (64 - bits));
}

static int holds_all(unsigned type, const struct pem_spec_labels *labels)
{
	size_t i;

	for (i = 0; i < labels->count; i++) {
		if (!holds(type, &labels->labels[i]))
			return 0;
	}
	return 1;
}

/*
 * The fields' common type, or the widest of the least needed sign; PEM_TYPE_NONE: no field has
 * these labels.
 */
static unsigned fields_type(const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	const struct pem_spec_event *event;
	unsigned type = PEM_TYPE_NONE, wanted;
	size_t i, k;

	for (i = 0; i < spec->event_count; i++) {
		event = &spec->events[i];
		for (k = 0; k < event->field_count; k++) {
			if (event->fields[k].labels != labels)
				continue;
			wanted = event->fields[k].type;
			if (!pem_type__size(wanted)) /* a list's or array's elements */
				wanted = event->fields[k].element_type;
			if (type == PEM_TYPE_NONE || type == wanted)
				type = wanted;
			else if (pem_type__is_signed(type) || pem_type__is_signed(wanted))
				type = PEM_TYPE_INT64;
			else if (pem_type__size(wanted) > pem_type__size(type))
				type = wanted;
		}
	}
	return type;
}

unsigned pem_labels__type(const struct pem_spec *spec, const struct pem_spec_labels *labels)
{
	unsigned type = fields_type(spec, labels);

	if (type == PEM_TYPE_NONE)
		type = PEM_TYPE_UINT32;
	if (holds_all(type, labels))
		return type;
	return holds_all(PEM_TYPE_UINT64, labels) ? PEM_TYPE_UINT64 : PEM_TYPE_INT64;
}

/* --- intervals --- */

int pem_interval__is_covered(const struct pem_spec_event *begin, const struct pem_spec_event *end)
{
	const struct pem_spec_field *wanted, *field;
	size_t i;

	for (i = 0; i < end->field_count; i++) {
		wanted = &end->fields[i];
		field = pem_spec_event__field(begin, wanted->c_name);
		if (!field || field->type != wanted->type ||
		    field->element_type != wanted->element_type ||
		    field->max_count != wanted->max_count || field->labels != wanted->labels ||
		    field->type == PEM_TYPE_LIST)
			return 0;
	}
	return 1;
}

/* --- names --- */

char *pem_upper_snake(const char *name)
{
	char *upper = pem_snake_case(name), *p;

	for (p = upper; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	return upper;
}

char *pem_camel_case(const char *name)
{
	char *snake = pem_snake_case(name), *to = snake, *p;
	int first = 1;

	for (p = snake; *p; p++) {
		if (*p == '_') {
			first = 1;
			continue;
		}
		*to++ = first ? (char)toupper((unsigned char)*p) : *p;
		first = 0;
	}
	*to = '\0';
	return snake;
}

/* --- comments --- */

/*
 * In C++ a backslash at its end would make the next line a part of the comment; so would its
 * trigraph.
 */
static int joins_lines(const char *text, size_t bytes)
{
	return text[bytes - 1] == '\\' || (bytes > 2 && !strncmp(text + bytes - 3, "?\?/", 3));
}

void pem_put_wrapped(FILE *f, const char *prefix, size_t width, const char *text)
{
	size_t room = width - strlen(prefix), bytes;

	while (*text == ' ')
		text++;
	while (*text) {
		bytes = strlen(text);
		if (bytes > room) {
			for (bytes = room; bytes && text[bytes] != ' '; bytes--)
				;
			if (!bytes) /* one long word: cut, but not within a character */
				for (bytes = room; bytes > 1 && (text[bytes] & 0xc0) == 0x80;
				     bytes--)
					;
		}
		fprintf(f, "%s%.*s%s\n", prefix, (int)bytes, text,
			joins_lines(text, bytes) ? "." : "");
		text += bytes;
		while (*text == ' ')
			text++;
	}
}

char *pem_field__text(const struct pem_spec_field *field)
{
	return pem_xprintf("%s%s%s", field->unit,
			   field->unit[0] && field->description[0] ? ": " : "", field->description);
}

char *pem_event__text(const struct pem_spec_event *event)
{
	return pem_xprintf("%s: %s%s%s%s%s%s", event->name, event->description,
			   event->since[0] ? " (since " : "", event->since,
			   event->since[0] ? ")" : "", event->deprecated[0] ? ". Deprecated: " : "",
			   event->deprecated);
}

void pem_put_line_banner(FILE *f, const char *mark, const struct pem_spec *spec)
{
	fprintf(f,
		"%1$s SPDX-License-Identifier: MIT\n%1$s\n"
		"%1$s Made by pem-codegen: change the spec, not this file. FNV-1a of what it is "
		"made "
		"from:\n%1$s\t%2$016llx  %3$s (%4$s)\n",
		mark, (unsigned long long)spec->hash, spec->provider, spec->file);
}
