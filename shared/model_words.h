/* SPDX-License-Identifier: MIT */
/*
 * model_words.h - the words that specs, models and commands use for the numbers of pem/event.h
 *
 * Each array has a word for each number below the COUNT of its enum. "-" means none.
 */
#ifndef PEM_SHARED_MODEL_WORDS_H
#define PEM_SHARED_MODEL_WORDS_H

#include <pem/event.h>

extern const char *const pem_type_words[];
extern const char *const pem_meaning_words[];
extern const char *const pem_role_words[];
extern const char *const pem_source_words[];
extern const char *const pem_level_words[];
extern const char *const pem_scope_words[];
extern const char *const pem_metric_form_words[];
extern const char *const pem_label_kind_words[];

#endif
