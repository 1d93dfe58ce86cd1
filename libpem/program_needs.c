/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * program_needs.c - a program file and all libraries that it needs
 *
 * They are found as the loader of the C library finds them (ld.so(8)). For a name without a slash
 * the loader searches in this order:
 * - DT_RPATH of the object and of the objects that led to it, if the object has no DT_RUNPATH
 * - LD_LIBRARY_PATH
 * - DT_RUNPATH
 * - /etc/ld.so.cache
 * - the system's folders
 *
 * $ORIGIN is expanded, other such words are not. A library that is not found is passed over: then
 * the program does not start either.
 */
#include "program_models.h"
#include "util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARIES_MAX 512u
#define TRIES_MAX 20000u /* a program may name thousands of libraries and of folders */
#define CACHE_MAX (16u << 20)
#define PATHS_MAX 65536u /* bytes of a list of folders */
#define TEXTS_MAX (4u << 20) /* bytes of names and of lists of folders, of all objects */
#define MODELS_MAX (16u << 20) /* bytes of models, of all objects */
/*
 * Bytes of tables of sections, names and needed libraries, of all files. One file may have 6 MiB of
 * them. Damaged files count too: they are not remembered, so each name of one reads it again.
 */
#define TABLES_MAX (256u << 20)

/* An object that was found. */
struct object {
	char *origin; /* its folder */
	dev_t device;
	ino_t inode;
	char *rpath, *runpath; /* NULL: none */
	char **needed;
	size_t needed_count;
	size_t parent; /* index of the object that needs it first; a program has its own index */
};

struct search {
	struct object object[1 + LIBRARIES_MAX]; /* the program comes first */
	size_t count;
	uint16_t machine;
	const char *path; /* of the program */
	struct pem_error *error;
	unsigned tries; /* paths that were tried, also those too long to be built */
	size_t text_bytes; /* of TEXTS_MAX */
	uint64_t models_left; /* of MODELS_MAX */
	uint64_t tables_left; /* of TABLES_MAX */
	char *cache; /* ld.so.cache, with a NUL behind it; NULL: not read, or none */
	size_t cache_bytes;
	pem_model_visit visit;
	void *arg;
	int models;
};

/* --- ld.so.cache: since glibc 2.2 --- */

struct cache_header {
	char magic[20]; /* "glibc-ld.so.cache1.1" */
	uint32_t count, strings_bytes;
	uint8_t reserved[20];
};

struct cache_entry {
	int32_t flags;
	uint32_t name, path; /* offsets in the file */
	uint32_t os_version;
	uint64_t hardware;
};

/* Returns 0, also if there is no cache. -ENOMEM. */
static int read_cache(struct search *s)
{
	int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC), result = 0;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return 0;
	if (!fstat(fd, &st) && st.st_size > 0 && st.st_size < CACHE_MAX) {
		s->cache = calloc(1, (size_t)st.st_size + 1);
		result = s->cache ? 0 : -ENOMEM;
	}
	n = s->cache ? read(fd, s->cache, (size_t)st.st_size) : -1;
	s->cache_bytes = n > 0 ? (size_t)n : 0;
	close(fd);
	return result;
}

/* Return the path of entry i if the entry has this name, else NULL. */
static const char *cached(const struct search *s, size_t i, const char *name)
{
	struct cache_entry entry;

	memcpy(&entry, s->cache + sizeof(struct cache_header) + i * sizeof(entry), sizeof(entry));
	if (entry.name >= s->cache_bytes || entry.path >= s->cache_bytes ||
	    strcmp(s->cache + entry.name, name))
		return NULL;
	return s->cache + entry.path;
}

static size_t cache_count(const struct search *s)
{
	struct cache_header header;

	if (s->cache_bytes < sizeof(header))
		return 0;
	memcpy(&header, s->cache, sizeof(header));
	if (memcmp(header.magic, "glibc-ld.so.cache1.1", sizeof(header.magic)) ||
	    header.count > (s->cache_bytes - sizeof(header)) / sizeof(struct cache_entry))
		return 0;
	return header.count;
}

/* --- objects --- */

/*
 * Names may overlap in the file, so that their copies have many times its bytes. A folder's path
 * that is replaced by another one still counts.
 */
static int add_entry(void *arg, int64_t tag, const char *text)
{
	struct search *s = arg;
	struct object *o = &s->object[s->count - 1];
	size_t most = tag == DT_NEEDED ? PATH_MAX : PATHS_MAX, bytes = strnlen(text, most);
	char **larger, *copy;

	if (tag == DT_NEEDED && bytes == most) /* no file has such a name */
		return 0;
	s->text_bytes += bytes + 1 + sizeof(*larger);
	if (s->text_bytes > TEXTS_MAX)
		return pem_error__set(s->error, -E2BIG,
				      "'%s' names libraries and folders in more than %u bytes",
				      s->path, TEXTS_MAX);
	copy = strndup(text, bytes);
	if (!copy)
		return -ENOMEM;
	if (tag == DT_NEEDED) {
		larger = realloc(o->needed, (o->needed_count + 1) * sizeof(*larger));
		if (!larger) {
			free(copy);
			return -ENOMEM;
		}
		o->needed = larger;
		o->needed[o->needed_count++] = copy;
	} else {
		char **path = tag == DT_RUNPATH ? &o->runpath : &o->rpath;

		free(*path);
		*path = copy;
	}
	return 0;
}

