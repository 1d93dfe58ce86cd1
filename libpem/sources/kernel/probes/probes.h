/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probes.h - probes that no spec describes: found by a pattern, and described as an event
 *
 *	probes.c      patterns, names of events, from a probe to an event's description and back
 *	tracepoint.c  tracepoints, by tracefs
 *	function.c    functions of the kernel, by BTF
 *	binary.c      searches in programs and libraries; their static probes
 *	code.c        their functions and instructions
 *	parameters.c  the fields of a function, by debug information or registers
 *	static.c      events of specs that come from static probes and functions of binaries
 *	usdt_argument.c  where a static probe's arguments lie, from the text in its note
 *	format.c      a tracepoint's fields, from its format file
 *	cache.c       keeps the results of searches in binaries
 */
#ifndef PEM_SOURCES_KERNEL_PROBES_H
#define PEM_SOURCES_KERNEL_PROBES_H

#include "sources/kernel/base/base.h"

#include <pem/event.h>
#include <pem/model.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define PEM_PROBE_FIELDS_MAX 48u
#define PEM_PROBE_NAME_BYTES 64u
/* Maximum bytes of a string whose length is not known in advance. Longer strings are cut. */
#define PEM_PROBE_STRING_BYTES 128u
#define PEM_PROBE_LIST_BYTES 128u
#define PEM_PROBES_MAX 1600u /* probes that one pattern may find */
#define PEM_PROBE_SITES_MAX 4096u
#define PEM_USDT_ARGUMENTS_MAX 12u

/* Where a value is when the program runs. */
enum pem_location_kind {
	PEM_LOCATION_NONE,
	PEM_LOCATION_CONTEXT, /* load_bytes of the context at offset */
	/* As PEM_LOCATION_CONTEXT, but the verifier may treat it as a pointer. */
	PEM_LOCATION_POINTER,
	PEM_LOCATION_CONSTANT,
	/*
	 * The process's memory at (register at offset) + (register at index_offset << shift) +
	 * constant.
	 */
	PEM_LOCATION_USER,
	PEM_LOCATION_BYTES, /* an array or string in the context, at offset */
	/*
	 * An array or string in the context. At offset is a word with its offset in the context and
	 * its length (<< 16).
	 */
	PEM_LOCATION_DATA_LOC,
	/* As PEM_LOCATION_DATA_LOC, but the offset counts from the end of that word. */
	PEM_LOCATION_REL_LOC,
};
#define PEM_LOCATION_NO_REGISTER 0xffffu

/* Which part of the register at index_offset is used. */
enum pem_location_index {
	PEM_INDEX_WHOLE,
	PEM_INDEX_WORD, /* its lower 32 bits, zero-extended */
	PEM_INDEX_SIGNED_WORD, /* its lower 32 bits, sign-extended */
};

struct pem_argument_location {
	uint8_t kind; /* enum pem_location_kind */
	uint8_t load_bytes;
	/*
	 * How many of load_bytes belong to the value. 0: the field's type decides bytes and sign.
	 */
	uint8_t bytes;
	uint8_t is_signed;
	uint8_t shift;
	uint8_t index; /* enum pem_location_index */
	uint16_t offset, index_offset; /* PEM_LOCATION_NO_REGISTER: none */
	int64_t constant;
};

struct pem_probe_field {
	char name[PEM_PROBE_NAME_BYTES];
	uint8_t type, element_type, base; /* as pem_field */
	uint16_t max_count; /* as pem_field */
	/* For a number: how many of the bytes at location are used. */
	uint8_t bytes;
	bool is_signed;
	/* For type string: location holds a pointer to the string in the process. */
	bool is_user_string;
	/* For a static probe: the number of the argument. Its location is then in the site. */
	uint8_t argument;
	struct pem_argument_location location;
};

/* One place in a binary's file where the probe is attached. */
struct pem_probe_site {
	uint64_t offset;
	/* File offset of the probe's count of users. 0: it has none. */
	uint64_t semaphore;
	struct pem_argument_location arguments[PEM_USDT_ARGUMENTS_MAX];
};

struct pem_probe {
	enum pem_probe_kind kind;
	char *name; /* as a pattern names it */
	char *layer, *class_name, *specifier; /* of the probe's event */
	char *description;
	/* Which parameters of a function are no fields, and why; NULL: all are. */
	char *trouble;
	struct pem_probe_field fields[PEM_PROBE_FIELDS_MAX];
	unsigned field_count;
	/*
	 * For a tracepoint: its number in tracefs. For fentry and fexit: the function's type in
	 * BTF.
	 */
	uint32_t type_id;
	char *module; /* of a function in BTF; NULL: the kernel itself */
	/* For a probe in a binary: the real path. For a kprobe: the function. */
	char *path;
	char *binary; /* path as the pattern named it */
	struct stat file; /* of a binary: the file that was read */
	uint64_t offset; /* of a kprobe: bytes from the function's begin */
	struct pem_probe_site *sites; /* in a binary */
	size_t site_count;
	bool is_32bit; /* arguments of its functions are in no registers */
};

void pem_probe__free(struct pem_probe *probe);
/*
 * Make a probe without fields. class_name and specifier are changed into identifiers. NULL: no
 * memory.
 */
struct pem_probe *pem_probe__new(enum pem_probe_kind kind, const char *name, const char *layer,
				 const char *class_name, const char *specifier);
/*
 * Add a zeroed field. Its name is changed into an identifier that no other field has. NULL: there
 * are too many fields.
 */
struct pem_probe_field *pem_probe__add_field(struct pem_probe *probe, const char *name);
/* Rename lists whose length, "NAME_length" in the trace, would have the name of another field. */
void pem_probe__rename_lists(struct pem_probe *probe);
/* Make a field a number of this size. */
void pem_probe_field__set_number(struct pem_probe_field *field, unsigned bytes, bool is_signed);

