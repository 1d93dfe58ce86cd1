/* SPDX-License-Identifier: MIT */
/*
 * model.h - event specs in memory: xml/load.c fills them, check/check.c and layout.c complete them,
 * and backends read them
 *
 * Types, meanings, roles and sources are the enums of pem/event.h. Not here: reading XML, writing
 * files.
 *
 *	xml/load.c (XML -> model)  ->  resolve.c (structures, labels, defaults, names)
 *	->  check/check.c (what the schema can't say)  ->  layout.c (offsets, sizes)  ->  backends/
 *
 * Backends run only on a set without errors, so they do not check anything. A set owns all strings
 * in it.
 */
#ifndef PEM_CODEGEN_MODEL_H
#define PEM_CODEGEN_MODEL_H

#include <pem/abi.h>
#include <pem/event.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Limits of the language. They keep hostile input small, and every number fits its field in the
 * ABI.
 */
#define PEM_SPEC_FILE_BYTES_MAX (1u << 20)
#define PEM_SPEC_LABELS_MAX 1024u
#define PEM_SPEC_STRUCT_DEPTH_MAX 4u
/* With "pem_enabled_" before it a name has 63 characters, the longest name of Fortran. */
#define PEM_SPEC_C_NAME_MAX 51u
#define PEM_SPEC_NAME_MAX 120u /* of each name */
#define PEM_SPEC_FIELD_NAME_MAX 63u
/* The bytes of records have their own limit: PEM_RECORD_BYTES_MAX of abi.h. */
#define PEM_SPEC_FIELDS_MAX 64u
/* Fields of all events of a file, with the members of structures. */
#define PEM_SPEC_ALL_FIELDS_MAX 16384u
/* Sum over these fields of the labels of each: models repeat them for each field. */
#define PEM_SPEC_LABEL_USES_MAX 65536u
/* Errors of a set, and as many warnings. One more tells that there are more. */
#define PEM_SPEC_ERRORS_MAX 1000u
#define PEM_SPEC_LIST_DEFAULT 16u
#define PEM_SPEC_STRING_DEFAULT 64u
#define PEM_SPEC_ID_RESERVED 16u /* no event has an id below this */

/*
 * A location in a file. line 0: the file as a whole. column counts characters from 1; 0: unknown.
 */
struct pem_spec_location {
	int line;
	int column;
};

struct pem_spec_label {
	char *name;
	char *description; /* "" if none */
	uint64_t value; /* of a signed field: sign-extended to 64 bits */
	int is_negative; /* the XML's value has a minus sign */
	int is_too_large; /* does not fit in 64 bits */
	int is_damaged; /* the XML's value is not a number */
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
	/* Name with '_' for '.': the name of the parameter and member in all languages. */
	char *c_name;
	char *description; /* "" if none */
	char *unit; /* "" if none, or the XML says 'none' */
	char *from; /* C expression over the source's arguments; NULL if none */
	/*
	 * For a member of a structure, before resolve.c replaces it by the members: the structure's
	 * name.
	 */
	char *of;
	char *labels_name; /* the value of enum='' or flags=''; NULL if neither */
	const struct pem_spec_labels *labels; /* NULL if none */
	uint8_t labels_kind; /* enum pem_label_kind, of labels_name */
	/* enum pem_type. PEM_TYPE_NONE: the XML names no type that exists. */
	uint8_t type;
	uint8_t element_type; /* of a list or array, else PEM_TYPE_NONE */
	uint8_t base; /* 10 or 16 */
	uint8_t role;
	/* Elements of a list or array; bytes of a string with its NUL; else 1. */
	uint32_t max_count;
	uint32_t offset; /* as pem_field.offset */
	uint32_t padding; /* zero bytes before offset */
	int has_of; /* the XML has the attributes of, max, count, eltType, base, unit */
	int has_max;
	int has_count;
	int has_element_type;
	int has_base;
	int has_unit;
	int has_two_labels; /* the XML has both enum and flags */
	int is_struct; /* type='struct' */
	int is_damaged;
	struct pem_spec_location at;
};

/* A <struct>. resolve.c replaces each use by copies of its fields. */
struct pem_spec_struct {
	char *name;
	char *description;
	struct pem_spec_field *fields;
	size_t field_count;
	int is_used; /* An event or another structure uses it. Set by resolve.c. */
	struct pem_spec_location at;
};

