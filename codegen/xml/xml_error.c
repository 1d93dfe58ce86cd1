/* SPDX-License-Identifier: MIT */
/*
 * xml_error.c - explains why a file is not well-formed XML, in words that help to correct it
 *
 * libxml2 says where it failed, which is often far after the mistake. So a file that it refuses is
 * read again to find common mistakes. Not here: whether a file is well-formed. Only libxml2 decides
 * that.
 */
#include "load.h"

#include <ctype.h>
#include <stdlib.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ATTRIBUTES_MAX 64u

struct name {
	size_t at;
	size_t bytes;
};

struct walk {
	struct pem_spec_set *set;
	const char *path;
	struct pem_text *text;
	const char *bytes;
	size_t count, at;
	struct name *open; /* elements that are not closed yet */
	size_t depth;
	struct name attributes[ATTRIBUTES_MAX]; /* of the current tag */
	size_t attribute_count;
};

#define NAME(w, n) (int)((n).bytes < 48 ? (n).bytes : 48), (w)->bytes + (n).at
#define LINE(w, offset) pem_location__offset((w)->text, offset).line
#define WRONG(w, offset, ...)                                                                      \
	(pem_spec_set__error((w)->set, (w)->path, pem_location__offset((w)->text, offset),         \
			     __VA_ARGS__),                                                         \
	 0)

static int starts(const struct walk *w, const char *text)
{
	size_t n = strlen(text);

	return w->count - w->at >= n && !memcmp(w->bytes + w->at, text, n);
}

static int peek(const struct walk *w)
{
	return w->at < w->count ? (unsigned char)w->bytes[w->at] : -1;
}

static int is_name(int c)
{
	return c > 0 && (isalnum(c) || c >= 0x80 || strchr("_-.:", c));
}

static int begins_name(int c)
{
	return is_name(c) && !isdigit(c) && c != '-' && c != '.';
}

static struct name take_name(struct walk *w)
{
	struct name name = {w->at, 0};

	while (is_name(peek(w)))
		w->at++;
	name.bytes = w->at - name.at;
	return name;
}

static int skip_blanks(struct walk *w)
{
	size_t from = w->at;

	while (peek(w) > 0 && strchr(" \t\r\n", peek(w)))
		w->at++;
	return w->at > from;
}

static int is_same(const struct walk *w, struct name a, struct name b)
{
	return a.bytes == b.bytes && !memcmp(w->bytes + a.at, w->bytes + b.at, a.bytes);
}

/* Move past the next end text, which closes what began at from. Returns 0 after an error. */
static int skip_to(struct walk *w, const char *end, const char *what)
{
	const char *found;
	size_t from = w->at;

	found = memmem(w->bytes + w->at, w->count - w->at, end, strlen(end));
	if (!found)
		return WRONG(w, from, "%s is not closed: expected '%s' at its end", what, end);
	w->at = (size_t)(found - w->bytes) + strlen(end);
	return 1;
}

static int walk_comment(struct walk *w)
{
	size_t from = w->at;
	const char *inner;

	if (!skip_to(w, "-->", "a comment"))
		return 0;
	inner = memmem(w->bytes + from + 4, w->at - from - 4, "--", 2);
	if (inner && (size_t)(inner - w->bytes) + 3 < w->at)
		return WRONG(w, (size_t)(inner - w->bytes),
			     "'--' stands in a comment: expected it only in '-->', at its end");
	return 1;
}

/* Handle a reference. The position is at '&'. */
static int walk_reference(struct walk *w)
{
	static const char *const known[] = {"amp", "lt", "gt", "apos", "quot"};
	size_t from = w->at++, i;
	struct name name;

	if (peek(w) == '#') {
		w->at++;
		take_name(w);
		return 1;
	}
	name = take_name(w);
	if (!name.bytes)
		return WRONG(w, from, "'&' stands by itself: expected '&amp;'");
	if (peek(w) != ';')
		return WRONG(w, from, "no ';' ends '&%.*s': expected '&amp;' for an '&'",
			     NAME(w, name));
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (name.bytes == strlen(known[i]) &&
		    !memcmp(w->bytes + name.at, known[i], name.bytes))
			return 1;
	}
	return WRONG(w, from,
		     "the entity '&%.*s;' is not defined: expected '&amp;', '&lt;', '&gt;', "
		     "'&apos;' or '&quot;', or '&amp;' for an '&'",
		     NAME(w, name));
}

/* Handle a quoted value. from is its first quote. */
static int walk_value(struct walk *w, struct name attribute, size_t from)
{
	int quote = w->bytes[from], spans = 0;

	while (peek(w) >= 0 && peek(w) != quote) {
		if (peek(w) == '<' && spans)
			break;
		if (peek(w) == '<')
			return WRONG(w, w->at, "'<' stands in %.*s='': expected '&lt;'",
				     NAME(w, attribute));
		spans |= peek(w) == '\n' || peek(w) == '>';
		if (peek(w) != '&')
			w->at++;
		else if (!walk_reference(w))
			return 0;
	}
	if (peek(w) != quote)
		return WRONG(w, from, "the value of %.*s is not closed: expected %c behind it",
			     NAME(w, attribute), quote);
	w->at++;
	return 1;
}

