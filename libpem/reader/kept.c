/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kept.c - what a trace keeps for pem/code.h: names of code, and until they are found copies of
 * files
 *
 * Not here: what the names say (libpem-names), making the copies (writer/kept_files.c).
 */
#include "reader.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Folders of .pem/files: .build-id, and in it those of its files. */
#define DEPTH_MAX 3

static bool is_kept_name(const char *name)
{
	return name && (!strcmp(name, "code") || !strcmp(name, "data"));
}

int pem_trace__read_kept(const struct pem_trace *trace, const char *name, char **text)
{
	size_t bytes;
	char *found;

	if (!trace || !text || !is_kept_name(name))
		return -EINVAL;
	found = pem_read_file(trace->about_fd, name, PEM_ABOUT_BYTES_MAX, &bytes);
	if (!found)
		return -errno;
	if (strlen(found) != bytes) {
		free(found);
		return -EINVAL;
	}
	*text = found;
	return 0;
}

int pem_trace__write_kept(const struct pem_trace *trace, const char *name, const char *text,
			  size_t bytes)
{
	struct stat about;

	if (!trace || !text || !is_kept_name(name))
		return -EINVAL;
	if (bytes > PEM_ABOUT_BYTES_MAX)
		return -EFBIG;
	if (fstat(trace->about_fd, &about))
		return -errno;
	if (about.st_uid != geteuid() || about.st_mode & 022)
		return -EPERM;
	return pem_replace_file(trace->about_fd, name, text, bytes);
}

int pem_trace__files_kept(const struct pem_trace *trace, char *folder, size_t bytes)
{
	struct stat about;

	if (!trace || !folder)
		return -EINVAL;
	if (fstatat(trace->about_fd, PEM_KEPT_FILES, &about, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISDIR(about.st_mode) || about.st_uid != geteuid())
		return -ENOENT;
	if ((size_t)snprintf(folder, bytes, "/proc/self/fd/%d/" PEM_KEPT_FILES, trace->about_fd) >=
	    bytes)
		return -ENAMETOOLONG;
	return 0;
}

/* Remove what is in a folder, which is closed. */
static void empty(int fd, unsigned depth)
{
	DIR *entries = fdopendir(fd);
	struct dirent *entry;
	int inner;

	if (!entries) {
		close(fd);
		return;
	}
	while ((entry = readdir(entries))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		inner = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (inner >= 0 && depth < DEPTH_MAX)
			empty(inner, depth + 1);
		else if (inner >= 0)
			close(inner);
		unlinkat(fd, entry->d_name, inner >= 0 ? AT_REMOVEDIR : 0);
	}
	closedir(entries);
}

int pem_trace__drop_kept(const struct pem_trace *trace)
{
	char folder[40];
	int rc = pem_trace__files_kept(trace, folder, sizeof(folder)), fd;

	if (rc)
		return rc == -ENOENT ? 0 : rc;
	fd = openat(trace->about_fd, PEM_KEPT_FILES,
		    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	empty(fd, 1);
	return unlinkat(trace->about_fd, PEM_KEPT_FILES, AT_REMOVEDIR) ? -errno : 0;
}
