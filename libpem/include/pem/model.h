/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model.h - sets of event descriptions: the built-in catalogue, a trace's own, or text from a provider
 */
#ifndef PEM_MODEL_H
#define PEM_MODEL_H

#include <pem/event.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * What went wrong, as a sentence for a person: what, where, and what would mend it. Functions that take one
 * write it on failure only; it may be NULL.
 */
struct pem_error {
	char text[512];
};

struct pem_model;

/* An empty model, or NULL with errno. The caller frees it. */
struct pem_model *pem_model__new(void);
void pem_model__free(struct pem_model *model);

/*
 * Add the events of a model text (format: event.h). An event that is there already, with the same records, is skipped.
 * The text is hostile input: every cell, offset and size is checked. Returns events added, -EINVAL for bad
 * text, or two events with one id or with one name and version, -ENOMEM; on failure the model is unchanged. origin names
 * the text in errors.
 */
int pem_model__add_text(struct pem_model *model, const char *text, size_t bytes, const char *origin,
			struct pem_error *error);
/*
 * Called with a model text of bytes bytes, which has a NUL behind it and lives during the call. origin: the file that carries
 * it. Returns 0 to go on; what is not ends the search.
 */
typedef int (*pem_model_visit)(void *arg, const char *text, size_t bytes, const char *origin);

/*
 * Find the models that a program carries: hand visit each one of the program file and of the libraries that it needs, which
 * are searched as the loader does. Stubs of pem-codegen carry them since version 0.2.0. One model may come several times. The
 * texts are hostile input, as pem_model__add_text() and pem_session__add_model() take it. Nothing of the files is run.
 *
 * Returns how many models there were. 0: also for what is no 64-bit ELF file, such as a script. -ECANCELED: visit ended
 * it. -EINVAL: the program is damaged; -E2BIG: it names thousands of places of libraries; -ENOENT and others: it can't be
 * read; with error. A library that is missing or damaged is passed over. Thread-safe. Blocks on files.
 */
int pem_program__models(const char *path, pem_model_visit visit, void *arg,
			struct pem_error *error);

/* Add the built-in catalogue. */
int pem_model__add_catalogue(struct pem_model *model, struct pem_error *error);
/* The text form of the whole model; the caller frees it. NULL with errno. */
char *pem_model__to_text(const struct pem_model *model);

size_t pem_model__count(const struct pem_model *model);
/* Event i in order of addition; valid while the model lives, also across later additions. */
const struct pem_event *pem_model__event(const struct pem_model *model, size_t i);
/* By id, or by name (of several versions the one added first), or NULL. */
const struct pem_event *pem_model__by_id(const struct pem_model *model, uint32_t id);
const struct pem_event *pem_model__by_name(const struct pem_model *model, const char *name);
/*
 * 1: the same event for whoever reads its records, which hold the same bytes; 0: another. What people say about it
 * (descriptions, levels, meanings, roles, labels, sources) may differ.
 */
int pem_event__equal(const struct pem_event *a, const struct pem_event *b);
/* Index of a field in event->fields, or -ENOENT. */
int pem_event__field(const struct pem_event *event, const char *name);
/* Index of the first field with a role, or -ENOENT. */
int pem_event__field_by_role(const struct pem_event *event, enum pem_role role);
/*
 * Does an event match a pattern: a layer ('OS'), a class ('Sched', 'OS::Sched'), a specifier, or a whole name or
 * 'Class::Specifier' with '*' and '?' in it ('OS::*', '*Fault'). Case counts but in the layer. 'PATTERN@2': only events of
 * version 2. A pattern with a single colon is one of tracepoints and probes that events come from ('sched:*',
 * 'fentry:vfs_read'; 'usdt:PATH:NAME' is of any provider).
 */
int pem_event__matches(const struct pem_event *event, const char *pattern);

/* What an enum's label calls the value, which is sign-extended if the field is signed; NULL if nothing. */
const char *pem_field__label(const struct pem_field *field, uint64_t value);

/* Bytes of a type's value: 1 to 8, or 0 for strings, lists, arrays and unknown types. */
size_t pem_type__bytes(enum pem_type type);
const char *pem_type__name(enum pem_type type);
const char *pem_meaning__name(enum pem_meaning meaning);
const char *pem_role__name(enum pem_role role);
const char *pem_source_kind__name(enum pem_source_kind kind);
const char *pem_level__name(enum pem_level level);
const char *pem_scope__name(enum pem_scope scope);

/*
 * Length in bytes of the record at data, which starts with its header, of which available bytes may be read.
 * -EINVAL if it does not fit or a string is not terminated. No byte beyond available is touched.
 */
int pem_event__record_bytes(const struct pem_event *event, const uint8_t *data, size_t available);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
