/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model_internal.h - what the parts of the model share: its memory, its parser, its words
 *
 * Not here: the public face (pem/model.h).
 */
#ifndef PEM_MODEL_INTERNAL_H
#define PEM_MODEL_INTERNAL_H

#include "model_words.h"

#include <pem/model.h>

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define PEM_MODEL_TEXT_MAX (64u << 20)
#define PEM_MODEL_EVENTS_MAX 4096u
#define PEM_MODEL_FIELDS_MAX 256u
#define PEM_MODEL_LABELS_MAX 1024u /* of one field */

/* No event has an id below. */
#define PEM_MODEL_RESERVED_IDS 16u

/* One parsed text: the strings of its events and fields lie in text. */
struct pem_model_block {
	struct pem_model_block *next;
	char *text;
	struct pem_event *events;
	struct pem_field *fields;
	struct pem_label *labels;
	size_t event_count;
	size_t field_count;
	size_t label_count;
};

/* Write an event's lines of a model's text. */
void pem_model__write_event(FILE *out, const struct pem_event *event);
/*
 * Add an event that somebody found at run time: layer, class, specifier, source, level and fields
 * are told; name, id, offsets and declaration follow. 1: added; 0: it is known. -EEXIST: another
 * source's event is called the same; -E2BIG, -EINVAL, -ENOMEM; with error.
 */
int pem_model__describe(struct pem_model *model, const struct pem_event *told,
			struct pem_error *error);
/*
 * Add an event of another model, whose CTF declaration is written anew from its fields. suffix:
 * NULL, or what to append to its name, by which it also gets an id of its own. Returns it, or NULL
 * with error: its name or id is another event's, the model is full, or there is no memory.
 */
const struct pem_event *pem_model__add_copy(struct pem_model *model, const struct pem_event *told,
					    const char *suffix, struct pem_error *error);
/*
 * Do two descriptions say the same of an event's records: all that readers and rules go by, and not
 * only their layout? Texts for people may differ, and declarations, which follow from the fields.
 */
int pem_event__same(const struct pem_event *a, const struct pem_event *b);

/* Is it a pattern of sources' names, as "sched:*" or "fentry:vfs_read", not of events'? */
int pem_pattern__is_probe(const char *pattern);
/* Is this the name of one of the event's sources? */
int pem_event__has_source(const struct pem_event *event, const char *name);

/* An event's place in order of addition, or -1. */
ssize_t pem_model__index(const struct pem_model *model, uint32_t id);

/*
 * Add another model's event, which must outlive this one; nothing if one with its id is there. 0,
 * or -ENOSPC.
 */
int pem_model__share(struct pem_model *model, const struct pem_event *event);

/*
 * The hash under which a text lies in a session's folder (model_hash.c); never 0.
 * Async-signal-safe.
 */
uint32_t pem_model__hash(const char *text, size_t bytes);

/* Parse a text into a block of the caller's. NULL with errno EINVAL or ENOMEM, and error. */
struct pem_model_block *pem_model__parse(const char *text, size_t bytes, const char *origin,
					 struct pem_error *error);
void pem_model_block__free(struct pem_model_block *block);

#endif
