/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model_internal.h - what the parts of the model share: its memory, its parser, its words
 *
 * Not here: the public interface (pem/model.h).
 */
#ifndef PEM_MODEL_INTERNAL_H
#define PEM_MODEL_INTERNAL_H

#include "model_hash.h"
#include "model_words.h"

#include <pem/model.h>

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define PEM_MODEL_TEXT_MAX (64u << 20)
#define PEM_MODEL_EVENTS_MAX 4096u
#define PEM_MODEL_FIELDS_MAX 256u
#define PEM_MODEL_LABELS_MAX 1024u /* of one field */
#define PEM_MODEL_METRICS_MAX 256u

/* No event has an id below this. */
#define PEM_MODEL_RESERVED_IDS 16u

/* Give all fields of role 'system-call' that have no labels those of this machine. */
void pem_model__name_system_calls(struct pem_model *model);

/* One parsed text: the strings of its events and fields lie in text. */
struct pem_model_block {
	struct pem_model_block *next;
	char *text;
	struct pem_event *events;
	struct pem_field *fields;
	struct pem_label *labels;
	struct pem_metric *metrics;
	size_t metric_count;
	size_t event_count;
	size_t field_count;
	size_t label_count;
};

/* Write an event as lines of a model's text. */
void pem_model__write_event(FILE *out, const struct pem_event *event);
/*
 * Add an event that was found at run time. The caller sets layer, class, specifier, source, level
 * version and fields. The function makes name, id, offsets and declaration from these. Returns 1:
 * added; 0: the model has it already. -EEXIST: an event of another source has this name. -E2BIG,
 * -EINVAL, -ENOMEM. Errors come with error.
 */
int pem_model__describe(struct pem_model *model, const struct pem_event *told,
			struct pem_error *error);
/*
 * Add a copy of another model's event. Its CTF declaration is made anew from its fields. suffix:
 * text to append to its name; the copy then also gets its own id. NULL: no suffix. Returns the
 * copy, or NULL with error: its name or id belongs to another event, the model is full, or there is
 * no memory.
 */
const struct pem_event *pem_model__add_copy(struct pem_model *model, const struct pem_event *told,
					    const char *suffix, struct pem_error *error);
/*
 * Return whether two descriptions agree in everything that readers and rules use, not only in the
 * layout. Texts for people may differ, and so may declarations, which are made from the fields.
 */
int pem_event__same(const struct pem_event *a, const struct pem_event *b);

/*
 * Return whether a pattern is one of sources' names, such as "sched:*" or "fentry:vfs_read", and
 * not of events' names.
 */
int pem_pattern__is_probe(const char *pattern);
/* Return whether one of the event's sources has this name. */
int pem_event__has_source(const struct pem_event *event, const char *name);

/* Return an event's index in order of addition, or -1. */
ssize_t pem_model__index(const struct pem_model *model, uint32_t id);

/*
 * Add another model's event, which must outlive this model. Does nothing if the model has an event
 * of this id. Returns 0, or -ENOSPC.
 */
int pem_model__share(struct pem_model *model, const struct pem_event *event);

/* model_sums.c: is it a name of letters, digits, '_' and ':', such as that of an event? */
int pem_metric__is_name(const char *name);
/*
 * Fill a quotient's parts, and of and to, from its two sums (metric_sum.h). The texts are cut into
 * the names, and have to live as long as the metric. Returns 0 or -EINVAL.
 */
int pem_metric__parse_sums(struct pem_metric *m, char *of, char *to);

/*
 * Add the metrics of another model, which must outlive this one, whose events this model has.
 */
void pem_model__share_metrics(struct pem_model *model, const struct pem_model *from);

/*
 * Parse a text into a block, which the caller frees. NULL with errno EINVAL or ENOMEM, and error.
 */
struct pem_model_block *pem_model__parse(const char *text, size_t bytes, const char *origin,
					 struct pem_error *error);
void pem_model_block__free(struct pem_model_block *block);

/*
 * counter_names.c: is the event a counter that perf, libpfm4 or a vendor calls so? Case, '-' and
 * '_' do not matter. A name may begin with that of libpfm4's table and '::'.
 */
int pem_event__is_counter(const struct pem_event *event, const char *name);

#endif
