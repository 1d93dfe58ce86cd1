/* SPDX-License-Identifier: MIT */
/*
 * hardware.c - a machine that is simulated, from XML to what the simulation reads
 *
 * The input is hostile: its size is bounded, and a DOCTYPE is refused. The schema says what each
 * attribute may hold; what attributes must be to each other is checked here.
 */
#include "hardware.h"

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlschemas.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES_MAX 65536

#if LIBXML_VERSION >= 21200
typedef const xmlError hardware_xml_error;
#else
typedef xmlError hardware_xml_error;
#endif

static const char hardware_xsd[] =
#include "hardware_xsd.h"
	;

/* What each attribute may hold, in words. */
static const struct {
	const char *attribute;
	const char *expected;
} attributes[] = {
	{"page", "the size of the program's pages: '4K', '16K', '64K', '2M' or '1G'"},
	{"pages", "sizes of pages with a space between them: '4K', '16K', '64K', '2M', '1G'"},
	{"memoryCycles", "cycles from 0 to 1000000"},
	{"walkCycles", "cycles from 0 to 1000000"},
	{"cycles", "cycles from 0 to 1000000"},
	{"level", "1, 2 or 3"},
	{"kind", "'instruction', 'data' or 'unified'"},
	{"size", "bytes, such as '32K' or '8M'"},
	{"line", "bytes, such as '64'"},
	{"ways", "a whole number from 1 to 4096"},
	{"entries", "a whole number from 1 to 4194304"},
	{"replacement", "'lru' or 'plru'"},
};

struct reading {
	struct pem_spec_set *set;
	const char *path;
	struct pem_hardware *hardware;
	xmlNode *last_node; /* of the last error about an attribute */
};

#define WRONG(reading, line, ...)                                                                  \
	pem_spec_set__error((reading)->set, (reading)->path,                                       \
			    (struct pem_spec_location){(int)(line), 0}, __VA_ARGS__)

/* --- the schema --- */

static const char *expected_of(const char *attribute)
{
	size_t i;

	for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (!strcmp(attributes[i].attribute, attribute))
			return attributes[i].expected;
	return NULL;
}

static void say_attribute(struct reading *r, xmlNode *node, const char *element,
			  const char *attribute, const char *text)
{
	const char *expected = expected_of(attribute);
	xmlChar *value;

	/* One wrong value is an error of its form, and again one of its type. */
	if (expected && r->last_node == node)
		return;
	r->last_node = node;
	value = xmlGetNoNsProp(node, (const xmlChar *)attribute);
	if (strstr(text, "is not allowed"))
		WRONG(r, xmlGetLineNo(node), "<%s> has no attribute '%s': see docs/lab.md", element,
		      attribute);
	else
		WRONG(r, xmlGetLineNo(node), "%s='%.40s' of <%s> is not valid: expected %s",
		      attribute, value ? (const char *)value : "", element,
		      expected ? expected : "another value");
	xmlFree(value);
}

static void on_schema_error(void *data, hardware_xml_error *error)
{
	struct reading *r = data;
	xmlNode *node = error->node;
	const char *text = error->message ? error->message : "not valid";
	char element[48], attribute[48];

	if (node && node->type == XML_ATTRIBUTE_NODE)
		node = node->parent;
	if (node && sscanf(text, "Element '%47[^']', attribute '%47[^']'", element, attribute) == 2)
		say_attribute(r, node, element, attribute, text);
	else if (node && sscanf(text, "Element '%47[^']': The attribute '%47[^']' is required",
				element, attribute) == 2)
		WRONG(r, xmlGetLineNo(node), "<%s> lacks its attribute '%s': expected %s", element,
		      attribute, expected_of(attribute) ? expected_of(attribute) : "a value");
	else if (node && strstr(text, "No matching global declaration"))
		WRONG(r, xmlGetLineNo(node), "the root element is <%.40s>: expected <hardware>",
		      (const char *)node->name);
	else if (node && (strstr(text, "is not expected") || strstr(text, "Missing child")))
		WRONG(r, xmlGetLineNo(node),
		      "<%.40s> is wrong here: expected 1 to 8 <cache>, then up to 32 <tlb>, in "
		      "<hardware>",
		      (const char *)node->name);
	else
		WRONG(r, error->line, "%.*s", (int)strcspn(text, "\n"), text);
}

