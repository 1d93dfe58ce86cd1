/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model_parse.c - a strict parser of the text form of a model (pem/event.h)
 *
 * The text may come from anyone. Not here: adding the events to a model (model.c).
 *
 * The text is copied once, and cells become strings in place. This file checks everything that a
 * reader of records relies on later: types, lengths that the record can hold, and offsets, which
 * ascend, are aligned and lie in the fixed part.
 */
#include "model_internal.h"
#include "util.h"
#include "grow.h"

#include <pem/abi.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_CELLS 20
#define FIELD_CELLS 12
#define LABEL_CELLS 4
#define METRIC_CELLS 9

struct parser {
	struct pem_model_block *block;
	char *at;
	char *end;
	const char *origin;
	struct pem_error *error;
	unsigned line;
	size_t event_capacity;
	size_t field_capacity;
	size_t label_capacity;
	size_t metric_capacity;
};

static __attribute__((format(printf, 2, 3))) int parser_say(struct parser *p, const char *format,
							    ...)
{
	char what[300];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return pem_error__set(p->error, -EINVAL,
			      "%.120s, line %u: %s; this is no model text that pem-codegen made",
			      p->origin, p->line, what);
}

void pem_model_block__free(struct pem_model_block *block)
{
	if (!block)
		return;
	free(block->text);
	free(block->events);
	free(block->fields);
	free(block->labels);
	free(block->metrics);
	free(block);
}

/*
 * Take the next line off the text, as a string without its newline. The string can be shown to a
 * person.
 */
static int parser_line(struct parser *p, char **line)
{
	char *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
	unsigned n;
	char *s;

	p->line++;
	if (!newline)
		return parser_say(p, p->at == p->end ? "the text ends too early"
						     : "the line has no end");
	*newline = '\0';
	for (s = p->at; *s; s += n) {
		n = 1;
		if (*s >= ' ' &&
		    /*
		     * Fast path: nearly all bytes are such, and a consumer reads all models as it
		     * starts.
		     */
		    *s < 0x7f)
			continue;
		n = pem_utf8_bytes(s, PEM_UTF8_BYTES_MAX);
		if (!n || (*s != '\t' && n == 1 && pem_is_control((uint8_t)*s)))
			return parser_say(p, "byte %#04x has no place in a line", (uint8_t)*s);
		if (n > 1 && pem_is_control(pem_utf8_point(s, n)))
			memset(s, '?', n);
	}
	if (s != newline)
		return parser_say(p, "a NUL byte has no place in a line");
	*line = p->at;
	p->at = newline + 1;
	return 0;
}

static int parser_cells(struct parser *p, char *line, char **cells, unsigned count)
{
	unsigned n = 1;
	char *c;

	cells[0] = line;
	for (c = line; *c; c++) {
		if (*c != '\t')
			continue;
		*c = '\0';
		if (n < count)
			cells[n] = c + 1;
		n++;
	}
	if (n != count)
		return parser_say(p, "%u cells where %u belong", n, count);
	return 0;
}

static int parse_number(struct parser *p, const char *what, const char *cell, uint32_t max,
			uint32_t *value)
{
	const char *c = cell;
	uint64_t v = 0;

	for (; *c >= '0' && *c <= '9' && v <= max; c++)
		v = v * 10 + (uint64_t)(*c - '0');
	if (c == cell || *c || v > max || (cell[0] == '0' && cell[1]))
		return parser_say(p, "%s '%.20s' is no number from 0 to %u", what, cell, max);
	*value = (uint32_t)v;
	return 0;
}

/* Parse a number of exactly digits hexadecimal digits. */
static int parse_hex(struct parser *p, const char *what, const char *cell, unsigned digits,
		     uint64_t *value)
{
	uint64_t v = 0;
	unsigned i;
	char c;

	for (i = 0; i < digits; i++) {
		c = cell[i];
		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	if (i != digits || cell[digits])
		return parser_say(p, "%s '%.20s' is not %u hexadecimal digits", what, cell, digits);
	*value = v;
	return 0;
}

static int parse_id(struct parser *p, const char *cell, uint32_t *id)
{
	uint64_t value = 0;
	int rc = parse_hex(p, "id", cell, 8, &value);

	if (rc)
		return rc;
	if (value < PEM_MODEL_RESERVED_IDS)
		return parser_say(p, "id %08x is reserved", (uint32_t)value);
	*id = (uint32_t)value;
	return 0;
}

/* Set *value to a word's index in its list. */
static int parse_word(struct parser *p, const char *what, const char *const *words, unsigned count,
		      const char *cell, uint8_t *value)
{
	unsigned i;

	for (i = 0; i < count; i++) {
		if (strcmp(cell, words[i]) == 0) {
			*value = (uint8_t)i;
			return 0;
		}
	}
	return parser_say(p, "'%.40s' is no %s", cell, what);
}

static int parse_type(struct parser *p, const char *cell, uint8_t *type)
{
	return parse_word(p, "type", pem_type_words, PEM_TYPE_COUNT, cell, type);
}

static int is_identifier(const char *s)
{
	const char *c;

	for (c = s; *c; c++) {
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_' ||
		      (*c >= '0' && *c <= '9' && c > s)))
			return 0;
	}
	return c > s;
}

