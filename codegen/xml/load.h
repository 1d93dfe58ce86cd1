/* SPDX-License-Identifier: MIT */
/*
 * load.h - what load.c, validate.c and location.c share: the XML tree, which no later stage sees
 */
#ifndef PEM_CODEGEN_LOAD_H
#define PEM_CODEGEN_LOAD_H

#include "model.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlerror.h>
#include <libxml/xmlversion.h>

/* libxml2 2.12 made the errors that it hands out read-only. */
#if LIBXML_VERSION >= 21200
typedef const xmlError pem_xml_error;
#else
typedef xmlError pem_xml_error;
#endif

/*
 * A file's bytes and where its lines begin. A document's _private points to it, an element's is its
 * tag's offset.
 */
struct pem_text {
	const char *bytes;
	size_t count;
	size_t *line_starts;
	size_t line_count;
	struct pem_spec_location last; /* asked for, at last_offset */
	size_t last_offset;
};

void pem_text__init(struct pem_text *text, const char *bytes, size_t count);
void pem_text__free(struct pem_text *text);

/*
 * Where a byte stands, an element's tag begins, one of its attributes (or the tag, if it has none
 * of the name), a line's first word.
 */
struct pem_spec_location pem_location__offset(struct pem_text *text, size_t offset);
struct pem_spec_location pem_location__node(const xmlNode *node);
struct pem_spec_location pem_location__attribute(const xmlNode *node, const char *name);
struct pem_spec_location pem_location__line(const xmlNode *node, int line);

/*
 * Note the first mistake that keeps a file from being XML, if it is a usual one and begins up to
 * the line in which the parser stumbled. 0: it is none of these.
 */
int pem_xml__explain(struct pem_spec_set *set, const char *path, struct pem_text *text, int line);

/*
 * Validate a document, note errors in the set, and take out of the tree what does not belong there.
 * 0: what is left has the shape of a spec, though attributes may be missing or wrong. -EINVAL: it
 * does not. Elements with an error in them are marked (pem_damage).
 */
int pem_validate(struct pem_spec_set *set, const char *path, xmlDoc *doc);

/*
 * Has the element itself an error, such as an attribute's value or a child that was taken out? Or
 * any element in it?
 */
#define PEM_DAMAGED_ITSELF 1u
#define PEM_DAMAGED_INSIDE 2u
static inline unsigned pem_damage(const xmlNode *node)
{
	return node->extra; /* the parser and the validator leave it alone */
}

#endif