/* Handle what follows a value's closing quote, if it is neither a blank nor the end of the tag. */
static int walk_behind(struct walk *w, struct name attribute, size_t from)
{
	size_t at = w->at;
	struct name name;

	if (peek(w) < 0 || strchr(" \t\r\n/>", peek(w)))
		return 1;
	if (w->bytes[at - 2] == '=' && at - 2 > from)
		return WRONG(w, from, "the value of %.*s is not closed: expected %c behind it",
			     NAME(w, attribute), w->bytes[from]);
	name = take_name(w);
	if (name.bytes && peek(w) == '=')
		return WRONG(w, at, "no blank stands in front of %.*s='': expected one",
			     NAME(w, name));
	return WRONG(w, at,
		     "the value of %.*s ends in front of this: expected a blank, or %s for a %c in "
		     "the value",
		     NAME(w, attribute), w->bytes[from] == '\'' ? "'&apos;'" : "'&quot;'",
		     w->bytes[from]);
}

static int walk_attribute(struct walk *w)
{
	struct name attribute = take_name(w);
	size_t i, from;

	for (i = 0; i < w->attribute_count; i++) {
		if (is_same(w, attribute, w->attributes[i]))
			return WRONG(w, attribute.at,
				     "a second attribute '%.*s' in one tag: expected one",
				     NAME(w, attribute));
	}
	if (w->attribute_count < ATTRIBUTES_MAX)
		w->attributes[w->attribute_count++] = attribute;
	skip_blanks(w);
	if (peek(w) != '=')
		return WRONG(w, attribute.at, "attribute '%.*s' has no value: expected %.*s='...'",
			     NAME(w, attribute), NAME(w, attribute));
	w->at++;
	skip_blanks(w);
	from = w->at;
	if (peek(w) != '\'' && peek(w) != '"')
		return WRONG(w, from, "the value of %.*s has no quotes: expected %.*s='...'",
			     NAME(w, attribute), NAME(w, attribute));
	w->at++;
	return walk_value(w, attribute, from) && walk_behind(w, attribute, from);
}

/* Handle a start tag. The position is at '<'. */
static int walk_start(struct walk *w)
{
	size_t from = w->at++;
	struct name name = take_name(w);

	if (!begins_name(name.bytes ? w->bytes[name.at] & 0xff : -1))
		return WRONG(w, from, "'<' begins no tag: expected '&lt;' for a '<'");
	w->attribute_count = 0;
	for (skip_blanks(w); begins_name(peek(w)); skip_blanks(w)) {
		if (!walk_attribute(w))
			return 0;
	}
	if (starts(w, "/>")) {
		w->at += 2;
		return 1;
	}
	if (peek(w) != '>')
		return WRONG(w, from, "the tag <%.*s has no end: expected '>' or '/>'",
			     NAME(w, name));
	w->at++;
	w->open = pem_xgrow(w->open, w->depth, sizeof(*w->open));
	w->open[w->depth++] = name;
	return 1;
}

/* Handle an end tag. The position is at "</". */
static int walk_end(struct walk *w)
{
	size_t from = w->at, i;
	struct name name, last;

	w->at += 2;
	name = take_name(w);
	skip_blanks(w);
	if (peek(w) != '>')
		return WRONG(w, from, "the tag </%.*s has no end: expected '>'", NAME(w, name));
	w->at++;
	if (!w->depth)
		return WRONG(w, from, "</%.*s> ends nothing: expected no more than the <spec>",
			     NAME(w, name));
	last = w->open[w->depth - 1];
	if (is_same(w, name, last)) {
		w->depth--;
		return 1;
	}
	for (i = 0; i < w->depth; i++) {
		if (is_same(w, name, w->open[i]))
			return WRONG(w, last.at - 1,
				     "<%.*s> is not closed: expected '/>' at its end, or </%.*s> "
				     "in front of </%.*s> in line %d",
				     NAME(w, last), NAME(w, last), NAME(w, name), LINE(w, from));
	}
	return WRONG(w, from, "</%.*s> ends nothing: expected </%.*s>, which opened in line %d",
		     NAME(w, name), NAME(w, last), LINE(w, last.at));
}

/* Handle one part of the file's body. Returns 0 after an error. */
static int step(struct walk *w)
{
	if (starts(w, "<!--"))
		return walk_comment(w);
	if (starts(w, "<![CDATA["))
		return skip_to(w, "]]>", "a CDATA section");
	if (starts(w, "<?"))
		return skip_to(w, "?>", "a processing instruction");
	if (starts(w, "</"))
		return walk_end(w);
	if (peek(w) == '<')
		return walk_start(w);
	if (peek(w) == '&')
		return walk_reference(w);
	w->at++;
	return 1;
}

