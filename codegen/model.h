/* SPDX-License-Identifier: MIT */
/*
 * model.h - event specs in memory: what xml/load.c fills, check/check.c and layout.c complete, and
 * backends read
 *
 * Types, meanings, roles and sources are the enums of pem/event.h. Not here: reading XML, writing
 * files.
 *
 *	xml/load.c (XML -> model)  ->  resolve.c (structures, labels, defaults, names)
 *	->  check/check.c (what the schema can't say)  ->  layout.c (offsets, sizes)  ->  backends/
 *
 * Backends run only on a set without errors, so they need not check anything. A set owns all
 * strings in it.
 */
#ifndef PEM_CODEGEN_MODEL_H
#define PEM_CODEGEN_MODEL_H

#include <pem/abi.h>
#include <pem/event.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Limits of the language, so that hostile input stays small and every number fits its place in the
 * ABI.
 */
#define PEM_SPEC_FILE_BYTES_MAX (1u << 20)
#define PEM_SPEC_LABELS_MAX 1024u
#define PEM_SPEC_STRUCT_DEPTH_MAX 4u
/* "pem_enabled_" before it makes 63, the longest name of Fortran */
#define PEM_SPEC_C_NAME_MAX 51u
#define PEM_SPEC_NAME_MAX 120u /* of what names anything */
#define PEM_SPEC_FIELD_NAME_MAX 63u
#define PEM_SPEC_FIELDS_MAX 64u /* records: PEM_RECORD_BYTES_MAX of abi.h */
#define PEM_SPEC_ALL_FIELDS_MAX 16384u /* of a file's events, with the members of structures */
#define PEM_SPEC_LABEL_USES_MAX 65536u /* labels of these fields: each has its own in models */
/* of a set, and as many warnings; one more says that there are more */
#define PEM_SPEC_ERRORS_MAX 1000u
#define PEM_SPEC_LIST_DEFAULT 16u
#define PEM_SPEC_STRING_DEFAULT 64u
#define PEM_SPEC_ID_RESERVED 16u /* ids below this are never an event's */

/*
 * Where something stands in its file; line 0: the file as a whole. column counts characters from 1;
 * 0: unknown.
 */
struct pem_spec_location {
	int line;
	int column;
};

struct pem_spec_label {
	char *name;
	char *description; /* "" if none */
	uint64_t value; /* of a signed field: sign-extended */
	int is_negative; /* the XML's value has a minus sign */
	int is_too_large; /* for 64 bits */
	int is_damaged; /* its value is none */
	struct pem_spec_location at;
};

/* An <enum> or <flags>. */
struct pem_spec_labels {
	char *name;
	char *description;
	struct pem_spec_label *labels;
	size_t count;
	uint8_t kind; /* enum pem_label_kind */
	int is_damaged;
	struct pem_spec_location at;
};

struct pem_spec_field {
	char *name; /* a structure's member: "structure.member" */
	char *c_name; /* the same with '_' for '.': parameter and member in every language */
	char *description; /* "" if none */
	char *unit; /* "" if none, or the XML says 'none' */
	char *from; /* C expression over the source's arguments; NULL if none */
	/* of a structure, before resolve.c replaced it by its members: the structure's name */
	char *of;
	char *labels_name; /* what enum='' or flags='' says; NULL if neither */
	const struct pem_spec_labels *labels; /* NULL if none */
	uint8_t labels_kind; /* enum pem_label_kind, of labels_name */
	uint8_t type; /* enum pem_type; PEM_TYPE_NONE: the XML named none that exists */
	uint8_t element_type; /* of a list or array, else PEM_TYPE_NONE */
	uint8_t base; /* 10 or 16 */
	uint8_t role;
	/* elements of a list or array, bytes of a string with its NUL, else 1 */
	uint32_t max_count;
	uint32_t offset; /* as pem_field.offset */
	uint32_t padding; /* zero bytes in front of offset */
	int has_of; /* the XML says of, max, count, eltType, base, unit */
	int has_max;
	int has_count;
	int has_element_type;
	int has_base;
	int has_unit;
	int has_two_labels; /* the XML says both enum and flags */
	int is_struct; /* type='struct' */
	int is_damaged;
	struct pem_spec_location at;
};

