/* SPDX-License-Identifier: MIT */
/*
 * location.c - lines and columns of elements and attributes, for messages that editors can jump to
 *
 * libxml2 keeps only an element's line, and that is the line of its tag's end. So load.c notes in
 * each element where its tag begins in the file. The rest is computed here when there is an error
 * to report.
 */
#include "load.h"

#include <stdlib.h>
#include <string.h>

void pem_text__init(struct pem_text *text, const char *bytes, size_t count)
{
	size_t i, lines = 0;

	memset(text, 0, sizeof(*text));
	text->bytes = bytes;
	text->count = count;
	for (i = 0; i < count; i++)
		lines += bytes[i] == '\n';
	text->line_starts = pem_xrealloc(NULL, lines + 1, sizeof(*text->line_starts));
	text->line_starts[text->line_count++] = 0;
	for (i = 0; i < count; i++) {
		if (bytes[i] == '\n')
			text->line_starts[text->line_count++] = i + 1;
	}
}

void pem_text__free(struct pem_text *text)
{
	free(text->line_starts);
	memset(text, 0, sizeof(*text));
}

/*
 * Most locations are asked for in the file's order. So the search continues from the last one.
 * Otherwise a long line would be counted again and again.
 */
struct pem_spec_location pem_location__offset(struct pem_text *text, size_t offset)
{
	size_t low = 0, high = text->line_count, middle, i;
	struct pem_spec_location at = {0, 1};

	if (offset > text->count)
		offset = text->count;
	while (high - low > 1) {
		middle = (low + high) / 2;
		if (text->line_starts[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	at.line = (int)low + 1;
	i = text->line_starts[low];
	if (text->last.line == at.line && text->last_offset <= offset) {
		i = text->last_offset;
		at.column = text->last.column;
	}
	for (; i < offset; i++)
		at.column += ((unsigned char)text->bytes[i] & 0xc0) != 0x80;
	text->last = at;
	text->last_offset = offset;
	return at;
}

static struct pem_text *text_of(const xmlNode *node)
{
	return node && node->doc ? node->doc->_private : NULL;
}

struct pem_spec_location pem_location__node(const xmlNode *node)
{
	struct pem_text *text = text_of(node);
	struct pem_spec_location none = {0, 0};

	if (!text)
		return none;
	return pem_location__offset(text, (size_t)(uintptr_t)node->_private);
}

static int is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct pem_spec_location pem_location__attribute(const xmlNode *node, const char *name)
{
	struct pem_text *text = text_of(node);
	size_t at, length = strlen(name), i;
	char quote = '\0';

	if (!text)
		return pem_location__node(node);
	at = (size_t)(uintptr_t)node->_private;
	for (i = at + 1; i + length < text->count && (quote || text->bytes[i] != '>'); i++) {
		if (quote) {
			quote = text->bytes[i] == quote ? '\0' : quote;
		} else if (text->bytes[i] == '\'' || text->bytes[i] == '"') {
			quote = text->bytes[i];
		} else if (is_space(text->bytes[i - 1]) && !memcmp(&text->bytes[i], name, length) &&
			   (text->bytes[i + length] == '=' || is_space(text->bytes[i + length]))) {
			return pem_location__offset(text, i);
		}
	}
	return pem_location__node(node);
}

struct pem_spec_location pem_location__line(const xmlNode *node, int line)
{
	struct pem_text *text = text_of(node);
	struct pem_spec_location at = {line, 1};
	size_t i;

	if (!text || line < 1 || (size_t)line > text->line_count)
		return at;
	for (i = text->line_starts[line - 1]; i < text->count && is_space(text->bytes[i]); i++)
		at.column++;
	return at;
}
