/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model.c - sets of event descriptions: lookup, patterns, words
 *
 * Not here: parsing the text form (model_parse.c), the length of a record (record_bytes.c).
 *
 * A model is a list of parsed texts, and three arrays over them. The texts own all strings, events
 * and fields, and never move. The arrays are the events in order of addition, and two
 * open-addressed tables of their indexes, by id and by name.
 */
#define _GNU_SOURCE
#include "event_id.h"
#include "model_internal.h"
#include "util.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

extern const char pem_catalogue_model[];
extern const size_t pem_catalogue_model_bytes;

#define TABLE_SIZE (2u * PEM_MODEL_EVENTS_MAX) /* a power of two, at most half full */

struct pem_model {
	struct pem_model_block *blocks;
	size_t count;
	const struct pem_event *events[PEM_MODEL_EVENTS_MAX];
	uint16_t by_id[TABLE_SIZE]; /* index + 1; 0: empty */
	uint16_t by_name[TABLE_SIZE];
	const struct pem_metric *metrics[PEM_MODEL_METRICS_MAX];
	size_t metric_count;
};

static uint32_t hash_id(uint32_t id)
{
	return (id * 2654435769u) >> 16;
}

struct pem_model *pem_model__new(void)
{
	return calloc(1, sizeof(struct pem_model));
}

void pem_model__free(struct pem_model *model)
{
	struct pem_model_block *block, *next;

	if (!model)
		return;
	for (block = model->blocks; block; block = next) {
		next = block->next;
		pem_model_block__free(block);
	}
	free(model);
}

size_t pem_model__count(const struct pem_model *model)
{
	return model ? model->count : 0;
}

const struct pem_event *pem_model__event(const struct pem_model *model, size_t i)
{
	return model && i < model->count ? model->events[i] : NULL;
}

ssize_t pem_model__index(const struct pem_model *model, uint32_t id)
{
	uint32_t i;

	for (i = hash_id(id) % TABLE_SIZE; model->by_id[i]; i = (i + 1) % TABLE_SIZE) {
		if (model->events[model->by_id[i] - 1]->id == id)
			return model->by_id[i] - 1;
	}
	return -1;
}

const struct pem_event *pem_model__by_id(const struct pem_model *model, uint32_t id)
{
	ssize_t i = model ? pem_model__index(model, id) : -1;

	return i >= 0 ? model->events[i] : NULL;
}

/* Return the event of this name that was added first. version: only this version; NULL: any. */
static const struct pem_event *find_name(const struct pem_model *model, const char *name,
					 const uint16_t *version)
{
	const struct pem_event *event;
	uint32_t i;

	for (i = pem_hash32(name) % TABLE_SIZE; model->by_name[i]; i = (i + 1) % TABLE_SIZE) {
		event = model->events[model->by_name[i] - 1];
		if (strcmp(event->name, name) == 0 && (!version || event->version == *version))
			return event;
	}
	return NULL;
}

const struct pem_event *pem_model__by_name(const struct pem_model *model, const char *name)
{
	return model && name ? find_name(model, name, NULL) : NULL;
}

static void table_add(uint16_t *table, uint32_t hash, size_t index)
{
	uint32_t i = hash % TABLE_SIZE;

	while (table[i])
		i = (i + 1) % TABLE_SIZE;
	table[i] = (uint16_t)(index + 1);
}

static void model_append(struct pem_model *model, const struct pem_event *event)
{
	table_add(model->by_id, hash_id(event->id), model->count);
	table_add(model->by_name, pem_hash32(event->name), model->count);
	model->events[model->count++] = event;
}

int pem_model__share(struct pem_model *model, const struct pem_event *event)
{
	if (pem_model__by_id(model, event->id))
		return 0;
	if (model->count == PEM_MODEL_EVENTS_MAX)
		return -ENOSPC;
	model_append(model, event);
	return 0;
}

/* Remove all events from index count on. */
static void model_truncate(struct pem_model *model, size_t count)
{
	size_t end = count, i;

	memset(model->by_id, 0, sizeof(model->by_id));
	memset(model->by_name, 0, sizeof(model->by_name));
	model->count = 0;
	for (i = 0; i < end; i++)
		model_append(model, model->events[i]);
}

/* --- metrics --- */

size_t pem_model__metric_count(const struct pem_model *model)
{
	return model ? model->metric_count : 0;
}

const struct pem_metric *pem_model__metric(const struct pem_model *model, size_t i)
{
	return model && i < model->metric_count ? model->metrics[i] : NULL;
}

/* Add a metric, unless the model has one of its name, or as many as it can. Returns 1 if added. */
static int add_metric(struct pem_model *model, const struct pem_metric *metric)
{
	size_t i;

	for (i = 0; i < model->metric_count; i++)
		if (strcmp(model->metrics[i]->name, metric->name) == 0)
			return 0;
	if (model->metric_count == PEM_MODEL_METRICS_MAX)
		return 0;
	model->metrics[model->metric_count++] = metric;
	return 1;
}

