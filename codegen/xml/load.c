/* SPDX-License-Identifier: MIT */
/*
 * load.c - reads spec files into the model
 *
 * The input is hostile. Sizes are bounded. A DOCTYPE, and with it each entity, is refused before it
 * has an effect. Nothing is fetched. Not here: whether a well-formed file is valid (validate.c,
 * check/check.c).
 */
#include "model_words.h"
#include "load.h"

#include <ctype.h>
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
	char *p;

	set->specs = pem_xgrow(set->specs, set->count, sizeof(*set->specs));
	spec = &set->specs[set->count++];
	memset(spec, 0, sizeof(*spec));
	spec->path = pem_xstrdup(path);
	slash = strrchr(spec->path, '/');
	spec->file = pem_xstrdup(slash ? slash + 1 : spec->path);
	for (p = spec->file; *p; p++)
		*p = isalnum((unsigned char)*p) || strchr("._-+", *p) ? *p : '?';
	return spec;
}

static char *attribute(xmlNode *node, const char *name)
{
	xmlChar *value = xmlGetNoNsProp(node, (const xmlChar *)name);
	char *copy = value ? pem_xstrdup((const char *)value) : NULL;

	xmlFree(value);
	return copy;
}

/* Read an attribute and replace each run of white space by one space, as xs:token does. */
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

/*
 * Read an attribute that becomes part of generated text. NULL if it is not a plain name; checks
 * skip NULL.
 */
static char *plain(xmlNode *node, const char *name)
{
	char *text = attribute(node, name);

	if (text && (!*text || strlen(text) > PEM_SPEC_NAME_MAX ||
		     strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				  "0123456789_:") != strlen(text))) {
		free(text);
		return NULL;
	}
	return text;
}

/* As plain(), for a name that begins with a letter. The schema calls this an identifier. */
static char *identifier(xmlNode *node, const char *name)
{
	char *text = plain(node, name);

	if (!text || (isalpha((unsigned char)*text) && !strchr(text, ':')))
		return text;
	free(text);
	return NULL;
}

/* Read a layer's name. NULL if there is no such layer. */
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

/*
 * Read an attribute that holds one of a set of words. Returns the word's value, or none if the
 * attribute is missing or unknown.
 */
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

static uint32_t number(xmlNode *node, const char *name, uint32_t otherwise)
{
	char *text = attribute(node, name);
	uint32_t value = text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;

	free(text);
	return value;
}

static int has(xmlNode *node, const char *name)
{
	return xmlHasProp(node, (const xmlChar *)name) != NULL;
}

/*
 * Read an attribute that may be missing. A missing one becomes "", so that no other code tests for
 * NULL.
 */
static char *optional(char *text)
{
	return text ? text : pem_xstrdup("");
}

static void read_type(struct pem_spec_field *field, xmlNode *node)
{
	char *text = attribute(node, "type");

	field->is_struct = text && !strcmp(text, "struct");
	free(text);
	field->type = choice(node, "type", pem_word__type_of);
	field->element_type = choice(node, "eltType", pem_word__type_of);
	if (field->type == PEM_TYPE_LIST)
		field->max_count = number(node, "max", PEM_SPEC_LIST_DEFAULT);
	else if (field->type == PEM_TYPE_STRING)
		field->max_count = number(node, "max", PEM_SPEC_STRING_DEFAULT);
	else
		field->max_count = field->type == PEM_TYPE_ARRAY ? number(node, "count", 1) : 1;
	text = attribute(node, "base");
	field->base = field->type == PEM_TYPE_ADDRESS || field->element_type == PEM_TYPE_ADDRESS ||
				      (text && !strcmp(text, "16"))
			      ? 16
			      : 10;
	free(text);
}

static void read_field(struct pem_spec_field *field, xmlNode *node)
{
	memset(field, 0, sizeof(*field));
	field->at = pem_location__node(node);
	field->name = identifier(node, "name");
	field->description = optional(sentence(node, "description"));
	field->unit = optional(sentence(node, "unit"));
	if (!strcmp(field->unit, "none"))
		field->unit[0] = '\0';
	field->from = attribute(node, "from");
	field->of = identifier(node, "of");
	field->labels_name = identifier(node, has(node, "flags") ? "flags" : "enum");
	field->labels_kind = has(node, "flags")  ? PEM_LABELS_FLAGS
			     : has(node, "enum") ? PEM_LABELS_ENUM
						 : PEM_LABELS_NONE;
	field->role = choice(node, "role", pem_word__role_of);
	field->has_of = has(node, "of");
	field->has_max = has(node, "max");
	field->has_count = has(node, "count");
	field->has_element_type = has(node, "eltType");
	field->has_base = has(node, "base");
	field->has_unit = has(node, "unit");
	field->has_two_labels = has(node, "flags") && has(node, "enum");
	field->is_damaged = pem_damage(node) != 0;
	read_type(field, node);
}

