/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * probes.h - what no spec describes: found by what somebody calls it, and described as an event
 *
 *	probes.c      what people write, names of events, from a probe to an event's description and
 *		      back
 *	tracepoint.c  tracepoints, by tracefs
 *	function.c    functions of the kernel, by BTF
 *	binary.c      functions and static probes of programs and libraries
 *	static.c      events of specs that come from static probes
 *	usdt_argument.c  where a static probe's arguments lie, from the text in its note
 *	format.c      a tracepoint's fields, from its format file
 *	cache.c       what a search found in binaries, kept
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
/* of a string whose length is not known before: longer ones are cut */
#define PEM_PROBE_STRING_BYTES 128u
#define PEM_PROBE_LIST_BYTES 128u
#define PEM_PROBES_MAX 1600u /* that one pattern may find */
#define PEM_PROBE_SITES_MAX 4096u
#define PEM_USDT_ARGUMENTS_MAX 12u

/* Where a value is when the program runs. */
enum pem_location_kind {
	PEM_LOCATION_NONE,
	PEM_LOCATION_CONTEXT, /* load_bytes of the context at offset */
	PEM_LOCATION_POINTER, /* the same, and the verifier may know it as a pointer */
	PEM_LOCATION_CONSTANT, /* constant */
	/*
	 * the process's memory at (register at offset) + (register at index_offset << shift) +
	 * constant
	 */
	PEM_LOCATION_USER,
	PEM_LOCATION_BYTES, /* an array or string in the context, at offset */
	/* the same; at offset is a word: where in the context, and how long (<< 16) */
	PEM_LOCATION_DATA_LOC,
	PEM_LOCATION_REL_LOC, /* the same, counted from behind that word */
};
#define PEM_LOCATION_NO_REGISTER 0xffffu

/* How much of the register at index_offset counts. */
enum pem_location_index {
	PEM_INDEX_WHOLE,
	PEM_INDEX_WORD, /* its lower 32 bits, */
	PEM_INDEX_SIGNED_WORD, /* and these with their sign */
};

struct pem_argument_location {
	uint8_t kind; /* enum pem_location_kind */
	uint8_t load_bytes;
	/* of these, how many are the value's; 0: as the field says, and so is its sign */
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
	uint16_t max_count; /* the same */
	uint8_t bytes; /* of a number: how many of what is at place count */
	bool is_signed;
	bool is_user_string; /* type string: place holds a pointer to it in the process */
	uint8_t argument; /* of a static probe: which one; place is then its site's */
	struct pem_argument_location location;
};

/* One place in a binary's file. */
struct pem_probe_site {
	uint64_t offset;
	uint64_t semaphore; /* where in the file the count of its users is; 0: it has none */
	struct pem_argument_location arguments[PEM_USDT_ARGUMENTS_MAX];
};

struct pem_probe {
	enum pem_probe_kind kind;
	char *name; /* as one would write it in a pattern */
	char *layer, *class_name, *specifier; /* of its event */
	char *description;
	struct pem_probe_field fields[PEM_PROBE_FIELDS_MAX];
	unsigned field_count;
	uint32_t type_id; /* tracepoint: number in tracefs; fentry, fexit: of the function in BTF */
	char *module; /* of a function in BTF; NULL: the kernel proper */
	char *path; /* of a binary; of a kprobe: the function */
	char *binary; /* the same as it was named */
	struct stat file; /* of a binary: that which was read */
	uint64_t offset; /* of a kprobe: in the function */
	struct pem_probe_site *sites; /* in a binary */
	size_t site_count;
};

void pem_probe__free(struct pem_probe *probe);
/* A probe without fields. NULL: no memory. class_name and specifier are made identifiers. */
struct pem_probe *pem_probe__new(enum pem_probe_kind kind, const char *name, const char *layer,
				 const char *class_name, const char *specifier);
/*
 * The next field, zeroed, its name made an identifier that no other has; NULL: there are too many.
 */
struct pem_probe_field *pem_probe__add_field(struct pem_probe *probe, const char *name);
/*
 * Give lists other names whose length, "NAME_length" in the trace, would be called as another field
 * is.
 */
void pem_probe__rename_lists(struct pem_probe *probe);
/* A field that is a number of so many bytes. */
void pem_probe_field__set_number(struct pem_probe_field *field, unsigned bytes, bool is_signed);

