/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* names.h - the parts of an object, which are of libpem-names alone */
#ifndef PEM_NAMES_INTERNAL_H
#define PEM_NAMES_INTERNAL_H

#include "segments.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <pem/names.h>

#include <stdbool.h>

#define PEM_BUILD_ID_MAX 64
/* Where debug files are looked for unless the caller says otherwise. */
#define PEM_DEBUG_FOLDERS "/usr/lib/debug"
/* A path in a sentence, whose rest has room. */
#define SHOWN "%.256s"

/* --- files (file.c) --- */

/* What tells one file from another. */
struct pem_identity {
	uint8_t build_id[PEM_BUILD_ID_MAX];
	size_t build_id_bytes; /* 0: none */
	uint64_t number;
};

struct pem_object_file {
	int fd;
	Elf *elf;
	char *path;
	struct pem_identity identity;
};

/*
 * Open the file of an object. Returns 0, or -errno with error. pem_object_file__close accepts a
 * zeroed file whose fd is -1.
 */
int pem_object_file__open(struct pem_object_file *file, const struct pem_object_query *query,
			  struct pem_error *error);
void pem_object_file__close(struct pem_object_file *file);
/*
 * Open a regular file if it is the object that is asked for. Returns 0; -ESTALE: it is, or may be,
 * another object; or another -errno. The file is set on success.
 */
int pem_object_file__try(struct pem_object_file *file, const char *path,
			 const struct pem_object_query *query);
/*
 * Open an object's debug file in the cache of debuginfod's clients. Returns a descriptor, with its
 * path, both for the caller to close and free; or -1.
 */