/* Read all <field> children. */
static void read_fields(struct pem_spec_field **fields, size_t *count, xmlNode *node)
{
	for (node = next_element(node->children); node; node = next_element(node->next)) {
		*fields = pem_xgrow(*fields, *count, sizeof(**fields));
		read_field(&(*fields)[(*count)++], node);
	}
}

static void read_source(struct pem_spec_event *event, xmlNode *node)
{
	struct pem_spec_source *source;
	struct pem_spec_from *from;

	event->sources = pem_xgrow(event->sources, event->source_count, sizeof(*event->sources));
	source = &event->sources[event->source_count++];
	memset(source, 0, sizeof(*source));
	source->at = pem_location__node(node);
	source->kind = choice(node, "type", pem_word__source_of);
	source->name = optional(attribute(node, "name"));
	source->arguments = attribute(node, "arguments");
	source->kernel = attribute(node, "kernel");
	source->when = attribute(node, "when");
	source->of = attribute(node, "of");
	source->binary = attribute(node, "binary");
	source->is_damaged = pem_damage(node) != 0;
	for (node = next_element(node->children); node; node = next_element(node->next)) {
		source->froms = pem_xgrow(source->froms, source->from_count, sizeof(*from));
		from = &source->froms[source->from_count++];
		from->at = pem_location__node(node);
		from->field = attribute(node, "field");
		from->value = attribute(node, "value");
	}
}

static void read_event_part(struct pem_spec_event *event, xmlNode *node)
{
	if (is(node, "layerId")) {
		event->layer = layer(node);
	} else if (is(node, "classId")) {
		event->class_name = identifier(node, "value");
	} else if (is(node, "specifier")) {
		event->specifier = identifier(node, "value");
	} else if (is(node, "meaning")) {
		event->meaning = choice(node, "value", pem_word__meaning_of);
		event->group = plain(node, "group");
		event->scope = choice(node, "scope", pem_word__scope_of);
		event->has_group = has(node, "group");
		event->has_scope = has(node, "scope");
	} else if (is(node, "fields")) {
		read_fields(&event->fields, &event->field_count, node);
	} else if (is(node, "source")) {
		read_source(event, node);
	}
}

static void read_event(struct pem_spec_event *event, xmlNode *node)
{
	memset(event, 0, sizeof(*event));
	event->at = pem_location__node(node);
	event->name = plain(node, "name");
	event->version = (uint16_t)number(node, "version", 1);
	event->is_damaged = pem_damage(node) != 0;
	event->level = choice(node, "level", pem_word__level_of);
	event->since = optional(attribute(node, "since"));
	event->deprecated = optional(sentence(node, "deprecated"));
	event->description = optional(sentence(node, "description"));
	for (node = next_element(node->children); node; node = next_element(node->next))
		read_event_part(event, node);
}

/*
 * Parse a value as the XML writes it: decimal, possibly negative, or hexadecimal. A value that is
 * too large becomes the limit, and check.c reports it.
 */
static void read_label(struct pem_spec_label *label, xmlNode *node)
{
	char *text = attribute(node, "value");

	memset(label, 0, sizeof(*label));
	label->at = pem_location__node(node);
	label->name = identifier(node, "name");
	label->description = optional(sentence(node, "description"));
	label->is_damaged = pem_damage(node) != 0;
	label->is_negative = text && text[0] == '-';
	errno = 0;
	if (label->is_negative)
		label->value = (uint64_t)strtoll(text, NULL, 10);
	else if (text)
		label->value = strtoull(text, NULL, strncmp(text, "0x", 2) ? 10 : 16);
	label->is_too_large = errno == ERANGE;
	free(text);
}

static void read_labels(struct pem_spec *spec, xmlNode *node)
{
	struct pem_spec_labels *labels;

	spec->labels = pem_xgrow(spec->labels, spec->labels_count, sizeof(*labels));
	labels = &spec->labels[spec->labels_count++];
	memset(labels, 0, sizeof(*labels));
	labels->at = pem_location__node(node);
	labels->name = identifier(node, "name");
	labels->description = optional(sentence(node, "description"));
	labels->is_damaged = pem_damage(node) != 0;
	labels->kind = is(node, "flags") ? PEM_LABELS_FLAGS : PEM_LABELS_ENUM;
	for (node = next_element(node->children); node; node = next_element(node->next)) {
		labels->labels = pem_xgrow(labels->labels, labels->count, sizeof(*labels->labels));
		read_label(&labels->labels[labels->count++], node);
	}
}

