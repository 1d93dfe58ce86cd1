// SPDX-License-Identifier: MIT
/*
 * tsdl.c - CTF metadata to a spec: the part of the language that LTTng-UST writes, one declaration
 * on each line
 *
 * A metadata file is text, or text divided into packets. Names begin with an additional underscore.
 * The length of a sequence is a field before it. A field without a type in specs becomes a comment.
 */
#include "tsdl.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PACKET_MAGIC 0x75d11d57u
#define PACKET_HEADER_BYTES 37u
#define STRING_MAX 64
#define LIST_MAX 16
#define COUNT_MAX 4096

int import_tsdl__init(struct import_tsdl *tsdl)
{
	memset(tsdl, 0, sizeof(*tsdl));
	tsdl->labels = open_memstream(&tsdl->label_text, &tsdl->label_bytes);
	tsdl->sets.out = tsdl->labels;
	tsdl->events = open_memstream(&tsdl->event_text, &tsdl->event_bytes);
	return tsdl->labels != NULL && tsdl->events != NULL ? 0 : -ENOMEM;
}

int import_tsdl__finish(struct import_tsdl *tsdl)
{
	int rc = fclose(tsdl->labels) != 0;

	rc |= fclose(tsdl->events) != 0;
	tsdl->labels = tsdl->events = NULL;
	return rc != 0 ? -ENOMEM : 0;
}

void import_tsdl__free(struct import_tsdl *tsdl)
{
	if (tsdl->labels != NULL)
		fclose(tsdl->labels);
	if (tsdl->events != NULL)
		fclose(tsdl->events);
	free(tsdl->label_text);
	free(tsdl->event_text);
	cli_names__free(&tsdl->event_names);
	import_sets__free(&tsdl->sets);
	cli_names__free(&tsdl->seen);
}

/* Remove the packets' headers, in place. Returns the new length, or 0 if this is not metadata. */
static size_t join_packets(char *bytes, size_t count)
{
	uint32_t magic, content_bits, packet_bits;
	size_t at = 0, used = 0, content, packet;

	while (count - at >= PACKET_HEADER_BYTES) {
		memcpy(&magic, bytes + at, 4);
		memcpy(&content_bits, bytes + at + 24, 4);
		memcpy(&packet_bits, bytes + at + 28, 4);
		content = content_bits / 8;
		packet = packet_bits / 8;
		if (magic != PACKET_MAGIC || content < PACKET_HEADER_BYTES || packet < content ||
		    packet > count - at)
			return 0;
		memmove(bytes + used, bytes + at + PACKET_HEADER_BYTES,
			content - PACKET_HEADER_BYTES);
		used += content - PACKET_HEADER_BYTES;
		at += packet;
	}
	return used;
}

/*
 * Parse the number after a word in the description of an integer or floating-point number.
 * fallback: there is none.
 */
static unsigned long number_of(const char *line, const char *word, unsigned long fallback)
{
	const char *at = strstr(line, word);

	return at != NULL ? strtoul(at + strlen(word), NULL, 10) : fallback;
}

/* The end of a line: "} _name;", "} _name[3];", "} _name[ __name_length ];". */
struct declared {
	char name[IMPORT_NAME_BYTES + 12]; /* with room for "_..._length" */
	unsigned long count; /* of an array */
	bool is_array, is_sequence;
};

static bool read_name(struct declared *d, const char *line)
{
	const char *bracket = strrchr(line, '['), *end, *begin;

	memset(d, 0, sizeof(*d));
	end = bracket != NULL ? bracket : strrchr(line, ';');
	if (end == NULL)
		return false;
	for (begin = end; begin > line && (isalnum((unsigned char)begin[-1]) || begin[-1] == '_');)
		begin--;
	begin += *begin == '_';
	if (begin >= end || (size_t)snprintf(d->name, sizeof(d->name), "%.*s", (int)(end - begin),
					     begin) >= sizeof(d->name))
		return false;
	if (bracket != NULL) {
		d->count = strtoul(bracket + 1, NULL, 10);
		d->is_array = d->count != 0;
		d->is_sequence = d->count == 0;
	}
	return true;
}

/* State of the field that is being read. */
struct reading {
	struct import_tsdl *tsdl;
	struct cli_names taken; /* names of this event's fields */
	char *next; /* the text after the line */
};

