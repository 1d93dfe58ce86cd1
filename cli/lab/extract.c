// SPDX-License-Identifier: MIT
/*
 * extract.c - unpacks the trace that comes out of the lab, a tar archive that may be hostile
 *
 * Not here: where it is put (lab.c). Every header is copied once and checked before it is used.
 * Folders are opened one by one below the given one, and no link is ever followed or made.
 */
#include "extract.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 512u
#define DEPTH_MOST 4u

/* A member's header, as POSIX describes the format ustar. */
struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char target[100], magic[6], version[2], owner[32], group[32], major[8], minor[8];
	char prefix[155], padding[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header fills a block");

struct extraction {
	int archive, folder;
	struct lab_limits left;
	char *why;
	size_t why_bytes;
};

static int refuse(const struct extraction *x, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static int refuse(const struct extraction *x, int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(x->why, x->why_bytes, format, args);
	va_end(args);
	return error;
}

/* Read so many bytes. Returns 1; 0 if the archive ends before; or -errno. */
static int read_all(int fd, void *data, size_t bytes)
{
	char *at = data;

	while (bytes != 0) {
		ssize_t got = read(fd, at, bytes);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		at += got;
		bytes -= (size_t)got;
	}
	return 1;
}

static int write_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;

	while (bytes != 0) {
		ssize_t done = write(fd, at, bytes);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		at += done;
		bytes -= (size_t)done;
	}
	return 0;
}

/* Read an octal number that spaces or a zero end. False: it is none. */
static bool octal(const char *text, size_t bytes, uint64_t *number)
{
	size_t i = 0;

	*number = 0;
	while (i < bytes && text[i] == ' ')
		i++;
	if (i == bytes || text[i] < '0' || text[i] > '7')
		return false;
	for (; i < bytes && text[i] >= '0' && text[i] <= '7'; i++)
		*number = *number * 8 + (uint64_t)(text[i] - '0');
	return i == bytes || text[i] == ' ' || text[i] == '\0';
}

static bool is_zero(const struct header *h)
{
	static const struct header zero;

	return memcmp(h, &zero, sizeof(zero)) == 0;
}

/* Is the checksum right? It counts its own bytes as spaces. */
static bool is_sound(const struct header *h)
{
	const unsigned char *byte = (const unsigned char *)h;
	const size_t from = offsetof(struct header, checksum);
	uint64_t said, sum = 0;
	size_t i;

	for (i = 0; i < sizeof(*h); i++)
		sum += i >= from && i < from + sizeof(h->checksum) ? ' ' : byte[i];
	return octal(h->checksum, sizeof(h->checksum), &said) && said == sum;
}

/* May this be the name of a file or folder of a trace? */
static bool is_plain(const char *name, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
		      (name[i] >= '0' && name[i] <= '9') || strchr("_-.", name[i]) != NULL))
			return false;
	return bytes != 0 && bytes <= NAME_MAX && !(bytes == 1 && name[0] == '.') &&
	       !(bytes == 2 && name[0] == '.' && name[1] == '.');
}

/*
 * Go down to the folder that a path's last part lies in. Returns its descriptor, with the last part
 * in *last, or -errno. The folders on the way must be there.
 */
static int descend(const struct extraction *x, char *path, char **last)
{
	int at = fcntl(x->folder, F_DUPFD_CLOEXEC, 0), next;
	unsigned int depth = 0;
	char *slash;

	if (at < 0)
		return refuse(x, -errno, "no further descriptor can be had");
	while (at >= 0 && (slash = strchr(path, '/')) != NULL) {
		*slash = '\0';
		if (!is_plain(path, strlen(path)) || ++depth >= DEPTH_MOST) {
			close(at);
			return refuse(x, -EPERM, "it has a name that no trace has");
		}
		next = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			next = refuse(x, -errno, "the folder of one of its files: %s",
				      strerror(errno));
		close(at);
		at = next;
		path = slash + 1;
	}
	if (at >= 0 && !is_plain(path, strlen(path))) {
		close(at);
		return refuse(x, -EPERM, "it has a name that no trace has");
	}
	*last = path;
	return at;
}

