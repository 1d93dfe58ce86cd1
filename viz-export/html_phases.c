/* SPDX-License-Identifier: MIT */
/*
 * html_phases.c - interval-begin and interval-end records matched into phases
 *
 * An end closes the latest phase that belongs to it and has its name; if there is none, the latest of that name in any thread, since
 * `pem mark begin` and `pem mark end` are two processes. Bounded: at most OPEN_MAX at once, and of all that ended the
 * longest PEM_HTML_PHASES_MAX.
 */
#include "html_data.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_MAX 4096u
#define BUCKETS 4096u
#define NONE 0xffffffffu

int pem_html_phases__init(struct pem_html_phases *phases)
{
	uint32_t i;

	memset(phases, 0, sizeof(*phases));
	/* Twice the number kept, and all that may be open at the end. */
	phases->kept = calloc(2 * PEM_HTML_PHASES_MAX + OPEN_MAX, sizeof(*phases->kept));
	phases->open = calloc(OPEN_MAX, sizeof(*phases->open));
	phases->bucket = calloc(BUCKETS, sizeof(*phases->bucket));
	if (!phases->kept || !phases->open || !phases->bucket)
		return -ENOMEM;
	for (i = 0; i < OPEN_MAX; i++)
		phases->open[i].next = i + 1 < OPEN_MAX ? i + 1 : NONE;
	for (i = 0; i < BUCKETS; i++)
		phases->bucket[i] = NONE;
	return 0;
}

void pem_html_phases__free(struct pem_html_phases *phases)
{
	free(phases->kept);
	free(phases->open);
	free(phases->bucket);
	memset(phases, 0, sizeof(*phases));
}

static uint64_t length_ns(const struct pem_html_phase *phase)
{
	return phase->end_ns - phase->begin_ns;
}

static int by_length_descending(const void *a, const void *b)
{
	uint64_t x = length_ns(a), y = length_ns(b);

	return x < y ? 1 : x > y ? -1 : 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct pem_html_phase *x = a, *y = b;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return by_length_descending(a, b);
}

static void keep_longest(struct pem_html_phases *phases)
{
	if (phases->kept_count <= PEM_HTML_PHASES_MAX)
		return;
	qsort(phases->kept, phases->kept_count, sizeof(*phases->kept), by_length_descending);
	phases->left_out += phases->kept_count - PEM_HTML_PHASES_MAX;
	phases->kept_count = PEM_HTML_PHASES_MAX;
	phases->shortest_ns = length_ns(&phases->kept[PEM_HTML_PHASES_MAX - 1]);
}

static void end_phase(struct pem_html_phases *phases, const struct pem_html_phase *phase)
{
	if (length_ns(phase) < phases->shortest_ns) {
		phases->left_out++;
		return;
	}
	if (phases->kept_count == 2 * PEM_HTML_PHASES_MAX)
		keep_longest(phases);
	phases->kept[phases->kept_count++] = *phase;
}

static bool has_name(const struct pem_event *event)
{
	return pem_event__field_by_role(event, PEM_ROLE_NAME) >= 0;
}

/* What the record says, else what its group's last word says: 'Work' of 'APP::Shop::Work'. */
static void name_of(char name[PEM_HTML_NAME_BYTES], const struct pem_record *record)
{
	int field = pem_event__field_by_role(record->event, PEM_ROLE_NAME);
	const char *text = field >= 0 ? pem_record__string(record, (unsigned)field) : "";
	const char *colon = strrchr(record->event->group, ':');

	if (!*text)
		text = colon ? colon + 1 : record->event->class_name;
	strncpy(name, text, PEM_HTML_NAME_BYTES - 1);
	name[PEM_HTML_NAME_BYTES - 1] = '\0';
}

static uint32_t bucket_of(const struct pem_record *record)
{
	uint64_t hash = 14695981039346656037ull;
	const char *text;

	for (text = record->event->group; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
	return (uint32_t)(hash >> 32) % BUCKETS;
}

static void begin(struct pem_html_phases *phases, const struct pem_record *record)
{
	struct pem_html_phase *phase;
	uint32_t i = phases->free, bucket;

	if (i == NONE) {
		phases->left_out++;
		return;
	}
	phase = &phases->open[i];
	phases->free = phase->next;
	phase->begin_ns = record->time_ns;
	phase->event = record->event;
	phase->pid = record->pid;
	phase->tid = record->tid;
	name_of(phase->name, record);
	phase->key = pem_record__key(record, PEM_ROLE_ADDRESS);
	bucket = bucket_of(record);
	phase->next = phases->bucket[bucket];
	phases->bucket[bucket] = i;
}

/* An end of role 'name' alone may close what another thread began: marks come from processes of their own. */
static bool may_end_elsewhere(const struct pem_event *event)
{
	return event->scope == PEM_SCOPE_THREAD && has_name(event) &&
	       pem_event__field_by_role(event, PEM_ROLE_KEY) < 0;
}

/* The link to the phase that a record ends, or NULL. */
static uint32_t *find_begin(struct pem_html_phases *phases, const struct pem_record *record)
{
	uint64_t key = pem_record__key(record, PEM_ROLE_ADDRESS);
	char name[PEM_HTML_NAME_BYTES];
	uint32_t *link, *found = NULL;
	bool same_name;

	name_of(name, record);
	for (link = &phases->bucket[bucket_of(record)]; *link != NONE;
	     link = &phases->open[*link].next) {
		const struct pem_html_phase *phase = &phases->open[*link];

		same_name = strcmp(phase->name, name) == 0;
		if (strcmp(phase->event->group, record->event->group) != 0 ||
		    (!same_name && has_name(record->event) && has_name(phase->event)))
			continue;
		if (phase->key == key)
			return link;
		if (!found && same_name && may_end_elsewhere(record->event))
			found = link;
	}
	return found;
}

static void end(struct pem_html_phases *phases, const struct pem_record *record)
{
	uint32_t *link = find_begin(phases, record), i;
	struct pem_html_phase *phase;

	if (!link) {
		phases->unmatched++;
		return;
	}
	i = *link;
	phase = &phases->open[i];
	/* A damaged clock may run backwards. */
	phase->end_ns = record->time_ns > phase->begin_ns ? record->time_ns : phase->begin_ns;
	/* Marked from outside, it is nobody's own: it belongs to the whole run. */
	if (phase->pid != record->pid)
		phase->pid = phase->tid = 0;
	end_phase(phases, phase);
	*link = phase->next;
	phase->next = phases->free;
	phases->free = i;
}

void pem_html_phases__add(struct pem_html_phases *phases, const struct pem_record *record)
{
	if (record->event->meaning == PEM_MEANS_INTERVAL_BEGIN)
		begin(phases, record);
	else
		end(phases, record);
}

void pem_html_phases__finish(struct pem_html_phases *phases, uint64_t end_ns)
{
	uint32_t bucket, i;

	keep_longest(phases);
	for (bucket = 0; bucket < BUCKETS; bucket++) {
		for (i = phases->bucket[bucket]; i != NONE; i = phases->open[i].next) {
			struct pem_html_phase *phase = &phases->open[i];

			phase->end_ns = end_ns > phase->begin_ns ? end_ns : phase->begin_ns;
			phase->is_open = 1;
			phases->kept[phases->kept_count++] = *phase;
		}
		phases->bucket[bucket] = NONE;
	}
	qsort(phases->kept, phases->kept_count, sizeof(*phases->kept), by_begin);
}
