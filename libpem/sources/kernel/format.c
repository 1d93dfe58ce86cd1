/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * format.c - a tracepoint's fields, from the text of its format file
 *
 *	ID: 362
 *	format:
 *		field:__data_loc char[] comm;	offset:8;	size:4;	signed:0;
 *
 * The kernel writes it; whatever it says is checked all the same, for it decides what a program reads.
 */
#define _GNU_SOURCE
#include "probes.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRY_BYTES_MAX 8192u /* no perf event's entry is longer */

/* "field:TYPE NAME[COUNT]" taken apart. */
struct declaration {
	char type[96]; /* without __data_loc, brackets and what is in them */
	char name[PEM_PROBE_NAME_BYTES];
	bool is_array;
	bool is_data_loc, is_rel_loc;
	unsigned long offset, size;
	bool is_signed;
};

/* Cut words off the end: the name, then blanks. False: there is no name. */
static bool take_name(struct declaration *d, char *text)
{
	char *end = text + strlen(text), *begin;

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	for (begin = end; begin > text && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_');)
		begin--;
	if (begin == end || begin == text ||
	    snprintf(d->name, sizeof(d->name), "%s", begin) >= (int)sizeof(d->name))
		return false;
	while (begin > text && isspace((unsigned char)begin[-1]))
		begin--;
	*begin = '\0';
	return *text && snprintf(d->type, sizeof(d->type), "%s", text) < (int)sizeof(d->type);
}

static bool parse_declaration(struct declaration *d, char *text)
{
	char *bracket, *end;

	if (!strncmp(text, "__data_loc ", 11)) {
		d->is_data_loc = true;
		text += 11;
	} else if (!strncmp(text, "__rel_loc ", 10)) {
		d->is_rel_loc = true;
		text += 10;
	}
	/* "char name[16]", and of a dynamic one "char[] name" */
	while ((bracket = strchr(text, '['))) {
		end = strchr(bracket, ']');
		if (!end)
			return false;
		d->is_array = true;
		memset(bracket, ' ', (size_t)(end - bracket) + 1);
	}
	return take_name(d, text);
}

/* A number behind a word of the line, as "offset:8". */
static bool number_behind(const char *line, const char *word, unsigned long *value)
{
	const char *at = strstr(line, word);
	char *end;

	if (!at)
		return false;
	at += strlen(word);
	*value = strtoul(at, &end, 10);
	return end != at;
}

static bool parse_line(struct declaration *d, char *line)
{
	char *text = strstr(line, "field:"), *end;
	unsigned long sign;

	memset(d, 0, sizeof(*d));
	if (!text || !(end = strchr(text, ';')))
		return false;
	*end++ = '\0';
	if (!number_behind(end, "offset:", &d->offset) || !number_behind(end, "size:", &d->size) ||
	    !number_behind(end, "signed:", &sign))
		return false;
	d->is_signed = sign != 0;
	return d->offset < ENTRY_BYTES_MAX && d->size <= ENTRY_BYTES_MAX - d->offset &&
	       parse_declaration(d, text + 6);
}

static bool is_character(const char *type)
{
	return !strcmp(type, "char") || !strcmp(type, "const char");
}

/* Bytes of an array's elements, by their type; 1: not known, or not numbers. */
static unsigned element_bytes(const char *type)
{
	static const struct {
		const char *word;
		unsigned bytes;
	} known[] = {
		{"u16", 2},
		{"s16", 2},
		{"__u16", 2},
		{"__le16", 2},
		{"__be16", 2},
		{"short", 2},
		{"unsigned short", 2},
		{"uint16_t", 2},
		{"u32", 4},
		{"s32", 4},
		{"__u32", 4},
		{"__le32", 4},
		{"__be32", 4},
		{"int", 4},
		{"unsigned int", 4},
		{"unsigned", 4},
		{"uint32_t", 4},
		{"u64", 8},
		{"s64", 8},
		{"__u64", 8},
		{"long", 8},
		{"unsigned long", 8},
		{"uint64_t", 8},
		{"long long", 8},
		{"size_t", 8},
		{"unsigned long long", 8},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(type, known[i].word))
			return known[i].bytes;
	}
	return 1;
}

