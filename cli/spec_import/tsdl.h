// SPDX-License-Identifier: MIT
/* tsdl.h - makes a spec of event declarations in CTF metadata, as LTTng-UST writes it */
#ifndef PEM_CLI_SPEC_IMPORT_TSDL_H
#define PEM_CLI_SPEC_IMPORT_TSDL_H

#include "labels.h"

struct import_tsdl {
	FILE *labels, *events; /* XML texts, to be printed in this order */
	char *label_text, *event_text;
	size_t label_bytes, event_bytes;
	struct cli_names event_names, seen;
	struct import_sets sets;
	size_t count; /* of events */
};

/* Returns 0 or -ENOMEM. */
int import_tsdl__init(struct import_tsdl *tsdl);
/*
 * Add the events of a provider that the bytes of a metadata file declare, each name once. Changes
 * the bytes. Returns 0; -EINVAL: this is not CTF metadata; -ENOMEM.
 */
int import_tsdl__add(struct import_tsdl *tsdl, const char *provider, char *bytes, size_t count);
/* End adding. Both texts can then be read. Returns 0 or -ENOMEM. */
int import_tsdl__finish(struct import_tsdl *tsdl);
void import_tsdl__free(struct import_tsdl *tsdl);

#endif
