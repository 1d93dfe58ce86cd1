/* SPDX-License-Identifier: MIT */
/* intervals.c - keeps begins in their order until their ends come (contract: intervals.h) */
#include "intervals.h"
#include "hash.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct open_interval {
	const struct pem_event *event; /* event of the record that began it */
	uint64_t group; /* hash of the event's group: most are other ones */
	bool is_named; /* the event has names */
	uint64_t key; /* pem_record__key */
	uint64_t name; /* hash of its name; names with equal hashes count as one name */
	void *data;
};

struct pem_intervals {
	size_t count;
	struct open_interval open[PEM_INTERVALS_OPEN_MAX]; /* the oldest first */
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

/* Forget the interval at an index. Returns its data. */
static void *remove_at(struct pem_intervals *intervals, size_t at)
{
	struct open_interval *interval = &intervals->open[at];
	void *data = interval->data;

	intervals->count--;
	memmove(interval, interval + 1, (intervals->count - at) * sizeof(*interval));
	return data;
}

void *pem_intervals__begin(struct pem_intervals *intervals, const struct pem_record *record,
			   void *data)
{
	void *first = NULL;

	if (intervals->count == PEM_INTERVALS_OPEN_MAX)
		first = remove_at(intervals, 0);
	intervals->open[intervals->count++] = (struct open_interval){
		.event = record->event,
		.group = pem_hash__text(PEM_HASH_START, record->event->group),
		.is_named = has(record->event, PEM_ROLE_NAME),
		.key = pem_record__key(record, PEM_ROLE_ADDRESS),
		.name = pem_hash__text(PEM_HASH_START, pem_interval__name(record)),
		.data = data};
	return first;
}

/* May the event end an interval of another thread? Each mark comes from a process of its own. */
static bool may_end_elsewhere(const struct pem_event *event)
{
	return event->scope == PEM_SCOPE_THREAD && has(event, PEM_ROLE_NAME) &&
	       !has(event, PEM_ROLE_KEY);
}

void *pem_intervals__end(struct pem_intervals *intervals, const struct pem_record *record)
{
	uint64_t key = pem_record__key(record, PEM_ROLE_ADDRESS);
	uint64_t name = pem_hash__text(PEM_HASH_START, pem_interval__name(record));
	uint64_t group = pem_hash__text(PEM_HASH_START, record->event->group);
	bool is_named = has(record->event, PEM_ROLE_NAME);
	bool elsewhere = may_end_elsewhere(record->event);
	size_t i, found = SIZE_MAX;

	for (i = intervals->count; i-- > 0;) {
		const struct open_interval *o = &intervals->open[i];
		bool same_name = o->name == name;

		if (o->key != key && !(elsewhere && same_name && found == SIZE_MAX))
			continue;
		if (o->group != group || strcmp(o->event->group, record->event->group) != 0 ||
		    (!same_name && is_named && o->is_named))
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