static int is_valid(struct reading *r, xmlDoc *doc)
{
	xmlSchemaParserCtxt *parser =
		xmlSchemaNewMemParserCtxt(hardware_xsd, (int)sizeof(hardware_xsd) - 1);
	xmlSchema *schema = parser ? xmlSchemaParse(parser) : NULL;
	xmlSchemaValidCtxt *valid = schema ? xmlSchemaNewValidCtxt(schema) : NULL;
	int result = -1;

	if (valid) {
		xmlSchemaSetValidStructuredErrors(valid, on_schema_error, r);
		result = xmlSchemaValidateDoc(valid, doc);
	}
	if (result && r->set->error_count == 0)
		WRONG(r, 0, "can't be validated: expected the form of hardware.xsd");
	xmlSchemaFreeValidCtxt(valid);
	xmlSchemaFree(schema);
	xmlSchemaFreeParserCtxt(parser);
	return result == 0;
}

/* --- values that the schema has checked --- */

static uint64_t number(xmlNode *node, const char *name, uint64_t otherwise)
{
	xmlChar *text = xmlGetNoNsProp(node, (const xmlChar *)name);
	uint64_t value = otherwise;
	char *end;

	if (text) {
		value = strtoull((const char *)text, &end, 10);
		value <<= *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	}
	xmlFree(text);
	return value;
}

static int is_word(xmlNode *node, const char *name, const char *word)
{
	xmlChar *text = xmlGetNoNsProp(node, (const xmlChar *)name);
	int is = text && !strcmp((const char *)text, word);

	xmlFree(text);
	return is;
}

static int is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

static uint32_t log2_of(uint64_t value)
{
	return value ? 63u - (uint32_t)__builtin_clzll(value) : 0;
}

/* Does a TLB hold pages of this size? */
static int holds(xmlNode *node, uint64_t page_bytes)
{
	xmlChar *text = xmlGetNoNsProp(node, (const xmlChar *)"pages");
	const char *at = (const char *)text;
	uint64_t value;
	char *end;
	int found = 0;

	while (at && *at) {
		value = strtoull(at, &end, 10);
		value <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
		found |= value == page_bytes;
		at = end + (*end != '\0');
		at += *at == ' ';
	}
	xmlFree(text);
	return found;
}

/* --- parts --- */

/* Fill a part that has so many entries. Returns 0 after noting an error. */
static int fill(struct reading *r, xmlNode *node, uint64_t entries, uint64_t block_bytes,
		struct pem_hardware_part *part)
{
	const char *name = (const char *)node->name;
	uint64_t ways = number(node, "ways", 1);
	long line = xmlGetLineNo(node);

	memset(part, 0, sizeof(*part));
	part->level = (uint32_t)number(node, "level", 1);
	part->serves = is_word(node, "kind", "instruction") ? PEM_HARDWARE_CODE
		       : is_word(node, "kind", "data")      ? PEM_HARDWARE_DATA
							    : PEM_HARDWARE_CODE | PEM_HARDWARE_DATA;
	part->replacement =
		is_word(node, "replacement", "plru") ? PEM_HARDWARE_PLRU : PEM_HARDWARE_LRU;
	part->cycles = (uint32_t)number(node, "cycles", 0);
	part->ways = (uint32_t)ways;
	part->shift = log2_of(block_bytes);
	if (entries > PEM_HARDWARE_ENTRIES_MAX)
		return WRONG(r, line, "<%s> has %llu entries: expected %u at most", name,
			     (unsigned long long)entries, PEM_HARDWARE_ENTRIES_MAX),
		       0;
	if (!entries || entries % ways || !is_power_of_two(entries / ways))
		return WRONG(r, line,
			     "<%s> of %llu entries in %llu ways has no whole number of sets that "
			     "is a power of two: expected other ways, or another size",
			     name, (unsigned long long)entries, (unsigned long long)ways),
		       0;
	part->sets = (uint32_t)(entries / ways);
	if (part->replacement == PEM_HARDWARE_PLRU && (!is_power_of_two(ways) || ways > 64))
		return WRONG(r, line,
			     "<%s> with replacement 'plru' has %llu ways: expected a power of two "
			     "up to 64, or 'lru'",
			     name, (unsigned long long)ways),
		       0;
	return 1;
}