static void read_struct(struct pem_spec *spec, xmlNode *node)
{
	struct pem_spec_struct *structure;

	spec->structs = pem_xgrow(spec->structs, spec->struct_count, sizeof(*structure));
	structure = &spec->structs[spec->struct_count++];
	memset(structure, 0, sizeof(*structure));
	structure->at = pem_location__node(node);
	structure->name = identifier(node, "name");
	structure->description = optional(sentence(node, "description"));
	read_fields(&structure->fields, &structure->field_count, node);
}

static int form_of(const char *word)
{
	int i;

	for (i = 1; i < PEM_METRIC_FORMS; i++)
		if (!strcmp(pem_metric_form_words[i], word))
			return i;
	return -1;
}

static void read_metric(struct pem_spec *spec, xmlNode *node)
{
	struct pem_spec_metric *metric;
	char *unit = attribute(node, "unit");

	spec->metrics = pem_xgrow(spec->metrics, spec->metric_count, sizeof(*metric));
	metric = &spec->metrics[spec->metric_count++];
	memset(metric, 0, sizeof(*metric));
	metric->at = pem_location__node(node);
	metric->name = plain(node, "name");
	metric->form = choice(node, "form", form_of);
	metric->of = attribute(node, "of");
	metric->to = attribute(node, "to");
	metric->description = optional(sentence(node, "description"));
	metric->unit = pem_xstrdup(unit && strcmp(unit, "none") ? unit : "");
	metric->is_damaged = pem_damage(node) != 0;
	free(unit);
}

static void read_spec(struct pem_spec *spec, xmlNode *root)
{
	xmlNode *node;

	spec->at = pem_location__node(root);
	spec->provider = plain(root, "provider");
	spec->version = optional(attribute(root, "version"));
	spec->is_damaged = pem_damage(root) != 0;
	spec->lacks_parts = (pem_damage(root) & PEM_DAMAGED_ITSELF) != 0;
	spec->description = optional(sentence(root, "description"));
	for (node = next_element(root->children); node; node = next_element(node->next)) {
		if (is(node, "struct")) {
			read_struct(spec, node);
		} else if (is(node, "metric")) {
			read_metric(spec, node);
		} else if (!is(node, "event")) {
			read_labels(spec, node);
		} else {
			spec->events =
				pem_xgrow(spec->events, spec->event_count, sizeof(*spec->events));
			read_event(&spec->events[spec->event_count++], node);
		}
	}
}

/* State for the parser's callbacks. They get the context, whose _private points to it. */
struct parse {
	struct pem_spec_set *set;
	const char *path;
	int errors;
	/* The parser's first error. Later errors are consequences. */
	struct pem_spec_location first;
	char *message;
};

static void on_error(void *data, pem_xml_error *error)
{
	struct parse *parse = ((xmlParserCtxt *)data)->_private;
	const char *text = error->message ? error->message : "not well-formed XML";

	if (error->level < XML_ERR_ERROR || parse->errors++)
		return;
	parse->first.line = error->line;
	parse->first.column = error->line > 0 && error->int2 > 0 ? error->int2 : 0;
	parse->message = pem_xprintf("%.*s", (int)strcspn(text, "\n"), text);
}

/* Refuse a DOCTYPE. An entity can grow to any size, or be a file, and specs need none. */
static void on_doctype(void *data, const xmlChar *name, const xmlChar *id, const xmlChar *uri)
{
	xmlParserCtxt *ctxt = data;
	struct parse *parse = ctxt->_private;
	struct pem_spec_location at = {1, 1};

	(void)name;
	(void)id;
	(void)uri;
	parse->errors++;
	at.line = ctxt->input ? ctxt->input->line : 1;
	pem_spec_set__error(parse->set, parse->path, at,
			    "a DOCTYPE is refused: expected the root element <spec>, "
			    "with no document type and no entities of its own");
	xmlStopParser(ctxt);
}

