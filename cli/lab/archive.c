// SPDX-License-Identifier: MIT
/* archive.c - writes an archive of cpio's format newc, as the kernel unpacks it at its start */
#include "lab.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_BYTES 110u
#define END "TRAILER!!!"

void lab_archive__begin(struct lab_archive *archive, FILE *out)
{
	archive->out = out;
	archive->error = 0;
}

static void note(struct lab_archive *archive, int error)
{
	if (archive->error == 0)
		archive->error = error;
}

static void put(struct lab_archive *archive, const void *data, size_t bytes)
{
	if (fwrite(data, 1, bytes, archive->out) != bytes)
		note(archive, errno != 0 ? -errno : -EIO);
}

/* Fill up to a multiple of 4. */
static void pad(struct lab_archive *archive, size_t bytes)
{
	put(archive, "\0\0\0", -bytes & 3);
}

static void put_header(struct lab_archive *archive, const char *path, unsigned int mode,
		       size_t bytes)
{
	const char *name = path[0] == '/' ? path + 1 : path;
	const size_t name_bytes = strlen(name) + 1;

	/* Without an inode's number each name is a file of its own. */
	fprintf(archive->out, "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x", 0,
		mode, 0, 0, 1, 0, bytes, 0, 0, 0, 0, name_bytes, 0);
	put(archive, name, name_bytes);
	pad(archive, HEADER_BYTES + name_bytes);
}

void lab_archive__folder(struct lab_archive *archive, const char *path)
{
	char folder[PATH_MAX];
	const char *slash = path;

	while (*slash != '\0') {
		slash = strchrnul(slash + 1, '/');
		if (slash - path <= 1 || (size_t)(slash - path) >= sizeof(folder))
			continue;
		snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path), path);
		put_header(archive, folder, S_IFDIR | 0755, 0);
	}
}

void lab_archive__link(struct lab_archive *archive, const char *path, const char *target)
{
	const size_t bytes = strlen(target);

	put_header(archive, path, S_IFLNK | 0777, bytes);
	put(archive, target, bytes);
	pad(archive, bytes);
}

void lab_archive__text(struct lab_archive *archive, const char *path, const char *text)
{
	const size_t bytes = strlen(text);

	put_header(archive, path, S_IFREG | 0644, bytes);
	put(archive, text, bytes);
	pad(archive, bytes);
}

/* Append as many bytes of a file. One that became shorter meanwhile is an error. */
static void put_content(struct lab_archive *archive, int fd, uint64_t bytes)
{
	char buffer[16384];
	uint64_t left = bytes;

	while (left != 0) {
		ssize_t got = read(fd, buffer, left < sizeof(buffer) ? left : sizeof(buffer));

		if (got <= 0) {
			note(archive, got < 0 ? -errno : -ESTALE);
			return;
		}
		put(archive, buffer, (size_t)got);
		left -= (uint64_t)got;
	}
	pad(archive, bytes & 3);
}

void lab_archive__file(struct lab_archive *archive, const char *path, const char *source)
{
	int fd = open(source, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		note(archive, -errno);
	} else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > UINT32_MAX) {
		note(archive, -EFBIG);
	} else {
		put_header(archive, path, S_IFREG | 0644 | (st.st_mode & 0111), (size_t)st.st_size);
		put_content(archive, fd, (uint64_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
}

int lab_archive__end(struct lab_archive *archive)
{
	put_header(archive, END, 0, 0);
	if (fflush(archive->out) != 0 || ferror(archive->out))
		note(archive, errno != 0 ? -errno : -EIO);
	return archive->error;
}
