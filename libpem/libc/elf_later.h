/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf_later.h - finding functions by name in libraries that the program loaded after its start
 *
 * Adapters use it. An interpreter may load a library for one module alone, so that no search in the
 * loader's order finds it.
 */
#ifndef PEM_LIBC_ELF_LATER_H
#define PEM_LIBC_ELF_LATER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Find the definitions of count names in one library. Of the libraries that define names[0] it
 * takes the first in this order:
 *	the library that holds the address site, where the caller's caller goes on;
 *	a library that this one needs;
 *	a library that others need by the name soname; with soname NULL: any other.
 * It never searches the library that contains this code. A NULL in found means that the library
 * does not define the name.
 *
 * Returns false if no library has names[0]; found is then unchanged. Takes the loader's lock,
 * allocates nothing, and keeps errno and the text of dlerror. The program may unload the library
 * afterwards.
 */
bool pem_elf__find_later(uintptr_t site, const char *soname, const char *const names[],
			 void *found[], size_t count);

#endif
