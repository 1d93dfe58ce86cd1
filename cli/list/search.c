// SPDX-License-Identifier: MIT
/*
 * search.c - pem list: finds events by words in their descriptions
 *
 * A word must begin where a word of the text begins, in upper or lower case: at a letter or digit
 * after another character, or at a capital letter inside a name. So 'io' finds "I/O" and "BioIo",
 * but not "operation".
 */
#include "list.h"

#include <ctype.h>
#include <fnmatch.h>
#include <string.h>

static bool joins(char c)
{
	return c == '/' || c == '-' || c == '_' || c == ':';
}

/*
 * Does the text at p begin with the word? Characters that join parts of words are ignored: "I/O" is
 * 'io'.
 */
static bool starts_with(const char *p, const char *word, size_t n)
{
	const char *end = word + n;

	while (word < end) {
		if (joins(*word))
			word++;
		else if (joins(*p))
			p++;
		else if (tolower((unsigned char)*p++) != tolower((unsigned char)*word++))
			return false;
	}
	return true;
}

static bool has_word(const char *text, const char *word, size_t n)
{
	const char *p;

	for (p = text; *p != '\0'; p++) {
		bool starts = p == text || !isalnum((unsigned char)p[-1]) ||
			      (isupper((unsigned char)*p) && !isupper((unsigned char)p[-1]));

		if (starts && isalnum((unsigned char)*p) && starts_with(p, word, n))
			return true;
	}
	return false;
}

/*
 * Does a pattern, written without layer and class, match the end of a name? 'Switch*' is
 * 'OS::Sched::Switch'.
 */
static bool matches_name(const char *glob, const char *name)
{
	const char *part = name;

	while (part != NULL) {
		if (fnmatch(glob, part, FNM_CASEFOLD | FNM_NOESCAPE) == 0)
			return true;
		part = strstr(part, "::");
		if (part != NULL)
			part += 2;
	}
	return false;
}

static bool tells_of(const struct pem_event *event, const char *word, size_t n)
{
	unsigned int i;
	char glob[256];

	if (memchr(word, '*', n) != NULL || memchr(word, '?', n) != NULL) {
		/* A name is shorter than this. */
		if ((size_t)snprintf(glob, sizeof(glob), "%.*s", (int)n, word) >= sizeof(glob))
			return false;
		return matches_name(glob, event->name);
	}
	/* A word of joining characters alone would be found everywhere. */
	for (i = 0; i < n && !isalnum((unsigned char)word[i]); i++)
		;
	if (i == n)
		return false;
	if (has_word(event->name, word, n) || has_word(event->description, word, n) ||
	    has_word(event->source_name, word, n))
		return true;
	for (i = 0; i < event->field_count; i++)
		if (has_word(event->fields[i].name, word, n) ||
		    has_word(event->fields[i].unit, word, n) ||
		    has_word(event->fields[i].description, word, n))
			return true;
	return false;
}

bool list_search(const struct pem_event *event, char *const *words, size_t count)
{
	size_t i, n;
	const char *p;

	for (i = 0; i < count; i++)
		for (p = words[i]; *p != '\0'; p += n) {
			p += strspn(p, " \t\n");
			n = strcspn(p, " \t\n");
			if (n != 0 && !tells_of(event, p, n))
				return false;
		}
	return true;
}