int pem_xml__explain(struct pem_spec_set *set, const char *path, struct pem_text *text, int line)
{
	struct walk w = {.set = set, .path = path, .text = text};
	size_t end = text->count;
	int sound = 1;

	w.bytes = text->bytes;
	w.count = text->count;
	if (line > 0 && (size_t)line < text->line_count)
		end = text->line_starts[line];
	while (sound && w.at < end)
		sound = step(&w);
	if (sound && w.depth && w.at >= w.count) {
		struct name last = w.open[w.depth - 1];

		sound = WRONG(&w, last.at - 1, "<%.*s> is not closed: expected '/>' or </%.*s>",
			      NAME(&w, last), NAME(&w, last));
	}
	free(w.open);
	return !sound;
}

/* --- crowded elements --- */

#define CROWD_MAX 256u /* attributes of an element */

/* Behind the next end of what begins at i, such as a comment, or the text's end. */
static size_t skip(const struct pem_text *text, size_t i, const char *end)
{
	const char *found = memmem(text->bytes + i, text->count - i, end, strlen(end));

	return found ? (size_t)(found - text->bytes) + strlen(end) : text->count;
}

/* Count the attributes of the tag that begins at *i by their values, and go behind it. */
static size_t count_attributes(const struct pem_text *text, size_t *i)
{
	size_t count = 0;
	char quote = '\0';

	for (; *i < text->count && (quote || text->bytes[*i] != '>'); ++*i) {
		char c = text->bytes[*i];

		if (quote) {
			quote = c == quote ? '\0' : quote;
		} else if (c == '\'' || c == '"') {
			quote = c;
			count++;
		}
	}
	return count;
}

/* The offset of the first tag with more than so many attributes; SIZE_MAX: there is none. */
static size_t crowded_tag(const struct pem_text *text, size_t most)
{
	size_t i = 0, begin;

	while (i < text->count) {
		const char *at = text->bytes + i;
		size_t left = text->count - i;

		begin = i;
		if (left >= 4 && !memcmp(at, "<!--", 4))
			i = skip(text, i + 4, "-->");
		else if (left >= 9 && !memcmp(at, "<![CDATA[", 9))
			i = skip(text, i + 9, "]]>");
		else if (left >= 2 && !memcmp(at, "<?", 2))
			i = skip(text, i + 2, "?>");
		else if (*at == '<' && count_attributes(text, &i) > most)
			return begin;
		else
			i += *at != '<';
	}
	return SIZE_MAX;
}

/*
 * The parser compares each attribute of a tag with all others. Refuse a tag with so many that this
 * takes long. One may seem to have them because an attribute before lacks its end.
 */
int pem_xml__is_crowded(struct pem_spec_set *set, const char *path, struct pem_text *text)
{
	size_t at = crowded_tag(text, CROWD_MAX);

	if (at == SIZE_MAX)
		return 0;
	if (!pem_xml__explain(set, path, text, INT_MAX))
		pem_spec_set__error(set, path, pem_location__offset(text, at),
				    "an element with more than %u attributes: none of a spec has "
				    "as many",
				    CROWD_MAX);
	return 1;
}

/* --- other encodings --- */

/*
 * The encoding that a file says it has, or seems to have. NULL: none, or UTF-8. word: of 256 bytes.
 * The parser would take the same bytes for other characters then.
 */
static const char *other_encoding(const char *bytes, size_t count, char *word)
{
	char *end, *name;

	if (count > 3 && !memcmp(bytes, "\x4c\x6f\xa7\x94", 4)) /* "<?xm" */
		return "EBCDIC";
	if (count > 2 && !memcmp(bytes, "\xef\xbb\xbf", 3)) {
		bytes += 3;
		count -= 3;
	}
	snprintf(word, 256, "%.*s", (int)(count < 256 ? count : 255), bytes);
	if (strncmp(word, "<?xml", 5) != 0)
		return NULL;
	end = strstr(word, "?>");
	if (!end)
		return "in a line too long";
	*end = '\0';
	name = strstr(word, "encoding");
	if (!name)
		return NULL;
	name += strcspn(name, "'\"");
	name += *name != '\0';
	name[strcspn(name, "'\"")] = '\0';
	return strcasecmp(name, "UTF-8") && strcasecmp(name, "US-ASCII") ? name : NULL;
}

/* Locations count the file's own bytes, and generated text is UTF-8. So the file must be UTF-8. */
int pem_xml__is_utf8(struct pem_spec_set *set, const char *path, const char *bytes, size_t count)
{
	struct pem_spec_location at = {1, 1};
	char word[256];
	const char *encoding = other_encoding(bytes, count, word);

	if (encoding)
		pem_spec_set__error(set, path, at, "the file's encoding is '%.40s': expected UTF-8",
				    encoding);
	return !encoding;
}
