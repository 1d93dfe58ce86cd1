// SPDX-License-Identifier: MIT
/* counted.c - COUNTERS@PATTERN: events at which a program's threads read counters */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNTED_EVENTS 5 /* index in cli_patterns.also */

/* What stands for several counters. */
static const char *const short_names[][2] = {
	{"ipc", "Cycles,Instructions"},
	{"cpi", "Cycles,Instructions"},
};

/* Is the name one of a list with commas? */
static bool has_name(const char *list, const char *name)
{
	size_t bytes = strlen(name);

	for (; list != NULL; list = strchr(list, ',') != NULL ? strchr(list, ',') + 1 : NULL)
		if (strncasecmp(list, name, bytes) == 0 && strchr(",", list[bytes]) != NULL)
			return true;
	return false;
}

int cli_counted__add(char **list, const char *name)
{
	char *grown;

	if (has_name(*list, name))
		return 0;
	if (asprintf(&grown, "%s%s%s", *list != NULL ? *list : "", *list != NULL ? "," : "", name) <
	    0)
		return -ENOMEM;
	free(*list);
	*list = grown;
	return 0;
}

/* Add one name, or those that it stands for. Returns 0, -EINVAL or -ENOMEM. */
static int add_name(struct cli_patterns *patterns, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(short_names) / sizeof(short_names[0]); i++)
		if (strcasecmp(name, short_names[i][0]) == 0)
			name = short_names[i][1];
	return *name != '\0' ? cli_counted__add(&patterns->counters, name) : -EINVAL;
}

/* Add names with a + between them. Returns 0, -EINVAL or -ENOMEM. */
static int add_names(struct cli_patterns *patterns, const char *text)
{
	char *copy = strdup(text), *rest = copy, *name;
	int rc = copy != NULL ? 0 : -ENOMEM;

	while (rc == 0 && (name = strsep(&rest, "+")) != NULL)
		rc = add_name(patterns, name);
	free(copy);
	return rc;
}

int cli_counted__refuse(const struct cli_verb *verb, const struct cli_patterns *patterns)
{
	if (patterns->counted.count == 0)
		return 0;
	return cli_usage_error(verb, "COUNTERS@%s: counters are read at events by pem record alone",
			       patterns->counted.names[0]);
}

/*
 * May it be names of counters? Places that no spec describes have a colon, too, and may have an @
 * behind it; a counter has "::", or a colon in front of u, k and h, as in instructions:u.
 */
static bool may_be_counters(const char *text, size_t bytes)
{
	size_t i = 0;

	while (i < bytes) {
		if (text[i++] != ':')
			continue;
		if (text[i] == ':') {
			i++;
			continue;
		}
		i += strspn(text + i, "ukh");
		if (text[i - 1] == ':' || strchr("+@", text[i]) == NULL)
			return false;
	}
	return true;
}

int cli_counted__take(struct cli_patterns *patterns, char *text)
{
	/* Places that no spec describes may have an @ as well, behind a colon. */
	size_t before = strcspn(text, "@/ ");
	char *pattern = text + before + 1;
	int rc;

	/* NAME@2 is version 2 of an event. */
	if (text[before] != '@' ||
	    (*pattern != '\0' && strspn(pattern, "0123456789") == strlen(pattern)) ||
	    !may_be_counters(text, before))
		return 0;
	if (before == 0 || *pattern == '\0')
		return -EINVAL;
	text[before] = '\0';
	rc = add_names(patterns, text);
	if (strcasecmp(pattern, "phase") == 0)
		*pattern = 'P';
	memmove(text, pattern, strlen(pattern) + 1);
	patterns->also[COUNTED_EVENTS] = PEM_THREAD_COUNTERS_EVENT;
	return rc == 0 ? cli_names__add(&patterns->counted, text) : rc;
}

int cli_counted__set(struct pem_session *session, const struct cli_patterns *patterns)
{
	struct pem_event_set *set;
	struct pem_error error = {{0}};
	bool is_quiet = false;
	int rc;

	if (patterns->counted.count == 0)
		return CLI_DONE;
	set = cli_event_set__new(session, (const char *const *)patterns->counted.names,
				 patterns->counted.count, &error);
	if (set == NULL)
		return cli_error(errno == ENOENT ? CLI_WRONG_INPUT : cli_status_of_errno(errno),
				 "%s", error.text);
	rc = pem_session__count_at(session, set, &error);
	pem_event_set__free(set);
	if (rc == -ENOENT)
		return cli_error(CLI_WRONG_INPUT, "%s", error.text);
	if (rc < 0)
		cli_log(PEM_LOG_WARNING,
			cli_format("%s; the events alone are recorded", error.text), &is_quiet);
	return CLI_DONE;
}
