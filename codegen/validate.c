/* SPDX-License-Identifier: MIT */
/*
 * validate.c - a document against pem.xsd, with errors that say what was expected
 *
 * libxml2's validator stops looking into an element at the first child that it does not expect, so strange children
 * are reported and taken out first: that way one run finds all errors. Its sentences about values show regular
 * expressions; the table below says the same for people.
 */
#include "load.h"

#include <libxml/xmlschemas.h>

#include <errno.h>
#include <string.h>

static const char pem_xsd[] =
#include "pem_xsd.h"
	;

static const char identifier[] = "a letter, then letters, digits or '_', 48 in all at most";
static const char free_text[] = "1 to 400 characters, none of them a control character";
static const char layers[] = "'HW', 'OS', 'APP' or 'CPO'";
static const char numbers[] = "'uint8', 'uint16', 'uint32', 'uint64', 'int8', 'int16', 'int32', "
			      "'int64', 'float32' or 'float64'";

/* Every attribute of the language, and what it may hold. */
static const struct {
	const char *element;
	const char *attribute;
	const char *expected;
} attributes[] = {
	{"spec", "provider",
	 "a lower-case letter, then lower-case letters, digits or '_', 15 in all at most"},
	{"spec", "description", free_text},
	{"event", "name", "'LAYER::Class::Specifier', such as 'APP::Libc::Malloc'"},
	{"event", "description", free_text},
	{"layerId", "value", layers},
	{"classId", "value", identifier},
	{"specifier", "value", identifier},
	{"meaning", "value",
	 "'sets-thread', 'thread-start', 'thread-end', 'process-name', 'interval-begin', "
	 "'interval-end', 'counter', 'gauge', 'allocation', 'release' or 'sample'"},
	{"source", "type", "'stub', 'tracepoint', 'perf' or 'perf-sample'"},
	{"source", "name", "letters, digits and any of _ : . = - (120 in all at most)"},
	{"source", "arguments",
	 "C parameters of letters, digits, '_', '*', ',' and spaces, 300 in all at most"},
	{"field", "name", identifier},
	{"field", "type",
	 "'uint8', 'uint16', 'uint32', 'uint64', 'int8', 'int16', 'int32', 'int64', 'float32', "
	 "'float64', 'string' or 'list'"},
	{"field", "eltType", numbers},
	{"field", "max", "a whole number from 1 to 4096"},
	{"field", "base", "'10' or '16'"},
	{"field", "unit", "1 to 32 characters, none of them a control character"},
	{"field", "role",
	 "'process', 'thread', 'previous-thread', 'parent', 'name', 'value', 'address' or 'size'"},
	{"field", "from",
	 "a C expression of letters, digits, spaces and any of _ . , * + - & | < > ! ? : = ( ) [ "
	 "], "
	 "200 in all at most"},
	{"field", "description", free_text},
};

