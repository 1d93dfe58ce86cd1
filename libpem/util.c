/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * util.c - errors as sentences, whole reads and writes, folders
 */
#include "util.h"

#include <pem/trace.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int pem_error__set(struct pem_error *error, int code, const char *format, ...)
{
	va_list arguments;

	if (error) {
		va_start(arguments, format);
		vsnprintf(error->text, sizeof(error->text), format, arguments);
		va_end(arguments);
		pem_printable(error->text);
	}
	return code;
}

void pem_error__advise_space(struct pem_error *error, int code, const char *rest)
{
	const char *advice = code == -EFBIG ? "raise the limit on the size of files (ulimit -f)"
			     : code == -ENOSPC || code == -EDQUOT ? "free some space"
								  : NULL;
	size_t used = error ? strlen(error->text) : 0;

	if (error && advice)
		snprintf(error->text + used, sizeof(error->text) - used, "; %s%s", advice, rest);
}

int pem_error__lacks(struct pem_error *error, const char *what)
{
	return pem_error__set(error, -EINVAL, "no %s was given", what);
}

int pem_error__cannot_read(struct pem_error *error, int code, const char *path)
{
	return pem_error__set(error, code, "cannot read '%.300s': %s%s", path, strerror(-code),
			      code == -ENOENT || code == -ENOTDIR ? "; check its path"
			      : code == -EACCES ? "; let this user read it: chmod a+r"
						: "");
}

int pem_error__no_folder(struct pem_error *error, const char *what, const char *path)
{
	int code = errno;
	struct stat st;

	if ((code == ENOTDIR || code == ELOOP) && !lstat(path, &st) && S_ISLNK(st.st_mode))
		return pem_error__set(error, -code,
				      "'%s' is a link: give the folder that it leads to", path);
	return pem_error__set(error, -code, "cannot open %s '%s': %s", what, path, strerror(code));
}

int pem_check_owner(int fd, uid_t user, const char *path, struct pem_error *error)
{
	struct stat st;

	if (fstat(fd, &st))
		return pem_error__set(error, -errno, "cannot open folder '%s': %s", path,
				      strerror(errno));
	if (st.st_uid == user)
		return 0;
	return pem_error__set(error, -EPERM,
			      "folder '%s' belongs to user %u, but user %u records: choose a "
			      "folder of user %u's",
			      path, st.st_uid, user, user);
}

void pem_copy_text(char *to, size_t bytes, const char *from)
{
	size_t length = strnlen(from, bytes - 1);

	memcpy(to, from, length);
	to[length] = 0;
}

#define PIDFD_MAGIC 0xff

static uint64_t namespace_in_proc(uint32_t pid, enum pem_namespace kind)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u/ns/%s", pid,
		 kind == PEM_NAMESPACE_PID ? "pid" : "mnt");
	return stat(path, &st) ? 0 : (uint64_t)st.st_ino;
}

uint64_t pem_namespace_of(uint32_t pid, enum pem_namespace kind)
{
	int process = (int)syscall(SYS_pidfd_open, pid, 0), fd, code;
	uint64_t inode = 0;
	struct stat st;

	if (process < 0)
		return errno == ENOSYS ? namespace_in_proc(pid, kind) : 0;
	fd = ioctl(process, _IO(PIDFD_MAGIC, kind), 0);
	code = errno;
	close(process);
	if (fd < 0)
		return code == ENOTTY || code == EINVAL ? namespace_in_proc(pid, kind) : 0;
	if (!fstat(fd, &st))
		inode = (uint64_t)st.st_ino;
	close(fd);
	return inode;
}

uint32_t pem_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) ? 0 : (uint32_t)st.st_ino;
}

