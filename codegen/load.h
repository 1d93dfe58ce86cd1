/* SPDX-License-Identifier: MIT */
/*
 * load.h - what load.c and validate.c share: the XML tree, which no later stage sees
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
 * Validate a document, note errors in the set, and take out of the tree what does not belong there. 0: what is left
 * has the shape of a spec, though attributes may be missing or wrong. -EINVAL: it does not.
 */
int pem_validate(struct pem_spec_set *set, const char *path, xmlDoc *doc);

#endif
