// SPDX-License-Identifier: MIT
/*
 * patterns.c - the patterns of events that -e names, and their predicates
 *
 * Not here: the events that they choose (command.c), counters before an @ (counted.c).
 */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Split "PATTERN where PREDICATE". */
static int add_pattern(struct cli_patterns *patterns, char *text)
{
	char *where, *end;
	char **texts, **wheres;
	int rc;

	if (*text == '+') {
		memmove(text, text + 1, strlen(text));
		patterns->and_usual = true;
	}
	where = strstr(text, " where ");
	if (where != NULL) {
		for (end = where; end > text && end[-1] == ' '; end--)
			;
		*end = '\0';
		where += sizeof(" where ") - 1;
	}
	if (*text == '\0')
		return -EINVAL;
	rc = cli_counted__take(patterns, text);
	if (rc < 0)
		return rc;
	texts = reallocarray(patterns->text, patterns->count + 1, sizeof(*texts));
	if (texts != NULL)
		patterns->text = texts;
	wheres = reallocarray(patterns->where, patterns->count + 1, sizeof(*wheres));
	if (wheres != NULL)
		patterns->where = wheres;
	if (texts == NULL || wheres == NULL)
		return -ENOMEM;
	texts[patterns->count] = text;
	wheres[patterns->count++] = where;
	return 0;
}

int cli_patterns__add(struct cli_patterns *patterns, const char *list)
{
	for (;;) {
		size_t n = strcspn(list, ",");
		char *text = strndup(list, n);
		int rc = text != NULL ? add_pattern(patterns, text) : -ENOMEM;

		if (rc < 0) {
			free(text);
			return rc;
		}
		if (list[n] == '\0')
			return 0;
		list += n + 1;
	}
}

void cli_patterns__free(struct cli_patterns *patterns)
{
	size_t i;

	for (i = 0; i < patterns->count; i++)
		free(patterns->text[i]);
	free(patterns->text);
	free(patterns->where);
	free(patterns->counters);
	cli_names__free(&patterns->counted);
	*patterns = (struct cli_patterns){0};
}

const char *cli_patterns__predicate(const struct cli_patterns *patterns, size_t i)
{
	return patterns->where[i] != NULL ? patterns->where[i] : patterns->all_where;
}

/* Does a pattern choose the event? One of a whole layer leaves out its finer events. */
static bool chooses(const char *pattern, const struct pem_event *event)
{
	return pem_event__matches(event, pattern) == 1 &&
	       (event->level <= PEM_LEVEL_INFO || strcasecmp(pattern, event->layer) != 0);
}

/* Append a predicate to those in *text, which is replaced. Returns 0 or -ENOMEM. */
static int add_predicate(char **text, const char *predicate)
{
	char *longer = NULL;
	int n = *text == NULL ? asprintf(&longer, "(%s)", predicate)
			      : asprintf(&longer, "%s || (%s)", *text, predicate);

	if (n < 0)
		return -ENOMEM;
	free(*text);
	*text = longer;
	return 0;
}

/*
 * An event that several patterns choose is one that any of them wants: it passes any of their
 * predicates, and needs none where a pattern has none.
 */
static int unite_predicates(struct pem_event_set *set, const struct cli_patterns *patterns,
			    const struct pem_event *event, struct pem_error *error)
{
	const char *first = NULL, *predicate;
	bool differ = false, is_free = false;
	char *text = NULL;
	size_t i, n = 0;
	int rc = 0;

	for (i = 0; rc == 0 && i < patterns->count; i++) {
		if (!chooses(patterns->text[i], event))
			continue;
		predicate = cli_patterns__predicate(patterns, i);
		is_free |= predicate == NULL;
		first = n++ == 0 ? predicate : first;
		differ |= (predicate == NULL) != (first == NULL) ||
			  (predicate != NULL && strcmp(predicate, first) != 0);
		rc = predicate != NULL ? add_predicate(&text, predicate) : 0;
	}
	if (rc == 0 && differ)
		rc = pem_event_set__where_of(set, cli_format("%s@%u", event->name, event->version),
					     is_free ? NULL : text, error);
	free(text);
	return rc;
}

int cli_patterns__bind(const struct cli_patterns *patterns, struct pem_event_set *set,
		       struct pem_error *error)
{
	int rc = 0;
	size_t i;

	if (patterns->all_where != NULL)
		rc = pem_event_set__where(set, patterns->all_where, error);
	for (i = 0; rc == 0 && i < patterns->count; i++)
		if (patterns->where[i] != NULL)
			rc = pem_event_set__where_of(set, patterns->text[i], patterns->where[i],
						     error);
	for (i = 0; rc == 0 && i < pem_event_set__count(set); i++)
		rc = unite_predicates(set, patterns, pem_event_set__event(set, i), error);
	if (rc == 0)
		return 0;
	pem_event_set__free(set);
	/* The caller takes ENOENT for wrong input. */
	errno = rc == -EINVAL || rc == -E2BIG || rc == -ENOTSUP ? ENOENT : -rc;
	return -1;
}