static uint8_t unsigned_type(unsigned bytes)
{
	return bytes == 8   ? PEM_TYPE_UINT64
	       : bytes == 4 ? PEM_TYPE_UINT32
	       : bytes == 2 ? PEM_TYPE_UINT16
			    : PEM_TYPE_UINT8;
}

static void set_dynamic(struct pem_probe_field *field, const struct declaration *d)
{
	unsigned bytes = element_bytes(d->type);

	field->location.kind = d->is_rel_loc ? PEM_LOCATION_REL_LOC : PEM_LOCATION_DATA_LOC;
	if (is_character(d->type)) {
		field->type = PEM_TYPE_STRING;
		field->max_count = PEM_PROBE_STRING_BYTES;
		return;
	}
	field->type = PEM_TYPE_LIST;
	field->element_type = unsigned_type(bytes);
	field->max_count = (uint16_t)(PEM_PROBE_LIST_BYTES / bytes);
	field->base = 16;
}

static void set_bytes(struct pem_probe_field *field, const struct declaration *d)
{
	unsigned bytes = d->is_array ? element_bytes(d->type) : 1;

	field->location.kind = PEM_LOCATION_BYTES;
	if (d->is_array && is_character(d->type) && d->size > 1) {
		field->type = PEM_TYPE_STRING;
		field->max_count = (uint16_t)d->size;
		return;
	}
	if (d->size % bytes || d->offset % bytes)
		bytes = 1;
	field->type = PEM_TYPE_ARRAY;
	field->element_type = unsigned_type(bytes);
	field->max_count = (uint16_t)(d->size / bytes);
	field->base = 16;
}

static void set_number(struct pem_probe_field *field, const struct declaration *d)
{
	size_t length = strlen(d->type);

	pem_probe_field__set_number(field, (unsigned)d->size, d->is_signed);
	field->location.kind = PEM_LOCATION_CONTEXT;
	field->location.load_bytes = (uint8_t)d->size;
	if (d->size == 8 && d->type[length - 1] == '*') {
		field->type = PEM_TYPE_ADDRESS;
		field->is_signed = false;
		field->base = 16;
	} else if (!d->is_signed && strstr(d->name, "flags")) {
		field->base = 16;
	}
}

static int add(struct pem_probe *probe, const struct declaration *d)
{
	bool is_dynamic = d->is_data_loc || d->is_rel_loc;
	struct pem_probe_field *field;

	if (!d->size || (is_dynamic && (d->size != 4 || d->offset % 4)))
		return is_dynamic ? -EINVAL : 0;
	field = pem_probe__add_field(probe, d->name);
	if (!field)
		return -E2BIG;
	if (is_dynamic)
		set_dynamic(field, d);
	else if (d->is_array || (d->size != 1 && d->size != 2 && d->size != 4 && d->size != 8))
		set_bytes(field, d);
	else
		set_number(field, d);
	field->location.offset = (uint16_t)d->offset;
	return 0;
}

int pem_format__parse(struct pem_probe *probe, const char *text)
{
	char *copy = strdup(text), *line, *rest = copy;
	struct declaration d;
	unsigned long id = 0;
	int rc = copy ? 0 : -ENOMEM;

	if (copy && (!number_behind(copy, "ID: ", &id) || !id || id > UINT32_MAX))
		rc = -EINVAL;
	probe->type_id = (uint32_t)id;
	while (!rc && (line = strsep(&rest, "\n"))) {
		if (!strncmp(line, "print fmt:", 10))
			break;
		if (!strstr(line, "field:"))
			continue;
		if (!parse_line(&d, line))
			rc = -EINVAL;
		else if (strncmp(d.name, "common_", 7) != 0)
			rc = add(probe, &d);
	}
	if (!rc)
		pem_probe__rename_lists(probe);
	free(copy);
	return rc;
}