/*
 * Return whether s is a field's name: an identifier, or for a structure's member several, separated
 * by dots.
 */
static int is_field_name(const char *s)
{
	const char *c;

	for (c = s; *c; c++) {
		if (*c == '.' ? c == s || c[-1] == '.' || !c[1]
			      : !((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
				  *c == '_' || (*c >= '0' && *c <= '9' && c > s && c[-1] != '.')))
			return 0;
	}
	return c > s;
}

/* Return whether the name consists of these parts, and each part is an identifier. */
static int is_name(const char *name, const char *layer, const char *class_name,
		   const char *specifier)
{
	size_t l = strlen(layer), c = strlen(class_name);

	return is_identifier(layer) && is_identifier(class_name) && is_identifier(specifier) &&
	       strncmp(name, layer, l) == 0 && strncmp(name + l, "::", 2) == 0 &&
	       strncmp(name + l + 2, class_name, c) == 0 &&
	       strncmp(name + l + 2 + c, "::", 2) == 0 && strcmp(name + l + c + 4, specifier) == 0;
}

/* Check one field against the fixed part; *fixed_end is where the field before it ends. */
static int check_layout(struct parser *p, const struct pem_event *e, const struct pem_field *f,
			size_t *fixed_end)
{
	size_t size = pem_type__bytes(f->type);
	int is_list = f->type == PEM_TYPE_LIST, is_string = f->type == PEM_TYPE_STRING;
	int is_array = f->type == PEM_TYPE_ARRAY;
	size_t align = is_list ? sizeof(uint32_t) : size;

	if (f->type == PEM_TYPE_NONE)
		return parser_say(p, "field '%.40s' has no type", f->name);
	if ((is_list || is_array) != (pem_type__bytes(f->element_type) != 0) ||
	    (!is_list && !is_array && f->element_type != PEM_TYPE_NONE))
		return parser_say(p, "field '%.40s' of type %s has the element type %s", f->name,
				  pem_type__name(f->type), pem_type__name(f->element_type));
	if (f->max_count == 0 || (size && f->max_count != 1))
		return parser_say(p, "field '%.40s' of type %s can't hold %u values", f->name,
				  pem_type__name(f->type), f->max_count);
	if (is_string)
		return f->offset == 0
			       ? 0
			       : parser_say(p, "string '%.40s' has the offset %u instead of 0",
					    f->name, f->offset);
	if (is_array)
		align = pem_type__bytes(f->element_type);
	size = is_array ? align * f->max_count : align;
	if (f->offset < *fixed_end || f->offset + size > e->fixed_bytes || f->offset % align)
		return parser_say(
			p, "field '%.40s' at offset %u: next free is %zu, and %u bytes are fixed",
			f->name, f->offset, *fixed_end, e->fixed_bytes);
	*fixed_end = f->offset + size;
	return 0;
}

static int parse_label(struct parser *p)
{
	struct pem_model_block *block = p->block;
	char *cell[LABEL_CELLS], *line;
	struct pem_label *label;
	int rc;

	rc = pem_grow(&block->labels, sizeof(*label), block->label_count + 1, &p->label_capacity);
	if (!rc)
		rc = parser_line(p, &line);
	if (!rc)
		rc = parser_cells(p, line, cell, LABEL_CELLS);
	if (rc)
		return rc;
	label = &block->labels[block->label_count++];
	label->name = cell[2];
	label->description = cell[3];
	if (strcmp(cell[0], "label") != 0 || !is_identifier(label->name))
		return parser_say(p, "'%.40s' where a label's line belongs", cell[0]);
	return parse_hex(p, "label", cell[1], 16, &label->value);
}

/* Parse a field's labels: the lines after its own line. */
static int parse_labels(struct parser *p, struct pem_field *f, const char *kind, const char *count)
{
	uint32_t labels = 0, i;
	int rc;

	rc = parse_word(p, "kind of labels", pem_label_kind_words, PEM_LABELS_COUNT, kind,
			&f->label_kind);
	if (!rc)
		rc = parse_number(p, "number of labels", count, PEM_MODEL_LABELS_MAX, &labels);
	if (!rc && (labels != 0) != (f->label_kind != PEM_LABELS_NONE))
		rc = parser_say(p, "field '%.40s' has %u labels of kind '%s'", f->name, labels,
				pem_label_kind_words[f->label_kind]);
	if (!rc && labels && !(f->type >= PEM_TYPE_UINT8 && f->type <= PEM_TYPE_INT64))
		rc = parser_say(p, "field '%.40s' of type %s has labels", f->name,
				pem_type__name(f->type));
	f->label_count = (uint16_t)labels;
	for (i = 0; !rc && i < labels; i++)
		rc = parse_label(p);
	return rc;
}

static int parse_field(struct parser *p, const struct pem_event *e, size_t first, size_t *fixed_end)
{
	struct pem_model_block *block = p->block;
	char *cell[FIELD_CELLS], *line;
	uint32_t base = 0, offset = 0, max_count = 0;
	struct pem_field *f;
	size_t i;
	int rc;

	rc = pem_grow(&block->fields, sizeof(*f), block->field_count + 1, &p->field_capacity);
	if (!rc)
		rc = parser_line(p, &line);
	if (!rc)
		rc = parser_cells(p, line, cell, FIELD_CELLS);
	if (rc)
		return rc;
	f = &block->fields[block->field_count++];
	memset(f, 0, sizeof(*f));
	f->name = cell[1];
	f->unit = cell[8];
	f->description = cell[11];
	if (strcmp(cell[0], "field") != 0 || !is_field_name(f->name))
		return parser_say(p, "'%.40s %.40s' where a field's line belongs", cell[0],
				  f->name);
	for (i = first; i + 1 < block->field_count; i++) {
		if (strcmp(block->fields[i].name, f->name) == 0)
			return parser_say(p, "second field '%.40s' of one event", f->name);
	}
	if ((rc = parse_type(p, cell[2], &f->type)) ||
	    (rc = parse_type(p, cell[3], &f->element_type)) ||
	    (rc = parse_number(p, "base", cell[4], 16, &base)) ||
	    (rc = parse_word(p, "role", pem_role_words, PEM_ROLE_COUNT, cell[5], &f->role)) ||
	    (rc = parse_number(p, "offset", cell[6], UINT16_MAX, &offset)) ||
	    (rc = parse_number(p, "count", cell[7], UINT16_MAX, &max_count)))
		return rc;
	if (base != 10 && base != 16)
		return parser_say(p, "base %u is neither 10 nor 16", base);
	f->base = (uint8_t)base;
	f->offset = (uint16_t)offset;
	f->max_count = (uint16_t)max_count;
	rc = check_layout(p, e, f, fixed_end);
	return rc ? rc : parse_labels(p, f, cell[9], cell[10]);
}

/* Check that the record can hold the longest tail. */
static int check_tail(struct parser *p, const struct pem_event *e, const struct pem_field *fields)
{
	size_t at = e->fixed_bytes, size;
	unsigned i;

	for (i = 0; i < e->field_count; i++) {
		size = 1;
		if (fields[i].type == PEM_TYPE_LIST)
			size = pem_type__bytes(fields[i].element_type);
		else if (fields[i].type != PEM_TYPE_STRING)
			continue;
		at = (at + size - 1) / size * size + fields[i].max_count * size;
	}
	if (at > e->max_bytes)
		return parser_say(p, "event '%.60s' can be %zu bytes long, but says %u", e->name,
				  at, e->max_bytes);
	return 0;
}

/* Parse the event's CTF declaration: its lines are joined again into one string. */
static int parse_tsdl(struct parser *p, uint32_t lines, const char **tsdl)
{
	char *first = p->at, *line;
	uint32_t i;
	int rc;

	*tsdl = "";
	for (i = 0; i < lines; i++) {
		rc = parser_line(p, &line);
		if (rc)
			return rc;
		if (i)
			line[-1] = '\n';
	}
	if (lines)
		*tsdl = first;
	return 0;
}

static int parse_event_cells(struct parser *p, char **cell, struct pem_event *e, uint32_t *lines)
{
	uint32_t fixed = 0, max = 0, fields = 0, version = 0;
	int rc;

	e->name = cell[2];
	e->layer = cell[3];
	e->class_name = cell[4];
	e->specifier = cell[5];
	e->group = cell[9];
	e->source_name = cell[12];
	e->since = cell[17];
	e->deprecated = cell[18];
	e->description = cell[19];
	if (strcmp(cell[0], "event") != 0)
		return parser_say(p, "'%.40s' where an event's line belongs", cell[0]);
	if (!is_name(e->name, e->layer, e->class_name, e->specifier))
		return parser_say(p, "name '%.60s' is not made of '%.40s', '%.40s' and '%.40s'",
				  e->name, e->layer, e->class_name, e->specifier);
	if ((rc = parse_id(p, cell[1], &e->id)) ||
	    (rc = parse_number(p, "version", cell[6], UINT16_MAX, &version)) ||
	    (rc = parse_word(p, "level", pem_level_words, PEM_LEVEL_COUNT, cell[7], &e->level)) ||
	    (rc = parse_word(p, "meaning", pem_meaning_words, PEM_MEANING_COUNT, cell[8],
			     &e->meaning)) ||
	    (rc = parse_word(p, "scope", pem_scope_words, PEM_SCOPE_COUNT, cell[10], &e->scope)) ||
	    (rc = parse_word(p, "source", pem_source_words, PEM_SOURCE_COUNT, cell[11],
			     &e->source_kind)) ||
	    (rc = parse_number(p, "fixed size", cell[13], PEM_RECORD_BYTES_MAX, &fixed)) ||
	    (rc = parse_number(p, "largest size", cell[14], PEM_RECORD_BYTES_MAX, &max)) ||
	    (rc = parse_number(p, "number of fields", cell[15], PEM_MODEL_FIELDS_MAX, &fields)) ||
	    (rc = parse_number(p, "number of CTF lines", cell[16], PEM_MODEL_TEXT_MAX, lines)))
		return rc;
	if (version == 0 || e->level == 0)
		return parser_say(p, "event '%.60s' has version %u and level '%s'", e->name,
				  version, pem_level_words[e->level]);
	e->version = (uint16_t)version;
	if (fixed < 8 || max < fixed || max % 8)
		return parser_say(p, "event '%.60s' can't have %u fixed and %u bytes at most",
				  e->name, fixed, max);
	e->fixed_bytes = (uint16_t)fixed;
	e->max_bytes = (uint16_t)max;
	e->field_count = (uint16_t)fields;
	return 0;
}

static int parse_event(struct parser *p)
{
	struct pem_model_block *block = p->block;
	size_t first = block->field_count, fixed_end = 8;
	char *cell[EVENT_CELLS], *line;
	struct pem_event *e;
	uint32_t lines = 0;
	unsigned i;
	int rc;

	if (block->event_count == PEM_MODEL_EVENTS_MAX)
		return parser_say(p, "more than %u events", PEM_MODEL_EVENTS_MAX);
	rc = pem_grow(&block->events, sizeof(*e), block->event_count + 1, &p->event_capacity);
	if (!rc)
		rc = parser_line(p, &line);
	if (!rc)
		rc = parser_cells(p, line, cell, EVENT_CELLS);
	if (rc)
		return rc;
	e = &block->events[block->event_count];
	memset(e, 0, sizeof(*e));
	rc = parse_event_cells(p, cell, e, &lines);
	for (i = 0; !rc && i < e->field_count; i++)
		rc = parse_field(p, e, first, &fixed_end);
	if (!rc && e->field_count)
		rc = check_tail(p, e, &block->fields[first]);
	if (!rc)
		rc = parse_tsdl(p, lines, &e->tsdl);
	if (!rc)
		block->event_count++;
	return rc;
}

/* Set each event's fields and each field's labels. The arrays do not move any more. */
static void connect(struct pem_model_block *block)
{
	size_t i, at = 0;

	for (i = 0; i < block->event_count; i++) {
		if (block->events[i].field_count)
			block->events[i].fields = block->fields + at;
		at += block->events[i].field_count;
	}
	for (i = 0, at = 0; i < block->field_count; i++) {
		if (block->fields[i].label_count)
			block->fields[i].labels = block->labels + at;
		at += block->fields[i].label_count;
	}
}

static int parse_metric(struct parser *p)
{
	struct pem_model_block *block = p->block;
	char *cell[METRIC_CELLS], *line;
	struct pem_metric *m;
	uint8_t form = 0;
	int rc;

	if (block->metric_count == PEM_MODEL_METRICS_MAX)
		return parser_say(p, "more than %u metrics", PEM_MODEL_METRICS_MAX);
	rc = pem_grow(&block->metrics, sizeof(*m), block->metric_count + 1, &p->metric_capacity);
	if (!rc)
		rc = parser_line(p, &line);
	if (!rc)
		rc = parser_cells(p, line, cell, METRIC_CELLS);
	if (!rc)
		rc = parse_word(p, "form", pem_metric_form_words, PEM_METRIC_FORMS, cell[2], &form);
	if (rc)
		return rc;
	m = &block->metrics[block->metric_count++];
	*m = (struct pem_metric){.name = cell[1],
				 .form = form,
				 .of = {cell[3], cell[4]},
				 .to = {cell[5], cell[6]},
				 .unit = cell[7],
				 .description = cell[8]};
	if (form == PEM_METRIC_QUOTIENT &&
	    (*cell[4] || *cell[6] || pem_metric__parse_sums(m, cell[3], cell[5]) < 0))
		return parser_say(p, "metric '%.60s' has a wrong sum", m->name);
	if (!pem_metric__is_name(m->name) || !pem_metric__is_name(m->of.event) || !form)
		return parser_say(p, "metric '%.60s' has no name, form or event", m->name);
	if ((form == PEM_METRIC_RATE) != !*m->to.event ||
	    (*m->to.event && !pem_metric__is_name(m->to.event)))
		return parser_say(p, "metric '%.60s' of form %s is of '%.60s' and '%.60s'", m->name,
				  pem_metric_form_words[form], m->of.event, m->to.event);
	return 0;
}

static int parse_head(struct parser *p)
{
	char *cell[2], *line;
	uint32_t version;
	int rc = parser_line(p, &line);

	if (!rc)
		rc = parser_cells(p, line, cell, 2);
	if (!rc && strcmp(cell[0], "pem-model") != 0)
		rc = parser_say(p, "'%.40s' where 'pem-model' belongs", cell[0]);
	if (!rc)
		rc = parse_number(p, "version", cell[1], UINT32_MAX, &version);
	if (!rc && version != PEM_MODEL_VERSION)
		rc = parser_say(p, "version '%.20s' of the format is not %d, the one known here",
				cell[1], PEM_MODEL_VERSION);
	return rc;
}

static bool begins(const struct parser *p, const char *word)
{
	return strncmp(p->at, word, strlen(word)) == 0;
}

static int parse_text(struct parser *p)
{
	char *line;
	int rc;

	do {
		rc = parse_head(p);
		while (!rc && p->at < p->end && !begins(p, "metric\t") &&
		       !begins(p, "location\t") && !begins(p, "pem-model\t"))
			rc = parse_event(p);
		while (!rc && p->at < p->end && !begins(p, "pem-model\t"))
			rc = begins(p, "location\t") ? parser_line(p, &line) : parse_metric(p);
	} while (!rc && p->at < p->end);
	if (!rc)
		connect(p->block);
	return rc;
}

struct pem_model_block *pem_model__parse(const char *text, size_t bytes, const char *origin,
					 struct pem_error *error)
{
	struct parser p = {.origin = origin, .error = error};
	int rc = -ENOMEM;

	if (bytes > PEM_MODEL_TEXT_MAX) {
		rc = pem_error__set(error, -EINVAL, "%s: a model of more than %u bytes", origin,
				    PEM_MODEL_TEXT_MAX);
		goto out;
	}
	p.block = calloc(1, sizeof(*p.block));
	if (!p.block)
		goto out;
	p.block->text = malloc(bytes + 1);
	if (!p.block->text)
		goto out;
	memcpy(p.block->text, text, bytes);
	p.block->text[bytes] = '\0';
	p.at = p.block->text;
	p.end = p.at + bytes;
	rc = parse_text(&p);
out:
	if (!rc)
		return p.block;
	if (rc == -ENOMEM)
		pem_error__set(error, rc, "%s: out of memory", origin);
	pem_model_block__free(p.block);
	errno = -rc;
	return NULL;
}