static bool is_known(const struct search *s, dev_t device, ino_t inode)
{
	size_t i;

	for (i = 0; i < s->count; i++) {
		if (s->object[i].device == device && s->object[i].inode == inode)
			return true;
	}
	return false;
}

static char *folder_of(const char *path)
{
	char *whole = realpath(path, NULL);

	char *slash = whole ? strrchr(whole, '/') : NULL;

	if (slash)
		slash[slash == whole] = '\0'; /* the folder of "/file" is "/" */
	return whole;
}

/* Say that the search ends at the file of a path, whose tables have more bytes than are left. */
static int end_at_tables(struct search *s, const char *path)
{
	return pem_error__set(s->error, -E2BIG,
			      "'%s' has more than %u bytes of tables: the search ended at '%s'",
			      s->path, TABLES_MAX, path);
}

static int take_object(struct search *s, const struct pem_elf_file *f, const char *path,
		       size_t parent)
{
	struct object *o = &s->object[s->count];
	int result;

	if (s->count && f->machine != s->machine)
		return -ENOEXEC;
	if (s->count == PEM_ARRAY_SIZE(s->object))
		return pem_error__set(s->error, -E2BIG,
				      "'%s' needs more than %u libraries: the search ended at '%s'",
				      s->path, LIBRARIES_MAX, path);
	*o = (struct object){.device = f->device, .inode = f->inode, .parent = parent};
	o->origin = folder_of(path);
	if (!o->origin)
		return -errno;
	s->machine = f->machine;
	s->count++;
	result = pem_elf_file__each_needed(f, add_entry, s);
	if (result == -EFBIG)
		return end_at_tables(s, path);
	if (!result)
		result = pem_elf_file__each_model(f, path, &s->models_left, s->visit, s->arg);
	if (result == -EFBIG)
		return pem_error__set(s->error, -E2BIG,
				      "'%s' and its libraries carry more than %u bytes of models",
				      s->path, MODELS_MAX);
	if (result < 0)
		return result;
	s->models += result;
	return 0;
}

/* Count a path before it is built. Returns 0. -E2BIG: too many, with the search's error. */
static int count_try(struct search *s)
{
	if (++s->tries <= TRIES_MAX)
		return 0;
	return pem_error__set(s->error, -E2BIG, "'%s' names more than %u paths of libraries",
			      s->path, TRIES_MAX);
}

/*
 * Add an object to the search, and call visit with its models. Returns 0. -ENOEXEC: the object is
 * not for this program. -EINVAL: it is damaged. -E2BIG: a limit, with the search's error. Or
 * another -errno.
 */
static int add_object(struct search *s, const char *path, size_t parent)
{
	struct pem_elf_file f;
	struct stat st;
	int result;

	/* A known object is not read again: a file may name itself thousands of times. */
	if (!stat(path, &st) && is_known(s, st.st_dev, st.st_ino))
		return 0;
	result = pem_elf_file__open(&f, path, &s->tables_left);
	if (result == -EFBIG)
		return end_at_tables(s, path);
	if (result)
		return result;
	result = take_object(s, &f, path, parent);
	pem_elf_file__close(&f);
	return result;
}

/* --- where a library is --- */

/* Return the bytes of the word $ORIGIN at the start of a text of n bytes; 0: it is not there. */
static size_t origin_word(const char *text, size_t n)
{
	if (n >= 7 && !memcmp(text, "$ORIGIN", 7))
		return 7;
	return n >= 9 && !memcmp(text, "${ORIGIN}", 9) ? 9 : 0;
}

/*
 * Copy n bytes of text to path, with the object's folder instead of $ORIGIN. Returns the bytes
 * written, or -1: no room.
 */
static int expand(const struct object *o, const char *text, size_t n, char *path)
{
	size_t used = 0, i, word, origin = strlen(o->origin);

	for (i = 0; i < n; i += word ? word : 1) {
		word = origin_word(text + i, n - i);
		if (used + (word ? origin : 1) >= PATH_MAX)
			return -1;
		memcpy(path + used, word ? o->origin : text + i, word ? origin : 1);
		used += word ? origin : 1;
	}
	path[used] = '\0';
	return (int)used;
}

/* Write "FOLDER/NAME" to path. An empty folder is the current one. */
static bool name_file(const struct object *o, const char *folder, size_t n, const char *name,
		      char *path)
{
	int used = expand(o, folder, n, path), rest;

	if (used < 0)
		return false;
	rest = snprintf(path + used, PATH_MAX - (size_t)used, "%s/%s", used ? "" : ".", name);
	return rest < PATH_MAX - used;
}

