/* SPDX-License-Identifier: MIT */
/* tree.c - where a value is in a tree: YAML, and JSON, which libyaml reads as YAML */
#include "ways.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

#define DEPTH_MAX 64u

struct walk {
	yaml_parser_t parser;
	char path[1024];
	struct {
		size_t length; /* of the path, up to here */
		bool is_map, has_key;
		unsigned index; /* of a list's next value */
	} levels[DEPTH_MAX];
	unsigned depth;
};

/* Append a name to the path that the current level has. */
static int name(struct walk *w, const char *text, size_t bytes, struct pem_error *error,
		unsigned line)
{
	size_t length = w->depth ? w->levels[w->depth - 1].length : 0;

	if (length + bytes + 2 > sizeof(w->path) || memchr(text, '\0', bytes))
		return settings_fail(error, -EBADMSG, "line %u: the path of names is too long",
				     line);
	if (length)
		w->path[length++] = '.';
	memcpy(w->path + length, text, bytes);
	w->path[length + bytes] = '\0';
	return 0;
}

/* The byte that a character begins with. */
static size_t byte_of(const char *text, size_t bytes, size_t character)
{
	size_t i, n = 0;

	for (i = 0; i < bytes; i++) {
		if (((unsigned char)text[i] & 0xc0) != 0x80 && n++ == character)
			break;
	}
	return i;
}

static int take_value(struct settings_spot *spot, const yaml_event_t *event, const char *text,
		      size_t bytes, struct pem_error *error)
{
	unsigned line = (unsigned)event->start_mark.line + 1;
	yaml_scalar_style_t style = event->data.scalar.style;

	if (event->type != YAML_SCALAR_EVENT || event->data.scalar.anchor ||
	    event->data.scalar.tag || style == YAML_LITERAL_SCALAR_STYLE ||
	    style == YAML_FOLDED_SCALAR_STYLE)
		return settings_fail(error, -EINVAL,
				     "line %u: the value is not a plain or quoted one", line);
	spot->at = byte_of(text, bytes, event->start_mark.index);
	spot->end = byte_of(text, bytes, event->end_mark.index);
	spot->quote = style == YAML_PLAIN_SCALAR_STYLE ? '\0' : '"';
	if (event->data.scalar.length >= SETTINGS_VALUE_BYTES)
		return settings_fail(error, -EMSGSIZE, "line %u: the value is too long", line);
	memcpy(spot->value, event->data.scalar.value, event->data.scalar.length + 1);
	return 0;
}

/* One value, or the begin of a list or map, at the place that the path names. */
static int visit(struct walk *w, struct settings_spot *spot, const yaml_event_t *event,
		 const char *text, size_t bytes, const char *key, struct pem_error *error)
{
	unsigned line = (unsigned)event->start_mark.line + 1;
	char index[16];
	int rc = 0;

	if (w->depth && w->levels[w->depth - 1].is_map && !w->levels[w->depth - 1].has_key) {
		w->levels[w->depth - 1].has_key = true;
		if (event->type == YAML_SCALAR_EVENT)
			return name(w, (const char *)event->data.scalar.value,
				    event->data.scalar.length, error, line);
		rc = name(w, "?", 1, error, line);
	} else if (w->depth && w->levels[w->depth - 1].is_map) {
		w->levels[w->depth - 1].has_key = false;
	} else if (w->depth) {
		snprintf(index, sizeof(index), "%u", w->levels[w->depth - 1].index++);
		rc = name(w, index, strlen(index), error, line);
	}
	if (!rc && w->depth && settings_spot__takes(spot, w->path, key, line))
		rc = take_value(spot, event, text, bytes, error);
	if (rc || event->type == YAML_SCALAR_EVENT || event->type == YAML_ALIAS_EVENT)
		return rc;
	if (w->depth == DEPTH_MAX)
		return settings_fail(error, -EBADMSG, "line %u: more than %u levels", line,
				     DEPTH_MAX);
	w->levels[w->depth].length = strlen(w->path);
	w->levels[w->depth].is_map = event->type == YAML_MAPPING_START_EVENT;
	w->levels[w->depth].has_key = false;
	w->levels[w->depth++].index = 0;
	return 0;
}

int settings_tree__find(struct settings_spot *spot, const char *text, size_t bytes, const char *key,
			struct pem_error *error)
{
	struct walk w = {.depth = 0};
	yaml_event_type_t type = YAML_NO_EVENT;
	yaml_event_t event;
	int rc = 0;

	*spot = (struct settings_spot){0};
	if (!yaml_parser_initialize(&w.parser))
		return -ENOMEM;
	yaml_parser_set_input_string(&w.parser, (const unsigned char *)text, bytes);
	yaml_parser_set_encoding(&w.parser, YAML_UTF8_ENCODING);
	while (!rc && type != YAML_STREAM_END_EVENT) {
		if (!yaml_parser_parse(&w.parser, &event)) {
			rc = settings_fail(error, -EBADMSG, "line %zu: %s",
					   w.parser.problem_mark.line + 1, w.parser.problem);
			break;
		}
		type = event.type;
		if (type == YAML_SCALAR_EVENT || type == YAML_ALIAS_EVENT ||
		    type == YAML_MAPPING_START_EVENT || type == YAML_SEQUENCE_START_EVENT)
			rc = visit(&w, spot, &event, text, bytes, key, error);
		else if (type == YAML_MAPPING_END_EVENT || type == YAML_SEQUENCE_END_EVENT)
			w.path[--w.depth ? w.levels[w.depth - 1].length : 0] = '\0';
		else if (type == YAML_DOCUMENT_START_EVENT)
			w.path[0] = '\0';
		yaml_event_delete(&event);
	}
	yaml_parser_delete(&w.parser);
	return rc;
}
