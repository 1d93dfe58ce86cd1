// SPDX-License-Identifier: MIT
/* events.c - the events that pem stat counts, in groups with one statistics handle each */
#include "stat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static unsigned int group_of(const struct stat *s, const struct pem_event *event)
{
	if (s->field != NULL && pem_event__field(event, s->field) >= 0)
		return STAT_GROUP_FIELD;
	return cli_event__is_counter(event) ? STAT_GROUP_COUNTER : STAT_GROUP_COUNT;
}

/*
 * Make a pattern for exactly this version, because another version may have other fields and belong
 * to another group. NULL: no memory.
 */
static char *pattern_of(const struct pem_event *event)
{
	return strdup(cli_format("%s@%u", event->name, event->version));
}

/* Set what else to keep of the field. */
static int keep(const struct stat *s, unsigned int g, const struct stat_group *group,
		struct pem_error *error)
{
	int rc = 0;

	if (s->keep != 0 && g == STAT_GROUP_FIELD)
		rc = pem_statistics__keep(group->statistics, s->keep);
	if (rc == -ENOSPC)
		snprintf(error->text, sizeof(error->text),
			 "more than %u events have a field '%s': for a histogram, frequent values "
			 "or a deviation name fewer with -e",
			 PEM_DISTRIBUTION_EVENTS_MAX, s->field);
	if (rc == -ENOTSUP)
		snprintf(error->text, sizeof(error->text),
			 "histograms, frequent values and deviations are kept of events of the "
			 "application and the kernel, and none of these is one");
	return rc;
}

/* Register the events of set that belong to group g, with a handle of their own. */
static int register_group(struct stat *s, struct pem_session *session,
			  const struct pem_event_set *all, unsigned int g, struct pem_error *error)
{
	size_t i, n = 0, count = pem_event_set__count(all);
	struct stat_group *group = &s->groups[g];
	struct pem_event_set *set;
	const char **names, **where;
	int rc = -ENOMEM;

	names = calloc(count + 1, sizeof(*names));
	where = calloc(count + 1, sizeof(*where));
	if (names != NULL && where != NULL) {
		for (i = 0; i < count; i++) {
			if (group_of(s, pem_event_set__event(all, i)) != g)
				continue;
			where[n] = pem_event_set__predicate(all, i);
			names[n++] = pattern_of(pem_event_set__event(all, i));
		}
		rc = 0;
	}
	set = n != 0 ? pem_event_set__new(session, names, n, error) : NULL;
	if (n != 0 && set == NULL)
		rc = errno != 0 ? -errno : -EINVAL;
	for (i = 0; i < n; i++) {
		if (rc == 0 && where[i] != NULL)
			rc = pem_event_set__where_of(set, names[i], where[i], error);
		free((char *)names[i]);
	}
	free(names);
	free(where);
	if (n == 0 || rc < 0) {
		pem_event_set__free(set);
		return rc;
	}
	rc = -ENOMEM;
	group->with_field = g == STAT_GROUP_FIELD;
	group->count = pem_event_set__count(set);
	group->now = calloc(group->count + 1, sizeof(*group->now));
	group->before = calloc(group->count + 1, sizeof(*group->before));
	if (group->now != NULL && group->before != NULL) {
		group->now[0].size = sizeof(group->now[0]);
		group->statistics = pem_session__register_statistics(
			session, set, NULL, g == STAT_GROUP_FIELD ? s->field : NULL, error);
		rc = group->statistics == NULL ? -errno : keep(s, g, group, error);
		if (rc == 0)
			rc = pem_statistics__enable(group->statistics);
	}
	pem_event_set__free(set);
	return rc;
}

int stat_events__register(struct stat *s, struct pem_session *session)
{
	struct pem_error error = {{0}};
	struct pem_event_set *all = cli_choose_events(session, &s->patterns, false, &error);
	unsigned int g;
	size_t i;
	int rc = 0;

	if (all == NULL)
		return cli_error(errno == ENOENT ? CLI_WRONG_INPUT : cli_status_of_errno(errno),
				 "%s", error.text);
	if (s->field != NULL) {
		for (i = 0; i < pem_event_set__count(all); i++)
			if (pem_event__field(pem_event_set__event(all, i), s->field) >= 0)
				break;
		if (i == pem_event_set__count(all)) {
			pem_event_set__free(all);
			return cli_error(CLI_WRONG_INPUT,
					 "none of these events has a field '%s'; pem list shows "
					 "what they have",
					 s->field);
		}
	}
	s->has_stubs = cli_event_set__has_stubs(all);
	for (g = 0; rc == 0 && g < STAT_GROUPS; g++)
		rc = register_group(s, session, all, g, &error);
	pem_event_set__free(all);
	if (rc < 0)
		return cli_error(cli_status_of_errno(rc), "%s",
				 *error.text != '\0' ? error.text : strerror(-rc));
	return CLI_DONE;
}

void stat_events__read(struct stat *s)
{
	unsigned int g;

	for (g = 0; g < STAT_GROUPS; g++)
		if (s->groups[g].statistics != NULL)
			pem_statistics__read(s->groups[g].statistics, s->groups[g].now,
					     s->groups[g].count);
}

void stat_events__free(struct stat *s)
{
	unsigned int g;

	for (g = 0; g < STAT_GROUPS; g++) {
		free(s->groups[g].now);
		free(s->groups[g].before);
	}
}

const char *stat_unit(const struct stat *s, const struct stat_group *group,
		      const struct pem_event *event)
{
	int f = group->with_field ? pem_event__field(event, s->field)
				  : pem_event__field_by_role(event, PEM_ROLE_VALUE);

	return f >= 0 ? event->fields[f].unit : "";
}