/* Does the model have all events that the metric is made of? */
static bool has_events(const struct pem_model *model, const struct pem_metric *metric)
{
	uint32_t i;

	for (i = 0; i < metric->part_count; i++)
		if (!pem_model__by_name(model, metric->parts[i].term.event))
			return false;
	return pem_model__by_name(model, metric->of.event) &&
	       (!*metric->to.event || pem_model__by_name(model, metric->to.event));
}

void pem_model__share_metrics(struct pem_model *model, const struct pem_model *from)
{
	size_t i;

	for (i = 0; i < from->metric_count; i++) {
		const struct pem_metric *metric = from->metrics[i];

		if (has_events(model, metric))
			add_metric(model, metric);
	}
}

/* Write one of a quotient's sums into the cells of a term. */
static void write_sum(FILE *out, const struct pem_metric *m, uint32_t is_divisor)
{
	uint32_t i, written = 0;

	for (i = 0; i < m->part_count; i++) {
		const struct pem_metric_part *part = &m->parts[i];

		if (part->is_divisor != is_divisor)
			continue;
		fprintf(out, "%s%d*%s%s%s", written++ && part->factor > 0 ? "+" : "", part->factor,
			part->term.event, *part->term.field ? "." : "", part->term.field);
	}
	fputs("\t\t", out);
}

static void write_metric(FILE *out, const struct pem_metric *m)
{
	if (m->form == PEM_METRIC_QUOTIENT) {
		fprintf(out, "metric\t%s\t%s\t", m->name, pem_metric_form_words[m->form]);
		write_sum(out, m, 0);
		write_sum(out, m, 1);
		fprintf(out, "%s\t%s\n", m->unit, m->description);
		return;
	}
	fprintf(out, "metric\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m->name,
		pem_metric_form_words[m->form], m->of.event, m->of.field, m->to.event, m->to.field,
		m->unit, m->description);
}

static int field_equal(const struct pem_field *a, const struct pem_field *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->unit, b->unit) == 0 &&
	       a->type == b->type && a->element_type == b->element_type && a->offset == b->offset &&
	       a->max_count == b->max_count;
}

int pem_event__equal(const struct pem_event *a, const struct pem_event *b)
{
	unsigned i;

	if (!a || !b || a->id != b->id || strcmp(a->name, b->name) != 0 ||
	    a->version != b->version || a->fixed_bytes != b->fixed_bytes ||
	    a->max_bytes != b->max_bytes || a->field_count != b->field_count)
		return 0;
	for (i = 0; i < a->field_count; i++) {
		if (!field_equal(&a->fields[i], &b->fields[i]))
			return 0;
	}
	return 1;
}

static int labels_same(const struct pem_field *a, const struct pem_field *b)
{
	unsigned i;

	if (a->label_kind != b->label_kind || a->label_count != b->label_count)
		return 0;
	for (i = 0; i < a->label_count; i++) {
		if (a->labels[i].value != b->labels[i].value ||
		    strcmp(a->labels[i].name, b->labels[i].name) != 0)
			return 0;
	}
	return 1;
}

int pem_event__same(const struct pem_event *a, const struct pem_event *b)
{
	unsigned i;

	if (!pem_event__equal(a, b) || a->level != b->level || a->meaning != b->meaning ||
	    a->scope != b->scope || a->source_kind != b->source_kind ||
	    strcmp(a->source_name, b->source_name) != 0 || strcmp(a->group, b->group) != 0)
		return 0;
	for (i = 0; i < a->field_count; i++) {
		if (a->fields[i].role != b->fields[i].role ||
		    a->fields[i].base != b->fields[i].base ||
		    !labels_same(&a->fields[i], &b->fields[i]))
			return 0;
	}
	return 1;
}

/* Add an event. Returns 1: added; 0: it was there already; -EINVAL with error. */
static int model_add_event(struct pem_model *model, const struct pem_event *event,
			   const char *origin, struct pem_error *error)
{
	const struct pem_event *other = pem_model__by_id(model, event->id);

	/*
	 * Versions of one event may be in one model. Any other event of this name or id is a
	 * conflict.
	 */
	if (!other)
		other = find_name(model, event->name, &event->version);
	if (other) {
		if (pem_event__equal(other, event))
			return 0;
		return pem_error__set(
			error, -EINVAL,
			"%s: event '%s' (id %08x) is not the '%s' (id %08x) that is known already; "
			"rebuild the older of the two from one spec, or give it another name",
			origin, event->name, event->id, other->name, other->id);
	}
	if (model->count == PEM_MODEL_EVENTS_MAX)
		return pem_error__set(error, -EINVAL, "%s: more than %u events in one model",
				      origin, PEM_MODEL_EVENTS_MAX);
	model_append(model, event);
	return 1;
}

