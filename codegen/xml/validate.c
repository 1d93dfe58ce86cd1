/* SPDX-License-Identifier: MIT */
/*
 * validate.c - checks a document against pem.xsd, with errors that say what was expected
 *
 * libxml2's validator stops in an element at the first child that it does not expect. So unexpected
 * children are reported and removed first, and one run finds all errors. The validator's messages
 * about values show regular expressions. The table below says it in words.
 */
#include "load.h"
#include "suggest.h"

#include <libxml/xmlschemas.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char pem_xsd[] =
#include "pem_xsd.h"
	;

static const char identifier[] = "a letter, then letters, digits or '_', 48 in all at most";
static const char free_text[] = "1 to 400 characters, none of them a control character or one "
				"that turns the direction of text";
static const char version[] = "a version, such as '1' or '2.14'";
static const char expression[] = "a C expression of letters, digits, spaces and any of _ . , * + - "
				 "& | < > ! ? : = ( ) [ ], 200 in all at most";
static const char layers[] = "'HW', 'OS', 'APP' or 'CPO'";
static const char numbers[] = "'uint8', 'uint16', 'uint32', 'uint64', 'int8', 'int16', 'int32', "
			      "'int64', 'float32', 'float64' or 'address'";

/* All attributes of the language, and what they may hold. */
static const struct {
	const char *element;
	const char *attribute;
	const char *expected;
} attributes[] = {
	{"spec", "provider",
	 "a lower-case letter, then lower-case letters, digits or '_', 15 in all at most"},
	{"spec", "version", version},
	{"spec", "description", free_text},
	{"enum", "name", identifier},
	{"enum", "description", free_text},
	{"flags", "name", identifier},
	{"flags", "description", free_text},
	{"struct", "name", identifier},
	{"struct", "description", free_text},
	{"label", "name", identifier},
	{"label", "value", "a whole number, decimal or hexadecimal as in '0x1f'"},
	{"label", "description", free_text},
	{"event", "name", "'LAYER::Class::Specifier', such as 'APP::Libc::Malloc'"},
	{"event", "version", "a whole number from 1 to 9999"},
	{"event", "level", "'error', 'warning', 'info', 'detail', 'debug' or 'named'"},
	{"event", "since", version},
	{"event", "deprecated", "what to use instead, in 1 to 400 characters"},
	{"event", "description", free_text},
	{"layerId", "value", layers},
	{"classId", "value", identifier},
	{"specifier", "value", identifier},
	{"meaning", "value",
	 "'sets-thread', 'thread-start', 'thread-end', 'process-name', 'thread-name', "
	 "'interval-begin', "
	 "'interval-end', 'counter', 'gauge', 'allocation', 'release', 'sample', 'send', "
	 "'receive', "
	 "'access', 'object', 'thread-waking', 'thread-runnable', 'process-arguments', "
	 "'descriptor-name', 'call-path', 'thread-state' or 'frame'"},
	{"meaning", "group", "a name of letters, digits, '_' and ':', 120 in all at most"},
	{"meaning", "scope", "'thread', 'process', 'cpu' or 'system'"},
	{"source", "type",
	 "'stub', 'tracepoint', 'perf', 'perf-sample', 'usdt', 'module', "
	 "'simulated', 'proc' or 'uprobe'"},
	{"source", "name", "letters, digits and any of _ : . = - (120 in all at most)"},
	{"source", "arguments",
	 "C parameters of letters, digits, '_', '*', ',' and spaces, 300 in all at most"},
	{"source", "kernel", "a range of kernels, such as '6.8-', '-6.7' or '5.18-6.7'"},
	{"source", "when", expression},
	{"source", "of", identifier},
	{"source", "binary", "the name of a program or library, such as 'libc.so.6'"},
	{"metric", "name", "LAYER::Class::Specifier, such as 'APP::Shop::Price'"},
	{"metric", "form", "'rate', 'ratio', 'difference', 'between' or 'quotient'"},
	{"metric", "of",
	 "the name of an event, or of one of its fields behind a point: 'APP::Shop::Sale.cents'; "
	 "of "
	 "a quotient a sum of such, with whole factors: '4*APP::A::B - APP::C::D'"},
	{"metric", "to", "as of=''"},
	{"metric", "unit", "what it is counted in, such as 'bytes' or 'none'"},
	{"metric", "description", free_text},
	{"from", "field", "the name of a field"},
	{"from", "value", expression},
	{"field", "name", identifier},
	{"field", "type",
	 "'uint8', 'uint16', 'uint32', 'uint64', 'int8', 'int16', 'int32', 'int64', 'float32', "
	 "'float64', 'address', 'string', 'list', 'array' or 'struct'"},
	{"field", "eltType", numbers},
	{"field", "max", "a whole number from 1 to 4096"},
	{"field", "count", "a whole number from 1 to 4096"},
	{"field", "of", identifier},
	{"field", "enum", identifier},
	{"field", "flags", identifier},
	{"field", "base", "'10' or '16'"},
	{"field", "unit",
	 "1 to 32 characters, none of them a control character or one that turns the direction of "
	 "text"},
	{"field", "role",
	 "'process', 'thread', 'previous-thread', 'parent', 'name', 'value', 'address', 'size', "
	 "'key', "
	 "'cpu', 'code', 'old-address', 'state', 'system-call', 'descriptor', "
	 "'interrupt', 'holder', 'stack', 'outer-stack' or 'file-kind'"},
	{"field", "from", expression},
	{"field", "description", free_text},
};

