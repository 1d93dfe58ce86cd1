/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model.h - models: sets of event descriptions
 *
 * A model has the events of the built-in catalogue, of a trace, of a program, or of a text (format:
 * event.h). A session has one (pem_session__model), and so has a trace (pem_trace__model). An event
 * lives as long as its model, and does not change.
 *
 *	struct pem_model *model = pem_model__new();
 *	size_t i;
 *
 *	pem_model__add_catalogue(model, NULL);
 *	for (i = 0; i < pem_model__count(model); i++)
 *		printf("%s\n", pem_model__event(model, i)->name);
 *	pem_model__free(model);
 *
 * Errors are as in pem.h. A NULL that a function's comment does not accept is EINVAL; a function
 * that can't fail then returns 0 or NULL.
 *
 * While events are added, one thread at a time may use a model. After that any number of threads
 * may. No function here blocks, or is async-signal-safe, unless its comment says so.
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
 * What went wrong, as a sentence for a person: what, where, and the next step. Functions that
 * take one write it on failure only; it may be NULL.
 */
struct pem_error {
	char text[512];
};

struct pem_model;

/* Make an empty model. NULL with errno. The caller frees it. */
struct pem_model *pem_model__new(void);

/* Free a model, and its events. NULL is accepted. */
void pem_model__free(struct pem_model *model);

/* --- adding events --- */

/*
 * Add the events of a model text of bytes bytes. An event that is there already, with the same
 * records, is skipped. The text is hostile input: every cell, offset and size is checked. origin
 * names it in errors.
 *
 * Returns events added. -EINVAL with error: bad text, or two events with one id or with one name
 * and version. On failure the model is as it was.
 */
int pem_model__add_text(struct pem_model *model, const char *text, size_t bytes, const char *origin,
			struct pem_error *error);

/* Add the built-in catalogue. Returns events added, or -errno with error. */
int pem_model__add_catalogue(struct pem_model *model, struct pem_error *error);

/*
 * Called with a model text of bytes bytes, which has a NUL behind it and lives during the call.
 * origin: the file that carries it. Returns 0 to go on; any other value ends the search.
 */
typedef int (*pem_model_visit)(void *arg, const char *text, size_t bytes, const char *origin);

/*
 * Find the models that a program carries: call visit with each model of the program file and of the
 * libraries that it needs. Libraries are searched as the loader does. Stubs of pem-codegen carry
 * them since version 0.2.0. One model may come several times. The texts are hostile input, as
 * pem_model__add_text() and pem_session__add_model() take it. Nothing of the files is run.
 *
 * Returns how many models there were. 0: also for a file that is no 64-bit ELF file, such as a
 * script. -ECANCELED: visit ended it. -EINVAL: the program is damaged; -E2BIG: it needs more than
 * 512 libraries, names more than 20,000 paths of them, or has, with its libraries, more than 16 MiB
 * of models, 4 MiB of such names or 256 MiB of tables; -ENOMEM; -ENOENT and others: it can't be
 * read. All come with error, except -ECANCELED. A library that is missing or damaged is passed
 * over. Thread-safe. Blocks on files.
 */
int pem_program__models(const char *path, pem_model_visit visit, void *arg,
			struct pem_error *error);

/* --- finding events --- */

/* The text form of the whole model. NULL with errno. The caller frees it with free(). */
char *pem_model__to_text(const struct pem_model *model);

/* How many events there are. */
size_t pem_model__count(const struct pem_model *model);

/* Event i, in the order of addition, or NULL. It stays where it is when others are added. */
const struct pem_event *pem_model__event(const struct pem_model *model, size_t i);

/* The event with an id, or NULL. */
const struct pem_event *pem_model__by_id(const struct pem_model *model, uint32_t id);

/* The event with a name, of several versions the one that was added first, or NULL. */
const struct pem_event *pem_model__by_name(const struct pem_model *model, const char *name);

/*
 * Metrics of the model: numbers that are made of what its events say (event.h). Those of a trace
 * are those whose events were recorded. NULL: there is none with this index.
 */
size_t pem_model__metric_count(const struct pem_model *model);
const struct pem_metric *pem_model__metric(const struct pem_model *model, size_t i);

/* --- an event --- */

/*
 * Return 1 if two events are equal for a reader of their records, which then hold the same bytes;
 * else 0. Descriptions, levels, meanings, roles, labels and sources may differ.
 */
int pem_event__equal(const struct pem_event *a, const struct pem_event *b);

/* Index of a field in event->fields, or -ENOENT. */
int pem_event__field(const struct pem_event *event, const char *name);

/* Index of the first field with a role, or -ENOENT. */
int pem_event__field_by_role(const struct pem_event *event, enum pem_role role);

/*
 * Return 1 if an event matches a pattern, else 0. A pattern is
 *
 *	LAYER			'OS', 'os'
 *	CLASS			'Sched', 'OS::Sched'; alone also with * and ?: 'Mut*'
 *	SPECIFIER		'Switch'; also with * and ?: 'MutexWait*'
 *	a whole name, or CLASS::SPECIFIER, with * and ?: 'OS::*', 'Mem::*', '*Fault'
 *	PATTERN@2		only events of version 2
 *	a tracepoint or probe that events come from: 'sched:*', 'fentry:vfs_read'
 *	a counter as perf, libpfm4 or the vendor call it: 'instructions', 'dTLB-load-misses',
 *			'INST_RETIRED', 'arm_n1::INST_RETIRED'; its case, '-' and '_' do not matter
 *
 * An event of level 'named' matches its whole name alone.
 *
 * Upper and lower case differ, except in the layer and of counters. 'usdt:PATH:NAME' matches every
 * provider.
 */
int pem_event__matches(const struct pem_event *event, const char *pattern);

/*
 * Return the length in bytes of the record at data, which starts with its header. available bytes
 * may be read there. -EINVAL: the record does not fit, or a string has no end. No byte beyond
 * available is read. Async-signal-safe.
 */
int pem_event__record_bytes(const struct pem_event *event, const uint8_t *data, size_t available);

/*
 * Return the name of the label for a value; NULL: none. value: sign-extended if the field is
 * signed.
 */
const char *pem_field__label(const struct pem_field *field, uint64_t value);

/* Bytes of a type's value: 1 to 8, or 0 for strings, lists, arrays and unknown types. */
size_t pem_type__bytes(enum pem_type type);

/* The spec's word for each of these; "-" for an unknown number. Static. Async-signal-safe. */
const char *pem_type__name(enum pem_type type);
const char *pem_meaning__name(enum pem_meaning meaning);
const char *pem_role__name(enum pem_role role);
const char *pem_source_kind__name(enum pem_source_kind kind);
const char *pem_level__name(enum pem_level level);
const char *pem_scope__name(enum pem_scope scope);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