int pem_model__add_text(struct pem_model *model, const char *text, size_t bytes, const char *origin,
			struct pem_error *error)
{
	struct pem_model_block *block;
	size_t i, before = pem_model__count(model), metrics = 0;
	int rc = 0;

	if (!model || !text)
		return pem_error__lacks(error, model ? "text of a model" : "model");
	origin = origin ? origin : "a model";
	block = pem_model__parse(text, bytes, origin, error);
	if (!block)
		return -errno;
	for (i = 0; i < block->event_count && rc >= 0; i++)
		rc = model_add_event(model, &block->events[i], origin, error);
	if (rc < 0)
		model_truncate(model, before);
	for (i = 0; i < block->metric_count && rc >= 0; i++)
		metrics += (size_t)add_metric(model, &block->metrics[i]);
	if (model->count == before && !metrics) {
		pem_model_block__free(block);
		return rc < 0 ? rc : 0;
	}
	block->next = model->blocks;
	model->blocks = block;
	return (int)(model->count - before);
}

int pem_model__add_catalogue(struct pem_model *model, struct pem_error *error)
{
	int added = pem_model__add_text(model, pem_catalogue_model, pem_catalogue_model_bytes,
					"the built-in catalogue", error);

	if (added > 0)
		pem_model__name_system_calls(model);
	return added;
}

static unsigned count_lines(const char *text)
{
	unsigned lines = *text ? 1 : 0;

	for (; *text; text++)
		lines += *text == '\n';
	return lines;
}

void pem_model__write_event(FILE *out, const struct pem_event *e)
{
	const struct pem_field *f;
	unsigned i, k;

	fprintf(out, "event\t%08x\t%s\t%s\t%s\t%s\t%u\t%s\t%s\t%s\t%s\t", e->id, e->name, e->layer,
		e->class_name, e->specifier, e->version, pem_level__name(e->level),
		pem_meaning__name(e->meaning), e->group, pem_scope__name(e->scope));
	fprintf(out, "%s\t%s\t%u\t%u\t%u\t%u\t%s\t%s\t%s\n", pem_source_kind__name(e->source_kind),
		e->source_name, e->fixed_bytes, e->max_bytes, e->field_count, count_lines(e->tsdl),
		e->since, e->deprecated, e->description);
	for (i = 0; i < e->field_count; i++) {
		f = &e->fields[i];
		fprintf(out, "field\t%s\t%s\t%s\t%u\t%s\t%u\t%u\t%s\t%s\t%u\t%s\n", f->name,
			pem_type__name(f->type), pem_type__name(f->element_type), f->base,
			pem_role__name(f->role), f->offset, f->max_count, f->unit,
			pem_label_kind_words[f->label_kind], f->label_count, f->description);
		for (k = 0; k < f->label_count; k++)
			fprintf(out, "label\t%016llx\t%s\t%s\n",
				(unsigned long long)f->labels[k].value, f->labels[k].name,
				f->labels[k].description);
	}
	if (*e->tsdl)
		fprintf(out, "%s\n", e->tsdl);
}

char *pem_model__to_text(const struct pem_model *model)
{
	char *text = NULL;
	size_t bytes, i;
	FILE *out = model ? open_memstream(&text, &bytes) : NULL;

	if (!model)
		errno = EINVAL;
	if (!out)
		return NULL;
	fprintf(out, "pem-model\t%d\n", PEM_MODEL_VERSION);
	for (i = 0; i < model->count; i++)
		pem_model__write_event(out, model->events[i]);
	for (i = 0; i < model->metric_count; i++)
		write_metric(out, model->metrics[i]);
	if (fclose(out)) {
		free(text);
		errno = ENOMEM;
		return NULL;
	}
	return text;
}

int pem_event__field(const struct pem_event *event, const char *name)
{
	int i;

	if (!event || !name)
		return -EINVAL;
	for (i = 0; i < event->field_count; i++) {
		if (strcmp(event->fields[i].name, name) == 0)
			return i;
	}
	return -ENOENT;
}

int pem_event__field_by_role(const struct pem_event *event, enum pem_role role)
{
	int i;

	if (!event)
		return -EINVAL;
	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].role == role)
			return i;
	}
	return -ENOENT;
}

/*
 * Match text with a pattern. '*' stands for any bytes, '?' for one byte. The time is at most the
 * product of both lengths.
 */