/* Which elements may stand in which. */
static const struct {
	const char *parent;
	const char *children[7];
	int needed; /* that many of the first children can't be missing */
	int once; /* each at most once */
} structure[] = {
	{"spec", {"event"}, 1, 0},
	{"event", {"layerId", "classId", "specifier", "meaning", "source", "fields"}, 3, 1},
	{"fields", {"field"}, 0, 0},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct validation {
	struct pem_spec_set *set;
	const char *path;
	const xmlNode *last_node; /* of the last error about an attribute's value */
	char last_attribute[48];
};

static const char *expected_value(const char *element, const char *attribute)
{
	size_t i;

	for (i = 0; i < COUNT(attributes); i++) {
		if (!strcmp(attributes[i].element, element) &&
		    !strcmp(attributes[i].attribute, attribute))
			return attributes[i].expected;
	}
	return NULL;
}

static void name_attributes(const char *element, char *text, size_t bytes)
{
	size_t i, n = 0;

	text[0] = '\0';
	for (i = 0; i < COUNT(attributes) && n < bytes; i++) {
		if (!strcmp(attributes[i].element, element))
			n += (size_t)snprintf(text + n, bytes - n, "%s'%s'", n ? ", " : "",
					      attributes[i].attribute);
	}
	if (!n)
		snprintf(text, bytes, "no attribute");
}

/* An error about an attribute: in our words. The validator reports one value up to twice. */
static void attribute_error(struct validation *v, xmlNode *node, const char *element,
			    const char *attribute)
{
	const char *expected = expected_value(element, attribute);
	int line = (int)xmlGetLineNo(node);
	char known[256];
	xmlChar *value;

	if (v->last_node == node && !strcmp(v->last_attribute, attribute))
		return;
	v->last_node = node;
	snprintf(v->last_attribute, sizeof(v->last_attribute), "%s", attribute);
	if (!expected) {
		name_attributes(element, known, sizeof(known));
		pem_spec_set__error(v->set, v->path, line,
				    "<%s> has no attribute '%s': expected any of %s", element,
				    attribute, known);
		return;
	}
	value = xmlGetNoNsProp(node, (const xmlChar *)attribute);
	pem_spec_set__error(v->set, v->path, line, "%s='%.80s' of <%s> is not valid: expected %s",
			    attribute, value ? (const char *)value : "", element, expected);
	xmlFree(value);
}

static void missing_attribute(struct validation *v, xmlNode *node, const char *element,
			      const char *attribute)
{
	const char *expected = expected_value(element, attribute);

	pem_spec_set__error(v->set, v->path, (int)xmlGetLineNo(node),
			    "<%s> lacks its attribute '%s': expected %s", element, attribute,
			    expected ? expected : "a value");
}

static size_t row_of(const xmlNode *node)
{
	size_t row = 0;

	while (row < COUNT(structure) && strcmp(structure[row].parent, (const char *)node->name))
		row++;
	return row;
}

static void missing_children(struct validation *v, xmlNode *node)
{
	size_t row = row_of(node);
	const char *name;
	xmlNode *child;
	int i;

	for (i = 0; row < COUNT(structure) && i < structure[row].needed; i++) {
		name = structure[row].children[i];
		child = node->children;
		while (child && strcmp((const char *)child->name, name))
			child = child->next;
		if (!child)
			pem_spec_set__error(v->set, v->path, (int)xmlGetLineNo(node),
					    "<%s> holds no <%s>: expected one", node->name, name);
	}
}

static void on_schema_error(void *data, pem_xml_error *error)
{
	struct validation *v = data;
	xmlNode *node = error->node;
	const char *text = error->message ? error->message : "not valid";
	char element[48], attribute[48];

	if (node && node->type == XML_ATTRIBUTE_NODE)
		node = node->parent;
	if (node && sscanf(text, "Element '%47[^']', attribute '%47[^']'", element, attribute) == 2)
		attribute_error(v, node, element, attribute);
	else if (node && sscanf(text, "Element '%47[^']': The attribute '%47[^']' is required",
				element, attribute) == 2)
		missing_attribute(v, node, element, attribute);
	else if (node && strstr(text, "Missing child element"))
		missing_children(v, node);
	else
		pem_spec_set__error(v->set, v->path, node ? (int)xmlGetLineNo(node) : error->line,
				    "%.*s", (int)strcspn(text, "\n"), text);
}

/* The name at parent, among the children that belong there; -1 if none. */
static int child_index(size_t row, const xmlNode *node)
{
	int i;

	for (i = 0; structure[row].children[i]; i++) {
		if (!node->ns && !strcmp((const char *)node->name, structure[row].children[i]))
			return i;
	}
	return -1;
}

static void name_children(size_t row, char *text, size_t bytes)
{
	size_t n = 0;
	int i;

	text[0] = '\0';
	for (i = 0; structure[row].children[i] && n < bytes; i++)
		n += (size_t)snprintf(text + n, bytes - n, "%s<%s>", n ? ", " : "",
				      structure[row].children[i]);
}

static int is_blank(const xmlChar *text)
{
	return !text || text[strspn((const char *)text, " \t\r\n")] == '\0';
}

/* Text's node knows the line where it ends; people look for where its first word is. */
static int line_of_text(const xmlNode *node)
{
	const char *p =
		(const char *)node->content + strspn((const char *)node->content, " \t\r\n");
	int line = (int)xmlGetLineNo(node), parent = (int)xmlGetLineNo(node->parent);

	for (; *p; p++)
		line -= *p == '\n';
	return line < parent ? parent : line;
}

/* May the node stay below a parent of this row? If not, the error is noted. seen: of children that stand once. */
static int belongs(struct validation *v, size_t row, const xmlNode *node, unsigned *seen)
{
	const char *parent = (const char *)node->parent->name;
	char known[128] = "nothing";
	int line = (int)xmlGetLineNo(node), i;

	if (node->type == XML_COMMENT_NODE || node->type == XML_PI_NODE)
		return 1;
	if (row < COUNT(structure))
		name_children(row, known, sizeof(known));
	if (node->type != XML_ELEMENT_NODE) {
		if (is_blank(node->content))
			return 1;
		pem_spec_set__error(v->set, v->path, line_of_text(node),
				    "<%s> holds text: expected %s", parent, known);
		return 0;
	}
	i = row < COUNT(structure) ? child_index(row, node) : -1;
	if (i < 0) {
		pem_spec_set__error(v->set, v->path, line,
				    "<%s%.48s> does not belong in <%s>: expected %s",
				    node->ns ? "other namespace:" : "", node->name, parent, known);
		return 0;
	}
	if (structure[row].once && *seen & 1u << i) {
		pem_spec_set__error(v->set, v->path, line, "a second <%s> in <%s>: expected one",
				    node->name, parent);
		return 0;
	}
	*seen |= 1u << i;
	return 1;
}

/* Take out what does not belong. Recursion is as deep as the language, 4: what is deeper does not belong. */
static void prune(struct validation *v, xmlNode *parent)
{
	xmlNode *node, *next;
	unsigned seen = 0;
	size_t row = row_of(parent);

	for (node = parent->children; node; node = next) {
		next = node->next;
		if (!belongs(v, row, node, &seen)) {
			xmlUnlinkNode(node);
			xmlFreeNode(node);
		} else if (node->type == XML_ELEMENT_NODE) {
			prune(v, node);
		}
	}
}

static int run_schema(struct validation *v, xmlDoc *doc)
{
	xmlSchemaParserCtxt *parser = NULL;
	xmlSchemaValidCtxt *valid = NULL;
	xmlSchema *schema = NULL;
	int r = -EINVAL;

	parser = xmlSchemaNewMemParserCtxt(pem_xsd, (int)sizeof(pem_xsd) - 1);
	if (parser)
		schema = xmlSchemaParse(parser);
	if (schema)
		valid = xmlSchemaNewValidCtxt(schema);
	if (!valid) {
		pem_spec_set__error(v->set, v->path, 0,
				    "the built-in pem.xsd can't be used: "
				    "expected a pem-codegen built from a sound one");
		goto out;
	}
	xmlSchemaSetValidStructuredErrors(valid, on_schema_error, v);
	r = xmlSchemaValidateDoc(valid, doc) < 0 ? -EINVAL : 0;
out:
	xmlSchemaFreeValidCtxt(valid);
	xmlSchemaFree(schema);
	xmlSchemaFreeParserCtxt(parser);
	return r;
}

int pem_validate(struct pem_spec_set *set, const char *path, xmlDoc *doc)
{
	struct validation v = {.set = set, .path = path};
	xmlNode *root = xmlDocGetRootElement(doc);

	if (!root || root->ns || strcmp((const char *)root->name, "spec")) {
		pem_spec_set__error(
			set, path, root ? (int)xmlGetLineNo(root) : 1,
			"the root element is <%s%.48s>: expected <spec>, in no namespace",
			root && root->ns ? "other namespace:" : "",
			root ? (const char *)root->name : "");
		return -EINVAL;
	}
	prune(&v, root);
	return run_schema(&v, doc);
}
