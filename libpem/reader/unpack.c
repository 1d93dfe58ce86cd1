/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unpack.c - a copy of a trace whose streams are not compressed
 *
 * The trace is hostile input: only regular files of its two folders are copied, by their names. The
 * copy is made in a folder beside the one that was asked for, and renamed when it is whole.
 */
#include "files.h"
#include "packed.h"
#include "reader.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES ((size_t)1 << 20)

struct unpacking {
	int from, to; /* folders */
	uint8_t *buffer; /* of COPY_BYTES */
	char failed[256]; /* the file that could not be copied */
};

/* Copy a file from its beginning, or a compressed stream as it was. Returns 0, or -errno. */
static int copy_bytes(struct unpacking *u, int from, int to, struct pem_packed *packed)
{
	uint64_t at = 0;
	ssize_t n;
	int result;

	for (;;) {
		n = packed ? pem_packed__read(packed, from, u->buffer, COPY_BYTES, at)
			   : pread(from, u->buffer, COPY_BYTES, (off_t)at);
		if (n < 0 && !packed && errno == EINTR)
			continue;
		if (n < 0)
			return packed ? (int)n : -errno;
		if (n == 0)
			return packed && pem_packed__is_damaged(packed) ? -EBADMSG : 0;
		result = pem_write_all(to, u->buffer, (size_t)n);
		if (result)
			return result;
		at += (uint64_t)n;
	}
}

/* Copy a regular file. Any other is left out, or refused if the copy needs it. */
static int copy_file(struct unpacking *u, const char *name, bool needed)
{
	struct pem_packed *packed = NULL;
	int from = -1, to = -1, result;
	struct stat st;

	pem_copy_text(u->failed, sizeof(u->failed), name);
	/* Opening a device may already do something. */
	if (fstatat(u->from, name, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return needed ? -EINVAL : 0;
	from = openat(u->from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (from < 0)
		return -errno;
	result = pem_is_stream_name(name) ? pem_packed__open(from, (uint64_t)st.st_size, &packed)
					  : 0;
	if (!result) {
		to = openat(u->to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			    0600);
		result = to < 0 ? -errno : copy_bytes(u, from, to, packed);
	}
	if (to >= 0 && close(to) && !result)
		result = -errno;
	pem_packed__free(packed);
	close(from);
	return result;
}

/* Copy the files of a folder that take accepts. */
static int copy_files(struct unpacking *u, bool (*take)(const char *name))
{
	DIR *folder = pem_list_folder(u->from);
	struct dirent *entry;
	int result = 0;

	if (!folder)
		return -errno;
	while (!result) {
		errno = 0;
		entry = readdir(folder);
		if (!entry) {
			result = -errno;
			break;
		}
		if (take(entry->d_name))
			result = copy_file(u, entry->d_name, false);
	}
	closedir(folder);
	return result;
}

/* Files of '.pem' that a trace has or may have. */
static const char *const needed[] = {"model", "run"};

/* A note of the session that records it and space held for it are no part of a trace. */
static bool is_other_about(const char *name)
{
	return name[0] != '.' && strcmp(name, "session") != 0 && strcmp(name, "reserve") != 0 &&
	       strcmp(name, needed[0]) != 0 && strcmp(name, needed[1]) != 0;
}

static int copy_about(struct unpacking *u)
{
	struct unpacking about = *u;
	int result;
	size_t i;

	pem_copy_text(u->failed, sizeof(u->failed), ".pem");
	if (mkdirat(u->to, ".pem", 0700))
		return -errno;
	about.from = openat(u->from, ".pem", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (about.from < 0)
		return -errno;
	about.to = openat(u->to, ".pem", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	result = about.to < 0 ? -errno : 0;
	for (i = 0; i < PEM_ARRAY_SIZE(needed) && !result; i++)
		result = copy_file(&about, needed[i], true);
	if (!result)
		result = copy_files(&about, is_other_about);
	if (result && about.failed[0])
		pem_copy_text(u->failed, sizeof(u->failed), about.failed);
	if (about.to >= 0)
		close(about.to);
	close(about.from);
	return result;
}

/* Remove what a copy has made, in a folder that is open as fd. */
static void remove_files(int fd)
{
	DIR *folder = pem_list_folder(fd);
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		unlinkat(fd, entry->d_name, 0);
	if (folder)
		closedir(folder);
}

static void remove_copy(int to, const char *path)
{
	int about = openat(to, ".pem", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (about >= 0) {
		remove_files(about);
		close(about);
		unlinkat(to, ".pem", AT_REMOVEDIR);
	}
	remove_files(to);
	rmdir(path);
}

/* Streams come first: the model may grow while a trace is recorded, and has their events then. */
static int copy_trace(struct unpacking *u)
{
	int result = copy_files(u, pem_is_stream_name);

	if (!result)
		result = copy_about(u);
	return result ? result : copy_file(u, "metadata", true);
}

static const char *reason(int result)
{
	if (result == -EBADMSG)
		return "it is damaged, and can't be decompressed";
	if (result == -ENOPKG)
		return "libzstd.so.1 is missing; install package libzstd1";
	return result == -EINVAL ? "it is no file" : strerror(-result);
}

/* Fill the folder 'part', which is there and empty, and give it its name. */
static int fill(const char *directory, const char *part, const char *to, struct pem_error *error)
{
	struct unpacking u = {.from = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
			      .to = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)};
	int result = 0, moved;

	if (u.from < 0 || u.to < 0)
		result = pem_error__set(error, -errno, "cannot copy '%.200s' to '%.200s': %s",
					directory, part, strerror(errno));
	u.buffer = malloc(COPY_BYTES);
	if (!result && !u.buffer)
		result = pem_error__set(error, -ENOMEM, "out of memory");
	if (!result) {
		result = copy_trace(&u);
		if (result)
			pem_error__set(error, result,
				       "cannot copy '%.80s' of the trace to '%.200s': %s", u.failed,
				       to, reason(result));
	}
	moved = result ? 0 : pem_move_without_replacing(AT_FDCWD, part, AT_FDCWD, to);
	if (moved)
		result = pem_error__set(error, moved, "cannot rename '%.200s' to '%.200s': %s",
					part, to, strerror(-moved));
	if (result && u.to >= 0)
		remove_copy(u.to, part);
	else if (result)
		rmdir(part);
	free(u.buffer);
	if (u.from >= 0)
		close(u.from);
	if (u.to >= 0)
		close(u.to);
	return result;
}

int pem_trace__unpack(const char *directory, const char *to, struct pem_error *error)
{
	char part[PATH_MAX];
	struct pem_trace *trace;
	struct stat st;
	size_t length;

	if (!to || !*to)
		return pem_error__lacks(error, "directory for the copy");
	length = strlen(to);
	trace = pem_trace__open(directory, error);
	/* Opening it says whether it is a trace, and why not. */
	if (!trace)
		return -errno;
	pem_trace__close(trace);
	while (length > 1 && to[length - 1] == '/')
		length--;
	if (snprintf(part, sizeof(part), "%.*s.part-%d", (int)length, to, (int)getpid()) >=
	    (int)sizeof(part))
		return pem_error__set(error, -ENAMETOOLONG, "cannot make folder '%.200s': %s", to,
				      strerror(ENAMETOOLONG));
	if (!lstat(to, &st))
		return pem_error__set(error, -EEXIST,
				      "cannot make folder '%.200s': %s; choose another", to,
				      strerror(EEXIST));
	if (mkdir(part, 0700))
		return pem_error__set(error, -errno, "cannot make folder '%.200s': %s", part,
				      strerror(errno));
	return fill(directory, part, to, error);
}
