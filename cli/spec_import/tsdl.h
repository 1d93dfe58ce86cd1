// SPDX-License-Identifier: MIT
/*
 * tsdl.h - event declarations of CTF metadata, as LTTng-UST writes it, to a spec
 */
#ifndef PEM_CLI_SPEC_IMPORT_TSDL_H
#define PEM_CLI_SPEC_IMPORT_TSDL_H

#include "labels.h"

struct import_tsdl {
	FILE *labels, *events; /* XML, in the order in which it is to be printed */
	char *label_text, *event_text;
	size_t label_bytes, event_bytes;
	struct cli_names event_names, seen;
	struct import_sets sets;
	size_t count; /* of events */
};

/* 0 or -ENOMEM. */
int import_tsdl__init(struct import_tsdl *tsdl);
/*
 * Add the events of a provider that a metadata file's bytes declare, each name once. Changes the
 * text. 0; -EINVAL: it is no CTF metadata; -ENOMEM.
 */
int import_tsdl__add(struct import_tsdl *tsdl, const char *provider, char *bytes, size_t count);
/* No more is added: both texts can be read. 0 or -ENOMEM. */
int import_tsdl__finish(struct import_tsdl *tsdl);
void import_tsdl__free(struct import_tsdl *tsdl);

#endif