/* Search a list of folders. Returns 0: found and added. -ENOENT: not found. Or another -errno. */
static int in_folders(struct search *s, size_t of, const char *folders, const char *separators,
		      const char *name)
{
	char path[PATH_MAX];
	int result = -ENOENT;
	size_t n;

	if (!folders || !*folders)
		return -ENOENT;
	if (strnlen(folders, PATHS_MAX) == PATHS_MAX)
		return pem_error__set(s->error, -E2BIG,
				      "'%s': a list of folders of libraries has %u bytes or more",
				      s->path, PATHS_MAX);
	for (;; folders += n + 1) {
		n = strcspn(folders, separators);
		if (count_try(s))
			return -E2BIG;
		if (name_file(&s->object[of], folders, n, name, path)) {
			result = add_object(s, path, of);
			/*
			 * The loader also passes over files that are no library for this program.
			 */
			if (result != -ENOENT && result != -ENOEXEC && result != -ENOTDIR &&
			    result != -EACCES)
				return result;
		}
		if (!folders[n])
			break;
	}
	return -ENOENT;
}

static int in_cache(struct search *s, size_t of, const char *name)
{
	size_t i, count;
	const char *path;
	int result;

	if (!s->cache && read_cache(s))
		return -ENOMEM;
	count = s->cache ? cache_count(s) : 0;
	for (i = 0; i < count; i++) {
		path = cached(s, i, name);
		if (path && count_try(s))
			return -E2BIG;
		result = path ? add_object(s, path, of) : -ENOENT;
		if (result != -ENOENT && result != -ENOEXEC)
			return result;
	}
	return -ENOENT;
}

static int find(struct search *s, size_t of, const char *name)
{
	static const char system_folders[] =
#if defined(__x86_64__)
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
#elif defined(__aarch64__)
		"/lib/aarch64-linux-gnu:/usr/lib/aarch64-linux-gnu:"
#endif
		"/lib64:/usr/lib64:/lib:/usr/lib";
	char path[PATH_MAX];
	int result = -ENOENT;
	size_t i;

	if (strchr(name, '/') && count_try(s))
		return -E2BIG;
	if (strchr(name, '/'))
		return expand(&s->object[of], name, strlen(name), path) < 0
			       ? -ENOENT
			       : add_object(s, path, of);
	for (i = of; !s->object[of].runpath && result == -ENOENT; i = s->object[i].parent) {
		if (!s->object[i].runpath)
			result = in_folders(s, i, s->object[i].rpath, ":", name);
		if (i == s->object[i].parent)
			break;
	}
	if (result == -ENOENT)
		result = in_folders(s, of, secure_getenv("LD_LIBRARY_PATH"), ":;", name);
	if (result == -ENOENT)
		result = in_folders(s, of, s->object[of].runpath, ":", name);
	if (result == -ENOENT)
		result = in_cache(s, of, name);
	if (result == -ENOENT)
		result = in_folders(s, of, system_folders, ":", name);
	return result;
}

/*
 * Find the libraries of all objects, breadth first as the loader does. Returns 0, or what ended the
 * search: -ENOMEM, -E2BIG (a limit, with the error), or -ECANCELED from visit.
 */
static int find_all(struct search *s)
{
	size_t i, k;
	int result;

	for (i = 0; i < s->count; i++) {
		for (k = 0; k < s->object[i].needed_count; k++) {
			result = find(s, i, s->object[i].needed[k]);
			if (result == -ENOMEM || result == -ECANCELED || result == -E2BIG)
				return result;
		}
	}
	return 0;
}

static void free_search(struct search *s)
{
	size_t i, k;

	for (i = 0; i < s->count; i++) {
		for (k = 0; k < s->object[i].needed_count; k++)
			free(s->object[i].needed[k]);
		free(s->object[i].needed);
		free(s->object[i].origin);
		free(s->object[i].rpath);
		free(s->object[i].runpath);
	}
	free(s->cache);
	free(s);
}

int pem_program__models(const char *path, pem_model_visit visit, void *arg, struct pem_error *error)
{
	struct search *s;
	int result;

	if (!path || !*path || !visit)
		return pem_error__lacks(error, visit ? "program" : "function to visit models");
	s = calloc(1, sizeof(*s));
	if (!s)
		return pem_error__set(error, -ENOMEM, "out of memory");
	s->path = path;
	s->error = error;
	s->models_left = MODELS_MAX;
	s->tables_left = TABLES_MAX;
	s->visit = visit;
	s->arg = arg;
	result = add_object(s, path, 0);
	if (!result)
		result = find_all(s);
	if (result == -EINVAL)
		pem_error__set(error, 0, "'%s' is a damaged ELF file: its parts are not all there",
			       path);
	else if (result == -ENOMEM)
		pem_error__set(error, 0, "out of memory in the search for the models of '%s'",
			       path);
	else if (result && result != -ENOEXEC && result != -ECANCELED && result != -E2BIG)
		pem_error__cannot_read(error, result, path);
	if (!result)
		result = s->models;
	free_search(s);
	return result == -ENOEXEC ? 0 : result;
}
