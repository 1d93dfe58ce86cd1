/* SPDX-License-Identifier: MIT */
/*
 * lines.c - where a value is in a file of lines: INI, redis.conf, postgresql.conf, nginx.conf
 *
 * The first line that is not a comment decides: if it ends with ; or { the file has statements
 * "key value;" in blocks "name {}". Otherwise each line is a statement, in [sections]. A comment
 * begins with # after white space, or with ; in files without blocks, and ends with its line.
 */
#include "ways.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 16u

struct scan {
	const char *text;
	size_t bytes, at;
	size_t counted; /* up to here, lines */
	unsigned line;
	bool blocks, sections;
	char path[256]; /* of sections or blocks, each with a dot after it */
	size_t lengths[DEPTH_MAX], depth;
	/* The statement that was found. */
	size_t key, key_end, value, value_end;
};

static bool is_space(const struct scan *s, size_t at)
{
	return isspace((unsigned char)s->text[at]);
}

bool settings_spot__takes(struct settings_spot *spot, const char *path, const char *key,
			  unsigned line)
{
	bool exact = !strcmp(path, key);
	const char *last = strrchr(path, '.');

	if (!exact && (spot->exact || !last || strcmp(last + 1, key)))
		return false;
	if (exact && !spot->exact)
		spot->found = 0; /* a whole path is meant before last names */
	spot->exact = exact;
	if (++spot->found == 2)
		spot->second_line = line;
	if (spot->found == 1)
		spot->line = line;
	return spot->found == 1;
}

/* The last byte of a quoted text that begins here; or of its line, if it does not end. */
static size_t end_of_quoted(const struct scan *s, size_t from)
{
	size_t i;

	for (i = from + 1; i < s->bytes && s->text[i] != s->text[from]; i++) {
		if (s->text[i] == '\n' && !s->blocks)
			return i - 1;
		i += s->text[i] == '\\' && i + 1 < s->bytes && s->text[i + 1] != '\n';
	}
	return i < s->bytes ? i : s->bytes - 1;
}

/* The line of a position, after that of the call before. */
static unsigned line_of(struct scan *s, size_t at)
{
	for (; s->counted < at; s->counted++)
		s->line += s->text[s->counted] == '\n';
	return s->line + 1;
}

static int enter(struct scan *s, size_t from, size_t end, struct pem_error *error)
{
	size_t length = s->blocks ? strlen(s->path) : 0;

	if (s->depth == DEPTH_MAX || length + (end - from) + 2 > sizeof(s->path))
		return settings_fail(error, -EBADMSG, "line %u: too many levels, or a long name",
				     line_of(s, from));
	s->lengths[s->depth] = length;
	s->depth += s->blocks;
	memcpy(s->path + length, s->text + from, end - from);
	strcpy(s->path + length + (end - from), ".");
	return 0;
}

/* A statement is the text from key to end, without white space there. */
static int take_statement(struct scan *s, size_t word_end, size_t end)
{
	s->key_end = word_end ? word_end : end;
	s->value = s->key_end;
	while (s->value < end && is_space(s, s->value))
		s->value++;
	if (s->value < end && !s->blocks &&
	    (s->text[s->value] == '=' ||
	     (s->text[s->value] == ':' && s->value + 1 < end && is_space(s, s->value + 1)))) {
		for (s->value++; s->value < end && is_space(s, s->value); s->value++)
			;
	} else if (s->value > s->key_end && s->text[s->key_end - 1] == ':' && !s->blocks) {
		s->key_end--;
	}
	s->value_end = end;
	return 1;
}

