/* SPDX-License-Identifier: MIT */
/*
 * load.h - what load.c, validate.c and location.c share: the XML tree. Later stages do not see it.
 */
#ifndef PEM_CODEGEN_LOAD_H
#define PEM_CODEGEN_LOAD_H

#include "model.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlerror.h>
#include <libxml/xmlversion.h>

/* Since libxml2 2.12 the errors that it hands out are read-only. */
#if LIBXML_VERSION >= 21200
typedef const xmlError pem_xml_error;
#else
typedef xmlError pem_xml_error;
#endif

/*
 * A file's bytes and where its lines begin. The _private pointer of a document points to it. The
 * _private of an element is the offset of its tag.
 */
struct pem_text {
	const char *bytes;
	size_t count;
	size_t *line_starts;
	size_t line_count;
	struct pem_spec_location last; /* the last location that was asked for, at last_offset */
	size_t last_offset;
};

void pem_text__init(struct pem_text *text, const char *bytes, size_t count);
void pem_text__free(struct pem_text *text);

/*
 * The location of a byte; of an element's tag; of an attribute (of the tag, if the element lacks
 * the attribute); of the first word of a line.
 */
struct pem_spec_location pem_location__offset(struct pem_text *text, size_t offset);
struct pem_spec_location pem_location__node(const xmlNode *node);
struct pem_spec_location pem_location__attribute(const xmlNode *node, const char *name);
struct pem_spec_location pem_location__line(const xmlNode *node, int line);

/*
 * Find the first common mistake that keeps a file from being XML. It must begin no later than the
 * line where the parser failed. Notes an error in the set. Returns 0 if there is no such mistake.
 */
int pem_xml__explain(struct pem_spec_set *set, const char *path, struct pem_text *text, int line);
/* Is the file UTF-8, as far as its first bytes tell? If not, an error was noted. */
int pem_xml__is_utf8(struct pem_spec_set *set, const char *path, const char *bytes, size_t count);
/* Has an element so many attributes that parsing takes long? Then an error was noted. */
int pem_xml__is_crowded(struct pem_spec_set *set, const char *path, struct pem_text *text);

/*
 * Validate a document, note errors in the set, and remove from the tree what is not allowed there.
 * Returns 0 if the rest has the shape of a spec; attributes may still be missing or wrong. Returns
 * -EINVAL if it has not. Elements with an error in them are marked (pem_damage).
 */
int pem_validate(struct pem_spec_set *set, const char *path, xmlDoc *doc);

/*
 * Does the element itself have an error (a wrong attribute value, a removed child), or an element
 * in it?
 */
#define PEM_DAMAGED_ITSELF 1u
#define PEM_DAMAGED_INSIDE 2u
static inline unsigned pem_damage(const xmlNode *node)
{
	/* The parser and the validator do not use this member. */
	return node->extra;
}

#endif
