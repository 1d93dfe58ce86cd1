/* SPDX-License-Identifier: GPL-2.0-or-later */
/* objects.c - the objects that are mapped, for names of addresses */
#include "tool.h"

#include <elf.h>

#define HEADERS_MAX 64u
#define NOTES_MAX 65536u
/* The library of the tool in the program, and the core's. */
#define OWN_PREFIX "vgpreload_"

struct object {
	struct object *next;
	ULong dev, ino;
	ULong number;
	Addr start, end, bias;
	Bool own;
};

static struct object *first_object;
UInt objects__age;

static struct object *holding(Addr address)
{
	struct object **at, *object;

	for (at = &first_object; *at; at = &(*at)->next) {
		object = *at;
		if (address < object->start || address >= object->end)
			continue;
		/* The next question is likely about the same one. */
		*at = object->next;
		object->next = first_object;
		first_object = object;
		return object;
	}
	return NULL;
}

Bool objects__find(Addr address, struct page_frame *frame)
{
	const struct object *object = holding(address);

	if (!object)
		return False;
	frame->object = object->number;
	frame->offset = address - object->bias;
	return True;
}

Bool objects__hold(Addr address)
{
	return holding(address) != NULL;
}

Bool objects__own(Addr address)
{
	const struct object *object = holding(address);

	return object && object->own;
}

/* --- of a file --- */

struct file {
	Int fd;
	Elf64_Ehdr header;
	Elf64_Phdr headers[HEADERS_MAX];
};

static Bool read_at(const struct file *file, ULong at, void *to, ULong count)
{
	return VG_(lseek)(file->fd, at, VKI_SEEK_SET) == (Off64T)at &&
	       VG_(read)(file->fd, to, count) == (Int)count;
}

static Bool read_headers(struct file *file)
{
	const Elf64_Ehdr *header = &file->header;

	return read_at(file, 0, &file->header, sizeof(file->header)) &&
	       !VG_(memcmp)(header->e_ident, ELFMAG, SELFMAG) &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_machine == EM_X86_64 &&
	       header->e_phentsize == sizeof(Elf64_Phdr) && header->e_phnum > 0 &&
	       header->e_phnum <= HEADERS_MAX &&
	       read_at(file, header->e_phoff, file->headers, header->e_phnum * sizeof(Elf64_Phdr));
}

/* The object number by the build id among notes; 0: none is there. */
static ULong build_id_number(const UChar *notes, ULong bytes, ULong align)
{
	ULong at = 0, name_end, end;
	Elf64_Nhdr note;

	while (at + sizeof(note) <= bytes) {
		VG_(memcpy)(&note, notes + at, sizeof(note));
		at += sizeof(note);
		name_end = at + (((ULong)note.n_namesz + align - 1) & -align);
		end = name_end + (((ULong)note.n_descsz + align - 1) & -align);
		if (name_end + note.n_descsz > bytes)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz &&
		    !VG_(memcmp)(notes + at, "GNU", 4))
			return page_object__of_build_id(notes + name_end, note.n_descsz);
		at = end;
	}
	return 0;
}

static ULong object_number(const struct file *file)
{
	static UChar notes[NOTES_MAX];
	const Elf64_Phdr *header;
	ULong number;
	UInt i;

	for (i = 0; i < file->header.e_phnum; i++) {
		header = &file->headers[i];
		if (header->p_type != PT_NOTE || header->p_filesz > NOTES_MAX ||
		    !read_at(file, header->p_offset, notes, header->p_filesz))
			continue;
		number = build_id_number(notes, header->p_filesz, header->p_align == 8 ? 8 : 4);
		if (number)
			return number;
	}
	return page_object__of_headers(&file->header, sizeof(file->header), file->headers,
				       file->header.e_phnum * sizeof(Elf64_Phdr));
}

static Addr page_down(Addr address)
{
	return address & ~(SMALL_PAGE - 1);
}

static Addr page_up(Addr address)
{
	return page_down(address + SMALL_PAGE - 1);
}

/* Where the object would begin if this mapping is of one of its segments. */
static Bool find_bias(const struct file *file, const NSegment *segment, Addr *bias)
{
	const Elf64_Phdr *header;
	UInt i;

	for (i = 0; i < file->header.e_phnum; i++) {
		header = &file->headers[i];
		if (header->p_type == PT_LOAD && header->p_flags & PF_X &&
		    page_down(header->p_offset) == (ULong)segment->offset) {
			*bias = segment->start - page_down(header->p_vaddr);
			return True;
		}
	}
	return False;
}

/* Its .data and .bss, from its headers: they may not be mapped yet. */
static void tell_data(const struct file *file, const struct object *object)
{
	struct page_site site = {.kind = PAGE_SITE_DATA, .frame_count = 1};
	const Elf64_Phdr *header;
	UInt number = NO_SITE, i;

	site.frames[0].object = object->number;
	for (i = 0; i < file->header.e_phnum; i++) {
		header = &file->headers[i];
		if (header->p_type != PT_LOAD || !(header->p_flags & PF_W) || !header->p_memsz)
			continue;
		if (number == NO_SITE)
			number = sites__add(&site);
		output__range(page_down(object->bias + header->p_vaddr),
			      page_up(object->bias + header->p_vaddr + header->p_memsz), number,
			      header->p_memsz);
	}
}

static void tell(const struct file *file, const NSegment *segment, const HChar *name)
{
	struct object *object = NEW(sizeof(*object));
	struct profile_object told = {0};
	const Elf64_Phdr *header;
	UInt i;

	if (!find_bias(file, segment, &object->bias)) {
		VG_(free)(object);
		return;
	}
	object->start = ~0ul;
	object->end = 0;
	for (i = 0; i < file->header.e_phnum; i++) {
		header = &file->headers[i];
		if (header->p_type != PT_LOAD)
			continue;
		if (object->bias + header->p_vaddr < object->start)
			object->start = page_down(object->bias + header->p_vaddr);
		if (object->bias + header->p_vaddr + header->p_memsz > object->end)
			object->end = page_up(object->bias + header->p_vaddr + header->p_memsz);
	}
	object->number = object_number(file);
	object->own = VG_(strncmp)(VG_(basename)(name), OWN_PREFIX, sizeof(OWN_PREFIX) - 1) == 0;
	object->next = first_object;
	first_object = object;
	told.object = object->number;
	told.start = object->start;
	told.end = object->end;
	told.bias = object->bias;
	output__object(&told, name);
	if (!object->own)
		tell_data(file, object);
}

void objects__mapped(Addr address, SizeT bytes)
{
	static struct file file;
	const NSegment *segment = VG_(am_find_nsegment)(address);
	const HChar *name;
	struct vg_stat found;

	(void)bytes;
	if (!segment || segment->kind != SkFileC || !segment->hasX || objects__hold(address))
		return;
	name = VG_(am_get_filename)(segment);
	file.fd = name ? VG_(fd_open)(name, VKI_O_RDONLY, 0) : -1;
	if (file.fd < 0)
		return;
	/* Another file may have that name now. */
	if (!VG_(fstat)(file.fd, &found) && found.ino == segment->ino && read_headers(&file))
		tell(&file, segment, name);
	VG_(close)(file.fd);
}

void objects__unmapped(Addr address, SizeT bytes)
{
	struct object **at, *object;

	for (at = &first_object; *at;) {
		object = *at;
		/* The dynamic linker unmaps gaps, too. What holds the ELF header goes last. */
		if (address <= object->start && object->start < address + bytes) {
			*at = object->next;
			VG_(free)(object);
			objects__age++;
		} else {
			at = &object->next;
		}
	}
}
