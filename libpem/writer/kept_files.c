/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * kept_files.c - copies of files in a trace, until what is in them has been named (pem_code__keep)
 *
 * They lie as debug files do: .pem/files/.build-id/xx/REST, where xxREST is the build id.
 */
#include "trace_writer.h"
#include "trace_writer_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define ID_BYTES_MAX 20u
/* A copy may take this share of the space that is free, which the trace's records need. */
#define FREE_SHARE 16u

/* Copy all of a file. Returns 0, or -errno. */
static int copy(int from, int to, uint64_t bytes)
{
	ssize_t copied;

	for (; bytes; bytes -= (uint64_t)copied) {
		copied = sendfile(to, from, NULL, bytes);
		if (copied < 0)
			return -errno;
		if (!copied)
			return -ENODATA;
	}
	return 0;
}

static bool has_space(int folder_fd, uint64_t bytes)
{
	struct statvfs space;

	return !fstatvfs(folder_fd, &space) &&
	       bytes <= (uint64_t)space.f_bavail * space.f_frsize / FREE_SHARE;
}

static int make_folder(int in, const char *name)
{
	return mkdirat(in, name, 0700) && errno != EEXIST ? -errno : 0;
}

int pem_trace_writer__keep_file(struct pem_trace_writer *w, const uint8_t *build_id, size_t bytes,
				int fd, uint64_t file_bytes)
{
	char path[sizeof(PEM_KEPT_FILES "/.build-id/xx/") + 2 * ID_BYTES_MAX];
	int at, to, rc;
	size_t i;

	if (bytes < 2 || bytes > ID_BYTES_MAX)
		return -EINVAL;
	if (!has_space(w->private_fd, file_bytes))
		return -ENOSPC;
	at = sprintf(path, PEM_KEPT_FILES "/.build-id/%02x", build_id[0]);
	rc = make_folder(w->private_fd, PEM_KEPT_FILES);
	if (!rc)
		rc = make_folder(w->private_fd, PEM_KEPT_FILES "/.build-id");
	if (!rc)
		rc = make_folder(w->private_fd, path);
	if (rc)
		return rc;
	path[at++] = '/';
	for (i = 1; i < bytes; i++)
		at += sprintf(path + at, "%02x", build_id[i]);
	to = openat(w->private_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return errno == EEXIST ? 0 : -errno;
	rc = copy(fd, to, file_bytes);
	close(to);
	if (rc)
		unlinkat(w->private_fd, path, 0);
	return rc;
}
