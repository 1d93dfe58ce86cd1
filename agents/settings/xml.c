/* SPDX-License-Identifier: MIT */
/* xml.c - an XML document that keeps to a schema, and the places of its mistakes */
#include "xml.h"

#include <errno.h>
#include <fcntl.h>
#include <libxml/parser.h>
#include <libxml/xmlschemas.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BYTES_MAX (1u << 20)

#if LIBXML_VERSION >= 21200
typedef const xmlError xml_error;
#else
typedef xmlError xml_error;
#endif

struct settings_xml {
	char *path;
	char *bytes; /* ended by NUL */
	xmlDoc *document;
	const char *schema, *schema_name;
	struct pem_error *error;
	bool failed; /* error has the first mistake */
};

static const xmlNode *node_of(const struct settings_xml_node *node)
{
	return (const xmlNode *)node;
}

static const struct settings_xml_node *element_from(const xmlNode *node)
{
	while (node && node->type != XML_ELEMENT_NODE)
		node = node->next;
	return (const struct settings_xml_node *)node;
}

/* --- places --- */

/* Write the first mistake only. */
static void note(struct settings_xml *xml, size_t offset, const char *format, va_list args)
{
	size_t line = 1, column = 1, i, used;

	if (xml->failed)
		return;
	xml->failed = true;
	for (i = 0; i < offset; i++) {
		column = xml->bytes[i] == '\n' ? 1 : column + 1;
		line += xml->bytes[i] == '\n';
	}
	used = (size_t)snprintf(xml->error->text, sizeof(xml->error->text),
				"%.200s:%zu:%zu: ", xml->path, line, column);
	vsnprintf(xml->error->text + used, sizeof(xml->error->text) - used, format, args);
}

