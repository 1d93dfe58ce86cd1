/* SPDX-License-Identifier: MIT */
/*
 * load.c - spec files into the model
 *
 * Takes hostile input: sizes are bounded, a DOCTYPE (and with it every entity) is refused before it can act, nothing
 * is fetched. Not here: what makes a well-formed file a valid one (validate.c, check.c).
 */
#include "load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct pem_spec *add_spec(struct pem_spec_set *set, const char *path)
{
	struct pem_spec *spec;
	const char *slash;

	set->specs = pem_xgrow(set->specs, set->count, sizeof(*set->specs));
	spec = &set->specs[set->count++];
	memset(spec, 0, sizeof(*spec));
	spec->path = pem_xstrdup(path);
	slash = strrchr(spec->path, '/');
	spec->file = slash ? slash + 1 : spec->path;
	return spec;
}

static char *attribute(xmlNode *node, const char *name)
{
	xmlChar *value = xmlGetNoNsProp(node, (const xmlChar *)name);
	char *copy = value ? pem_xstrdup((const char *)value) : NULL;

	xmlFree(value);
	return copy;
}

/* An attribute with runs of white space made one space, as xs:token has it. */
static char *sentence(xmlNode *node, const char *name)
{
	char *text = attribute(node, name), *in, *out;

	if (!text)
		return NULL;
	for (in = out = text; *in; in++) {
		if (!strchr(" \t\r\n", *in))
			*out++ = *in;
		else if (out > text && out[-1] != ' ')
			*out++ = ' ';
	}
	if (out > text && out[-1] == ' ')
		out--;
	*out = '\0';
	return text;
}

/* An attribute that becomes part of generated text; NULL, which checks pass over, unless it is a plain name. */
static char *plain(xmlNode *node, const char *name)
{
	char *text = attribute(node, name);

	if (text && (!*text || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					    "0123456789_:") != strlen(text))) {
		free(text);
		return NULL;
	}
	return text;
}

/* A layer's name, or NULL if there is none of that name. */
static char *layer(xmlNode *node)
{
	static const char *const layers[] = {"HW", "OS", "APP", "CPO"};
	char *text = plain(node, "value");
	size_t i;

	for (i = 0; text && i < sizeof(layers) / sizeof(layers[0]); i++) {
		if (!strcmp(text, layers[i]))
			return text;
	}
	free(text);
	return NULL;
}

/* An attribute that holds one of a set of words: its value, or none if it is absent or unknown. */
static uint8_t choice(xmlNode *node, const char *name, int (*value_of)(const char *))
{
	char *text = attribute(node, name);
	int value = text ? value_of(text) : 0;

	free(text);
	return value > 0 ? (uint8_t)value : 0;
}

static xmlNode *next_element(xmlNode *node)
{
	while (node && node->type != XML_ELEMENT_NODE)
		node = node->next;
	return node;
}

static int is(const xmlNode *node, const char *name)
{
	return !strcmp((const char *)node->name, name);
}

static void read_field(struct pem_spec_field *field, xmlNode *node)
{
	char *text;

	memset(field, 0, sizeof(*field));
	field->line = (int)xmlGetLineNo(node);
	field->name = plain(node, "name");
	field->description = sentence(node, "description");
	field->unit = sentence(node, "unit");
	if (!field->unit)
		field->unit = pem_xstrdup("");
	field->from = attribute(node, "from");
	field->type = choice(node, "type", pem_word__type_of);
	field->element_type = choice(node, "eltType", pem_word__type_of);
	field->role = choice(node, "role", pem_word__role_of);
	field->has_max = xmlHasProp(node, (const xmlChar *)"max") != NULL;
	field->has_element_type = xmlHasProp(node, (const xmlChar *)"eltType") != NULL;
	field->has_base = xmlHasProp(node, (const xmlChar *)"base") != NULL;
	text = attribute(node, "base");
	field->base = text && !strcmp(text, "16") ? 16 : 10;
	free(text);
	field->max_count = field->type == PEM_TYPE_LIST     ? PEM_SPEC_LIST_DEFAULT
			   : field->type == PEM_TYPE_STRING ? PEM_SPEC_STRING_DEFAULT
							    : 1;
	text = attribute(node, "max");
	if (text)
		field->max_count = (uint32_t)strtoul(text, NULL, 10);
	free(text);
}

static void read_fields(struct pem_spec_event *event, xmlNode *node)
{
	for (node = next_element(node->children); node; node = next_element(node->next)) {
		event->fields =
			pem_xgrow(event->fields, event->field_count, sizeof(*event->fields));
		read_field(&event->fields[event->field_count++], node);
	}
}

static void read_event(struct pem_spec_event *event, xmlNode *node)
{
	memset(event, 0, sizeof(*event));
	event->line = (int)xmlGetLineNo(node);
	event->name = plain(node, "name");
	event->description = sentence(node, "description");
	for (node = next_element(node->children); node; node = next_element(node->next)) {
		if (is(node, "layerId"))
			event->layer = layer(node);
		else if (is(node, "classId"))
			event->class_name = plain(node, "value");
		else if (is(node, "specifier"))
			event->specifier = plain(node, "value");
		else if (is(node, "meaning"))
			event->meaning = choice(node, "value", pem_word__meaning_of);
		else if (is(node, "fields"))
			read_fields(event, node);
		else if (is(node, "source")) {
			event->source_kind = choice(node, "type", pem_word__source_of);
			event->source_name = attribute(node, "name");
			event->source_arguments = attribute(node, "arguments");
		}
	}
	if (!event->source_name)
		event->source_name = pem_xstrdup("");
}

