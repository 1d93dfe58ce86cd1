/* SPDX-License-Identifier: MIT */
/*
 * partner.c - checks events that belong together: begins and ends, allocations and releases, sends
 * and receives
 *
 * Readers match two such events by their group, their scope and the values of their keys, in order.
 */
#include "check.h"

#include <string.h>

/* Each begin must have an end, each allocation a release, each send a receive, and vice versa. */
static const uint8_t partners[][2] = {
	{PEM_MEANS_INTERVAL_BEGIN, PEM_MEANS_INTERVAL_END},
	{PEM_MEANS_ALLOCATION, PEM_MEANS_RELEASE},
	{PEM_MEANS_SEND, PEM_MEANS_RECEIVE},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static unsigned partner_of(unsigned meaning)
{
	size_t i;

	for (i = 0; i < COUNT(partners); i++) {
		if (partners[i][0] == meaning)
			return partners[i][1];
		if (partners[i][1] == meaning)
			return partners[i][0];
	}
	return PEM_MEANS_NOTHING;
}

/* Is it the second event of two that belong together? */
static int is_second(const struct pem_spec_event *event)
{
	size_t i;

	for (i = 0; i < COUNT(partners); i++) {
		if (partners[i][1] == event->meaning)
			return 1;
	}
	return 0;
}

void pem_check_group(const struct check *c)
{
	const struct pem_spec_event *event = c->event;
	const char *meaning = pem_word__meaning(event->meaning);
	int belongs = partner_of(event->meaning) != PEM_MEANS_NOTHING;

	if (event->is_damaged)
		return;
	if (event->has_scope && !belongs)
		ERROR(c, event->at,
		      "scope='' on meaning '%s': expected it only where events belong together",
		      meaning);
	if (event->has_group && !belongs && event->meaning != PEM_MEANS_ACCESS)
		ERROR(c, event->at,
		      "group='' on meaning '%s': expected it only where events belong together",
		      meaning);
}

/* The event's key with this index. NULL: it has fewer keys. */
static const struct pem_spec_field *key_of(const struct pem_spec_event *event, size_t index)
{
	size_t i;

	for (i = 0; i < event->field_count; i++) {
		if (event->fields[i].role == PEM_ROLE_KEY && !index--)
			return &event->fields[i];
	}
	return NULL;
}

static int is_same_key(const struct pem_spec_field *a, const struct pem_spec_field *b)
{
	return a->type == b->type && a->name && b->name && !strcmp(a->name, b->name);
}

/* The index of the first key in which two events differ. SIZE_MAX: they have the same keys. */
static size_t first_difference(const struct pem_spec_event *a, const struct pem_spec_event *b)
{
	const struct pem_spec_field *x, *y;
	size_t i;

	for (i = 0;; i++) {
		x = key_of(a, i);
		y = key_of(b, i);
		if (!x && !y)
			return SIZE_MAX;
		if (!x || !y || !is_same_key(x, y))
			return i;
	}
}

/*
 * Find the partner of an event: with another meaning, of the same group and scope. One with the
 * same keys is preferred.
 */
static const struct pem_spec_event *find_partner(const struct pem_spec_set *set,
						 const struct pem_spec_event *event)
{
	const struct pem_spec_event *other, *found = NULL;
	unsigned meaning = partner_of(event->meaning);
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		for (k = 0; k < set->specs[i].event_count; k++) {
			other = &set->specs[i].events[k];
			if (other->meaning != meaning || other->scope != event->scope ||
			    strcmp(other->group, event->group))
				continue;
			if (first_difference(event, other) == SIZE_MAX)
				return other;
			if (!found)
				found = other;
		}
	}
	return found;
}

static void keys_differ(const struct check *c, const struct pem_spec_event *partner, size_t index)
{
	const struct pem_spec_field *key = key_of(c->event, index), *other = key_of(partner, index);

	if (key && other)
		ERROR(c, key->at,
		      "key '%s' (%s) of '%s' and key '%s' (%s) of '%s' (%s:%d) differ, so that "
		      "the two never meet: expected keys of the same names and types in the same "
		      "order, or another group",
		      key->name ? key->name : "", pem_word__type(key->type), c->event->name,
		      other->name ? other->name : "", pem_word__type(other->type), partner->name,
		      partner->spec->path, other->at.line);
	else
		ERROR(c, key ? key->at : c->event->at,
		      "%s has key '%s' and %s (%s:%d) does not, so that the two never meet: "
		      "expected the same keys in both, or another group",
		      key ? c->event->name : partner->name, key ? key->name : other->name,
		      key ? partner->name : c->event->name, partner->spec->path, partner->at.line);
}

static void check_partner(const struct check *c)
{
	const struct pem_spec_event *partner = find_partner(c->set, c->event), *back;
	size_t index;

	if (!partner) {
		WARN(c, c->event->at,
		     "no event of meaning '%s' has the group '%s' and scope '%s' of '%s': expected "
		     "one",
		     pem_word__meaning(partner_of(c->event->meaning)), c->event->group,
		     pem_word__scope(c->event->scope), c->event->name ? c->event->name : "");
		return;
	}
	index = first_difference(c->event, partner);
	if (index == SIZE_MAX || c->event->is_damaged || partner->is_damaged)
		return;
	/* If neither has another partner, only the second is reported. */
	back = find_partner(c->set, partner);
	if (is_second(c->event) || first_difference(partner, back) == SIZE_MAX)
		keys_differ(c, partner, index);
}

void pem_check_partners(struct pem_spec_set *set)
{
	struct check c = {.set = set};
	size_t i, k;

	for (i = 0; i < set->count; i++) {
		c.spec = &set->specs[i];
		for (k = 0; k < c.spec->event_count && !c.spec->is_damaged; k++) {
			c.event = &c.spec->events[k];
			if (partner_of(c.event->meaning) != PEM_MEANS_NOTHING)
				check_partner(&c);
		}
	}
}
