/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf_later.h - finding functions by name in libraries that the program loaded after its start
 *
 * For adapters of libraries that interpreters load for one module alone, so that no search in the
 * loader's order finds them.
 */
#ifndef PEM_LIBC_ELF_LATER_H
#define PEM_LIBC_ELF_LATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Find the definitions of count names in one library: the first of these that defines names[0].
 *	the library that holds the address site, which is where the caller's caller goes on;
 *	one that this library needs;
 *	one that others need by the name soname; NULL: any other.
 * Never in this library itself. NULL in found: the library does not define the name.
 *
 * false: no library has names[0]; found is as it was. Takes the loader's lock, allocates nothing,
 * and keeps errno and what dlerror will say. Nothing keeps the library from being unloaded
 * afterwards.
 */
bool pem_elf__find_later(uintptr_t site, const char *soname, const char *const names[],
			 void *found[], size_t count);

#endif