static void read_spec(struct pem_spec *spec, xmlNode *root)
{
	xmlNode *node;

	spec->line = (int)xmlGetLineNo(root);
	spec->provider = plain(root, "provider");
	spec->description = sentence(root, "description");
	for (node = next_element(root->children); node; node = next_element(node->next)) {
		spec->events = pem_xgrow(spec->events, spec->event_count, sizeof(*spec->events));
		read_event(&spec->events[spec->event_count++], node);
	}
}

/* What the parser's callbacks need: they get the context, whose _private is this. */
struct parse {
	struct pem_spec_set *set;
	const char *path;
	int errors;
};

static void on_error(void *data, pem_xml_error *error)
{
	struct parse *parse = ((xmlParserCtxt *)data)->_private;
	const char *text = error->message ? error->message : "not well-formed XML";

	if (error->level < XML_ERR_ERROR)
		return;
	parse->errors++;
	pem_spec_set__error(parse->set, parse->path, error->line,
			    "the file is not well-formed XML: %.*s", (int)strcspn(text, "\n"),
			    text);
}

/* An entity can grow to any size, or be a file; specs need none. */
static void on_doctype(void *data, const xmlChar *name, const xmlChar *id, const xmlChar *uri)
{
	xmlParserCtxt *ctxt = data;
	struct parse *parse = ctxt->_private;

	(void)name;
	(void)id;
	(void)uri;
	parse->errors++;
	pem_spec_set__error(parse->set, parse->path, ctxt->input ? ctxt->input->line : 1,
			    "a DOCTYPE is refused: expected the root element <spec>, "
			    "with no document type and no entities of its own");
	xmlStopParser(ctxt);
}

/* libxml2 notes the line where a start tag ends; people look for where it starts. A '<' can't lie within a tag. */
static void on_element(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
		       int namespaces_count, const xmlChar **namespaces, int attributes_count,
		       int defaulted_count, const xmlChar **attributes)
{
	xmlParserCtxt *ctxt = data;
	const xmlChar *p;
	int lines = 0;

	xmlSAX2StartElementNs(data, name, prefix, uri, namespaces_count, namespaces,
			      attributes_count, defaulted_count, attributes);
	if (!ctxt->node || !ctxt->input || ctxt->input->line >= 65535)
		return;
	for (p = ctxt->input->cur; p > ctxt->input->base && *p != '<'; p--)
		lines += *p == '\n';
	if (*p == '<' && lines < ctxt->node->line)
		ctxt->node->line -= lines;
}

static xmlDoc *parse_bytes(struct pem_spec_set *set, const char *path, const char *bytes,
			   size_t count)
{
	struct parse parse = {.set = set, .path = path};
	xmlParserCtxt *ctxt = xmlNewParserCtxt();
	xmlDoc *doc = NULL;

	if (!ctxt) {
		pem_spec_set__error(set, path, 0, "no memory for the XML parser");
		return NULL;
	}
	ctxt->_private = &parse;
	ctxt->sax->serror = on_error;
	ctxt->sax->internalSubset = on_doctype;
	ctxt->sax->startElementNs = on_element;
	doc = xmlCtxtReadMemory(ctxt, bytes, (int)count, NULL, NULL,
				XML_PARSE_NONET | XML_PARSE_BIG_LINES | XML_PARSE_NOCDATA);
	if (doc && parse.errors) {
		xmlFreeDoc(doc);
		doc = NULL;
	}
	if (!doc && !parse.errors)
		pem_spec_set__error(set, path, 1, "the file is not XML: expected <spec>");
	if (!doc && ctxt->myDoc)
		xmlFreeDoc(ctxt->myDoc);
	xmlFreeParserCtxt(ctxt);
	return doc;
}

void pem_spec_set__load_bytes(struct pem_spec_set *set, const char *path, const char *bytes,
			      size_t count)
{
	struct pem_spec *spec = add_spec(set, path);
	xmlNode *root;
	xmlDoc *doc;

	spec->hash = pem_hash64(bytes, count);
	if (count > PEM_SPEC_FILE_BYTES_MAX) {
		pem_spec_set__error(set, spec->path, 0,
				    "the file is larger than %u bytes: split the spec into several",
				    PEM_SPEC_FILE_BYTES_MAX);
		return;
	}
	doc = parse_bytes(set, spec->path, bytes, count);
	if (!doc)
		return;
	root = xmlDocGetRootElement(doc);
	if (pem_validate(set, spec->path, doc) == 0 && root)
		read_spec(spec, root);
	xmlFreeDoc(doc);
}

/* Up to one byte more than a spec may have. Bytes read, or -errno. */
static ssize_t read_file(const char *path, char *buffer, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	size_t n = 0;
	ssize_t r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || S_ISREG(st.st_mode) == 0) {
		close(fd);
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	}
	while (n < bytes && (r = read(fd, buffer + n, bytes - n)) != 0) {
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0) {
			r = -errno;
			break;
		}
		n += (size_t)r;
	}
	close(fd);
	return r < 0 ? r : (ssize_t)n;
}

void pem_spec_set__load(struct pem_spec_set *set, const char *path)
{
	size_t bytes = PEM_SPEC_FILE_BYTES_MAX + 1;
	char *buffer = pem_xrealloc(NULL, bytes, 1);
	ssize_t n = read_file(path, buffer, bytes);

	if (n >= 0)
		pem_spec_set__load_bytes(set, path, buffer, (size_t)n);
	else
		pem_spec_set__error(set, add_spec(set, path)->path, 0,
				    "the file can't be read: %s; expected a readable spec",
				    n == -EINVAL ? "it is no regular file" : strerror((int)-n));
	free(buffer);
}
