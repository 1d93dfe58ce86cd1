/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * debug_files.c - finds files with debug information of an object besides its own file
 *
 * The object names them, and whoever wrote it may name a pipe, at which a reader would wait, or a
 * device. elfutils opens whatever it finds under a name. So files are opened here: regular ones
 * alone. Of split debug information (.dwo) elfutils does the opening; it is asked to only where no
 * other user can exchange what is found there.
 */
#include "names.h"
#include "held.h"

#include <dwarf.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES (2 * PATH_MAX)
#define CRC_BYTES_MAX ((off_t)1 << 30)

/* Returns whether the text fits. */
__attribute__((format(printf, 2, 0))) static bool put_path(char path[PATH_BYTES],
							   const char *format, va_list args)
{
	int bytes = vsnprintf(path, PATH_BYTES, format, args);

	return bytes >= 0 && bytes < PATH_BYTES;
}

/* What a file is searched for by. */
struct search {
	struct pem_identity identity; /* its build id; build_id_bytes 0: it has none */
	uint32_t crc; /* of a file without a build id */
	bool only_held; /* as struct pem_object has it */
	struct pem_object_file *found;
};

/*
 * CRC-32 of IEEE 802.3, as a debug link has it (gdb: Debugging Information in Separate Files). A
 * program may name a sparse file that takes hours to read: no file beyond a bound is read.
 */
static bool has_crc(int fd, uint32_t wanted)
{
	uint8_t bytes[16384];
	uint32_t table[256], crc = ~0u, i, bit;
	struct stat st;
	ssize_t count;
	off_t at = 0;

	if (fstat(fd, &st) != 0 || st.st_size > CRC_BYTES_MAX)
		return false;
	for (i = 0; i < 256; i++)
		for (table[i] = i, bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
	for (; (count = pread(fd, bytes, sizeof(bytes), at)) > 0 && at <= CRC_BYTES_MAX;
	     at += count)
		for (i = 0; i < (uint32_t)count; i++)
			crc = table[(crc ^ bytes[i]) & 0xff] ^ crc >> 8;
	return count == 0 && ~crc == wanted;
}

__attribute__((format(printf, 2, 3))) static bool try_file(const struct search *s,
							   const char *format, ...)
{
	struct pem_object_query query = {.build_id_bytes = s->identity.build_id_bytes};
	char path[PATH_BYTES];
	va_list args;
	bool fits;

	va_start(args, format);
	fits = put_path(path, format, args);
	va_end(args);
	if (query.build_id_bytes != 0)
		query.build_id = s->identity.build_id;
	if (!fits || (s->only_held && !pem_path__is_held(path, NULL)) ||
	    pem_object_file__try(s->found, path, &query) != 0)
		return false;
	if (query.build_id != NULL || has_crc(s->found->fd, s->crc))
		return true;
	pem_object_file__close(s->found);
	return false;
}

/* Take the next absolute folder off a list; "+" and "-" are options of libdwfl's. */
static const char *next_folder(const char **list, int *bytes)
{
	const char *folder;

	while (**list != '\0') {
		folder = *list + strspn(*list, "+-");
		*bytes = (int)strcspn(folder, ":");
		*list = folder + *bytes + (folder[*bytes] == ':');
		if (*folder == '/')
			return folder;
	}
	return NULL;
}

static bool find_by_id(const struct search *s, const char *folders)
{
	char id[2 * PEM_BUILD_ID_MAX + 1];
	const char *folder;
	size_t i;
	int bytes;

	for (i = 0; i < s->identity.build_id_bytes; i++)
		sprintf(id + 2 * i, "%02x", s->identity.build_id[i]);
	while (i > 1 && (folder = next_folder(&folders, &bytes)) != NULL)
		if (try_file(s, "%.*s/.build-id/%.2s/%s.debug", bytes, folder, id, id + 2))
			return true;
	return false;
}

/* Beside a file, in .debug there, and in each folder as the file lies in "/". */
static bool find_by_link(const struct search *s, const char *folders, const char *path,
			 const char *link)
{
	char *real = realpath(path, NULL), *base = real != NULL ? strrchr(real, '/') : NULL;
	const char *folder;
	bool found = false;
	int bytes;

	if (base != NULL && (link == NULL || strchr(link, '/') == NULL)) {
		char name[NAME_MAX + 1] = "";

		snprintf(name, sizeof(name), "%.240s%s", link != NULL ? link : base + 1,
			 link != NULL ? "" : ".debug");
		*base = '\0';
		found = try_file(s, "%s/%s", real, name) || try_file(s, "%s/.debug/%s", real, name);
		while (!found && (folder = next_folder(&folders, &bytes)) != NULL)
			found = try_file(s, "%.*s%s/%s", bytes, folder, real, name);
	}
	free(real);
	return found;
}

static const char *folders_of(const struct pem_object *object)
{
	return object->debug_folders != NULL ? object->debug_folders : PEM_DEBUG_FOLDERS;
}

int pem_debug_file__open(const struct pem_object *object, const char *link, uint32_t crc,
			 char **path)
{
	struct pem_object_file found;
	const struct search s = {object->file.identity, crc, object->only_held, &found};
	/* A file by an invented name is known by its build id alone. */
	bool may_link = link != NULL || s.identity.build_id_bytes != 0;

	if (!find_by_id(&s, folders_of(object)) &&
	    !(may_link && find_by_link(&s, folders_of(object), object->file.path, link)))
		return object->debug_folders != NULL ? -1
						     : pem_object_file__open_cached(object, path);
	elf_end(found.elf);
	*path = found.path;
	return found.fd;
}

/* A file that several objects share is named by a path, perhaps from the folder of the namer. */
static bool find_shared(const struct search *s, const char *folders, const char *from,
			const char *name)
{
	const char *base = strrchr(name, '/'), *folder;
	char *real = realpath(from, NULL), *end = real != NULL ? strrchr(real, '/') : NULL;
	bool found = find_by_id(s, folders);
	int bytes;

	if (end != NULL)
		*end = '\0';
	if (!found)
		found = *name == '/' ? try_file(s, "%s", name)
				     : end != NULL && try_file(s, "%s/%s", real, name);
	while (!found && (folder = next_folder(&folders, &bytes)) != NULL)
		found = try_file(s, "%.*s/.dwz/%s", bytes, folder, base != NULL ? base + 1 : name);
	free(real);
	return found;
}

bool pem_debug_file__share(struct pem_object *object, Dwarf *dwarf, const char *from)
{
	struct search s = {.only_held = object->only_held, .found = &object->shared_file};
	const void *build_id;
	const char *name;
	ssize_t bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &build_id);

	if (bytes <= 0)
		return true;
	if (bytes > PEM_BUILD_ID_MAX)
		return false;
	memcpy(s.identity.build_id, build_id, (size_t)bytes);
	s.identity.build_id_bytes = (size_t)bytes;
	if (!find_shared(&s, folders_of(object), from, name))
		return false;
	object->shared = dwarf_begin_elf(object->shared_file.elf, DWARF_C_READ, NULL);
	if (object->shared != NULL)
		dwarf_setalt(dwarf, object->shared);
	return object->shared != NULL;
}

