/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* file.c - finds the file of an object, and makes sure that it is the one */
#include "names.h"
#include "held.h"

#include <pem/sized.h>
#include <pem/trace.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/*
 * Sections may take this many times what their file takes on its disk, and these bytes more. Debug
 * information is compressed to a third, some of its sections to a twentieth.
 */
#define INFLATED_MOST 32u
#define INFLATED_FREE ((uint64_t)16 << 20)

int pem_names__fail(struct pem_error *error, int code, const char *format, ...)
{
	va_list args;

	if (error != NULL) {
		va_start(args, format);
		vsnprintf(error->text, sizeof(error->text), format, args);
		va_end(args);
		pem_printable(error->text);
	}
	return -code;
}

/* FNV-1a of Fowler, Noll and Vo, with their 64-bit offset basis and prime. */
static uint64_t fnv(uint64_t hash, const char *bytes, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* Continue a hash with bytes of a file. Returns 0 or -ENOEXEC. */
static int hash_bytes(int fd, uint64_t from, uint64_t count, uint64_t *hash)
{
	char bytes[4096];

	while (count != 0) {
		size_t part = count < sizeof(bytes) ? count : sizeof(bytes);

		if (from > INT64_MAX - part || pread(fd, bytes, part, (off_t)from) != (ssize_t)part)
			return -ENOEXEC;
		*hash = fnv(*hash, bytes, part);
		from += part;
		count -= part;
	}
	return 0;
}

/* The number of an object without a build id. 0: its headers can't be read. */
static uint64_t number_of_headers(Elf *elf, int fd)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	GElf_Ehdr header;
	size_t programs;

	if (gelf_getehdr(elf, &header) == NULL || elf_getphdrnum(elf, &programs) != 0 ||
	    hash_bytes(fd, 0, header.e_ehsize, &hash) != 0 ||
	    hash_bytes(fd, header.e_phoff, programs * header.e_phentsize, &hash) != 0)
		return 0;
	return hash;
}

static void identify(Elf *elf, int fd, struct pem_identity *identity)
{
	const void *build_id;
	ssize_t bytes = dwelf_elf_gnu_build_id(elf, &build_id);
	size_t i;

	*identity = (struct pem_identity){0};
	if (bytes <= 0 || bytes > PEM_BUILD_ID_MAX) {
		identity->number = number_of_headers(elf, fd);
		return;
	}
	identity->build_id_bytes = (size_t)bytes;
	memcpy(identity->build_id, build_id, (size_t)bytes);
	for (i = 0; i < 8; i++)
		identity->number = identity->number << 8 | identity->build_id[i];
}

static bool is_asked_for(const struct pem_identity *found, const struct pem_object_query *query)
{
	if (query->build_id != NULL)
		return found->build_id_bytes == query->build_id_bytes &&
		       memcmp(found->build_id, query->build_id, query->build_id_bytes) == 0;
	return query->number == 0 || found->number == query->number;
}

/*
 * A pipe or a device would block, or do something, and a file of /proc is of whichever process has
 * the number: they are not even opened.
 */
