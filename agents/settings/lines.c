/* SPDX-License-Identifier: MIT */
/*
 * lines.c - where a value is in a file of lines: INI, redis.conf, postgresql.conf, nginx.conf
 *
 * The first line that is not a comment decides: if it ends with ; or { the file has statements
 * "key value;" in blocks "name {}". Otherwise each line is a statement, in [sections]. A comment
 * begins with # or ; and ends with its line.
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
	unsigned line;
	bool blocks, sections;
	char path[256]; /* of sections or blocks, each with a dot after it */
	size_t lengths[DEPTH_MAX], depth;
	/* The statement that was found. */
	size_t key, key_end, value, value_end;
};

static char at(const struct scan *s, size_t position)
{
	return position < s->bytes ? s->text[position] : '\0';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
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

/* The position after a quoted text that begins here; the scan's end: it does not end. */
static size_t skip_quoted(const struct scan *s, size_t from, size_t end)
{
	char quote = s->text[from];

	for (from++; from < end && s->text[from] != quote; from++) {
		if (s->text[from] == '\\')
			from++;
	}
	return from < end ? from + 1 : end;
}

static int enter(struct scan *s, size_t from, size_t end, struct pem_error *error)
{
	size_t length = s->blocks ? strlen(s->path) : 0;

	if (s->depth == DEPTH_MAX || length + (end - from) + 2 > sizeof(s->path))
		return settings_fail(error, -EBADMSG, "line %u: too many levels, or a long name",
				     s->line);
	s->lengths[s->depth] = length;
	s->depth += s->blocks;
	memcpy(s->path + length, s->text + from, end - from);
	strcpy(s->path + length + (end - from), ".");
	return 0;
}

/* Find the next line's statement. Returns 1, 0 at the end, or -EBADMSG. */
static int next_line(struct scan *s, struct pem_error *error)
{
	size_t begin, end, i;
	const char *newline;
	int rc;

	for (; s->at < s->bytes; s->at = end + 1) {
		begin = s->at;
		newline = memchr(s->text + begin, '\n', s->bytes - begin);
		end = newline ? (size_t)(newline - s->text) : s->bytes;
		s->line++;
		while (begin < end && is_blank(s->text[begin]))
			begin++;
		if (begin == end || strchr("#;", s->text[begin]))
			continue;
		if (s->text[begin] == '[') {
			newline = memchr(s->text + begin, ']', end - begin);
			rc = newline ? enter(s, begin + 1, (size_t)(newline - s->text), error) : 0;
			if (rc)
				return rc;
			s->sections = true;
			continue;
		}
		s->key = begin;
		while (begin < end && !is_blank(s->text[begin]) && s->text[begin] != '=')
			begin++;
		s->key_end = begin;
		for (i = begin; i < end && is_blank(s->text[i]); i++)
			;
		if (at(s, i) == '=')
			for (i++; i < end && is_blank(s->text[i]); i++)
				;
		else if (begin - s->key > 1 && s->text[begin - 1] == ':')
			s->key_end--;
		s->value = i < end ? i : i == end && at(s, end - 1) == '\r' ? end - 1 : i;
		if (i < end && strchr("\"'", s->text[i]))
			i = skip_quoted(s, i, end);
		for (; i < end; i++) {
			if (i > s->value && strchr("#;", s->text[i]) && is_blank(s->text[i - 1]))
				break;
		}
		while (i > s->value && is_blank(s->text[i - 1]))
			i--;
		s->value_end = i;
		s->at = end + 1;
		return 1;
	}
	return 0;
}

/* Find the next statement of blocks: words up to a semicolon. */
static int next_statement(struct scan *s, struct pem_error *error)
{
	size_t word = 0; /* where the first word ends */
	size_t begin = SIZE_MAX, i;
	int rc;

	for (i = s->at; i < s->bytes; i++) {
		char c = s->text[i];

		s->line += c == '\n';
		if (c == '#' && (!i || isspace((unsigned char)s->text[i - 1]))) {
			while (i + 1 < s->bytes && s->text[i + 1] != '\n')
				i++;
		} else if (c == '{' && begin != SIZE_MAX && s->text[i - 1] == '$') {
			while (i + 1 < s->bytes && s->text[i] != '}')
				i++;
		} else if (c == '{' && begin != SIZE_MAX) {
			rc = enter(s, begin, word ? word : i, error);
			if (rc)
				return rc;
			begin = SIZE_MAX;
			word = 0;
		} else if (c == '}' && s->depth) {
			s->path[s->lengths[--s->depth]] = '\0';
			begin = SIZE_MAX;
		} else if (c == ';' && begin != SIZE_MAX) {
			s->key = begin;
			s->key_end = word ? word : i;
			for (s->value = s->key_end;
			     s->value < i && isspace((unsigned char)s->text[s->value]); s->value++)
				;
			for (s->value_end = i; s->value_end > s->value &&
					       isspace((unsigned char)s->text[s->value_end - 1]);
			     s->value_end--)
				;
			s->at = i + 1;
			return 1;
		} else if (isspace((unsigned char)c)) {
			if (begin != SIZE_MAX && !word)
				word = i;
		} else if (strchr("\"'", c)) {
			begin = begin == SIZE_MAX ? i : begin;
			i = skip_quoted(s, i, s->bytes) - 1;
		} else if (begin == SIZE_MAX) {
			begin = i;
			word = 0;
		}
	}
	return 0;
}

/* Does the first line that is not a comment end with ; or { ? */
static bool has_blocks(const struct scan *from)
{
	struct scan s = *from;

	return next_line(&s, NULL) == 1 && s.value_end && strchr(";{", s.text[s.value_end - 1]);
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
	spot->between = memchr(s->text + s->key_end, '=', s->value - s->key_end) ? '=' : ' ';
}

int settings_lines__find(struct settings_spot *spot, const char *text, size_t bytes,
			 const char *key, struct pem_error *error)
{
	struct scan s = {.text = text, .bytes = bytes};
	char path[sizeof(s.path) + 256];
	int rc;

	*spot = (struct settings_spot){0};
	s.blocks = has_blocks(&s);
	s.line = s.blocks;
	while ((rc = (s.blocks ? next_statement : next_line)(&s, error)) == 1) {
		if (s.key_end - s.key >= 256)
			continue;
		snprintf(path, sizeof(path), "%s%.*s", s.path, (int)(s.key_end - s.key),
			 text + s.key);
		note_end(spot, &s, key);
		if (!settings_spot__takes(spot, path, key, s.line))
			continue;
		spot->at = s.value;
		spot->end = s.value_end;
		spot->quote = strchr("\"'", at(&s, s.value)) ? at(&s, s.value) : '\0';
		if (spot->quote && (s.value_end - s.value < 2 ||
				    skip_quoted(&s, s.value, s.value_end) != s.value_end ||
				    text[s.value_end - 1] != spot->quote))
			spot->quote = '\0'; /* several words */
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
