/* SPDX-License-Identifier: MIT */
/*
 * tracepoint_format.c - see tracepoint_format.h
 */
#include "tracepoint_format.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cut the name and then the blanks from the end. False: there is no name. */
static bool take_name(struct pem_format_field *field, char *text)
{
	char *end = text + strlen(text), *begin;

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	for (begin = end; begin > text && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_');)
		begin--;
	if (begin == end ||
	    snprintf(field->name, sizeof(field->name), "%s", begin) >= (int)sizeof(field->name))
		return false;
	while (begin > text && isspace((unsigned char)begin[-1]))
		begin--;
	*begin = '\0';
	return *text &&
	       snprintf(field->type, sizeof(field->type), "%s", text) < (int)sizeof(field->type);
}

static bool read_declaration(struct pem_format_field *field, char *text)
{
	char *bracket, *end;

	if (!strncmp(text, "__data_loc ", 11)) {
		field->is_data_loc = true;
		text += 11;
	} else if (!strncmp(text, "__rel_loc ", 10)) {
		field->is_rel_loc = true;
		text += 10;
	}
	/* "char name[16]", or with dynamic length "char[] name" */
	while ((bracket = strchr(text, '['))) {
		end = strchr(bracket, ']');
		if (!end)
			return false;
		field->is_array = true;
		memset(bracket, ' ', (size_t)(end - bracket) + 1);
	}
	return take_name(field, text);
}

/* Parse the number after a word of the line, such as "offset:8". */
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

/* text begins after "field:". */
static bool read_field(struct pem_format_field *field, char *text)
{
	unsigned long offset, size, sign;
	char *end = strchr(text, ';');

	memset(field, 0, sizeof(*field));
	if (!end)
		return false;
	*end++ = '\0';
	if (!number_behind(end, "offset:", &offset) || !number_behind(end, "size:", &size) ||
	    !number_behind(end, "signed:", &sign))
		return false;
	if (offset >= PEM_FORMAT_ENTRY_BYTES_MAX || size > PEM_FORMAT_ENTRY_BYTES_MAX - offset)
		return false;
	field->offset = (uint16_t)offset;
	field->size = (uint16_t)size;
	field->is_signed = sign != 0;
	return read_declaration(field, text);
}

int pem_format__id(const char *text, uint32_t *id)
{
	unsigned long number;

	if (!number_behind(text, "ID: ", &number) || !number || number > UINT32_MAX)
		return -EINVAL;
	*id = (uint32_t)number;
	return 0;
}

int pem_format__next(const char **text, struct pem_format_field *field)
{
	char copy[512], *at;
	const char *line;
	size_t bytes;

	while (*(line = *text)) {
		if (!strncmp(line, "print fmt:", 10))
			return 0;
		bytes = strcspn(line, "\n");
		*text = line + bytes + (line[bytes] == '\n');
		snprintf(copy, sizeof(copy), "%.*s", (int)(bytes < INT16_MAX ? bytes : INT16_MAX),
			 line);
		at = strstr(copy, "field:");
		if (!at)
			continue;
		if (bytes >= sizeof(copy) || !read_field(field, at + 6)) {
			snprintf(field->type, sizeof(field->type), "%.*s",
				 (int)(bytes < sizeof(field->type) ? bytes : sizeof(field->type)),
				 line);
			return -EINVAL;
		}
		if (strncmp(field->name, "common_", 7) != 0)
			return 1;
	}
	return 0;
}

bool pem_format_field__is_pointer(const struct pem_format_field *field)
{
	return field->size == 8 && field->type[strlen(field->type) - 1] == '*';
}

unsigned pem_format_field__element_bytes(const struct pem_format_field *field, bool *is_signed)
{
	static const struct {
		const char *word;
		uint8_t bytes;
		bool is_signed;
	} known[] = {
		{"u8", 1, false},
		{"__u8", 1, false},
		{"uint8_t", 1, false},
		{"unsigned char", 1, false},
		{"u16", 2, false},
		{"s16", 2, true},
		{"__u16", 2, false},
		{"__le16", 2, false},
		{"__be16", 2, false},
		{"short", 2, true},
		{"unsigned short", 2, false},
		{"uint16_t", 2, false},
		{"u32", 4, false},
		{"s32", 4, true},
		{"__u32", 4, false},
		{"__le32", 4, false},
		{"__be32", 4, false},
		{"int", 4, true},
		{"unsigned int", 4, false},
		{"unsigned", 4, false},
		{"uint32_t", 4, false},
		{"u64", 8, false},
		{"s64", 8, true},
		{"__u64", 8, false},
		{"long", 8, true},
		{"unsigned long", 8, false},
		{"uint64_t", 8, false},
		{"long long", 8, true},
		{"size_t", 8, false},
		{"unsigned long long", 8, false},
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!strcmp(field->type, known[i].word)) {
			*is_signed = known[i].is_signed;
			return known[i].bytes;
		}
	}
	return 0;
}