static char *next_line(struct reading *r)
{
	char *line = r->next, *end;

	if (line == NULL || *line == '\0')
		return NULL;
	end = strchr(line, '\n');
	r->next = end != NULL ? end + 1 : NULL;
	if (end != NULL)
		*end = '\0';
	return line + strspn(line, " \t");
}

static bool is_text(const char *line)
{
	return strstr(line, "encoding = UTF8") != NULL || strstr(line, "encoding = ASCII") != NULL;
}

/* Print the attributes of an integer's type. False: specs have no such type. */
static bool integer_type(const char *line, char *type, size_t bytes)
{
	unsigned long bits = number_of(line, "size = ", 0);

	if (bits != 8 && bits != 16 && bits != 32 && bits != 64)
		return false;
	return (size_t)snprintf(type, bytes, "%sint%lu",
				number_of(line, "signed = ", 0) != 0 ? "" : "u", bits) < bytes;
}

static int put_field(struct reading *r, const char *text, const struct declared *d,
		     const char *labels)
{
	char name[IMPORT_NAME_BYTES], type[16], of[64];
	const char *base = number_of(text, "base = ", 10) == 16 ? " base='16'" : "", *words;
	int rc;

	if (strncmp(text, "string", 6) == 0)
		snprintf(type, sizeof(type), "string");
	else if (strncmp(text, "floating_point", 14) == 0)
		snprintf(type, sizeof(type),
			 number_of(text, "mant_dig = ", 53) == 24 ? "float32" : "float64");
	else if (!integer_type(text, type, sizeof(type)) || (d->is_array && d->count > COUNT_MAX)) {
		import_put_comment(r->tsdl->events, "      ", "%s: specs have no type like %s",
				   d->name, text);
		return 0;
	}
	if ((d->is_array || d->is_sequence) && is_text(text))
		snprintf(of, sizeof(of), "type='string' max='%lu'",
			 d->is_array && d->count > 1 ? d->count : STRING_MAX);
	else if (d->is_sequence)
		snprintf(of, sizeof(of), "type='list' eltType='%s' max='%d'", type, LIST_MAX);
	else if (d->is_array)
		snprintf(of, sizeof(of), "type='array' eltType='%s' count='%lu'", type, d->count);
	else if (strcmp(type, "string") == 0)
		snprintf(of, sizeof(of), "type='string' max='%d'", STRING_MAX);
	else
		snprintf(of, sizeof(of), "type='%s'", type);
	rc = import_field_name(name, sizeof(name), d->name, &r->taken);
	if (rc < 0)
		return rc;
	fprintf(r->tsdl->events, "      <field name='%s' %s%s", name, of,
		strstr(of, "string") == NULL ? base : "");
	if (labels != NULL && *labels != '\0') {
		words = import_sets__name(&r->tsdl->sets, "enum", name, labels);
		if (words == NULL)
			return -ENOMEM;
		fprintf(r->tsdl->events, " enum='%s'", words);
	}
	fprintf(r->tsdl->events, "/>\n");
	return 0;
}

/* Read a line '"name" = 1,' as a label. Of a range its first value is taken. */
static int put_label(FILE *out, struct cli_names *taken, char *line)
{
	char *end = strrchr(line, '"'), *value;

	value = end != NULL ? strchr(end, '=') : NULL;
	if (*line != '"' || end == line || value == NULL)
		return 0;
	*end = '\0';
	value += 1 + strspn(value + 1, " ");
	value[strspn(value, "-0123456789")] = '\0';
	return import_put_label(out, taken, line + 1, value);
}

/* Read "enum : integer { ... } {", labels, "} _name;". */
static int read_enum(struct reading *r, char *head)
{
	struct cli_names taken = {0};
	char *text = NULL, *line;
	struct declared d;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	int rc = 0;

	if (out == NULL)
		return -ENOMEM;
	while ((line = next_line(r)) != NULL && *line != '}' && rc == 0)
		rc = put_label(out, &taken, line);
	fclose(out);
	if (rc == 0 && line != NULL && read_name(&d, line))
		rc = put_field(r, head, &d, d.is_array || d.is_sequence ? NULL : text);
	cli_names__free(&taken);
	free(text);
	return rc;
}

/* Skip a structure or variant among the fields, up to the brace that closes it. */
static void skip_nested(struct reading *r, const char *line)
{
	int depth = 1;

	import_put_comment(r->tsdl->events, "      ", "specs have no type like %s", line);
	while (depth > 0 && (line = next_line(r)) != NULL)
		for (; *line != '\0'; line++)
			depth += (*line == '{') - (*line == '}');
}