/* A <struct>; resolve.c puts copies of its fields where it is used. */
struct pem_spec_struct {
	char *name;
	char *description;
	struct pem_spec_field *fields;
	size_t field_count;
	int is_used; /* by an event or another structure; known once resolved */
	struct pem_spec_location at;
};

/* Where an alternative takes one field from. */
struct pem_spec_from {
	char *field;
	char *value;
	struct pem_spec_location at;
};

/* A <source>; several are alternatives of one kind, best first. */
struct pem_spec_source {
	char *name; /* "" if none */
	char *arguments; /* prototype of a tracepoint's arguments; NULL if none */
	char *kernel; /* range of kernels, such as "6.8-"; NULL if any */
	char *binary; /* of a usdt probe: file or library name; NULL if none */
	struct pem_spec_from *froms;
	size_t from_count;
	uint8_t kind; /* enum pem_source_kind */
	int is_damaged;
	struct pem_spec_location at;
};

struct pem_spec_event {
	const struct pem_spec *spec;
	char *name;
	char *description; /* "" if none */
	char *layer;
	char *class_name;
	char *specifier;
	char *group; /* what events that belong together share; "" if the meaning matches nothing */
	char *since; /* "" if unsaid */
	char *deprecated; /* "" if it is not */
	char *c_name; /* "<class>_<specifier>" in snake_case */
	char *c_upper; /* the same in capitals */
	/* at least one once resolved: a stub if the XML names none */
	struct pem_spec_source *sources;
	size_t source_count;
	struct pem_spec_field *fields; /* once resolved: no structures, their members instead */
	size_t field_count;
	uint32_t id;
	uint32_t fixed_bytes; /* header, fixed fields, list lengths */
	uint32_t max_bytes; /* longest record, rounded up to 8 */
	int has_tail; /* a list or string: the record's length varies */
	uint32_t stub_index; /* among its provider's stub events; only for PEM_SOURCE_STUB */
	uint16_t version;
	uint8_t meaning;
	uint8_t level;
	uint8_t scope;
	uint8_t source_kind; /* enum pem_source_kind, of all its sources */
	int has_group; /* the XML says group, scope */
	int has_scope;
	int is_damaged; /* as much as an element in it */
	struct pem_spec_location at;
};

/* One file. */
struct pem_spec {
	char *path;
	char *file; /* path without its folders; what could end a comment or is no ASCII is a '?' */
	char *provider;
	char *version; /* "" if unsaid */
	char *description; /* "" if none */
	uint64_t hash; /* of the file's bytes */
	struct pem_spec_labels *labels;
	size_t labels_count;
	struct pem_spec_struct *structs;
	size_t struct_count;
	struct pem_spec_event *events;
	size_t event_count;
	uint32_t stub_count; /* events with PEM_SOURCE_STUB */
	int is_damaged; /* as much as an element in it */
	int lacks_parts; /* a child of the root was taken out */
	struct pem_spec_location at;
};

struct pem_spec_error {
	const char *path;
	struct pem_spec_location at;
	size_t order;
	int is_warning;
	char *text;
};

struct pem_spec_set {
	struct pem_spec *specs;
	size_t count;
	struct pem_spec_error *errors; /* and warnings */
	size_t error_count;
	size_t warning_count; /* of them */
};

/*
 * Read a spec file into the set (what is_damaged has an error already: checks pass over what may
 * follow from it): bytes are hostile input of any kind. Finds as many errors as it can and keeps
 * what is sound, so that the checks can go on to find theirs. path names the file in errors and is
 * copied.
 */
void pem_spec_set__load(struct pem_spec_set *set, const char *path);
void pem_spec_set__load_bytes(struct pem_spec_set *set, const char *path, const char *bytes,
			      size_t count);
/*
 * Put structures' members in their place and fill in what follows from the rest: labels, sources,
 * group, scope, c_name, c_upper, id, stub_index.
 */