/* The expression of one field for one alternative source. */
struct pem_spec_from {
	char *field;
	char *value;
	struct pem_spec_location at;
};

/* A <source>. Several sources of an event are alternatives of one kind, best first. */
struct pem_spec_source {
	char *name; /* "" if none */
	char *arguments; /* prototype of a tracepoint's arguments; NULL if none */
	char *kernel; /* range of kernels, such as "6.8-"; NULL if any */
	/*
	 * Of a tracepoint: C expression over the arguments. There is an event only where it is
	 * true. Only BPF programs evaluate it, so the module leaves the source out. NULL: always.
	 */
	char *when;
	/*
	 * Of a tracepoint: the argument, a struct task_struct *, whose thread the event is of.
	 * NULL: it is of the thread that runs.
	 */
	char *of;
	char *binary; /* of a usdt or uprobe: file or library name; NULL if none */
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
	/* A name that events that belong together share. "" if the meaning matches nothing. */
	char *group;
	char *since; /* "" if the XML does not say it */
	char *deprecated; /* "" if the event is not deprecated */
	char *c_name; /* "<class>_<specifier>" in snake_case */
	char *c_upper; /* c_name in capitals */
	/* After resolve.c there is at least one: a stub if the XML names none. */
	struct pem_spec_source *sources;
	size_t source_count;
	/* After resolve.c: structures are replaced by their members. */
	struct pem_spec_field *fields;
	size_t field_count;
	uint32_t id;
	uint32_t fixed_bytes; /* bytes of header, fixed fields and list lengths */
	uint32_t max_bytes; /* longest record, rounded up to 8 */
	/* The event has a list or string: its record's length varies. */
	int has_tail;
	/* Index among its provider's stub events. Only for PEM_SOURCE_STUB. */
	uint32_t stub_index;
	uint16_t version;
	uint8_t meaning;
	uint8_t level;
	uint8_t scope;
	uint8_t source_kind; /* enum pem_source_kind; all its sources have this kind */
	int has_group; /* the XML has group, scope */
	int has_scope;
	/* The event, or an element in it, has an error. */
	int is_damaged;
	struct pem_spec_location at;
};

/* A <metric>. */
struct pem_spec_metric {
	char *name;
	char *unit; /* "" if none */
	char *description; /* "" if none */
	char *of, *to; /* as the XML has them; NULL if none */
	uint8_t form; /* enum pem_metric_form */
	int is_damaged;
	struct pem_spec_location at;
};

/* One spec file. */
struct pem_spec {
	char *path;
	/*
	 * The path without folders. A '?' replaces characters that could end a comment or are not
	 * ASCII.
	 */
	char *file;
	char *provider;
	char *version; /* "" if the XML does not say it */
	char *description; /* "" if none */
	uint64_t hash; /* of the file's bytes */
	struct pem_spec_labels *labels;
	size_t labels_count;
	struct pem_spec_struct *structs;
	size_t struct_count;
	struct pem_spec_event *events;
	size_t event_count;
	struct pem_spec_metric *metrics;
	size_t metric_count;
	uint32_t stub_count; /* events with PEM_SOURCE_STUB */
	/* The root, or an element in it, has an error. */
	int is_damaged;
	int lacks_parts; /* a child of the root was removed */
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
	struct pem_spec_error *errors; /* errors and warnings */
	size_t error_count;
	size_t warning_count; /* how many of them are warnings */
	/* Other specs exist that a metric may name events of, or these are old ones. */
	int is_part;
};

/*
 * Read a spec file into the set. The bytes are hostile input of any kind. The function finds as
 * many errors as it can and keeps what is correct, so that the checks can find further errors. An
 * element with is_damaged has an error already; checks skip errors that may follow from it. path
 * names the file in errors and is copied.
 */
void pem_spec_set__load(struct pem_spec_set *set, const char *path);
void pem_spec_set__load_bytes(struct pem_spec_set *set, const char *path, const char *bytes,
			      size_t count);
/*
 * Replace structures by their members, and fill in what follows from the rest: labels, sources,
 * group, scope, c_name, c_upper, id, stub_index.
 */