static int glob(const char *pattern, const char *text)
{
	const char *star = NULL, *resume = NULL;

	while (*text) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++resume;
		} else {
			return 0;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

/*
 * Match a source's name with a pattern. The pattern "usdt:PATH:NAME" matches every provider; a
 * source's name has its provider between the two.
 */
static int glob_source(const char *pattern, const char *source)
{
	const char *path = strchr(source, ':'), *provider, *name;
	char without[512];

	if (glob(pattern, source))
		return 1;
	if (strncmp(pattern, "usdt:", 5) != 0 || strncmp(source, "usdt:", 5) != 0)
		return 0;
	provider = strchr(path + 1, ':');
	name = provider ? strchr(provider + 1, ':') : NULL;
	return name &&
	       snprintf(without, sizeof(without), "%.*s%s", (int)(provider - source), source,
			name) < (int)sizeof(without) &&
	       glob(pattern, without);
}

int pem_pattern__is_probe(const char *pattern)
{
	const char *colon = strchr(pattern, ':');

	return colon && colon > pattern && colon[1] && colon[1] != ':';
}

/*
 * Return whether one of the event's alternative sources matches. With equal, only the same name
 * does.
 */
static int any_source(const struct pem_event *event, const char *wanted, int equal)
{
	const char *at = event->source_name;
	char one[512];
	size_t n;

	for (; *at; at += n + (at[n] == '|')) {
		n = strcspn(at, "|");
		if (n >= sizeof(one))
			continue;
		memcpy(one, at, n);
		one[n] = '\0';
		if (equal ? !strcmp(one, wanted) : glob_source(wanted, one))
			return 1;
	}
	return 0;
}

int pem_event__has_source(const struct pem_event *event, const char *name)
{
	return any_source(event, name, 1);
}

/* Match an event with a pattern that has no version: see pem_event__matches. */
static int matches(const struct pem_event *event, const char *pattern)
{
	const char *class_on = event->name + strlen(event->layer), *rest;
	size_t n = strlen(event->layer);

	if (event->level >= PEM_LEVEL_NAMED || pem_event__is_counter(event, pattern))
		return event->level < PEM_LEVEL_NAMED || !strcmp(pattern, event->name);
	if (pem_pattern__is_probe(pattern))
		return (event->source_kind == PEM_SOURCE_TRACEPOINT ||
			event->source_kind == PEM_SOURCE_PROBE) &&
		       any_source(event, pattern, 0);
	if (strncmp(class_on, "::", 2) == 0)
		class_on += 2;
	/* Neither a class nor a specifier has a colon, so a pattern with '::' matches none of them.
	 */
	if (glob(pattern, event->class_name) || glob(pattern, event->specifier) ||
	    glob(pattern, event->name) || glob(pattern, class_on))
		return 1;
	if (strncasecmp(pattern, event->layer, n) != 0)
		return 0;
	rest = pattern + n;
	if (strncmp(rest, "::", 2) != 0)
		return *rest == '\0';
	return strcmp(rest + 2, event->class_name) == 0 || glob(rest + 2, class_on);
}

int pem_event__matches(const struct pem_event *event, const char *pattern)
{
	const char *at = pattern ? strrchr(pattern, '@') : NULL;
	char name[256], *end;
	unsigned long version;

	if (!event || !pattern)
		return 0;
	if (!at || at[1] < '0' || at[1] > '9' || (size_t)(at - pattern) >= sizeof(name))
		return matches(event, pattern);
	version = strtoul(at + 1, &end, 10);
	if (*end || version != event->version)
		return 0;
	memcpy(name, pattern, (size_t)(at - pattern));
	name[at - pattern] = '\0';
	return matches(event, name);
}

const char *pem_type__name(enum pem_type type)
{
	return (unsigned)type < PEM_TYPE_COUNT ? pem_type_words[type] : "-";
}

const char *pem_meaning__name(enum pem_meaning meaning)
{
	return (unsigned)meaning < PEM_MEANING_COUNT ? pem_meaning_words[meaning] : "-";
}

const char *pem_role__name(enum pem_role role)
{
	return (unsigned)role < PEM_ROLE_COUNT ? pem_role_words[role] : "-";
}

const char *pem_level__name(enum pem_level level)
{
	return (unsigned)level < PEM_LEVEL_COUNT ? pem_level_words[level] : "-";
}

const char *pem_scope__name(enum pem_scope scope)
{
	return (unsigned)scope < PEM_SCOPE_COUNT ? pem_scope_words[scope] : "-";
}

const char *pem_field__label(const struct pem_field *field, uint64_t value)
{
	unsigned i;

	if (!field || field->label_kind != PEM_LABELS_ENUM)
		return NULL;
	/* Most enums count up from 0 without a gap. */
	if (value < field->label_count && field->labels[value].value == value)
		return field->labels[value].name;
	for (i = 0; i < field->label_count; i++) {
		if (field->labels[i].value == value)
			return field->labels[i].name;
	}
	return NULL;
}

const char *pem_source_kind__name(enum pem_source_kind kind)
{
	return (unsigned)kind < PEM_SOURCE_COUNT ? pem_source_words[kind] : "-";
}
