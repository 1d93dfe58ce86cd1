/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * elf_names.h - finding functions by name in the objects that the program was started with
 *
 * What dlsym does, without what dlsym may do: it takes no lock, allocates nothing, and touches
 * neither errno nor what dlerror will say. So it can be called inside the program's allocator, and
 * before any constructor ran.
 *
 * The tables are those of the loader's own list. The loader has gone through them to link the
 * program, so that they are trusted as far as it trusts them.
 */
#ifndef PEM_LIBC_ELF_NAMES_H
#define PEM_LIBC_ELF_NAMES_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

#define PEM_ELF_NAMES_MAX 128u /* of one call: they are kept on the stack */

/*
 * For each name the definition that dlsym(RTLD_NEXT) would find: in the first object behind this
 * one that defines it, the version that programs are linked with today, or that follows the name
 * after an @. NULL in found: no object defines the name.
 *
 * false: the loader's list is not there yet, or this object is not in it, or there are too many
 * names. Nothing was looked up then, and found is as it was.
 *
 * Of all threads at any time, also in signal handlers: as long as the program closes none of the
 * objects that it was started with, which the loader does not let it. Objects that dlopen appends
 * meanwhile may or may not be searched.
 */
bool pem_elf__find_next(const char *const names[], void *found[], size_t count);

/*
 * Does an object of the loader's list define the name, the program itself and this object among
 * them? As above.
 */
bool pem_elf__is_defined(const char *name);

/*
 * The definition in one object: base is what the loader added to its addresses, dynamic its dynamic
 * section. NULL: it has none. The object must not be closed meanwhile.
 */
void *pem_elf__find_in(Elf64_Addr base, const Elf64_Dyn *dynamic, const char *name);

/*
 * The name by which others need an object (DT_SONAME); NULL: it has none. Borrowed from the object.
 */
const char *pem_elf__soname(Elf64_Addr base, const Elf64_Dyn *dynamic);

/* Does an object need another of that name (DT_NEEDED)? */
bool pem_elf__needs(Elf64_Addr base, const Elf64_Dyn *dynamic, const char *soname);

#endif
