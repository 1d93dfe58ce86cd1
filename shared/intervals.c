/* SPDX-License-Identifier: MIT */
/*
 * intervals.c - keeps begins in their order until their ends come (contract: intervals.h)
 *
 * A trace may begin intervals without end, so that each end is compared with as many as are kept.
 * What is compared is therefore worked out before, and what is the same for all records of an event
 * once for the event. The oldest interval is forgotten by moving on: the array has room for twice
 * as many, and its contents move back when it is full.
 */
#include "intervals.h"
#include "hash.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define ROOM (2 * PEM_INTERVALS_OPEN_MAX)
#define KINDS 64 /* events whose kind is remembered */

/* What an event says of its records. */
struct kind {
	const struct pem_event *event;
	uint64_t group; /* hash */
	bool has_name; /* It has a field with role 'name'. */
	bool ends_elsewhere; /* It may end an interval of another thread. */
};

struct open_interval {
	uint64_t key; /* pem_record__key */
	/* Hashes. Groups or names with equal hashes count as one. */
	uint64_t group, name;
	void *data;
	bool has_name; /* The event that began it has a field with role 'name'. */
};

struct pem_intervals {
	size_t first; /* index of the oldest; the others follow by age */
	size_t count;
	struct open_interval open[ROOM];
	struct kind kinds[KINDS]; /* by the event's id: the last event that has come there */
};

struct pem_intervals *pem_intervals__new(void)
{
	return calloc(1, sizeof(struct pem_intervals));
}

void pem_intervals__free(struct pem_intervals *intervals)
{
	free(intervals);
}

static bool has(const struct pem_event *event, enum pem_role role)
{
	return pem_event__field_by_role(event, role) >= 0;
}

const char *pem_interval__name(const struct pem_record *record)
{
	const struct pem_event *event = record->event;
	int field = pem_event__field_by_role(event, PEM_ROLE_NAME);
	const char *text = field >= 0 ? pem_record__string(record, (unsigned)field) : "";
	const char *colon = strrchr(event->group, ':');

	if (*text)
		return text;
	field = pem_event__field_by_role(event, PEM_ROLE_SYSTEM_CALL);
	text = field < 0 ? NULL
			 : pem_field__label(&event->fields[field],
					    (uint64_t)pem_record__i64(record, (unsigned)field));
	if (text)
		return text;
	return colon ? colon + 1 : *event->group ? event->group : event->class_name;
}

/* Of marks each comes from a process of its own. So they may end elsewhere. */
static const struct kind *kind_of(struct pem_intervals *intervals, const struct pem_event *event)
{
	struct kind *kind = &intervals->kinds[event->id % KINDS];

	if (kind->event == event)
		return kind;
	kind->event = event;
	kind->group = pem_hash__text(PEM_HASH_START, event->group);
	kind->has_name = has(event, PEM_ROLE_NAME);
	kind->ends_elsewhere =
		event->scope == PEM_SCOPE_THREAD && kind->has_name && !has(event, PEM_ROLE_KEY);
	return kind;
}

/* Forget the interval that has so many older ones. Returns its data. */
static void *remove_at(struct pem_intervals *intervals, size_t older)
{
	struct open_interval *oldest = &intervals->open[intervals->first];
	struct open_interval *interval = oldest + older;
	size_t newer = --intervals->count - older;
	void *data = interval->data;

	if (older < newer) {
		memmove(oldest + 1, oldest, older * sizeof(*interval));
		intervals->first++;
	} else {
		memmove(interval, interval + 1, newer * sizeof(*interval));
	}
	return data;
}

static bool is_open(const struct pem_intervals *intervals, const struct kind *kind,
		    const struct pem_record *record)
{
	uint64_t key = pem_record__key(record, PEM_ROLE_ADDRESS);
	size_t i;

	for (i = intervals->count; i-- > 0;)
		if (intervals->open[intervals->first + i].key == key &&
		    intervals->open[intervals->first + i].group == kind->group)
			return true;
	return false;
}

void *pem_intervals__begin(struct pem_intervals *intervals, const struct pem_record *record,
			   void *data)
{
	const struct kind *kind = kind_of(intervals, record->event);
	void *oldest = NULL;

	if (record->event->source_kind == PEM_SOURCE_PROC && is_open(intervals, kind, record))
		return data;
	if (intervals->count == PEM_INTERVALS_OPEN_MAX)
		oldest = remove_at(intervals, 0);
	if (intervals->first + intervals->count == ROOM) {
		memmove(intervals->open, &intervals->open[intervals->first],
			intervals->count * sizeof(intervals->open[0]));
		intervals->first = 0;
	}
	intervals->open[intervals->first + intervals->count++] = (struct open_interval){
		.key = pem_record__key(record, PEM_ROLE_ADDRESS),
		.group = kind->group,
		.name = pem_hash__text(PEM_HASH_START, pem_interval__name(record)),
		.data = data,
		.has_name = kind->has_name};
	return oldest;
}

void *pem_intervals__end(struct pem_intervals *intervals, const struct pem_record *record)
{
	uint64_t key = pem_record__key(record, PEM_ROLE_ADDRESS);
	const struct kind *kind = kind_of(intervals, record->event);
	uint64_t name = pem_hash__text(PEM_HASH_START, pem_interval__name(record));
	size_t i, found = SIZE_MAX;

	for (i = intervals->count; i-- > 0;) {
		const struct open_interval *o = &intervals->open[intervals->first + i];
		bool same_name = o->name == name;

		if (o->key != key && !(kind->ends_elsewhere && same_name && found == SIZE_MAX))
			continue;
		if (o->group != kind->group || (!same_name && kind->has_name && o->has_name))
			continue;
		found = i;
		if (o->key == key)
			break;
	}
	return found != SIZE_MAX ? remove_at(intervals, found) : NULL;
}

void *pem_intervals__take(struct pem_intervals *intervals)
{
	return intervals->count > 0 ? remove_at(intervals, intervals->count - 1) : NULL;
}
