/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf_names.h - finding functions by name in the objects that the program was started with
 *
 * It does what dlsym does. Unlike dlsym it takes no lock, allocates nothing, and changes neither
 * errno nor the text of dlerror. So it can be called inside the program's allocator, and before any
 * constructor has run.
 *
 * The tables are those of the loader's own list. The loader has used them to link the program, so
 * they are trusted as far as the loader trusts them.
 */
#ifndef PEM_LIBC_ELF_NAMES_H
#define PEM_LIBC_ELF_NAMES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEM_ELF_NAMES_MAX 128u /* Names of one call, at most: they are kept on the stack */

/*
 * Find for each name the definition that dlsym(RTLD_NEXT) would find: in the first object behind
 * this one that defines it. The version is the one that follows the name after an @, or else the
 * one that programs are linked with today. A NULL in found means that no object defines the name.
 *
 * Returns false if the loader's list is not there yet, if this object is not in it, or if there are
 * too many names. Nothing was looked up then, and found is unchanged.
 *
 * Any thread may call it at any time, also in a signal handler. The objects that the program was
 * started with stay: the loader does not let the program close them. Those that dlopen appended
 * before the first search are searched, too; later ones are not.
 */
bool pem_elf__find_next(const char *const names[], void *found[], size_t count);
/* The same for one name. It needs little stack. */
bool pem_elf__find_next_one(const char *name, void **found);

/*
 * Return whether an object of the loader's list defines one of the names. The program itself and
 * this object count. Callers and threads: as above.
 */
bool pem_elf__is_defined(const char *const names[], size_t count);

/*
 * Return the definition in one object; NULL: it has none. base: the number that the loader added to
 * its addresses. dynamic: its dynamic section. The object must not be closed meanwhile.
 */
void *pem_elf__find_in(Elf64_Addr base, const Elf64_Dyn *dynamic, const char *name);

/*
 * Is an address in the function that an object defines by this name? Calls nothing. The rest as
 * above.
 */
bool pem_elf__is_function(Elf64_Addr base, const Elf64_Dyn *dynamic, const char *name,
			  uintptr_t address);

/*
 * Return the name by which others need an object (DT_SONAME); NULL: it has none. The text belongs
 * to the object.
 */
const char *pem_elf__soname(Elf64_Addr base, const Elf64_Dyn *dynamic);

/* Return whether an object needs another one of this name (DT_NEEDED). */
bool pem_elf__needs(Elf64_Addr base, const Elf64_Dyn *dynamic, const char *soname);

#endif
