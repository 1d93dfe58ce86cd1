// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * elf_later.c - searching the libraries that are loaded now, as dl_iterate_phdr lists them
 *
 * Not here: their tables (elf_names.c).
 */
#include "libc/elf_later.h"

#include "libc/elf_names.h"

#include <link.h>
#include <string.h>

struct library {
	Elf64_Addr base;
	const Elf64_Dyn *dynamic; /* NULL: none */
};

struct search {
	uintptr_t site;
	const char *soname, *name;
	struct library caller, best;
	int rank; /* rank of best; 0: none yet */
};

/*
 * Read a library. Set *holds to whether the address is in it. Returns false if it has no tables, or
 * contains this code.
 */
static bool read_library(const struct dl_phdr_info *info, uintptr_t address,
			 struct library *library, bool *holds)
{
	int i;

	*library = (struct library){info->dlpi_addr, NULL};
	*holds = false;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_DYNAMIC)
			library->dynamic = (const Elf64_Dyn *)start;
		if (part->p_type == PT_LOAD)
			*holds |= address - start < part->p_memsz;
	}
	return library->dynamic && library->dynamic != _DYNAMIC;
}

static int find_caller(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;
	struct library library;
	bool holds;

	(void)size;
	if (!read_library(info, search->site, &library, &holds) || !holds)
		return 0;
	search->caller = library;
	return 1;
}

static int rank_of(const struct search *search, const struct library *library, bool holds)
{
	const char *soname = pem_elf__soname(library->base, library->dynamic);

	/* Another adapter has the same names, and passes each call on to this one. */
	if (soname && !strncmp(soname, "libpem-", 7))
		return 0;
	if (holds)
		return 3;
	if (soname && search->caller.dynamic &&
	    pem_elf__needs(search->caller.base, search->caller.dynamic, soname))
		return 2;
	return !search->soname || (soname && !strcmp(soname, search->soname));
}

static int find_best(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *search = arg;
	struct library library;
	bool holds;
	int rank;

	(void)size;
	if (!read_library(info, search->site, &library, &holds) ||
	    !pem_elf__find_in(library.base, library.dynamic, search->name))
		return 0;
	rank = rank_of(search, &library, holds);
	if (rank > search->rank) {
		search->rank = rank;
		search->best = library;
	}
	return 0;
}

bool pem_elf__find_later(uintptr_t site, const char *soname, const char *const names[],
			 void *found[], size_t count)
{
	struct search search = {.site = site, .soname = soname, .name = names[0]};
	size_t i;

	dl_iterate_phdr(find_caller, &search);
	dl_iterate_phdr(find_best, &search);
	if (!search.rank)
		return false;
	for (i = 0; i < count; i++)
		found[i] = pem_elf__find_in(search.best.base, search.best.dynamic, names[i]);
	return true;
}