void pem_spec_set__resolve(struct pem_spec_set *set);
/* Check what the schema can't express. */
void pem_spec_set__check(struct pem_spec_set *set);
/*
 * A part of pem_spec_set__check: no other provider may have a provider's names in programs
 * (check/names.c).
 */
void pem_spec_set__check_provider_name(struct pem_spec_set *set, const struct pem_spec *spec);
/*
 * A part of pem_spec_set__check: label names in programs must be short enough and different
 * (check/names.c).
 */
void pem_spec_set__check_label_names(struct pem_spec_set *set, const struct pem_spec *spec);
/* Compute offsets and sizes. */
void pem_spec_set__layout(struct pem_spec_set *set);
/* Sort errors by file, line and column. */
void pem_spec_set__sort_errors(struct pem_spec_set *set);
/*
 * Print all errors, and warnings if asked, sorted by file, line and column: FILE:LINE:COLUMN:
 * error: TEXT. They are fit for a terminal, so FILE may differ from the file's name.
 */
void pem_spec_set__print_errors(struct pem_spec_set *set, int warnings, FILE *out);
void pem_spec_set__free(struct pem_spec_set *set);
/* Free what loading keeps for the next file. */
void pem_spec_set__cleanup(void);
/* Free what a field holds, but not the field. */
void pem_spec_field__free(struct pem_spec_field *field);

/* Add an error or warning to the set. Its text says what is wrong and what was expected. */
void pem_spec_set__error(struct pem_spec_set *set, const char *path, struct pem_spec_location at,
			 const char *format, ...) __attribute__((format(printf, 4, 5)));
void pem_spec_set__warn(struct pem_spec_set *set, const char *path, struct pem_spec_location at,
			const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The spec's words for the enums of pem/event.h. '-' means none. */
const char *pem_word__type(unsigned type);
const char *pem_word__meaning(unsigned meaning);
const char *pem_word__role(unsigned role);
const char *pem_word__source(unsigned kind);
const char *pem_word__level(unsigned level);
const char *pem_word__scope(unsigned scope);
const char *pem_word__label_kind(unsigned kind);
/* The value of a word, or -1 if there is no such word. */
int pem_word__type_of(const char *word);
int pem_word__meaning_of(const char *word);
int pem_word__role_of(const char *word);
int pem_word__source_of(const char *word);
int pem_word__level_of(const char *word);
int pem_word__scope_of(const char *word);

/*
 * The expression for a field in an alternative source of the event: the source's own <from>, else
 * the field's. NULL if neither exists.
 */
const char *pem_spec_event__from(const struct pem_spec_event *event, size_t source,
				 const struct pem_spec_field *field);

/* Bytes of one value of a numeric type or an address. 0 for strings, lists, arrays and none. */
uint32_t pem_type__size(unsigned type);
int pem_type__is_signed(unsigned type);
int pem_type__is_float(unsigned type);
/* The type in C, such as "uint64_t", also for an address. NULL for a string, list or array. */
const char *pem_type__c(unsigned type);

/*
 * Compare two versions such as '1.2'. Returns below 0, 0, or above 0 if a is earlier, equal, later.
 * 1.10 is later than 1.9.
 */
int pem_version__compare(const char *a, const char *b);

/*
 * The language where name can't be the name of a field, or NULL. stub: the event has stubs in all
 * languages.
 */
const char *pem_keyword_language(const char *name, int stub);

/* 64-bit FNV-1a of bytes, for files. */
uint64_t pem_hash64(const void *bytes, size_t count);
/*
 * Convert CamelCase to snake_case: HWPerf -> hw_perf, HPMsAndPC -> hpms_and_pc. The caller frees
 * it.
 */
char *pem_snake_case(const char *name);

/*
 * Print "PROGRAM: error: TEXT". PROGRAM is the name that this program was started as; pem starts
 * pem-codegen as pem.
 */
void pem_complain(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * Like the C library's functions, but without memory they print a sentence and end the program:
 * codegen has nothing to save.
 */
void *pem_xrealloc(void *old, size_t count, size_t size);
/*
 * Make room for one more element in an array of count elements that only this function grows. It
 * doubles at powers of two.
 */
void *pem_xgrow(void *old, size_t count, size_t size);
char *pem_xstrdup(const char *text);
char *pem_xprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
