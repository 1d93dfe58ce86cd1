/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * model_internal.h - what the parts of the model share: its memory, its parser, how errors are worded
 *
 * Not here: the public face (pem/model.h).
 */
#ifndef PEM_MODEL_INTERNAL_H
#define PEM_MODEL_INTERNAL_H

#include <pem/model.h>

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#define PEM_MODEL_TEXT_MAX (64u << 20)
#define PEM_MODEL_EVENTS_MAX 4096u
#define PEM_MODEL_FIELDS_MAX 256u

/* One parsed text: the strings of its events and fields lie in text. */
struct pem_model_block {
	struct pem_model_block *next;
	char *text;
	struct pem_event *events;
	struct pem_field *fields;
	size_t event_count;
	size_t field_count;
};

/* The words of the text form, by number. */
extern const char *const pem_type_words[PEM_TYPE_COUNT];
extern const char *const pem_meaning_words[PEM_MEANING_COUNT];
extern const char *const pem_role_words[PEM_ROLE_COUNT];
extern const char *const pem_source_words[PEM_SOURCE_COUNT];

/* Parse a text into a block of the caller's. NULL with errno EINVAL or ENOMEM, and error. */
struct pem_model_block *pem_model__parse(const char *text, size_t bytes, const char *origin,
					 struct pem_error *error);
void pem_model_block__free(struct pem_model_block *block);

/* Word an error, and hand code through, so that a caller can write: return pem_error__say(error, -EINVAL, ...). */
static inline __attribute__((format(printf, 3, 4))) int
pem_error__say(struct pem_error *error, int code, const char *format, ...)
{
	va_list args;

	if (error) {
		va_start(args, format);
		vsnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
	}
	return code;
}

#endif