/* --- split debug information --- */

__attribute__((format(printf, 1, 2))) static bool is_path_held(const char *format, ...)
{
	char path[PATH_BYTES];
	va_list args;
	bool fits;

	va_start(args, format);
	fits = put_path(path, format, args);
	va_end(args);
	return fits && pem_path__is_held(path, NULL);
}

static const char *text_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	const char *text = dwarf_formstring(dwarf_attr(die, name, &attribute));

	return text != NULL ? text : "";
}

bool pem_debug_file__may_be_split(Dwarf_Die *unit, const char *from)
{
	const char *name = text_of(unit, DW_AT_dwo_name);
	const char *folder = text_of(unit, DW_AT_comp_dir);
	char *real = realpath(from, NULL), *end = real != NULL ? strrchr(real, '/') : NULL;
	bool held;

	if (*name == '\0')
		name = text_of(unit, DW_AT_GNU_dwo_name);
	/* elfutils from 0.190 on looks for a package of all units first. */
	held = end != NULL && is_path_held("%s.dwp", real);
	if (held)
		*end = '\0';
	if (held && *name == '/')
		held = is_path_held("%s", name);
	else if (held)
		held = is_path_held("%s/%s", real, name) &&
		       (*folder == '/' ? is_path_held("%s/%s", folder, name)
				       : is_path_held("%s/%s/%s", real, folder, name));
	free(real);
	return held;
}