/* Is a part of this level there, for one of these kinds? */
static const struct pem_hardware_part *find(const struct pem_hardware_part *parts, uint32_t count,
					    uint32_t level, uint32_t serves)
{
	uint32_t i;

	for (i = 0; i < count; i++)
		if (parts[i].level == level && parts[i].serves & serves)
			return &parts[i];
	return NULL;
}

/* Insert a part by its level. Returns 0 after noting an error. */
static int insert(struct reading *r, xmlNode *node, struct pem_hardware_part *parts,
		  uint32_t *count, uint32_t max, const struct pem_hardware_part *part)
{
	uint32_t at;

	if (find(parts, *count, part->level, part->serves))
		return WRONG(r, xmlGetLineNo(node),
			     "a second <%s> of level %u serves the same: expected one of each "
			     "level and kind%s",
			     (const char *)node->name, part->level,
			     parts == r->hardware->tlbs ? ", for the pages of the program" : ""),
		       0;
	if (*count == max)
		return WRONG(r, xmlGetLineNo(node), "more than %u <%s>", max,
			     (const char *)node->name),
		       0;
	for (at = (*count)++; at > 0 && parts[at - 1].level > part->level; at--)
		parts[at] = parts[at - 1];
	parts[at] = *part;
	return 1;
}

static void read_cache(struct reading *r, xmlNode *node)
{
	uint64_t size = number(node, "size", 0), line = number(node, "line", 0);
	struct pem_hardware_part part;

	if (!is_power_of_two(line) || line < 8 || line > 4096)
		WRONG(r, xmlGetLineNo(node),
		      "a line of %llu bytes is not possible: expected a power of two from 8 to "
		      "4096",
		      (unsigned long long)line);
	else if (size % line)
		WRONG(r, xmlGetLineNo(node),
		      "a cache of %llu bytes has no whole number of lines of %llu: expected "
		      "another size",
		      (unsigned long long)size, (unsigned long long)line);
	else if (fill(r, node, size / line, line, &part))
		insert(r, node, r->hardware->caches, &r->hardware->cache_count,
		       PEM_HARDWARE_CACHES_MAX, &part);
}

static void read_tlb(struct reading *r, xmlNode *node)
{
	uint64_t page_bytes = UINT64_C(1) << r->hardware->page_shift;
	struct pem_hardware_part part;

	if (fill(r, node, number(node, "entries", 0), page_bytes, &part) && holds(node, page_bytes))
		insert(r, node, r->hardware->tlbs, &r->hardware->tlb_count, PEM_HARDWARE_TLBS_MAX,
		       &part);
}

/* Each level must have one before it, for each kind. Caches must serve both. */
static void check_levels(struct reading *r, xmlNode *root, const char *name,
			 const struct pem_hardware_part *parts, uint32_t count, int needed)
{
	static const char *const words[] = {"", "instructions", "data"};
	uint32_t kind, level;

	for (kind = PEM_HARDWARE_CODE; kind <= PEM_HARDWARE_DATA; kind++) {
		if (needed && !find(parts, count, 1, kind))
			WRONG(r, xmlGetLineNo(root), "no <%s> of level 1 serves %s: expected one",
			      name, words[kind]);
		for (level = 2; level <= PEM_HARDWARE_LEVELS_MAX; level++)
			if (find(parts, count, level, kind) && !find(parts, count, level - 1, kind))
				WRONG(r, xmlGetLineNo(root),
				      "a <%s> of level %u serves %s, and none of level %u: "
				      "expected one",
				      name, level, words[kind], level - 1);
	}
}

