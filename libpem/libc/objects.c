/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * objects.c - events for the programs and libraries that lie in memory, by which addresses of code
 * in other events are named later
 *
 * A library that is loaded in a way that dlopen's wrapper can't follow is raised as the program
 * ends. Nothing is raised while the loader's lock is held: a thread that waits for it may be in the
 * middle of an event.
 */
#include "libc/libc.h"
#include "producer/rights.h"

#include "stubs/libc.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BUILD_ID_MAX 32u

struct object {
	size_t left; /* objects before it in the loader's list, while they are counted off */
	unsigned long long loaded; /* how many objects were loaded so far, and unloaded */
	unsigned long long unloaded;
	uintptr_t base, start, end;
	char path[256];
	char build_id[2 * BUILD_ID_MAX + 1];
};

/* How many objects had been loaded when they were raised last. */
static unsigned long long raised;

static void spell(const unsigned char *bytes, size_t count, char *text)
{
	static const char digits[] = "0123456789abcdef";
	size_t i;

	for (i = 0; i < count; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * count] = '\0';
}

static void read_build_id(const char *note, size_t bytes, size_t align, struct object *object)
{
	align = align == 8 ? 8 : 4;
	while (bytes >= sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *header = (const void *)note;
		size_t name = (header->n_namesz + 3u) & ~(size_t)3;
		size_t text = (sizeof(*header) + name + align - 1) & ~(align - 1);
		size_t next = (text + header->n_descsz + align - 1) & ~(align - 1);

		if (next > bytes || header->n_namesz > bytes || header->n_descsz > bytes)
			return;
		if (header->n_type == NT_GNU_BUILD_ID && header->n_namesz == sizeof("GNU") &&
		    !memcmp(header + 1, "GNU", sizeof("GNU")) && header->n_descsz <= BUILD_ID_MAX) {
			spell((const unsigned char *)note + text, header->n_descsz,
			      object->build_id);
			return;
		}
		note += next;
		bytes -= next;
	}
}

/* Do a segment's bytes lie in memory, as part of one that is loaded and may be read? */
static bool is_loaded(const struct dl_phdr_info *info, const ElfW(Phdr) * part)
{
	size_t i;

	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *whole = &info->dlpi_phdr[i];

		if (whole->p_type == PT_LOAD && whole->p_flags & PF_R &&
		    part->p_vaddr >= whole->p_vaddr && part->p_filesz <= whole->p_filesz &&
		    part->p_vaddr - whole->p_vaddr <= whole->p_filesz - part->p_filesz)
			return true;
	}
	return false;
}

/* A longer path is cut: it then names no file, and the build id is left. */
static void copy_name(const char *name, struct object *object)
{
	size_t bytes = strnlen(name, sizeof(object->path) - 1);

	memcpy(object->path, name, bytes);
	object->path[bytes] = '\0';
}

static int copy_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *object = arg;
	size_t i;

	(void)size;
	object->loaded = info->dlpi_adds;
	object->unloaded = info->dlpi_subs;
	if (object->left--)
		return 0;
	object->base = info->dlpi_addr;
	object->start = UINTPTR_MAX;
	object->end = 0;
	object->build_id[0] = '\0';
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_NOTE && !object->build_id[0] && is_loaded(info, segment))
			read_build_id((const char *)start, segment->p_filesz, segment->p_align,
				      object);
		if (segment->p_type != PT_LOAD)
			continue;
		object->start = start < object->start ? start : object->start;
		if (start + segment->p_memsz > object->end)
			object->end = start + segment->p_memsz;
	}
	copy_name(info->dlpi_name ? info->dlpi_name : "", object);
	return 1;
}

/* The target of a link, ended. Returns its bytes; 0: unknown, or it does not fit. */
static size_t read_link(const char *link, char *target, size_t bytes)
{
	long count = pem_rights__restricted() ? -1
					      : pem_libc_internal_call(SYS_readlinkat, AT_FDCWD,
								       link, target, bytes);

	if (count < 0 || (size_t)count >= bytes)
		count = 0;
	target[count] = '\0';
	return (size_t)count;
}

/* A program has no name in the loader's list; those of libraries may be relative. */
static void find_path(struct object *object, bool is_program)
{
	const char *name = object->path;
	size_t bytes, folder;

	if (is_program) {
		read_link("/proc/self/exe", object->path, sizeof(object->path));
	} else if (object->path[0] != '/' && strchr(object->path, '/')) {
		char path[sizeof(object->path)];

		while (name[0] == '.' && name[1] == '/')
			name += 2;
		bytes = strlen(name);
		folder = read_link("/proc/self/cwd", path, sizeof(path));
		if (!folder || folder + 1 + bytes >= sizeof(path))
			return;
		path[folder] = '/';
		memcpy(path + folder + 1, name, bytes + 1);
		memcpy(object->path, path, folder + 1 + bytes + 1);
	}
}

static void raise_from(size_t first)
{
	struct object object = {0};
	size_t i;

	for (i = first;; i++) {
		object.left = i;
		if (dl_iterate_phdr(copy_object, &object) != 1)
			break;
		if (object.start >= object.end)
			continue;
		find_path(&object, i == 0);
		pem_notify_loader_object(object.start, object.end - object.start, object.base,
					 object.build_id, object.path);
	}
	__atomic_store_n(&raised, object.loaded, __ATOMIC_RELAXED);
}

/* New objects are at the end of the loader's list. */
void pem_libc_objects__raise(void)
{
	unsigned long long before = __atomic_load_n(&raised, __ATOMIC_RELAXED), there;
	struct object object = {.left = SIZE_MAX};
	int error = errno;

	if (pem_enabled_loader_object() && !pem_libc_call__is_silent(0)) {
		dl_iterate_phdr(copy_object, &object);
		there = object.loaded - object.unloaded;
		if (object.loaded - before < there)
			raise_from((size_t)(there - (object.loaded - before)));
		else
			raise_from(0);
	}
	errno = error;
}

/* All of them: a session may have begun after they were loaded, or have overwritten them. */
static void raise_all(void)
{
	int error = errno;

	if (pem_enabled_loader_object() && !pem_libc_call__is_silent(0))
		raise_from(0);
	errno = error;
}

__attribute__((constructor)) static void begin(void)
{
	raise_all();
}

__attribute__((destructor)) static void end(void)
{
	raise_all();
}