#define CHILDREN_MAX 6 /* kinds of children of one element */

/* Which elements may be children of which. */
static const struct {
	const char *parent;
	const char *children[CHILDREN_MAX + 1];
	int needed; /* this number of the first children must exist */
	unsigned many; /* a bit for each child that may occur more than once */
	int ordered; /* the children must be in this order */
} structure[] = {
	{"spec", {"event", "enum", "flags", "struct", "metric"}, 1, 0x1f, 0},
	{"event",
	 {"layerId", "classId", "specifier", "meaning", "source", "fields"},
	 3,
	 1u << 4,
	 1},
	{"enum", {"label"}, 1, 1, 0},
	{"flags", {"label"}, 1, 1, 0},
	{"struct", {"field"}, 1, 1, 0},
	{"source", {"from"}, 0, 1, 0},
	{"fields", {"field"}, 0, 1, 0},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Children of an element that were read so far. */
struct children {
	xmlNode *first[CHILDREN_MAX]; /* the first one of each kind, in the order of the row */
	int order_told; /* a child in the wrong order was reported */
};

struct validation {
	struct pem_spec_set *set;
	const char *path;
	const xmlNode *last_node; /* of the last error about an attribute's value */
	char last_attribute[48];
};

/*
 * Are there so many errors that no further one is shown? Then its location is not searched, and its
 * words are not made: each can take as long as the file.
 */
static int is_full(const struct validation *v)
{
	return v->set->error_count - v->set->warning_count > PEM_SPEC_ERRORS_MAX;
}

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

/* Mark where an error is, so that errors that follow from it are not reported. */
static void damage(xmlNode *node)
{
	if (!node)
		return;
	node->extra |= PEM_DAMAGED_ITSELF;
	for (node = node->parent; node && node->type == XML_ELEMENT_NODE; node = node->parent)
		node->extra |= PEM_DAMAGED_INSIDE;
}

/* Report an attribute that the element can't have. */
static void strange_attribute(struct validation *v, xmlNode *node, const char *element,
			      const char *attribute)
{
	struct pem_suggestion near = {.meant = attribute};
	char known[256], *meant;

	name_attributes(element, known, sizeof(known));
	pem_suggestion__try_list(&near, known);
	meant = pem_suggestion__text(&near, "'", "'");
	pem_spec_set__error(v->set, v->path, pem_location__attribute(node, attribute),
			    "<%s> has no attribute '%s': expected any of %s%s", element, attribute,
			    known, meant);
	free(meant);
}

/* Report an error about an attribute in our words. The validator reports one value up to twice. */
static void attribute_error(struct validation *v, xmlNode *node, const char *element,
			    const char *attribute)
{
	const char *expected = expected_value(element, attribute);
	struct pem_suggestion near = {.meant = ""};
	xmlChar *value;
	char *meant;

	if (v->last_node == node && !strcmp(v->last_attribute, attribute))
		return;
	v->last_node = node;
	snprintf(v->last_attribute, sizeof(v->last_attribute), "%s", attribute);
	if (!expected) {
		strange_attribute(v, node, element, attribute);
		return;
	}
	value = xmlGetNoNsProp(node, (const xmlChar *)attribute);
	if (value)
		near.meant = (const char *)value;
	pem_suggestion__try_list(&near, expected);
	meant = pem_suggestion__text(&near, "'", "'");
	pem_spec_set__error(v->set, v->path, pem_location__attribute(node, attribute),
			    "%s='%.80s' of <%s> is not valid: expected %s%s", attribute, near.meant,
			    element, expected, meant);
	free(meant);
	xmlFree(value);
}

static void missing_attribute(struct validation *v, xmlNode *node, const char *element,
			      const char *attribute)
{
	const char *expected = expected_value(element, attribute);

	pem_spec_set__error(v->set, v->path, pem_location__node(node),
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
			pem_spec_set__error(v->set, v->path, pem_location__node(node),
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
	damage(node);
	if (is_full(v))
		return;
	if (node && sscanf(text, "Element '%47[^']', attribute '%47[^']'", element, attribute) == 2)
		attribute_error(v, node, element, attribute);
	else if (node && sscanf(text, "Element '%47[^']': The attribute '%47[^']' is required",
				element, attribute) == 2)
		missing_attribute(v, node, element, attribute);
	else if (node && strstr(text, "Missing child element"))
		missing_children(v, node);
	else if (node &&
		 strstr(text, "This element is not expected")) /* those before it are missing */
		missing_children(v, node->parent);
	else
		pem_spec_set__error(v->set, v->path, pem_location__node(node), "%.*s",
				    (int)strcspn(text, "\n"), text);
}

/* Find the index of the node's name among the children that the parent may have. -1: none. */
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

/* A text node knows only the line of its end. Users look for the line of its first word. */
static struct pem_spec_location location_of_text(const xmlNode *node)
{
	const char *p =
		(const char *)node->content + strspn((const char *)node->content, " \t\r\n");
	struct pem_spec_location parent = pem_location__node(node->parent);
	int line = (int)xmlGetLineNo(node);

	for (; *p; p++)
		line -= *p == '\n';
	return line < parent.line ? parent : pem_location__line(node, line);
}

/* The first element read so far that should come after a child of kind i. NULL: none. */
static xmlNode *first_after(const struct children *seen, int i)
{
	while (++i < CHILDREN_MAX)
		if (seen->first[i])
			return seen->first[i];
	return NULL;
}

/*
 * Move a child that comes too late to its correct position, so that it is not reported as missing.
 * Reported once for each parent. before: the element to move it in front of.
 */
static void put_in_location(struct validation *v, size_t row, xmlNode *node, xmlNode *before,
			    struct children *seen)
{
	char known[128];

	if (!seen->order_told) {
		name_children(row, known, sizeof(known));
		pem_spec_set__error(v->set, v->path, pem_location__node(node),
				    "<%s> stands too late in <%s>: expected the order %s",
				    node->name, (const char *)node->parent->name, known);
	}
	seen->order_told = 1;
	xmlAddPrevSibling(before, node);
}

/* Report an element that parents of this row can't have. */
static void strange_element(struct validation *v, size_t row, const xmlNode *node,
			    const char *known)
{
	struct pem_suggestion near = {.meant = (const char *)node->name};
	char *meant;
	int i;

	for (i = 0; !node->ns && row < COUNT(structure) && structure[row].children[i]; i++)
		pem_suggestion__try(&near, structure[row].children[i],
				    strlen(structure[row].children[i]));
	meant = pem_suggestion__text(&near, "<", ">");
	pem_spec_set__error(v->set, v->path, pem_location__node(node),
			    "<%s%.48s> does not belong in <%s>: expected %s%s",
			    node->ns ? "other namespace:" : "", node->name,
			    (const char *)node->parent->name, known, meant);
	free(meant);
}

/* May the node stay below a parent of this row? If not, the error is noted. */
static int belongs(struct validation *v, size_t row, xmlNode *node, struct children *seen)
{
	const char *parent = (const char *)node->parent->name;
	char known[128] = "nothing";
	xmlNode *before;
	int i;

	if (node->type == XML_COMMENT_NODE || node->type == XML_PI_NODE)
		return 1;
	if (row < COUNT(structure))
		name_children(row, known, sizeof(known));
	if (node->type != XML_ELEMENT_NODE) {
		if (is_blank(node->content))
			return 1;
		if (!is_full(v))
			pem_spec_set__error(v->set, v->path, location_of_text(node),
					    "<%s> holds text: expected %s", parent, known);
		return 0;
	}
	i = row < COUNT(structure) ? child_index(row, node) : -1;
	if (i < 0) {
		if (!is_full(v))
			strange_element(v, row, node, known);
		return 0;
	}
	if (!(structure[row].many & 1u << i) && seen->first[i]) {
		if (!is_full(v))
			pem_spec_set__error(v->set, v->path, pem_location__node(node),
					    "a second <%s> in <%s>: expected one", node->name,
					    parent);
		return 0;
	}
	before = structure[row].ordered ? first_after(seen, i) : NULL;
	if (before)
		put_in_location(v, row, node, before, seen);
	if (!seen->first[i])
		seen->first[i] = node;
	return 1;
}

/*
 * Remove children that are not allowed. Recursion is at most as deep as the language, 4. Anything
 * deeper is removed.
 */
static void prune(struct validation *v, xmlNode *parent)
{
	xmlNode *node, *next;
	struct children seen = {0};
	size_t row = row_of(parent);

	for (node = parent->children; node; node = next) {
		next = node->next;
		if (!belongs(v, row, node, &seen)) {
			damage(parent);
			xmlUnlinkNode(node);
			xmlFreeNode(node);
		} else if (node->type == XML_ELEMENT_NODE) {
			prune(v, node);
		}
	}
}

/*
 * The schema is parsed once and kept for the next file, because parsing it takes longer than
 * parsing a spec.
 */
static xmlSchema *kept_schema;

static xmlSchema *schema_of_specs(void)
{
	xmlSchemaParserCtxt *parser;

	if (kept_schema)
		return kept_schema;
	parser = xmlSchemaNewMemParserCtxt(pem_xsd, (int)sizeof(pem_xsd) - 1);
	if (parser)
		kept_schema = xmlSchemaParse(parser);
	xmlSchemaFreeParserCtxt(parser);
	return kept_schema;
}

void pem_spec_set__cleanup(void)
{
	xmlSchemaFree(kept_schema);
	kept_schema = NULL;
}

static int run_schema(struct validation *v, xmlDoc *doc)
{
	xmlSchema *schema = schema_of_specs();
	xmlSchemaValidCtxt *valid = schema ? xmlSchemaNewValidCtxt(schema) : NULL;
	struct pem_spec_location whole = {0, 0};
	int r;

	if (!valid) {
		pem_spec_set__error(v->set, v->path, whole,
				    "the built-in pem.xsd can't be used: "
				    "expected a pem-codegen built from a sound one");
		return -EINVAL;
	}
	xmlSchemaSetValidStructuredErrors(valid, on_schema_error, v);
	r = xmlSchemaValidateDoc(valid, doc) < 0 ? -EINVAL : 0;
	xmlSchemaFreeValidCtxt(valid);
	return r;
}

static int is_part_of_spec(const xmlNode *node)
{
	size_t i;

	for (i = 0; structure[0].children[i]; i++) {
		if (!strcmp((const char *)node->name, structure[0].children[i]))
			return 1;
	}
	return 0;
}

/*
 * Put the root into a <spec>, so that the errors in it are found in the same run. No provider has
 * the name.
 */
static xmlNode *wrap(xmlDoc *doc, xmlNode *root)
{
	xmlNode *spec = xmlNewDocNode(doc, NULL, (const xmlChar *)"spec", NULL);

	if (!spec)
		return NULL;
	xmlNewProp(spec, (const xmlChar *)"provider", (const xmlChar *)"name");
	xmlDocSetRootElement(doc, spec);
	xmlAddChild(spec, root);
	return spec;
}

int pem_validate(struct pem_spec_set *set, const char *path, xmlDoc *doc)
{
	struct validation v = {.set = set, .path = path};
	xmlNode *root = xmlDocGetRootElement(doc);

	if (root && !root->ns && is_part_of_spec(root)) {
		pem_spec_set__error(set, path, pem_location__node(root),
				    "<%s> stands outside of <spec>: put <spec provider='NAME' "
				    "version='1.0'> before it and </spec> after it",
				    (const char *)root->name);
		root = wrap(doc, root);
	}
	if (!root || root->ns || strcmp((const char *)root->name, "spec")) {
		pem_spec_set__error(
			set, path, pem_location__node(root),
			"the root element is <%s%.48s>: expected <spec>, in no namespace",
			root && root->ns ? "other namespace:" : "",
			root ? (const char *)root->name : "");
		return -EINVAL;
	}
	prune(&v, root);
	return run_schema(&v, doc);
}