static void read_root(struct reading *r, xmlNode *root)
{
	struct pem_hardware *hardware = r->hardware;
	xmlNode *node;

	hardware->magic = PEM_HARDWARE_MAGIC;
	hardware->version = PEM_HARDWARE_VERSION;
	hardware->page_shift = log2_of(number(root, "page", 4096));
	hardware->memory_cycles = (uint32_t)number(root, "memoryCycles", 0);
	hardware->walk_cycles = (uint32_t)number(root, "walkCycles", 0);
	for (node = root->children; node; node = node->next) {
		if (node->type != XML_ELEMENT_NODE)
			continue;
		if (!strcmp((const char *)node->name, "cache"))
			read_cache(r, node);
		else
			read_tlb(r, node);
	}
	if (r->set->error_count)
		return;
	check_levels(r, root, "cache", hardware->caches, hardware->cache_count, 1);
	check_levels(r, root, "tlb", hardware->tlbs, hardware->tlb_count, 0);
	if (!r->set->error_count && !pem_hardware__check(hardware))
		WRONG(r, xmlGetLineNo(root), "this machine can't be simulated");
}

/* --- the file --- */

/* Returns how many bytes the file has, which must be fewer than max; or -errno. */
static ssize_t read_file(const char *path, char *bytes, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t got, count = 0;

	if (fd < 0)
		return -errno;
	do {
		got = read(fd, bytes + count, max - (size_t)count);
		count += got > 0 ? got : 0;
	} while (got > 0 && (size_t)count < max);
	if (got < 0)
		count = -errno;
	close(fd);
	return count;
}

static void ignore(void *data, hardware_xml_error *error)
{
	(void)data;
	(void)error;
}

void pem_hardware__read_bytes(struct pem_spec_set *set, const char *path, const char *bytes,
			      size_t count, struct pem_hardware *hardware)
{
	struct reading r = {.set = set, .path = path, .hardware = hardware};
	hardware_xml_error *error;
	xmlDoc *doc;

	memset(hardware, 0, sizeof(*hardware));
	if (count >= FILE_BYTES_MAX) {
		WRONG(&r, 0, "is too long: expected fewer than %d bytes", FILE_BYTES_MAX);
		return;
	}
	xmlSetStructuredErrorFunc(NULL, (xmlStructuredErrorFunc)ignore);
	doc = xmlReadMemory(bytes, (int)count, "hardware", NULL, XML_PARSE_NONET);
	if (!doc) {
		error = xmlGetLastError();
		WRONG(&r, error ? error->line : 1, "is not well-formed XML: %.*s",
		      error && error->message ? (int)strcspn(error->message, "\n") : 0,
		      error && error->message ? error->message : "");
	} else if (doc->intSubset) {
		WRONG(&r, 1, "a DOCTYPE is refused: expected the root element <hardware> alone");
	} else if (is_valid(&r, doc)) {
		read_root(&r, xmlDocGetRootElement(doc));
	}
	xmlFreeDoc(doc);
	xmlSetStructuredErrorFunc(NULL, NULL);
}

void pem_hardware__read(struct pem_spec_set *set, const char *path, struct pem_hardware *hardware)
{
	struct reading r = {.set = set, .path = path, .hardware = hardware};
	static char bytes[FILE_BYTES_MAX];
	ssize_t count = read_file(path, bytes, sizeof(bytes));

	if (count < 0)
		WRONG(&r, 0, "can't be read: %s", strerror((int)-count));
	else
		pem_hardware__read_bytes(set, path, bytes, (size_t)count, hardware);
}