/* Is it what pem_probe__find understands: "SYSTEM:EVENT", "KIND:..."? */
bool pem_probe__is_pattern(const char *pattern);
/*
 * Find what a pattern names, and hand each to found, which owns it then; it returns 0, or -errno to
 * end. Returns how many; -ENOENT: there is none such; -E2BIG: too many; another -errno: it can't be
 * told. With a sentence in error.
 */
typedef int (*pem_probe_found)(void *arg, struct pem_probe *probe);
int pem_probe__find(const char *pattern, pem_probe_found found, void *arg, struct pem_error *error);
/*
 * The one that an event's source_name names, if it is one whose event has this name. NULL with
 * error.
 */
struct pem_probe *pem_probe__of_event(const struct pem_event *event, struct pem_error *error);
/*
 * The probe of an event of a spec that comes from static probes, with the event's fields. NULL with
 * reason.
 */
struct pem_probe *pem_probe__of_static(const struct pem_event *event, struct pem_error *reason);
/*
 * Keep a probe that was found in a binary for who looks for it by its name; takes it over, of
 * whatever kind it is.
 */
void pem_probe_cache__keep(struct pem_probe *probe);
/*
 * A copy of one kept, the caller's, if what its binary is called leads to the file that was read,
 * unchanged; NULL: look for it.
 */
struct pem_probe *pem_probe_cache__find(const char *name);
/* Does the event have the probe's fields? */
bool pem_probe__fits(const struct pem_probe *probe, const struct pem_event *event);
/*
 * The probe as an event whose fields have no offsets yet. fields: as many as the probe has. Strings
 * are the probe's.
 */
void pem_probe__as_event(const struct pem_probe *probe, struct pem_event *event,
			 struct pem_field *fields);

/* Of names that begin alike, the one nearest to a misspelt one: offer each. */
struct pem_probe_near {
	const char *wanted;
	char best[128];
	unsigned edits; /* 0: none yet */
};
void pem_probe_near__offer(struct pem_probe_near *near, const char *name);
/* "; did you mean 'X'?", or "". */
const char *pem_probe_near__say(const struct pem_probe_near *near, char *text, size_t bytes);

/* --- by kind --- */

int pem_probe__find_tracepoints(const char *pattern, pem_probe_found found, void *arg,
				struct pem_error *error);
/* rest: behind the kind's colon. */
int pem_probe__find_functions(enum pem_probe_kind kind, const char *rest, pem_probe_found found,
			      void *arg, struct pem_error *error);
int pem_probe__find_in_binary(enum pem_probe_kind kind, const char *rest, pem_probe_found found,
			      void *arg, struct pem_error *error);
/*
 * A binary as somebody names it: a path, or a name to look for as the system does. Its real path,
 * to be freed; NULL.
 */
char *pem_binary__path(const char *name);
/* The word in front of a kind's colon, "uprobe". */
const char *pem_probe_kind__word(enum pem_probe_kind kind);

/*
 * Read a tracepoint's format file into a probe: its number, and its fields but for the common ones.
 * What has no type is handed on as bytes. 0, or -EINVAL: that is no format.
 */
int pem_format__parse(struct pem_probe *probe, const char *text);

/*
 * One argument of a static probe, as in "-4@%eax": moves *text behind it. 1; 0: there is none left;
 * -EINVAL: not known how to read; then, too, *text has been moved.
 */
struct pem_usdt_argument {
	struct pem_argument_location location;
	uint8_t bytes;
	bool is_signed;
	/*
	 * Not NULL: the place counts from the probe's instruction to what lies at this name, and
	 * constant is to be added to that.
	 */
	const char *symbol;
	size_t symbol_bytes;
};
int pem_usdt_argument__next(const char **text, struct pem_usdt_argument *argument);
/* Are a static probe's arguments at the same places at both? Then one program does for them. */
bool pem_usdt_arguments__same(const struct pem_probe_site *a, const struct pem_probe_site *b);

/*
 * Where the kernel keeps a register in what programs of probes are given, or
 * PEM_LOCATION_NO_REGISTER.
 */
uint16_t pem_register__offset(const char *name, size_t bytes);
/*
 * The same of the nth argument of a function, its result; PEM_LOCATION_NO_REGISTER: it is in none.
 */
uint16_t pem_register__argument(unsigned n);
uint16_t pem_register__result(void);
#define PEM_REGISTER_ARGUMENTS_MAX 8u

#endif