/* Is the text a pattern for pem_probe__find: "SYSTEM:EVENT" or "KIND:..."? */
bool pem_probe__is_pattern(const char *pattern);
/*
 * Find the probes that a pattern names, and call found for each. found owns the probe. It returns
 * 0, or -errno to end the search. Returns the number of probes; -ENOENT: there is none; -E2BIG:
 * there are too many; another -errno: the search failed. Errors have a sentence in error.
 */
typedef int (*pem_probe_found)(void *arg, struct pem_probe *probe);
int pem_probe__find(const char *pattern, pem_probe_found found, void *arg, struct pem_error *error);
/*
 * Make the probe of an event outside the table: the one that source_name names, whose event must
 * have this event's name, or that of a spec. NULL with error.
 */
struct pem_probe *pem_probe__of_event(const struct pem_event *event, struct pem_error *error);
/*
 * Make the probe of a spec's event that comes from static probes, or from a function or address of
 * a binary, with the event's fields. NULL with reason.
 */
struct pem_probe *pem_probe__of_static(const struct pem_event *event, struct pem_error *reason);
struct pem_probe *pem_probe__of_function(const struct pem_event *event, struct pem_error *reason);
/*
 * Keep a probe that was found in a binary, so that a later search by name finds it. Takes over the
 * probe, of any kind.
 */
void pem_probe_cache__keep(struct pem_probe *probe);
/*
 * Find a kept probe by name. It is used only if its binary's name still leads to the file that was
 * read, and the file is unchanged. Returns a copy that the caller owns. NULL: search the binary.
 */
struct pem_probe *pem_probe_cache__find(const char *name);
/* Does the event have the probe's fields? */
bool pem_probe__fits(const struct pem_probe *probe, const struct pem_event *event);
/*
 * Describe the probe as an event whose fields have no offsets yet. fields must have room for all
 * fields of the probe. Strings still belong to the probe.
 */
void pem_probe__as_event(const struct pem_probe *probe, struct pem_event *event,
			 struct pem_field *fields);

/* Finds, of similar names, the one nearest to a misspelt name. Each candidate is offered once. */
struct pem_probe_near {
	const char *wanted;
	char best[128];
	unsigned edits; /* 0: no near name yet */
};
void pem_probe_near__offer(struct pem_probe_near *near, const char *name);
/* "; did you mean 'X'?", or "". */
const char *pem_probe_near__say(const struct pem_probe_near *near, char *text, size_t bytes);

/* --- one kind of probes each --- */

int pem_probe__find_tracepoints(const char *pattern, pem_probe_found found, void *arg,
				struct pem_error *error);
/* rest is the pattern after the kind's colon. */
int pem_probe__find_functions(enum pem_probe_kind kind, const char *rest, pem_probe_found found,
			      void *arg, struct pem_error *error);
int pem_probe__find_in_binary(enum pem_probe_kind kind, const char *rest, pem_probe_found found,
			      void *arg, struct pem_error *error);
/*
 * Add the fields of the function at an address of an object (names/probing.h): its parameters, or
 * its result for a uretprobe; registers, if debug information has no function there. Sets trouble.
 * Returns 0 or -ENOMEM.
 */
struct pem_object;
int pem_probe__add_parameters(struct pem_probe *probe, struct pem_object *object, uint64_t address);
/* Add the registers that may hold arguments, arg0 and so on, or the result, ret. 0 or -ENOMEM. */
#define PEM_PROBE_REGISTERS 6u
int pem_probe__add_registers(struct pem_probe *probe);
/* Do both have the same fields, and in the same registers? */
bool pem_probe__has_fields_of(const struct pem_probe *a, const struct pem_probe *b);
/*
 * Find a binary by a path, or by a name that is searched as the system does. Returns its real path,
 * which the caller frees. NULL: not found.
 */
char *pem_binary__path(const char *name);
/* The word before the colon for a kind, such as "uprobe". */
const char *pem_probe_kind__word(enum pem_probe_kind kind);

/*
 * Read a tracepoint's format file into a probe: its number and its fields, without the common
 * fields. A field without a known type becomes bytes. Returns 0, or -EINVAL if the text is not a
 * format file.
 */
int pem_format__parse(struct pem_probe *probe, const char *text);

/*
 * One argument of a static probe, such as "-4@%eax". pem_usdt_argument__next moves *text behind it.
 * It returns 1; 0 if no argument is left; -EINVAL if it can't read the argument. On -EINVAL, too,
 * *text has been moved.
 */
struct pem_usdt_argument {
	struct pem_argument_location location;
	uint8_t bytes;
	bool is_signed;
	/*
	 * Not NULL: the location is relative to the address of this symbol, and constant is an
	 * offset from it. The address counts from the probe's instruction.
	 */
	const char *symbol;
	size_t symbol_bytes;
};
int pem_usdt_argument__next(const char **text, struct pem_usdt_argument *argument);
/*
 * Are a static probe's arguments at the same locations at both sites? One program then serves both.
 */
bool pem_usdt_arguments__same(const struct pem_probe_site *a, const struct pem_probe_site *b);

/*
 * Where the kernel stores a register in the context of a probe's program. PEM_LOCATION_NO_REGISTER:
 * unknown register.
 */
uint16_t pem_register__offset(const char *name, size_t bytes);
/*
 * As pem_register__offset(), for argument n of a function, or for its result.
 * PEM_LOCATION_NO_REGISTER: it is in no register.
 */
uint16_t pem_register__argument(unsigned n);
uint16_t pem_register__result(void);
#define PEM_REGISTER_ARGUMENTS_MAX 8u

#endif
