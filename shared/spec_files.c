// SPDX-License-Identifier: MIT
/* spec_files.c - see spec_files.h */
#include "spec_files.h"
#include "grow.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SNIFF_BYTES 16384u /* a licence in a comment may stand before the root element */
#define ENTRIES_MAX 20000u /* entries of a folder that are searched */
#define FILES_MAX 1000u

int pem_spec_files__add(struct pem_spec_files *files, const char *path, int origin)
{
	struct pem_spec_file *file;
	struct stat st;
	size_t i;

	if (stat(path, &st) < 0)
		return -errno;
	for (i = 0; i < files->count; i++)
		if (files->files[i].device == st.st_dev && files->files[i].inode == st.st_ino)
			return 0;
	if (files->count == FILES_MAX)
		return -E2BIG;
	if (pem_grow(&files->files, sizeof(*file), files->count + 1, &files->capacity) < 0)
		return -ENOMEM;
	file = &files->files[files->count];
	file->path = strdup(path);
	if (file->path == NULL)
		return -ENOMEM;
	file->origin = origin;
	file->device = st.st_dev;
	file->inode = st.st_ino;
	files->count++;
	return 0;
}

void pem_spec_files__free(struct pem_spec_files *files)
{
	size_t i;

	for (i = 0; i < files->count; i++)
		free(files->files[i].path);
	free(files->files);
	memset(files, 0, sizeof(*files));
}

/* The end of a comment, declaration or instruction that begins at p. NULL: it does not end. */
static const char *behind(const char *p, const char *end)
{
	const char *found = strstr(p, end);

	return found != NULL ? found + strlen(end) : NULL;
}

/* Is <spec> the root element of a file with this beginning? */
static bool starts_as_spec(const char *p)
{
	if (strncmp(p, "\xef\xbb\xbf", 3) == 0)
		p += 3;
	while (p != NULL) {
		p += strspn(p, " \t\r\n");
		if (strncmp(p, "<?", 2) == 0)
			p = behind(p, "?>");
		else if (strncmp(p, "<!--", 4) == 0)
			p = behind(p, "-->");
		else
			return strncmp(p, "<spec", 5) == 0 && p[5] != '\0' &&
			       strchr(" \t\r\n/>", p[5]) != NULL;
	}
	return false;
}

static bool is_spec(int folder, const char *name)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char text[SNIFF_BYTES + 1];
	struct stat st;
	ssize_t n = 0;

	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		n = read(fd, text, SNIFF_BYTES);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	return starts_as_spec(text);
}

static bool is_named(const char *name, const char *const *names)
{
	for (; names != NULL && *names != NULL; names++)
		if (strcmp(name, *names) == 0)
			return true;
	return false;
}

static bool may_be_spec(const struct dirent *entry, const char *const *skip)
{
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > 4 && strcmp(entry->d_name + n - 4, ".xml") == 0 &&
	       !is_named(entry->d_name, skip);
}

static bool is_folder(int parent, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(parent, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

struct names {
	char **names;
	size_t count, capacity;
};

static void free_names(struct names *names)
{
	while (names->count > 0)
		free(names->names[--names->count]);
	free(names->names);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct names *names, const char *name)
{
	if (pem_grow(&names->names, sizeof(*names->names), names->count + 1, &names->capacity) < 0)
		return -ENOMEM;
	names->names[names->count] = strdup(name);
	return names->names[names->count] != NULL ? (int)++names->count : -ENOMEM;
}

/* List the folder's specs, and the folders in it if depth allows, sorted. Returns 0 or -ENOMEM. */
static int list_names(DIR *dir, unsigned int depth, const char *const *skip, struct names *names)
{
	struct dirent *entry;
	size_t searched = 0;

	while ((entry = readdir(dir)) != NULL && ++searched <= ENTRIES_MAX &&
	       names->count <= FILES_MAX) {
		bool folder = depth != 0 && entry->d_name[0] != '.' && is_folder(dirfd(dir), entry);

		if (!folder && (!may_be_spec(entry, skip) || !is_spec(dirfd(dir), entry->d_name)))
			continue;
		if (add_name(names, entry->d_name) < 0)
			return -ENOMEM;
	}
	if (names->count > 1)
		qsort(names->names, names->count, sizeof(*names->names), compare_names);
	return 0;
}

int pem_spec_files__add_folder(struct pem_spec_files *files, const char *folder, unsigned int depth,
			       int origin, const char *const *skip)
{
	DIR *dir = opendir(folder);
	struct names names = {0};
	char path[PATH_MAX];
	int rc, result;
	struct stat st;
	size_t i;

	if (dir == NULL)
		return -errno;
	result = list_names(dir, depth, skip, &names);
	closedir(dir);
	for (i = 0; i < names.count; i++) {
		if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, names.names[i]) >=
		    sizeof(path))
			continue;
		if (depth != 0 && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			rc = pem_spec_files__add_folder(files, path, depth - 1, origin, skip);
		else
			rc = pem_spec_files__add(files, path, origin);
		if (rc == -E2BIG || rc == -ENOMEM)
			result = rc;
	}
	free_names(&names);
	return result;
}
