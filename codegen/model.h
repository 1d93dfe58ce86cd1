/* SPDX-License-Identifier: MIT */
/*
 * model.h - event specs in memory: what load.c fills, check.c and layout.c complete, and backends read
 *
 * Types, meanings, roles and sources are the enums of pem/event.h. Not here: reading XML, writing files.
 *
 *	load.c (XML -> model)  ->  check.c (names, roles, sources)  ->  layout.c (offsets, sizes)  ->  backend_*.c
 *
 * Backends run only on a set without errors, so they need not check anything. A set owns all strings in it.
 */
#ifndef PEM_CODEGEN_MODEL_H
#define PEM_CODEGEN_MODEL_H

#include <pem/abi.h>
#include <pem/event.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Limits of the language, so that hostile input stays small and every number fits its place in the ABI. */
#define PEM_SPEC_FILE_BYTES_MAX (1u << 20)
#define PEM_SPEC_FIELDS_MAX 64u /* records: PEM_RECORD_BYTES_MAX of abi.h */
#define PEM_SPEC_LIST_DEFAULT 16u
#define PEM_SPEC_STRING_DEFAULT 64u
#define PEM_SPEC_ID_RESERVED 16u /* ids below this are never an event's */

struct pem_spec_field {
	char *name;
	char *description;
	char *unit; /* "" if none */
	char *from; /* C expression over the source's arguments; NULL if none */
	uint8_t type; /* enum pem_type; PEM_TYPE_NONE: the XML named none that exists */
	uint8_t element_type; /* of a list, else PEM_TYPE_NONE */
	uint8_t base; /* 10 or 16 */
	uint8_t role;
	uint32_t max_count; /* elements of a list, bytes of a string with its NUL, else 1 */
	uint32_t offset; /* as pem_field.offset */
	uint32_t padding; /* zero bytes in front of offset */
	int has_max; /* the XML says max, eltType, base */
	int has_element_type;
	int has_base;
	int line;
};

struct pem_spec_event {
	const struct pem_spec *spec;
	char *name;
	char *description;
	char *layer;
	char *class_name;
	char *specifier;
	char *source_name; /* "" if none */
	char *source_arguments; /* prototype of a tracepoint's arguments; NULL if none */
	char *c_name; /* "<class>_<specifier>" in snake_case */
	char *c_upper; /* the same in capitals */
	struct pem_spec_field *fields;
	size_t field_count;
	uint32_t id;
	uint32_t fixed_bytes; /* header, fixed fields, list lengths */
	uint32_t max_bytes; /* longest record, rounded up to 8 */
	int has_tail; /* a list or string: the record's length varies */
	uint32_t stub_index; /* among its provider's stub events; only for PEM_SOURCE_STUB */
	uint8_t meaning;
	uint8_t source_kind;
	int line;
};

/* One file. */
struct pem_spec {
	char *path;
	const char *file; /* path without its folders */
	char *provider;
	char *description;
	uint64_t hash; /* of the file's bytes */
	struct pem_spec_event *events;
	size_t event_count;
	uint32_t stub_count; /* events with PEM_SOURCE_STUB */
	int line;
};

struct pem_spec_error {
	const char *path;
	int line;
	size_t order;
	char *text;
};

struct pem_spec_set {
	struct pem_spec *specs;
	size_t count;
	struct pem_spec_error *errors;
	size_t error_count;
};

/*
 * Read a spec file into the set: bytes are hostile input of any kind. Finds as many errors as it can and keeps what
 * is sound, so that the checks can go on to find theirs. path names the file in errors and is copied.
 */
void pem_spec_set__load(struct pem_spec_set *set, const char *path);
void pem_spec_set__load_bytes(struct pem_spec_set *set, const char *path, const char *bytes,
			      size_t count);
/* Check what the schema can't say. Fills c_name, c_upper, id, stub_index. */
void pem_spec_set__check(struct pem_spec_set *set);
/* Compute offsets and sizes. */
void pem_spec_set__layout(struct pem_spec_set *set);
/* Print all errors, by file and line. */
void pem_spec_set__print_errors(struct pem_spec_set *set, FILE *out);
void pem_spec_set__free(struct pem_spec_set *set);

/* Note an error: what is wrong, and what was expected. line 0: the file as a whole. */
void pem_spec_set__error(struct pem_spec_set *set, const char *path, int line, const char *format,
			 ...) __attribute__((format(printf, 4, 5)));

/* The spec's words for the enums of pem/event.h; '-' for none. */
const char *pem_word__type(unsigned type);
const char *pem_word__meaning(unsigned meaning);
const char *pem_word__role(unsigned role);
const char *pem_word__source(unsigned kind);
/* Back again: the value, or -1 if there is no such word. */
int pem_word__type_of(const char *word);
int pem_word__meaning_of(const char *word);
int pem_word__role_of(const char *word);
int pem_word__source_of(const char *word);

/* Bytes of one value of a numeric type; 0 for strings, lists and none. */
uint32_t pem_type__size(unsigned type);
int pem_type__is_signed(unsigned type);
int pem_type__is_float(unsigned type);
/* C's name, such as "uint64_t"; of a string or list NULL. */
const char *pem_type__c(unsigned type);

/* FNV-1a of a string (event ids) and of bytes (files). */
uint32_t pem_hash32(const char *text);
uint64_t pem_hash64(const void *bytes, size_t count);
/* CamelCase to snake_case: HWPerf -> hw_perf, HPMsAndPC -> hpms_and_pc. The caller frees it. */
char *pem_snake_case(const char *name);

/* As the C library's, but out of memory ends the program with a sentence: codegen holds nothing to save. */
void *pem_xrealloc(void *old, size_t count, size_t size);
/* Room for one more in an array of count that only this function grows: it doubles at powers of two. */
void *pem_xgrow(void *old, size_t count, size_t size);
char *pem_xstrdup(const char *text);
char *pem_xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
