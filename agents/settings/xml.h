/* SPDX-License-Identifier: MIT */
/*
 * xml.h - an XML document that keeps to a schema, and the places of its mistakes
 *
 * Attributes and texts live as long as the document. Mistakes are told as "FILE:LINE:COLUMN: ...".
 */
#ifndef SETTINGS_XML_H
#define SETTINGS_XML_H

#include <pem/pem.h>

#include <stddef.h>

struct settings_xml;
struct settings_xml_node;

/*
 * Read a file of at most 1 MiB and check it by a schema, whose text and name are given. Returns 0,
 * or -errno with error: -EINVAL the document is wrong; -ENOENT and others: it can't be read. *xml
 * is to be closed in any case.
 */
int settings_xml__open(struct settings_xml **xml, const char *path, const char *schema,
		       const char *schema_name, struct pem_error *error);
void settings_xml__close(struct settings_xml *xml);

const struct settings_xml_node *settings_xml__root(const struct settings_xml *xml);
/* The first element in another one, and the next beside it; NULL: there is none. */
const struct settings_xml_node *settings_xml__first(const struct settings_xml_node *node);
const struct settings_xml_node *settings_xml__next(const struct settings_xml_node *node);
const char *settings_xml__name(const struct settings_xml_node *node);
/* The value of an attribute, or NULL. */
const char *settings_xml__attribute(const struct settings_xml_node *node, const char *name);
/* The text of an element that has no others in it, or NULL. */
const char *settings_xml__text(const struct settings_xml_node *node);
/*
 * Write the error of an element, or of the byte at of an attribute's value. Returns -EINVAL.
 */
int settings_xml__refuse(struct settings_xml *xml, const struct settings_xml_node *node,
			 const char *attribute, size_t at, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