/* Note where the tag begins. A '<' can't be inside a tag. */
static void on_element(void *data, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
		       int namespaces_count, const xmlChar **namespaces, int attributes_count,
		       int defaulted_count, const xmlChar **attributes)
{
	xmlParserCtxt *ctxt = data;
	const xmlChar *p;
	long offset;

	xmlSAX2StartElementNs(data, name, prefix, uri, namespaces_count, namespaces,
			      attributes_count, defaulted_count, attributes);
	if (!ctxt->node || !ctxt->input)
		return;
	p = ctxt->input->cur;
	while (p > ctxt->input->base && *p != '<')
		p--;
	offset = xmlByteConsumed(ctxt) - (ctxt->input->cur - p);
	ctxt->node->_private = (void *)(uintptr_t)(offset > 0 ? offset : 0);
}

/* Report what was wrong in our words, or else in the parser's. */
static void explain(struct parse *parse, struct pem_text *text)
{
	struct pem_spec_location whole = {0, 0};

	if (!parse->errors)
		pem_spec_set__error(parse->set, parse->path, whole,
				    "the file is not XML: expected <spec>");
	else if (parse->message &&
		 !pem_xml__explain(parse->set, parse->path, text, parse->first.line))
		pem_spec_set__error(parse->set, parse->path, parse->first,
				    "the file is not well-formed XML: %s", parse->message);
}

static xmlDoc *parse_bytes(struct pem_spec_set *set, const char *path, struct pem_text *text)
{
	struct parse parse = {.set = set, .path = path};
	struct pem_spec_location whole = {0, 0};
	xmlParserCtxt *ctxt = xmlNewParserCtxt();
	xmlDoc *doc = NULL;

	if (!ctxt) {
		pem_spec_set__error(set, path, whole, "no memory for the XML parser");
		return NULL;
	}
	ctxt->_private = &parse;
	ctxt->sax->serror = on_error;
	ctxt->sax->internalSubset = on_doctype;
	ctxt->sax->startElementNs = on_element;
	doc = xmlCtxtReadMemory(ctxt, text->bytes, (int)text->count, NULL, NULL,
				XML_PARSE_NONET | XML_PARSE_BIG_LINES | XML_PARSE_NOCDATA);
	if (doc && parse.errors) {
		xmlFreeDoc(doc);
		doc = NULL;
	}
	if (!doc)
		explain(&parse, text);
	free(parse.message);
	if (!doc && ctxt->myDoc)
		xmlFreeDoc(ctxt->myDoc);
	xmlFreeParserCtxt(ctxt);
	return doc;
}

void pem_spec_set__load_bytes(struct pem_spec_set *set, const char *path, const char *bytes,
			      size_t count)
{
	struct pem_spec *spec = add_spec(set, path);
	struct pem_spec_location whole = {0, 0}, start = {1, 1};
	struct pem_text text;
	xmlDoc *doc;

	spec->hash = pem_hash64(bytes, count);
	if (count > PEM_SPEC_FILE_BYTES_MAX) {
		pem_spec_set__error(set, spec->path, whole,
				    "the file is larger than %u bytes: split the spec into several",
				    PEM_SPEC_FILE_BYTES_MAX);
		return;
	}
	if (count > 1 && (!memcmp(bytes, "\xff\xfe", 2) || !memcmp(bytes, "\xfe\xff", 2))) {
		pem_spec_set__error(set, spec->path, start,
				    "the file's encoding is UTF-16: expected UTF-8");
		return;
	}
	if (count && memchr(bytes, 0, count)) {
		pem_spec_set__error(set, spec->path, whole,
				    "the file holds NUL bytes: expected a spec as UTF-8 text");
		return;
	}
	if (!pem_xml__is_utf8(set, spec->path, bytes, count))
		return;
	pem_text__init(&text, bytes, count);
	doc = pem_xml__is_crowded(set, spec->path, &text) ? NULL
							  : parse_bytes(set, spec->path, &text);
	if (doc) {
		doc->_private = &text;
		if (pem_validate(set, spec->path, doc) == 0)
			read_spec(spec, xmlDocGetRootElement(doc));
		xmlFreeDoc(doc);
	}
	pem_text__free(&text);
}

/* Read up to one byte more than a spec may have. Returns bytes read, or -errno. */
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
	struct pem_spec_location whole = {0, 0};

	if (n >= 0)
		pem_spec_set__load_bytes(set, path, buffer, (size_t)n);
	else
		pem_spec_set__error(set, add_spec(set, path)->path, whole,
				    "the file can't be read: %s; expected a readable spec",
				    n == -EINVAL ? "it is no regular file" : strerror((int)-n));
	free(buffer);
}
