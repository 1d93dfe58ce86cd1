/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * names.h - names code: an address in a program or library as function, source file and line
 *
 * An object is a program or library as a file. It is told by its build id, so a name is right after
 * the process has ended, and on another machine that has the same file or its debug file. A file
 * that has another build id is never used. Link with libpem-names.
 *
 * Debug files are found as other tools find them: below /usr/lib/debug by build id, and by the name
 * that the object itself gives (.gnu_debuglink); and in the cache of debuginfod's clients. Servers
 * of debug files are asked only where the environment's DEBUGINFOD_URLS names some.
 *
 * Files are hostile input. An object is for one thread at a time; several threads may use one each.
 * Nothing here is async-signal-safe. pem_object__open blocks while it reads files. pem_object__find
 * blocks when an address is the first one in a source file.
 */
#ifndef PEM_NAMES_H
#define PEM_NAMES_H

#include <pem/model.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Which object. At least one of path, build_id and number is given. */
struct pem_object_query {
	size_t size; /* of this struct */
	const char *path; /* where the file was when it ran; NULL: unknown */
	const uint8_t *build_id; /* NULL: unknown */
	size_t build_id_bytes;
	/*
	 * The first eight bytes of the build id, the first byte the most significant. Of an object
	 * without a build id: FNV-1a (64 bits) of its ELF header and program headers. 0: unknown.
	 */
	uint64_t number;
	/* Folders of debug files, separated by ':'. NULL: /usr/lib/debug. */
	const char *debug_folders;
	/*
	 * For an object that is asked for by path alone, since it has no build id: when it was in
	 * memory (CLOCK_REALTIME). A file that was changed, replaced or renamed since is not used.
	 * 0: unknown.
	 */
	uint64_t mapped_ns;
};

/* Where a name comes from. */
enum pem_name_source {
	PEM_NAME_NONE, /* there is no name */
	PEM_NAME_SYMBOL, /* a symbol table */
	PEM_NAME_DEBUG, /* debug information (DWARF) */
};

/*
 * What an address is called. Texts are valid until the object is closed. They come from the file:
 * print them with pem_printable (pem/trace.h).
 */
struct pem_name {
	/*
	 * With its namespaces and classes, and the function around a lambda or local class. Names
	 * of C++ are demangled where this machine has libstdc++. NULL: unknown.
	 */
	const char *function;
	const char *file; /* NULL: unknown */
	uint32_t line; /* 0: unknown */
	uint32_t source; /* enum pem_name_source, of function */
	uint64_t start; /* offset of the function's first instruction; 0: unknown */
	const char *declared_in; /* the source file that declares the function; NULL: unknown */
	uint32_t declared_line; /* 0: unknown */
	uint32_t reserved; /* 0 */
	/*
	 * Which function of the object it is: two names with one identity are of one function, even
	 * if it was inlined, split or cloned; functions with one name have two.
	 */
	uint64_t identity;
};

struct pem_object;

/*
 * Open an object: the file at path if it is the one asked for, else what the folders of debug files
 * have by its build id. The caller closes it. NULL with errno and error:
 *	EINVAL	nothing is asked for, or the build id is empty or longer than 64 bytes
 *	ENOENT	there is no such file
 *	ESTALE	the file at path was built again since, and no other was found; or it was changed
 *		since mapped_ns
 *	ENOEXEC	it is not an ELF file, or it is damaged
 *	EOPNOTSUPP	libpem-names was built without libdw
 *	ENOMEM, and what open(2) returns
 */
struct pem_object *pem_object__open(const struct pem_object_query *query, struct pem_error *error);
/* Close an object. NULL does nothing. */
void pem_object__close(struct pem_object *object);

/* The file that is read. It is a debug file if the object itself was not found. */
const char *pem_object__path(const struct pem_object *object);
/* The object's number (see struct pem_object_query). */
uint64_t pem_object__number(const struct pem_object *object);
/* The build id. Returns its bytes; 0: it has none. */
size_t pem_object__build_id(const struct pem_object *object, const uint8_t **build_id);

/*
 * Name the instruction at an offset, which is in the object's own addresses, as its symbol table
 * has them. A return address is behind its call: ask for the offset minus 1.
 *
 * The first name is of the instruction itself. If its function was inlined, the next one is of the
 * place in the function it was inlined into, and so on. At most max names are written. Returns how
 * many there are, or 0: nothing is known of this offset.
 */
unsigned int pem_object__find(struct pem_object *object, uint64_t offset, struct pem_name *names,
			      unsigned int max);

/*
 * Turn a place in the object's file, as the kernel tells mappings, into an offset as
 * pem_object__find takes it, by the object's segments. *offset is written on success. -ENOENT: no
 * segment of code or data has that place, or only a debug file was found, which has other places.
 */
int pem_object__offset(const struct pem_object *object, uint64_t file_offset, uint64_t *offset);

/*
 * As pem_object__offset, also for memory behind the bytes of the file that a segment has more (of
 * variables that are zero at first).
 */
int pem_object__data_offset(const struct pem_object *object, uint64_t file_offset,
			    uint64_t *offset);
/*
 * Name the variable whose bytes are at an offset in the object's own addresses, by its symbol
 * tables: name->function is the variable. Returns 1; 0: none is known there; -ENOMEM.
 */
int pem_object__find_variable(struct pem_object *object, uint64_t offset, struct pem_name *name);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
