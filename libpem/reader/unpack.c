/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * unpack.c - a copy of a trace whose streams are not compressed
 *
 * The trace is hostile input: only regular files of its two folders are copied, by their names.
 * 'metadata' comes last, so that a copy that was interrupted is no trace.
 */
#include "packed.h"
#include "reader.h"
#include "util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

/* Copy the rest of a file, or a compressed stream as it was. Returns 0, or -errno. */
static int copy_bytes(struct unpacking *u, int from, int to, struct pem_packed *packed)
{
	uint64_t at = 0;
	ssize_t n;
	int result;

	for (;;) {
		n = packed ? pem_packed__read(packed, from, u->buffer, COPY_BYTES, at)
			   : read(from, u->buffer, COPY_BYTES);
		if (n < 0 && !packed && errno == EINTR)
			continue;
		if (n <= 0)
			return !n ? 0 : packed ? (int)n : -errno;
		result = pem_write_all(to, u->buffer, (size_t)n);
		if (result)
			return result;
		at += (uint64_t)n;
	}
}

static int copy_file(struct unpacking *u, const char *name)
{
	int from = openat(u->from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), to = -1;
	struct pem_packed *packed = NULL;
	struct stat st;
	int result = 0;

	if (from < 0 || fstat(from, &st))
		result = -errno;
	else if (!S_ISREG(st.st_mode))
		goto out;
	if (!result && pem_is_stream_name(name))
		result = pem_packed__open(from, (uint64_t)st.st_size, &packed);
	if (!result) {
		to = openat(u->to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			    0600);
		result = to < 0 ? -errno : copy_bytes(u, from, to, packed);
	}
	if (to >= 0 && close(to) && !result)
		result = -errno;
	if (result)
		pem_copy_text(u->failed, sizeof(u->failed), name);
out:
	pem_packed__free(packed);
	if (from >= 0)
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
	while (!result && (entry = readdir(folder))) {
		if (take(entry->d_name))
			result = copy_file(u, entry->d_name);
	}
	closedir(folder);
	return result;
}

/* A note of the session that records it and space held for it are no part of a trace. */
static bool is_about(const char *name)
{
	return name[0] != '.' && strcmp(name, "session") != 0 && strcmp(name, "reserve") != 0;
}

static int copy_about(struct unpacking *u)
{
	struct unpacking about = *u;
	int result = 0;

	about.from = openat(u->from, ".pem", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (mkdirat(u->to, ".pem", 0700))
		result = -errno;
	about.to = openat(u->to, ".pem", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (about.from < 0 || about.to < 0)
		result = -errno;
	if (!result)
		result = copy_files(&about, is_about);
	pem_copy_text(u->failed, sizeof(u->failed), about.failed);
	if (about.from >= 0)
		close(about.from);
	if (about.to >= 0)
		close(about.to);
	return result;
}

/* Remove what a failed copy has made. */
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

static int copy_trace(struct unpacking *u, const char *to, struct pem_error *error)
{
	int result = copy_about(u);

	if (!result)
		result = copy_files(u, pem_is_stream_name);
	if (!result)
		result = copy_file(u, "metadata");
	if (!result)
		return 0;
	remove_copy(u->to, to);
	return pem_error__set(
		error, result, "cannot copy '%.80s' of the trace to '%.200s': %s", u->failed, to,
		result == -EBADMSG  ? "it is damaged, and can't be decompressed"
		: result == -ENOPKG ? "libzstd.so.1 is missing; install package libzstd1"
				    : strerror(-result));
}

int pem_trace__unpack(const char *directory, const char *to, struct pem_error *error)
{
	struct unpacking u = {.from = -1, .to = -1};
	struct pem_trace *trace = pem_trace__open(directory, error);
	int result;

	/* Opening it says whether it is a trace, and why not. */
	if (!trace)
		return -errno;
	pem_trace__close(trace);
	if (mkdir(to, 0700))
		return pem_error__set(error, -errno, "cannot make folder '%.200s': %s%s", to,
				      strerror(errno),
				      errno == EEXIST ? "; choose another with -o" : "");
	u.from = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	u.to = open(to, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	u.buffer = malloc(COPY_BYTES);
	if (u.from < 0 || u.to < 0 || !u.buffer)
		result = pem_error__set(error, u.buffer ? -errno : -ENOMEM,
					"cannot copy '%.200s' to '%.200s': %s", directory, to,
					u.buffer ? strerror(errno) : "out of memory");
	else
		result = copy_trace(&u, to, error);
	free(u.buffer);
	if (u.from >= 0)
		close(u.from);
	if (u.to >= 0)
		close(u.to);
	return result;
}