static int open_regular(const char *path)
{
	int fd, handle = open(path, O_PATH | O_CLOEXEC);
	char self[32];
	struct stat about;
	struct statfs where;

	if (handle < 0)
		return -errno;
	if (fstat(handle, &about) < 0 || !S_ISREG(about.st_mode) || fstatfs(handle, &where) < 0 ||
	    (uint64_t)where.f_type == PROC_SUPER_MAGIC) {
		close(handle);
		return -ENOEXEC;
	}
	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	fd = open(self, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		fd = -errno;
	close(handle);
	return fd;
}

/* Without a build id, any change of the file since it ran may have made it another one. */
static bool is_changed(int fd, const struct pem_object_query *query)
{
	struct stat about;

	if (query->build_id != NULL || query->number != 0 || query->mapped_ns == 0)
		return false;
	return fstat(fd, &about) < 0 ||
	       (uint64_t)about.st_ctim.tv_sec * 1000000000 + (uint64_t)about.st_ctim.tv_nsec >
		       query->mapped_ns;
}

/*
 * The bytes that a section has in memory: as in the file, or once it is inflated. A section of the
 * older form, .zdebug, begins with "ZLIB" and the number.
 */
static uint64_t bytes_in_memory(Elf_Scn *section, const GElf_Shdr *header, int fd)
{
	uint8_t start[12];
	uint64_t bytes = 0;
	GElf_Chdr packed;
	size_t i;

	if (header->sh_flags & SHF_COMPRESSED)
		return gelf_getchdr(section, &packed) != NULL ? packed.ch_size : 0;
	if (header->sh_flags & SHF_ALLOC || header->sh_offset > INT64_MAX ||
	    pread(fd, start, sizeof(start), (off_t)header->sh_offset) != sizeof(start) ||
	    memcmp(start, "ZLIB", 4) != 0)
		return header->sh_size;
	for (i = 4; i < sizeof(start); i++)
		bytes = bytes << 8 | start[i];
	return bytes;
}

/* libelf reads no section that has no bytes in the file, or some beyond the end of the file. */
static bool is_read(const GElf_Shdr *header, uint64_t file_bytes)
{
	return header->sh_type != SHT_NOBITS && header->sh_size <= file_bytes &&
	       header->sh_offset <= file_bytes - header->sh_size;
}

/*
 * Would the sections take far more memory than the file takes on its disk? They can lie in holes,
 * overlap, and be compressed. Sizes in the file come first: to ask for an inflated size, libelf
 * reads a section.
 */
static bool is_inflated(Elf *elf, int fd)
{
	uint64_t file_bytes, on_disk, room, sum, bytes;
	GElf_Shdr header;
	struct stat about;
	Elf_Scn *section;
	int pass;

	if (fstat(fd, &about) < 0)
		return true;
	file_bytes = on_disk = (uint64_t)about.st_size;
	/* Some file systems don't tell how many blocks a file has. */
	if (about.st_blocks != 0 && (uint64_t)about.st_blocks * 512 < on_disk)
		on_disk = (uint64_t)about.st_blocks * 512;
	room = INFLATED_FREE + INFLATED_MOST * on_disk;
	for (pass = 0; pass < 2; pass++) {
		section = NULL;
		sum = 0;
		while ((section = elf_nextscn(elf, section)) != NULL) {
			if (gelf_getshdr(section, &header) == NULL || !is_read(&header, file_bytes))
				continue;
			bytes = pass == 0 ? header.sh_size : bytes_in_memory(section, &header, fd);
			if (bytes > room - sum)
				return true;
			sum += bytes;
		}
	}
	return false;
}

int pem_object_file__try(struct pem_object_file *file, const char *path,
			 const struct pem_object_query *query)
{
	int fd = open_regular(path), rc = -ENOEXEC;
	/* Read, not mapped: a file that is cut meanwhile would raise SIGBUS. */
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;

	if (fd < 0)
		return fd;
	if (elf != NULL && elf_kind(elf) == ELF_K_ELF) {
		identify(elf, fd, &file->identity);
		rc = is_asked_for(&file->identity, query) && !is_changed(fd, query) ? 0 : -ESTALE;
		if (rc == 0 && is_inflated(elf, fd))
			rc = -EFBIG;
	}
	file->path = rc == 0 ? strdup(path) : NULL;
	if (rc == 0 && file->path == NULL)
		rc = -ENOMEM;
	if (rc == 0) {
		file->fd = fd;
		file->elf = elf;
		return 0;
	}
	elf_end(elf);
	close(fd);
	return rc;
}

/* What a build id begins with, in hexadecimal as files are called: of a number eight bytes. */
static void spell(const struct pem_object_query *query, char text[2 * PEM_BUILD_ID_MAX + 1])
{
	size_t i;

	for (i = 0; query->build_id != NULL && i < query->build_id_bytes; i++)
		sprintf(text + 2 * i, "%02x", query->build_id[i]);
	if (query->build_id == NULL)
		sprintf(text, "%016llx", (unsigned long long)query->number);
}

/* Try FOLDER/.build-id/xx/REST*, which is the object itself or its debug file. */
static int try_folder(struct pem_object_file *file, const char *folder, size_t folder_bytes,
		      const char *id, const struct pem_object_query *query)
{
	char path[PATH_MAX];
	struct dirent *entry;
	int rc = -ENOENT;
	size_t bytes;
	DIR *entries;

	/* The options of libdwfl's paths: '+' and '-' say whether checksums are compared. */
	if (folder_bytes != 0 && (*folder == '+' || *folder == '-')) {
		folder++;
		folder_bytes--;
	}
	bytes = (size_t)snprintf(path, sizeof(path), "%.*s/.build-id/%.2s/", (int)folder_bytes,
				 folder, id);
	if (folder_bytes == 0 || *folder != '/' || bytes >= sizeof(path))
		return -ENOENT;
	entries = opendir(path);
	while (rc != 0 && entries != NULL && (entry = readdir(entries)) != NULL) {
		if (strncmp(entry->d_name, id + 2, strlen(id + 2)) != 0 ||
		    strlen(entry->d_name) >= sizeof(path) - bytes)
			continue;
		strcpy(path + bytes, entry->d_name);
		rc = pem_object_file__try(file, path, query) == 0 ? 0 : -ENOENT;
	}
	if (entries != NULL)
		closedir(entries);
	return rc;
}

static int by_build_id(struct pem_object_file *file, const struct pem_object_query *query)
{
	const char *folder =
		query->debug_folders != NULL ? query->debug_folders : PEM_DEBUG_FOLDERS;
	char id[2 * PEM_BUILD_ID_MAX + 1];
	int rc = -ENOENT;

	spell(query, id);
	for (; rc != 0 && folder != NULL; folder = strchr(folder, ':')) {
		folder += *folder == ':';
		rc = try_folder(file, folder, strcspn(folder, ":"), id, query);
	}
	return rc;
}

/* The cache's folder, as debuginfod's clients choose it. False: there is none. */
static bool cache_folder(char *folder, size_t bytes)
{
	const char *chosen = secure_getenv("DEBUGINFOD_CACHE_PATH");
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	int length = 0;

	if (chosen != NULL)
		length = snprintf(folder, bytes, "%s", chosen);
	else if (cache != NULL)
		length = snprintf(folder, bytes, "%s/debuginfod_client", cache);
	else if (home != NULL)
		length = snprintf(folder, bytes, "%s/.cache/debuginfod_client", home);
	return length > 0 && (size_t)length < bytes;
}

int pem_object_file__open_cached(const struct pem_object *object, char **path)
{
	const struct pem_identity *identity = &object->file.identity;
	struct pem_object_query query = {.build_id = identity->build_id,
					 .build_id_bytes = identity->build_id_bytes};
	char folder[PATH_MAX], id[2 * PEM_BUILD_ID_MAX + 1], debug[PATH_MAX + sizeof(id) + 16];
	struct pem_object_file file;
	int fd;

	if (identity->build_id_bytes == 0 || !cache_folder(folder, sizeof(folder)))
		return -1;
	spell(&query, id);
	snprintf(debug, sizeof(debug), "%s/%s/debuginfo", folder, id);
	if ((object->only_held && !pem_path__is_held(debug, NULL)) ||
	    pem_object_file__try(&file, debug, &query) != 0)
		return -1;
	fd = file.fd;
	*path = file.path;
	elf_end(file.elf);
	return fd;
}

static int check(const struct pem_object_query *query, struct pem_error *error)
{
	if (query->build_id != NULL &&
	    (query->build_id_bytes < 2 || query->build_id_bytes > PEM_BUILD_ID_MAX))
		return pem_names__fail(error, EINVAL, "a build id has 2 to %d bytes, not %zu",
				       PEM_BUILD_ID_MAX, query->build_id_bytes);
	if (query->path == NULL && query->build_id == NULL && query->number == 0)
		return pem_names__fail(error, EINVAL,
				       "an object is asked for by neither path nor build id");
	return 0;
}

/* The sentence for what the path alone gave. */
static int say(int rc, const struct pem_object_query *query, struct pem_error *error)
{
	char id[2 * PEM_BUILD_ID_MAX + 1] = "";
	const char *folders =
		query->debug_folders != NULL ? query->debug_folders : PEM_DEBUG_FOLDERS;

	if (query->build_id != NULL || query->number != 0)
		spell(query, id);
	switch (-rc) {
	case 0:
		return 0;
	case ESTALE:
		if (*id == '\0')
			return pem_names__fail(
				error, ESTALE,
				SHOWN " has no build id, and was changed or replaced after it ran",
				query->path);
		return pem_names__fail(error, ESTALE,
				       SHOWN
				       " was built again since: it is not the one with build id "
				       "%s, and %.128s has no debug file of that",
				       query->path, id, folders);
	case ENOEXEC:
		return pem_names__fail(error, ENOEXEC,
				       SHOWN " is not an ELF file, or it is damaged", query->path);
	case EFBIG:
		return pem_names__fail(error, EFBIG,
				       "the sections of " SHOWN
				       " would take far more memory than it has bytes",
				       query->path);
	case ENOENT:
		if (*id == '\0')
			return pem_names__fail(error, ENOENT, "there is no file " SHOWN,
					       query->path);
		return pem_names__fail(
			error, ENOENT, "no file with build id %s: not " SHOWN ", and not in %.128s",
			id, query->path != NULL ? query->path : "at a known path", folders);
	default:
		return pem_names__fail(error, -rc, SHOWN " can't be read: %s", query->path,
				       strerror(-rc));
	}
}

int pem_object_file__open(struct pem_object_file *file, const struct pem_object_query *given,
			  struct pem_error *error)
{
	struct pem_object_query copy = {0}, *query = &copy;
	int rc = pem_sized__read(&copy, sizeof(copy), given, sizeof(copy));

	if (rc != 0)
		return pem_names__fail(error, -rc, "struct pem_object_query has a wrong size");
	rc = check(query, error);

	if (rc != 0)
		return rc;
	elf_version(EV_CURRENT);
	rc = query->path != NULL ? pem_object_file__try(file, query->path, query) : -ENOENT;
	if (rc == 0 || (query->build_id == NULL && query->number == 0) || rc == -ENOMEM)
		return say(rc, query, error);
	return by_build_id(file, query) == 0 ? 0 : say(rc, query, error);
}

void pem_object_file__close(struct pem_object_file *file)
{
	elf_end(file->elf);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
}
