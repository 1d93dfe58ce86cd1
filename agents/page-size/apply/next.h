/* SPDX-License-Identifier: MIT */
/*
 * next.h - the definitions behind this library's in the program's own search order
 *
 * Each pointer points at a function that finds them all, until they are found. That happens before
 * any constructor runs, or in the first call, which may come from the dynamic linker.
 */
#ifndef PAGE_APPLY_NEXT_H
#define PAGE_APPLY_NEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define APPLY_EXPORT __attribute__((visibility("default")))

struct next {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *old, size_t size);
	void *(*reallocarray)(void *old, size_t count, size_t size);
	void (*free)(void *block);
	int (*posix_memalign)(void **block, size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
	size_t (*malloc_usable_size)(void *block);
	void *(*mmap)(void *address, size_t bytes, int protection, int flags, int fd, off_t at);
	int (*munmap)(void *address, size_t bytes);
	int (*mprotect)(void *address, size_t bytes, int protection);
	void *(*mremap)(void *old, size_t old_bytes, size_t bytes, int flags, ...);
};

extern struct next next;

/* Keeps errno. */
void next__find(void);
/* A function that every C library has. Keeps errno. */
void *next__function(const char *name);
/*
 * An operator of C++ that is called from site: the next definition, or that of a C++ library that
 * was loaded later, or of the caller's own object. NULL: there is none. It holds until an object is
 * closed. Keeps errno, but not what dlerror says.
 */
void *next__operator(const char *name, uintptr_t site);
/*
 * Is what the program calls by these names this library's? Not so if it has an allocator of its
 * own, or one is preloaded first: that would be given blocks that it does not know. Keeps errno.
 */
bool next__is_allocator(void);
/* Operators have to be found anew: an object was closed. */
void operators__forget(void);

#define NEXT(name) __atomic_load_n(&next.name, __ATOMIC_RELAXED)

#endif