void pem_spec_set__resolve(struct pem_spec_set *set);
/* Check what the schema can't say. */
void pem_spec_set__check(struct pem_spec_set *set);
/* Parts of it: a provider's names in programs must be no others' (check/names.c). */
void pem_spec_set__check_provider_name(struct pem_spec_set *set, const struct pem_spec *spec);
/* And names that labels have in programs must be short enough, and differ (check/names.c). */
void pem_spec_set__check_label_names(struct pem_spec_set *set, const struct pem_spec *spec);
/* Compute offsets and sizes. */
void pem_spec_set__layout(struct pem_spec_set *set);
/* Put errors in the order of files, lines and columns. */
void pem_spec_set__sort_errors(struct pem_spec_set *set);
/*
 * Print all errors, and if asked warnings, by file, line and column: FILE:LINE:COLUMN: error: TEXT.
 */
void pem_spec_set__print_errors(struct pem_spec_set *set, int warnings, FILE *out);
void pem_spec_set__free(struct pem_spec_set *set);
/* Give back what loading keeps for the next file. */
void pem_spec_set__cleanup(void);
/* Give back what a field holds, not the field. */
void pem_spec_field__free(struct pem_spec_field *field);

/* Note an error or warning: what is wrong, and what was expected. */
void pem_spec_set__error(struct pem_spec_set *set, const char *path, struct pem_spec_location at,
			 const char *format, ...) __attribute__((format(printf, 4, 5)));
void pem_spec_set__warn(struct pem_spec_set *set, const char *path, struct pem_spec_location at,
			const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The spec's words for the enums of pem/event.h; '-' for none. */
const char *pem_word__type(unsigned type);
const char *pem_word__meaning(unsigned meaning);
const char *pem_word__role(unsigned role);
const char *pem_word__source(unsigned kind);
const char *pem_word__level(unsigned level);
const char *pem_word__scope(unsigned scope);
const char *pem_word__label_kind(unsigned kind);
/* Back again: the value, or -1 if there is no such word. */
int pem_word__type_of(const char *word);
int pem_word__meaning_of(const char *word);
int pem_word__role_of(const char *word);
int pem_word__source_of(const char *word);
int pem_word__level_of(const char *word);
int pem_word__scope_of(const char *word);

/*
 * Where an alternative of the event takes a field from: its own <from>, or else the field's; NULL
 * if neither.
 */
const char *pem_spec_event__from(const struct pem_spec_event *event, size_t source,
				 const struct pem_spec_field *field);

/*
 * Bytes of one value of a numeric type, addresses among them; 0 for strings, lists, arrays and
 * none.
 */
uint32_t pem_type__size(unsigned type);
int pem_type__is_signed(unsigned type);
int pem_type__is_float(unsigned type);
/* C's name, such as "uint64_t", also of an address; of a string, list or array NULL. */
const char *pem_type__c(unsigned type);

/*
 * Which of two versions, such as '1.2', is the later: below 0, 0, above 0. 1.10 is later than 1.9.
 */
int pem_version__compare(const char *a, const char *b);

/*
 * The language in which name is no name for a field, or NULL; stub: the event has stubs in every
 * language.
 */
const char *pem_keyword_language(const char *name, int stub);

/* FNV-1a of a string (event ids) and of bytes (files). */
uint32_t pem_hash32(const char *text);
uint64_t pem_hash64(const void *bytes, size_t count);
/* CamelCase to snake_case: HWPerf -> hw_perf, HPMsAndPC -> hpms_and_pc. The caller frees it. */
char *pem_snake_case(const char *name);

/*
 * "PROGRAM: error: TEXT", where the program is what it was started as: pem, which runs us, says
 * pem.
 */
void pem_complain(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * As the C library's, but out of memory ends the program with a sentence: codegen holds nothing to
 * save.
 */
void *pem_xrealloc(void *old, size_t count, size_t size);
/*
 * Room for one more in an array of count that only this function grows: it doubles at powers of
 * two.
 */
void *pem_xgrow(void *old, size_t count, size_t size);
char *pem_xstrdup(const char *text);
char *pem_xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