/* Copy a member's content into a file. */
static int copy(const struct extraction *x, int fd, uint64_t bytes)
{
	char buffer[32 * BLOCK];
	uint64_t left = (bytes + BLOCK - 1) / BLOCK * BLOCK;

	while (left != 0) {
		size_t part = left < sizeof(buffer) ? (size_t)left : sizeof(buffer);
		size_t wanted = bytes < part ? (size_t)bytes : part;
		int rc = read_all(x->archive, buffer, part);

		if (rc <= 0)
			return refuse(x, rc < 0 ? rc : -EPERM, "it breaks off");
		rc = write_all(fd, buffer, wanted);
		if (rc < 0)
			return refuse(x, rc, "cannot write a file: %s", strerror(-rc));
		left -= part;
		bytes -= wanted;
	}
	return 0;
}

static int make_file(const struct extraction *x, char *path, uint64_t bytes)
{
	char *name;
	int folder = descend(x, path, &name), fd, rc;

	if (folder < 0)
		return folder;
	fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	rc = fd >= 0 ? copy(x, fd, bytes)
		     : refuse(x, -errno, "cannot make the file %s: %s", name, strerror(errno));
	if (fd >= 0 && close(fd) < 0 && rc == 0)
		rc = refuse(x, -errno, "cannot write a file: %s", strerror(errno));
	close(folder);
	return rc;
}

static int make_folder(const struct extraction *x, char *path)
{
	char *name;
	int folder = descend(x, path, &name), rc = 0;

	if (folder < 0)
		return folder;
	if (mkdirat(folder, name, 0700) < 0)
		rc = refuse(x, -errno, "cannot make the folder %s: %s", name, strerror(errno));
	close(folder);
	return rc;
}

/* Make what a header describes. Returns 1 for a file, 0 for a folder, or -errno. */
static int make_member(struct extraction *x, const struct header *h)
{
	char path[sizeof(h->name) + 1], *name = path;
	uint64_t bytes;
	size_t n;
	int rc;

	snprintf(path, sizeof(path), "%.*s", (int)sizeof(h->name), h->name);
	if (!is_sound(h) || memcmp(h->magic, "ustar", 5) != 0 || h->prefix[0] != '\0' ||
	    !octal(h->size, sizeof(h->size), &bytes))
		return refuse(x, -EPERM, "it is no archive of a trace");
	if (x->left.members-- == 0)
		return refuse(x, -EPERM, "it has too many files");
	if (strncmp(name, "./", 2) == 0)
		name += 2;
	n = strlen(name);
	if (h->type == '5') {
		if (n != 0 && name[n - 1] == '/')
			name[n - 1] = '\0';
		if (bytes != 0)
			return refuse(x, -EPERM, "it is no archive of a trace");
		return *name == '\0' ? 0 : make_folder(x, name);
	}
	if (h->type != '0' && h->type != '\0')
		return refuse(x, -EPERM, "it has a link or a device in it");
	if (bytes > x->left.bytes)
		return refuse(x, -EPERM, "it is larger than the lab's memory");
	x->left.bytes -= bytes;
	rc = make_file(x, name, bytes);
	return rc < 0 ? rc : 1;
}

int lab_extract(int archive, int folder, const struct lab_limits *limits, char *why, size_t bytes)
{
	struct extraction x = {.archive = archive,
			       .folder = folder,
			       .left = *limits,
			       .why = why,
			       .why_bytes = bytes};
	struct header header;
	int rc, files = 0;

	for (;;) {
		rc = read_all(archive, &header, sizeof(header));
		if (rc <= 0)
			return refuse(&x, rc < 0 ? rc : -EPERM, "it breaks off");
		if (is_zero(&header))
			return files;
		rc = make_member(&x, &header);
		if (rc < 0)
			return rc;
		files += rc;
	}
}
