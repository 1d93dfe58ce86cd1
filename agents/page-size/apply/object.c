// SPDX-License-Identifier: MIT
/* object.c - the number of an object, from what is mapped of it */
#include "object.h"

#include "sites/site.h"

#include <link.h>
#include <string.h>

static bool find_build_id(const char *notes, size_t bytes, uint64_t *object)
{
	size_t at = 0;

	while (bytes >= sizeof(ElfW(Nhdr)) && at <= bytes - sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)(notes + at);
		uint64_t name = at + sizeof(*note);
		uint64_t content = name + ((uint64_t)note->n_namesz + 3) / 4 * 4;
		uint64_t end = content + note->n_descsz;

		if (end > bytes)
			return false;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz &&
		    !memcmp(notes + name, "GNU", 4)) {
			*object = page_object__of_build_id((const void *)(notes + content),
							   note->n_descsz);
			return true;
		}
		at = (size_t)((end + 3) / 4 * 4);
	}
	return false;
}

bool object__number(uintptr_t start, uintptr_t end, uintptr_t bias, uint64_t *object)
{
	const ElfW(Ehdr) *header = (const void *)start;
	const ElfW(Phdr) * programs;
	uintptr_t at;
	unsigned i;

	if (end - start < 4096 || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_phentsize != sizeof(*programs) ||
	    header->e_phoff + (uint64_t)header->e_phnum * sizeof(*programs) > 4096)
		return false;
	programs = (const void *)(start + header->e_phoff);
	for (i = 0; i < header->e_phnum; i++) {
		at = bias + programs[i].p_vaddr;
		if (programs[i].p_type == PT_NOTE && at >= start && at < end &&
		    programs[i].p_memsz <= end - at &&
		    find_build_id((const void *)at, programs[i].p_memsz, object))
			return true;
	}
	*object = page_object__of_headers(header, sizeof(*header), programs,
					  header->e_phnum * sizeof(*programs));
	return true;
}