struct linux_dirent {
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

void pem_visit_folder(int fd, void (*visit)(const char *name, void *arg), void *arg)
{
	_Alignas(
		struct linux_dirent) char entries[1024]; /* a signal handler's stack may be small */
	const struct linux_dirent *entry;
	long got, at;

	lseek(fd, 0, SEEK_SET);
	while ((got = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (at = 0; at < got; at += entry->bytes) {
			entry = (const struct linux_dirent *)(entries + at);
			visit(entry->name, arg);
		}
	}
}

DIR *pem_list_folder(int directory_fd)
{
	int fd = openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = fd < 0 ? NULL : fdopendir(fd);

	int saved_errno = errno;

	if (fd >= 0 && !directory)
		close(fd);
	errno = saved_errno;
	return directory;
}

bool pem_is_stream_name(const char *name)
{
	static const char words[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	const char *c = name + 1;

	if (strlen(name) >= PEM_STREAM_FILE_BYTES)
		return false;
	if (!strcmp(name, "recorder"))
		return true;
	if (!name[0] || !strchr("ukc", name[0]))
		return false;
	c += strspn(c, "0123456789");
	return c[0] == '_' && c[1] && !c[1 + strspn(c + 1, words)];
}

char *pem_read_descriptor(int fd, size_t limit, size_t *bytes)
{
	char *data = NULL;
	struct stat st;
	size_t size, used = 0;
	ssize_t got;
	int saved;

	if (fstat(fd, &st))
		goto fail;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > limit) {
		errno = S_ISREG(st.st_mode) ? EFBIG : EINVAL;
		goto fail;
	}
	size = (size_t)st.st_size;
	data = malloc(size + 1);
	if (!data)
		goto fail;
	while (used < size) {
		got = pread(fd, data + used, size - used, (off_t)used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			goto fail;
		if (got == 0)
			break;
		used += (size_t)got;
	}
	data[used] = 0;
	*bytes = used;
	close(fd);
	return data;
fail:
	saved = errno;
	free(data);
	close(fd);
	errno = saved;
	return NULL;
}

char *pem_read_file(int directory_fd, const char *name, size_t limit, size_t *bytes)
{
	int fd = openat(directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd < 0 ? NULL : pem_read_descriptor(fd, limit, bytes);
}

bool pem_boot_id(char *text)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	bool known = f && fgets(text, PEM_BOOT_ID_BYTES, f);

	if (f)
		fclose(f);
	text[known ? strcspn(text, "\n") : 0] = '\0';
	return known;
}

int pem_write_all(int fd, const void *data, size_t bytes)
{
	const char *from = data;
	ssize_t done;

	while (bytes) {
		done = write(fd, from, bytes);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -EIO;
		from += done;
		bytes -= (size_t)done;
	}
	return 0;
}

#define NEW_FILE (O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC)

int pem_replace_file(int directory_fd, const char *name, const void *data, size_t bytes)
{
	char temporary[300];
	int fd, result;

	if (snprintf(temporary, sizeof(temporary), "%s.new", name) >= (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = openat(directory_fd, temporary, NEW_FILE, 0600);
	/* It may be left from a process that was killed, or be what another user made.
	 */
	if (fd < 0 && errno == EEXIST && !unlinkat(directory_fd, temporary, 0))
		fd = openat(directory_fd, temporary, NEW_FILE, 0600);
	if (fd < 0)
		return -errno;
	result = pem_write_all(fd, data, bytes);
	if (close(fd) && !result)
		result = -errno;
	if (!result && renameat(directory_fd, temporary, directory_fd, name))
		result = -errno;
	if (result)
		unlinkat(directory_fd, temporary, 0);
	return result;
}

bool pem_read_name(const char *path, char name[PEM_NAME_BYTES])
{
	FILE *file = fopen(path, "re");
	bool found = file && fgets(name, PEM_NAME_BYTES, file);

	if (file)
		fclose(file);
	if (!found)
		strcpy(name, "?");
	name[strcspn(name, "\n")] = 0;
	pem_printable(name);
	return found;
}

bool pem_process_name(uint32_t pid, char name[PEM_NAME_BYTES])
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	return pem_read_name(path, name);
}
