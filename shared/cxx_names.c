// SPDX-License-Identifier: MIT
/* cxx_names.c - names of C++ as people write them (contract: cxx_names.h) */
#include "cxx_names.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define DEPTH_MAX 256u

struct shortening {
	char *text;
	size_t in, out; /* the next byte to read, and to write: out <= in */
	unsigned depth; /* of open brackets */
	struct {
		char bracket;
		size_t name; /* where the output has the template's name */
	} open[DEPTH_MAX];
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool is_word(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       c == '_' || c == ':';
}

/* Bytes of an operator's sign that has brackets in it. */
static size_t operator_bytes(const char *text)
{
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "[]", "<", ">"};
	size_t i;

	for (i = 0; begins(text, "operator") && i < sizeof(signs) / sizeof(signs[0]); i++)
		if (begins(text + strlen("operator"), signs[i]))
			return strlen("operator") + strlen(signs[i]);
	return 0;
}

/* Bytes up to the bracket that closes the first one of a text; 0: it is not closed. */
static size_t bytes_to_close(const char *text)
{
	size_t i, depth = 0;

	for (i = 0; text[i] != '\0'; i++) {
		if (strchr("<([{", text[i]) != NULL)
			depth++;
		else if (strchr(">)]}", text[i]) != NULL && depth-- <= 1)
			return depth == 0 ? i + 1 : 0;
	}
	return 0;
}

/* Is it a template of the standard library whose last arguments are usual ones? */
static bool has_usual(const char *name, size_t bytes)
{
	static const char *const templates[] = {"vector",   "deque",        "list",
						"set",      "multiset",     "map",
						"multimap", "forward_list", "unique_ptr"};
	static const char *const prefixes[] = {
		"unordered_", "basic_", "_Rb_tree",    "_Hashtable",  "_Vector_",
		"_Deque_",    "_List_", "istreambuf_", "ostreambuf_", "_Sp_counted_"};
	size_t i;

	if (!begins(name, "std::"))
		return false;
	name += 5;
	bytes -= 5;
	for (i = 0; i < sizeof(templates) / sizeof(templates[0]); i++)
		if (strlen(templates[i]) == bytes && begins(name, templates[i]))
			return true;
	for (i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (begins(name, prefixes[i]))
			return true;
	return false;
}

/* Bytes of ", std::allocator<...>" and its like within a template that usually has it; or 0. */
static size_t usual_bytes(const struct shortening *s)
{
	static const char *const usual[] = {"allocator<", "char_traits<", "less<",
					    "hash<",      "equal_to<",    "default_delete<"};
	static const char comma[] = ", std::", version[] = "__1::";
	const char *in = s->text + s->in, *at = in + sizeof(comma) - 1;
	size_t i, name, close;

	if (!begins(in, comma) || s->depth == 0 || s->depth > DEPTH_MAX ||
	    s->open[s->depth - 1].bracket != '<')
		return 0;
	at += begins(at, version) ? sizeof(version) - 1 : 0;
	name = s->open[s->depth - 1].name;
	for (i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		if (!begins(at, usual[i]))
			continue;
		at += strlen(usual[i]) - 1;
		close = bytes_to_close(at);
		return close != 0 && has_usual(s->text + name, strcspn(s->text + name, "<"))
			       ? (size_t)(at - in) + close
			       : 0;
	}
	return 0;
}

static void open_bracket(struct shortening *s, char bracket)
{
	size_t name = s->out;

	while (name > 0 && is_word(s->text[name - 1]))
		name--;
	if (s->depth < DEPTH_MAX) {
		s->open[s->depth].bracket = bracket;
		s->open[s->depth].name = name;
	}
	s->depth++;
	s->text[s->out++] = bracket;
}

/* "std::basic_string<char>" is "std::string". name: where the output has it. */
static void name_alias(struct shortening *s, size_t name)
{
	static const char basic[] = "std::basic_", narrow[] = "<char>", wide[] = "<wchar_t>";
	size_t bytes = s->out - name, kept = sizeof(basic) - 1, ends;
	char *text = s->text + name;
	bool is_wide;

	if (bytes <= kept || !begins(text, basic))
		return;
	ends = strcspn(text, "<");
	is_wide = bytes - ends == sizeof(wide) - 1 && begins(text + ends, wide);
	if (ends > bytes ||
	    (!is_wide && (bytes - ends != sizeof(narrow) - 1 || !begins(text + ends, narrow))))
		return;
	memmove(text + 5 + is_wide, text + kept, ends - kept);
	if (is_wide)
		text[5] = 'w';
	s->out = name + 5 + is_wide + (ends - kept);
}

static void close_bracket(struct shortening *s, char bracket)
{
	if (bracket == '>' && s->out > 0 && s->text[s->out - 1] == ' ')
		s->out--;
	s->text[s->out++] = bracket;
	if (s->depth == 0)
		return;
	s->depth--;
	if (bracket == '>' && s->depth < DEPTH_MAX && s->open[s->depth].bracket == '<')
		name_alias(s, s->open[s->depth].name);
}

/* Namespaces of versions of the library. */
static size_t version_bytes(const struct shortening *s)
{
	const char *in = s->text + s->in;

	if (s->out < 5 || strncmp(s->text + s->out - 5, "std::", 5) != 0)
		return 0;
	return begins(in, "__cxx11::") ? 9 : begins(in, "__1::") ? 5 : 0;
}

void pem_cxx__shorten(char *name)
{
	struct shortening s = {.text = name};
	size_t bytes;

	while (name[s.in] != '\0') {
		char c = name[s.in];

		bytes = usual_bytes(&s) + version_bytes(&s);
		if (bytes != 0) {
			s.in += bytes;
			continue;
		}
		bytes = operator_bytes(name + s.in);
		if (bytes != 0) {
			memmove(name + s.out, name + s.in, bytes);
			s.in += bytes;
			s.out += bytes;
			continue;
		}
		s.in++;
		if (strchr("<([{", c) != NULL)
			open_bracket(&s, c);
		else if (strchr(">)]}", c) != NULL)
			close_bracket(&s, c);
		else
			name[s.out++] = c;
	}
	name[s.out] = '\0';
}