int pem_object_file__open_cached(const struct pem_object *object, char **path);
/* Write a sentence. Returns -code. */
int pem_names__fail(struct pem_error *error, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* --- ranges of addresses (spans.c) --- */

/* Addresses low to high - 1 are of number of. */
struct pem_span {
	uint64_t low, high;
	uint32_t of;
};

#define PEM_SPAN_NONE UINT32_MAX

/* From start on addresses are of number of, up to the next one. */
struct pem_step {
	uint64_t start;
	uint32_t of;
};

/* Spans while they are collected, then steps. Zeroed: empty. */
struct pem_spans {
	struct pem_span *spans;
	size_t count, capacity;
	struct pem_step *steps;
	size_t step_count;
};

/* Add addresses of a number. Returns 0 or -ENOMEM. */
int pem_spans__add(struct pem_spans *spans, uint64_t low, uint64_t high, uint32_t of);
/*
 * Make steps of all spans, which are freed. Where spans overlap, the one with the higher start
 * holds; of those that start together the shorter one, of equal ones the one added last. Returns 0
 * or -ENOMEM.
 */
int pem_spans__sort(struct pem_spans *spans);
/* The number that an address is of, or PEM_SPAN_NONE. */
uint32_t pem_spans__find(const struct pem_spans *spans, uint64_t address);
void pem_spans__free(struct pem_spans *spans);

/* --- symbols (symbols.c) --- */

struct pem_symbol {
	const char *name;
	/* Source file of a function that is local to it, as the symbol table has it; or NULL. */
	const char *file;
	bool is_named; /* demangled was asked for */
	char *demangled; /* what name points to then, or NULL */
	uint64_t start;
};

struct pem_symbols {
	struct pem_symbol *symbols;
	size_t count;
	struct pem_spans spans;
};

enum pem_symbol_kind { PEM_SYMBOL_FUNCTIONS, PEM_SYMBOL_VARIABLES };

/*
 * Of an object's symbols, debug symbols of all of Chromium among them. A file of a few KiB can have
 * more, as a hole of zeros.
 */
#define PEM_SYMBOLS_MAX (16 << 20)

/*
 * Read the functions, or variables, of the symbol tables. Returns 0, -ENOMEM or -EFBIG: there are
 * more than PEM_SYMBOLS_MAX.
 */
int pem_symbols__read(struct pem_symbols *symbols, Dwfl_Module *module, enum pem_symbol_kind kind);
void pem_symbols__free(struct pem_symbols *symbols);
/* The function or variable at an address of the module, or NULL. */
struct pem_symbol *pem_symbols__find(const struct pem_symbols *symbols, uint64_t address);
/* The name of a symbol, in C++ as its source has it. */
const char *pem_symbol__name(struct pem_symbol *symbol);
/*
 * The name of C++ that a symbol stands for; the caller frees it. NULL: it is not one, it is too
 * complex, or there is no libstdc++.
 */
char *pem_symbols__demangle(const char *name);

/* --- debug information (units.c, functions.c, scopes.c) --- */

#define PEM_NO_FUNCTION UINT32_MAX
#define PEM_NO_SCOPE UINT32_MAX

/* A function, or one that was inlined into another. */
struct pem_function {
	Dwarf_Die die;
	bool is_named; /* the members up to line are set */
	bool has_linkage; /* name is of its linkage name, so with all scopes */
	const char *name; /* NULL: it has none */
	char *text; /* allocated, and name points to it; or NULL */
	const char *file; /* where it is declared; NULL: unknown */
	uint32_t line;
	uint64_t identity; /* as in struct pem_name */
	uint64_t start;
	uint32_t outer; /* the function it was inlined into, or PEM_NO_FUNCTION: it is a function */
	uint32_t call_file, call_line; /* where, if it was inlined */
};

/* A namespace, class or function of the source, which may hold functions. */
struct pem_code_scope {
	Dwarf_Die die;
	uint32_t outer; /* index of the scope around it, or PEM_NO_SCOPE */
};

/* What was compiled at once: a source file with what it includes. */
struct pem_unit {
	Dwarf_Die die;
	Dwarf_Die root; /* where its functions are described; not die in split DWARF */
	bool is_read;
	struct pem_function *functions;
	size_t function_count, function_capacity;
	struct pem_code_scope *scopes; /* in the order of the file; none of C */
	size_t scope_count, scope_capacity;
	struct pem_spans spans; /* of functions */
};

struct pem_units {
	Dwarf *dwarf; /* NULL: no debug information */
	struct pem_unit *units;
	size_t count, capacity;
	struct pem_spans spans; /* of units */
};

/* Find all units. from: the file that dwarf is of. Returns 0 or -ENOMEM. */
int pem_units__read(struct pem_units *units, Dwarf *dwarf, const char *from);
void pem_units__free(struct pem_units *units);
/* The unit of an address as DWARF has it, with its functions, or NULL. */
struct pem_unit *pem_units__find(struct pem_units *units, uint64_t address);
/* Read the functions of a unit. Returns 0 or -ENOMEM. */
int pem_unit__read(struct pem_unit *unit);
/* Keep a scope, in the order of the file. Returns its index, outer if C has none, or -ENOMEM. */
int64_t pem_scopes__add(struct pem_unit *unit, Dwarf_Die *die, int tag, uint32_t outer);
/* Name a function of a unit, and set its identity. It does nothing the second time. */
void pem_function__describe(struct pem_unit *unit, struct pem_function *function);
/*
 * Go to a child or sibling (dwarf_child, dwarf_siblingof). False: there is none, or it is not
 * further on in the file, where a damaged file's may lead in circles.
 */
bool pem_die__go(int (*next)(Dwarf_Die *from, Dwarf_Die *to), Dwarf_Die *from, Dwarf_Die *to);

/* --- the object (object.c) --- */

#define PEM_OBJECT_SEGMENTS_MAX 32u /* linkers make 2 to 6 */

struct pem_object {
	struct pem_object_file file;
	char *debug_folders; /* NULL: PEM_DEBUG_FOLDERS */
	char *no_folders; /* what libdwfl is told: "" */
	bool was_asked; /* libdwfl has asked for the debug file */
	/* Debug files that another user can exchange are not used. */
	bool only_held;
	bool is_shared; /* it got a debug file that objects share from a server */
	struct pem_object_file shared_file; /* with debug information that objects share */
	Dwarf *shared; /* of that file, or NULL */
	Dwfl_Callbacks callbacks;
	Dwfl *dwfl;
	Dwfl_Module *module;
	/* What libdwfl adds to the object's addresses: in its symbols, and in DWARF. */
	GElf_Addr symbol_bias, debug_bias;
	struct pem_symbols symbols;
	struct pem_symbols variables;
	bool has_variables; /* they were asked for */
	struct pem_units units;
	struct pem_segment segments[PEM_OBJECT_SEGMENTS_MAX];
	unsigned int segment_count;
};

/* --- debug files (debug_files.c) --- */

/*
 * Open the debug file of an object, by its build id or by the link that the object has (NULL: none)
 * with a checksum. Returns a descriptor, with its path, both for the caller to close and free; or
 * -1.
 */
int pem_debug_file__open(const struct pem_object *object, const char *link, uint32_t crc,
			 char **path);
/*
 * Open what the debug information shares with that of other objects (dwz), if it does. from: the
 * file that dwarf is of. False: it is not found, and dwarf must not be read: elfutils would search.
 */
bool pem_debug_file__share(struct pem_object *object, Dwarf *dwarf, const char *from);
/* May elfutils open what belongs to a unit of split debug information? from: as above. */
bool pem_debug_file__may_be_split(Dwarf_Die *unit, const char *from);

#endif