/* Find the next statement. Returns 1, 0 at the end, or -EBADMSG. */
static int next(struct scan *s, struct pem_error *error)
{
	size_t begin = SIZE_MAX, word_end = 0, end = 0, i;
	char ends = s->blocks ? ';' : '\n', c;
	int rc = 0;

	for (i = s->at; i < s->bytes && !rc; i++) {
		bool first = begin == SIZE_MAX, fresh = !i || is_space(s, i - 1);

		c = s->text[i];
		if (fresh && (c == '#' || (c == ';' && !s->blocks))) {
			while (i + 1 < s->bytes && s->text[i + 1] != '\n')
				i++;
		} else if (c == ends && !first) {
			s->at = i + 1;
			return take_statement(s, word_end, end);
		} else if (c == '[' && first && !s->blocks) {
			for (begin = i + 1; i < s->bytes && s->text[i] != ']' && s->text[i] != '\n';
			     i++)
				;
			rc = enter(s, begin, i, error);
			s->sections = true;
			begin = SIZE_MAX;
		} else if (c == '{' && s->blocks && !first && s->text[i - 1] != '$') {
			rc = enter(s, s->key, word_end ? word_end : end, error);
			begin = SIZE_MAX;
		} else if (c == '}' && s->blocks && first && s->depth) {
			s->path[s->lengths[--s->depth]] = '\0';
		} else if (isspace((unsigned char)c)) {
			word_end = first || word_end ? word_end : i;
		} else {
			if (first) {
				s->key = begin = i;
				word_end = 0;
			}
			if (c == '=' && !s->blocks && !word_end)
				word_end = i;
			if ((c == '"' || c == '\'') && (fresh || s->text[i - 1] == '='))
				i = end_of_quoted(s, i);
			if (c == '{' && s->blocks)
				while (i + 1 < s->bytes && s->text[i] != '}')
					i++;
			end = i + 1;
		}
	}
	s->at = s->bytes;
	return rc ? rc : begin == SIZE_MAX || s->blocks ? 0 : take_statement(s, word_end, end);
}

/* Does the first line that is not a comment end with ; or { ? */
static bool has_blocks(const struct scan *from)
{
	struct scan s = *from;

	return next(&s, NULL) == 1 && strchr(";{", s.text[s.value_end - 1]);
}

static char between(const struct scan *s)
{
	return memchr(s->text + s->key_end, '=', s->value - s->key_end) ? '=' : ' ';
}

/* A key that was not found can be appended after a statement, or a head, of its section. */
static void note_end(struct settings_spot *spot, const struct scan *s, const char *key)
{
	size_t length = strlen(s->path);
	const char *newline = memchr(s->text + s->value_end, '\n', s->bytes - s->value_end);

	if (strncmp(s->path, key, length) || (!length && spot->append_key > key) || s->blocks)
		return;
	spot->appends = true;
	spot->append_key = key + length;
	spot->append_at = newline ? (size_t)(newline - s->text) + 1 : s->bytes;
	spot->between = between(s);
}

int settings_lines__find(struct settings_spot *spot, const char *text, size_t bytes,
			 const char *key, struct pem_error *error)
{
	struct scan s = {.text = text, .bytes = bytes};
	char path[sizeof(s.path) + 256];
	int rc;

	*spot = (struct settings_spot){0};
	s.blocks = has_blocks(&s);
	while ((rc = next(&s, error)) == 1) {
		if (s.key_end - s.key >= 256)
			continue;
		snprintf(path, sizeof(path), "%s%.*s", s.path, (int)(s.key_end - s.key),
			 text + s.key);
		note_end(spot, &s, key);
		if (!settings_spot__takes(spot, path, key, line_of(&s, s.key)))
			continue;
		spot->at = s.value;
		spot->end = s.value_end;
		spot->between = between(&s);
		/* Several words are not a quoted one. */
		spot->quote = '\0';
		if (s.value_end - s.value > 1 && strchr("\"'", text[s.value]) &&
		    text[s.value] == text[s.value_end - 1] &&
		    end_of_quoted(&s, s.value) == s.value_end - 1)
			spot->quote = text[s.value];
		rc = settings_take(spot->value, text + s.value + !!spot->quote,
				   s.value_end - s.value - 2 * !!spot->quote, error);
		if (rc)
			return rc;
	}
	/* A key with a section's name is not one of the file's begin. */
	if (spot->append_key == key && s.sections && strchr(key, '.'))
		spot->appends = false;
	return rc;
}