static void note_at(struct settings_xml *xml, size_t offset, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void note_at(struct settings_xml *xml, size_t offset, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(xml, offset, format, args);
	va_end(args);
}

/* The offset of a line's column; of the last byte, if there is no such place. */
static size_t offset_of_line(const struct settings_xml *xml, int line, int column)
{
	const char *at = xml->bytes, *next;

	for (; line > 1 && (next = strchr(at, '\n')); line--)
		at = next + 1;
	while (column > 1 && *at && *at != '\n') {
		at++;
		column--;
	}
	return (size_t)(at - xml->bytes);
}

static bool is_tag_of(const xmlNode *node, const char *at)
{
	size_t n = strlen((const char *)node->name);

	return *at == '<' && !strncmp(at + 1, (const char *)node->name, n) &&
	       strchr(" \t\r\n/>", at[n + 1]);
}

/*
 * Where an element's tag begins. libxml2 tells the line of the tag's end: the tag is the last one
 * of that name up to there, but for those of later elements that end in the same line.
 */
static size_t offset_of_node(const struct settings_xml *xml, const xmlNode *node)
{
	size_t end = offset_of_line(xml, (int)xmlGetLineNo(node) + 1, 1), at = end;
	const xmlNode *next;
	size_t later = 0;

	for (next = node->next; next; next = next->next)
		later += next->type == XML_ELEMENT_NODE && xmlStrEqual(next->name, node->name) &&
			 xmlGetLineNo(next) == xmlGetLineNo(node);
	while (at-- > 0) {
		if (is_tag_of(node, xml->bytes + at) && !later--)
			return at;
	}
	return end;
}

/* Where an attribute's value begins; of the tag, if the element does not have it. */
static size_t offset_of_attribute(const struct settings_xml *xml, const xmlNode *node,
				  const char *attribute)
{
	size_t tag = offset_of_node(xml, node), n = attribute ? strlen(attribute) : 0;
	const char *at = xml->bytes + tag;
	char quote = 0;

	for (; n && *at && (quote || *at != '>'); at++) {
		if (quote || *at == '"' || *at == '\'') {
			quote = !quote ? *at : *at == quote ? 0 : quote;
			continue;
		}
		if (!strchr(" \t\r\n", *at) || strncmp(at + 1, attribute, n) ||
		    !strchr(" \t\r\n=", at[n + 1]))
			continue;
		at = strpbrk(at, "\"'");
		return at ? (size_t)(at + 1 - xml->bytes) : tag;
	}
	return tag;
}

int settings_xml__refuse(struct settings_xml *xml, const struct settings_xml_node *node,
			 const char *attribute, size_t at, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	note(xml, offset_of_attribute(xml, node_of(node), attribute) + at, format, args);
	va_end(args);
	return -EINVAL;
}

/* --- mistakes that libxml2 finds --- */

static void on_parse_error(void *arg, xml_error *error)
{
	struct settings_xml *xml = arg;

	if (error->level > XML_ERR_WARNING)
		note_at(xml, offset_of_line(xml, error->line, error->int2), "not XML: %.*s",
			(int)strcspn(error->message, "\n"), error->message);
}

/* "Element 'x', attribute 'y': ..." has the attribute's name. */
static void on_schema_error(void *arg, xml_error *error)
{
	static const char word[] = "attribute '";
	struct settings_xml *xml = arg;
	const char *text = error->message, *name = strstr(text, word);
	char attribute[64] = "";
	size_t offset;

	if (name)
		snprintf(attribute, sizeof(attribute), "%.*s",
			 (int)strcspn(name + sizeof(word) - 1, "'"), name + sizeof(word) - 1);
	offset = error->node ? offset_of_attribute(xml, error->node, name ? attribute : NULL)
			     : offset_of_line(xml, error->line, 1);
	note_at(xml, offset, "%.*s", (int)strcspn(text, "\n"), text);
}

static int validate(struct settings_xml *xml)
{
	xmlSchemaParserCtxt *parser =
		xmlSchemaNewMemParserCtxt(xml->schema, (int)strlen(xml->schema));
	xmlSchema *schema = parser ? xmlSchemaParse(parser) : NULL;
	xmlSchemaValidCtxt *valid = schema ? xmlSchemaNewValidCtxt(schema) : NULL;

	if (valid) {
		xmlSchemaSetValidStructuredErrors(valid, on_schema_error, xml);
		if (xmlSchemaValidateDoc(valid, xml->document) && !xml->failed)
			note_at(xml, 0, "it does not keep to %s", xml->schema_name);
	} else {
		note_at(xml, 0, "%s can't be used: out of memory", xml->schema_name);
	}
	xmlSchemaFreeValidCtxt(valid);
	xmlSchemaFree(schema);
	xmlSchemaFreeParserCtxt(parser);
	return xml->failed ? -EINVAL : 0;
}

static int parse(struct settings_xml *xml)
{
	xmlParserCtxt *parser = xmlNewParserCtxt();

	if (!parser)
		return -ENOMEM;
	/* Text goes on after a comment. */
	parser->sax->comment = NULL;
	parser->sax->processingInstruction = NULL;
	xmlSetStructuredErrorFunc(xml, on_parse_error);
	xml->document = xmlCtxtReadMemory(parser, xml->bytes, (int)strlen(xml->bytes), xml->path,
					  NULL, XML_PARSE_NONET | XML_PARSE_NOCDATA);
	xmlSetStructuredErrorFunc(NULL, NULL);
	xmlFreeParserCtxt(parser);
	if (!xml->document && !xml->failed)
		note_at(xml, 0, "not XML");
	if (xml->document && xml->document->intSubset)
		note_at(xml, 0, "a document type is not allowed here: remove <!DOCTYPE ...>");
	return xml->failed ? -EINVAL : validate(xml);
}

static int read_bytes(struct settings_xml *xml)
{
	int fd = open(xml->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t got = 0;
	size_t count = 0;
	int rc = 0;

	if (fd < 0 || fstat(fd, &st))
		rc = -errno;
	else if (!S_ISREG(st.st_mode))
		rc = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	while (!rc && count <= BYTES_MAX &&
	       (got = read(fd, xml->bytes + count, BYTES_MAX + 1 - count)) > 0)
		count += (size_t)got;
	if (!rc && got < 0)
		rc = -errno;
	if (!rc && count > BYTES_MAX)
		rc = -EFBIG;
	if (fd >= 0)
		close(fd);
	if (!rc) {
		xml->bytes[count] = '\0';
		if (strlen(xml->bytes) != count) {
			note_at(xml, strlen(xml->bytes), "not XML: it has a byte 0");
			return -EINVAL;
		}
		return 0;
	}
	snprintf(xml->error->text, sizeof(xml->error->text), "%.300s can't be read: %s", xml->path,
		 rc == -EINVAL  ? "it is not a regular file"
		 : rc == -EFBIG ? "it has more than 1 MiB"
				: strerror(-rc));
	return rc;
}

int settings_xml__open(struct settings_xml **made, const char *path, const char *schema,
		       const char *schema_name, struct pem_error *error)
{
	struct settings_xml *xml = *made = calloc(1, sizeof(*xml));
	int rc = -ENOMEM;

	if (xml) {
		xml->error = error;
		xml->schema = schema;
		xml->schema_name = schema_name;
		xml->path = strdup(path);
		xml->bytes = malloc(BYTES_MAX + 2);
	}
	if (xml && xml->path && xml->bytes)
		rc = read_bytes(xml);
	if (!rc)
		rc = parse(xml);
	if (rc == -ENOMEM)
		snprintf(error->text, sizeof(error->text), "out of memory");
	return rc;
}

void settings_xml__close(struct settings_xml *xml)
{
	if (!xml)
		return;
	xmlFreeDoc(xml->document);
	free(xml->path);
	free(xml->bytes);
	free(xml);
}

/* --- the tree --- */

const struct settings_xml_node *settings_xml__root(const struct settings_xml *xml)
{
	return (const struct settings_xml_node *)xmlDocGetRootElement(xml->document);
}

const struct settings_xml_node *settings_xml__first(const struct settings_xml_node *node)
{
	return element_from(node_of(node)->children);
}

const struct settings_xml_node *settings_xml__next(const struct settings_xml_node *node)
{
	return element_from(node_of(node)->next);
}

const char *settings_xml__name(const struct settings_xml_node *node)
{
	return (const char *)node_of(node)->name;
}

const char *settings_xml__attribute(const struct settings_xml_node *node, const char *name)
{
	const xmlAttr *attribute = xmlHasProp(node_of(node), (const xmlChar *)name);

	if (!attribute)
		return NULL;
	return attribute->children ? (const char *)attribute->children->content : "";
}

const char *settings_xml__text(const struct settings_xml_node *node)
{
	const xmlNode *child = node_of(node)->children;

	return child && child->type == XML_TEXT_NODE ? (const char *)child->content : NULL;
}