/* A length that precedes its sequence. It is a field of its own only if no sequence follows. */
struct length {
	char line[256];
	struct declared d; /* without name: there is none */
};

static int put_length(struct reading *r, struct length *length)
{
	int rc = *length->d.name != '\0' ? put_field(r, length->line, &length->d, NULL) : 0;

	*length->d.name = '\0';
	return rc;
}

static int read_plain(struct reading *r, char *line, struct length *length)
{
	struct declared d;
	size_t n;
	int rc = 0;

	if (!read_name(&d, line))
		return 0;
	if (*length->d.name != '\0' && d.is_sequence && strstr(line, length->d.name) != NULL)
		*length->d.name = '\0';
	rc = put_length(r, length);
	if (rc < 0)
		return rc;
	n = strlen(d.name);
	if (*d.name == '_' && !d.is_array && !d.is_sequence && n > 8 &&
	    strcmp(d.name + n - 7, "_length") == 0) {
		length->d = d;
		snprintf(length->line, sizeof(length->line), "%s", line);
		return 0;
	}
	return put_field(r, line, &d, NULL);
}

/* Read the fields of an event, after "fields := struct {". */
static int read_fields(struct reading *r)
{
	struct length length = {0};
	size_t count = 0;
	char *line;
	int rc = 0;

	while (rc == 0 && (line = next_line(r)) != NULL && *line != '}') {
		if (count++ >= IMPORT_FIELDS_MAX)
			continue;
		if (strncmp(line, "enum", 4) == 0)
			rc = read_enum(r, line);
		else if (strncmp(line, "struct", 6) == 0 || strncmp(line, "variant", 7) == 0)
			skip_nested(r, line);
		else
			rc = read_plain(r, line, &length);
	}
	return rc == 0 ? put_length(r, &length) : rc;
}

static const char *level_of(unsigned long loglevel)
{
	return loglevel <= 3    ? "error"
	       : loglevel == 4  ? "warning"
	       : loglevel <= 6  ? "info"
	       : loglevel <= 13 ? "detail"
				: "debug";
}

/* Read an event's declaration, after "event {", up to the brace that closes it. */
static int read_event(struct reading *r, const char *provider)
{
	char full[260] = "", *line, *end;
	unsigned long loglevel = 13;
	size_t n = strlen(provider);
	int rc = 0;

	while ((line = next_line(r)) != NULL && *line != '}') {
		if (strncmp(line, "name = \"", 8) == 0) {
			end = strchr(line + 8, '"');
			snprintf(full, sizeof(full), "%.*s",
				 end != NULL ? (int)(end - line - 8) : 0, line + 8);
		} else if (strncmp(line, "loglevel = ", 11) == 0) {
			loglevel = strtoul(line + 11, NULL, 10);
		} else if (strncmp(line, "fields := struct {", 18) == 0) {
			bool wanted = strncmp(full, provider, n) == 0 && full[n] == ':';

			rc = wanted ? import_take(&r->tsdl->seen, full) : 0;
			if (rc <= 0) {
				while (rc == 0 && (line = next_line(r)) != NULL &&
				       strncmp(line, "};", 2) != 0)
					;
				continue;
			}
			rc = import_event_begin(r->tsdl->events, "APP", level_of(loglevel),
						provider, full + n + 1, &r->tsdl->event_names);
			fprintf(r->tsdl->events, "    <source type='stub'/>\n    <fields>\n");
			rc = rc == 0 ? read_fields(r) : rc;
			fprintf(r->tsdl->events, "    </fields>\n  </event>\n");
			cli_names__free(&r->taken);
			r->tsdl->count++;
		}
		if (rc < 0)
			return rc;
	}
	return rc < 0 ? rc : 0;
}

int import_tsdl__add(struct import_tsdl *tsdl, const char *provider, char *bytes, size_t count)
{
	struct reading r = {.tsdl = tsdl};
	char *line;
	int rc = 0;

	if (count < 6)
		return -EINVAL;
	if (strncmp(bytes, "/* CTF", 6) != 0)
		count = join_packets(bytes, count);
	if (count == 0)
		return -EINVAL;
	bytes[count - 1] = '\0'; /* the last byte ends a line */
	r.next = bytes;
	while (rc == 0 && (line = next_line(&r)) != NULL)
		if (strncmp(line, "event {", 7) == 0)
			rc = read_event(&r, provider);
	return rc;
}
