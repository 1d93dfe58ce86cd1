// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * find.c - the finder: searching the runtime directories of one user in one mount namespace
 *
 * Paths are resolved below the root directory of a process of that user, links included. With that
 * user's rights a path leads only where the user could go.
 */
#include "confined/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENVIRON_BYTES (64u << 10)
#define FOLDERS_MAX 32u /* a user without variables has three */

static char environment[ENVIRON_BYTES + 1];
static size_t environment_bytes;
static bool refuses_overlays;

static struct folder {
	dev_t device;
	ino_t inode;
} told[FOLDERS_MAX];
static unsigned told_count;

static int open_in_root(const char *path)
{
	struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};

	return (int)syscall(SYS_openat2, PEM_CONFINED_FOLDER, path, &how, sizeof(how));
}

/*
 * Return whether a directory is on a local file system. The session maps files of the directory. If
 * a program or another machine serves the file system, an access to that memory may wait as long as
 * the server likes. An overlay that the user mounted may lie over such a file system.
 */
static bool is_local(int fd)
{
	static const unsigned long types[] = {TMPFS_MAGIC,
					      RAMFS_MAGIC,
					      EXT4_SUPER_MAGIC,
					      BTRFS_SUPER_MAGIC,
					      OVERLAYFS_SUPER_MAGIC,
					      F2FS_SUPER_MAGIC,
					      0x58465342ul /* XFS */,
					      0x2fc12fc1ul /* ZFS */,
					      0xca451a4eul /* bcachefs */};
	struct statfs st;
	size_t i;

	if (fstatfs(fd, &st) || (refuses_overlays && st.f_type == OVERLAYFS_SUPER_MAGIC))
		return false;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if ((unsigned long)st.f_type == types[i])
			return true;
	}
	return false;
}

static bool is_new(const struct stat *st)
{
	unsigned i;

	for (i = 0; i < told_count; i++) {
		if (told[i].device == st->st_dev && told[i].inode == st->st_ino)
			return false;
	}
	return told_count < FOLDERS_MAX;
}

static bool tell(const char *path, uid_t owner)
{
	struct pem_confined_reply reply = {.kind = PEM_CONFINED_FOUND};
	int fd = open_in_root(path);
	bool goes_on = true;
	struct stat st;

	if (fd < 0)
		return true;
	if (!fstat(fd, &st) && st.st_uid == owner && !(st.st_mode & 022) && is_new(&st) &&
	    is_local(fd)) {
		told[told_count++] = (struct folder){st.st_dev, st.st_ino};
		reply.inode = st.st_ino;
		goes_on = pem_confined__reply(&reply, fd);
	}
	close(fd);
	return goes_on;
}

/* Return the value of a variable, or NULL. */
static const char *variable(const char *name)
{
	size_t length = strlen(name), at;

	for (at = 0; at < environment_bytes; at += strlen(environment + at) + 1) {
		if (!strncmp(environment + at, name, length) && environment[at + length] == '=')
			return environment + at + length + 1;
	}
	return NULL;
}

/*
 * Return whether name is that of a runtime directory in a directory for all users: "pem-UID", or
 * that with "-" and more (runtime_dir.c).
 */
static bool is_runtime_name(const char *name, uid_t uid)
{
	char usual[24];
	int length = snprintf(usual, sizeof(usual), "pem-%u", (unsigned)uid);

	return !strncmp(name, usual, (size_t)length) && (!name[length] || name[length] == '-');
}

/*
 * Report once that a directory has more names than are read: there may be a runtime directory among
 * them.
 */
static bool tell_over(const char *base, bool *told_over)
{
	struct pem_confined_reply reply = {.kind = PEM_CONFINED_OVER, .value = 1};

	if (*told_over)
		return true;
	*told_over = true;
	snprintf(reply.name, sizeof(reply.name), "%s", base);
	return pem_confined__reply(&reply, -1);
}

/* Report all runtime directories in a directory where every user may make some. */
static bool find_in(const char *base, uid_t owner, bool *told_over)
{
	_Alignas(8) static char entries[32768];
	char path[PATH_MAX];
	int fd = open_in_root(base);
	bool goes_on = true;
	unsigned names = 0;
	struct stat st;
	long got, at;

	while (goes_on && fd >= 0 && names < PEM_CONFINED_NAMES &&
	       (got = syscall(SYS_getdents64, fd, entries, sizeof(entries))) > 0) {
		for (at = 0; goes_on && at < got; at += *(uint16_t *)(void *)(entries + at + 16)) {
			const char *name = entries + at + 19;

			names++;
			/* Inside a user namespace the user has another number, mostly root's. */
			if ((!is_runtime_name(name, owner) && !is_runtime_name(name, 0)) ||
			    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) || st.st_uid != owner ||
			    snprintf(path, sizeof(path), "%s/%s", base, name) >= (int)sizeof(path))
				continue;
			goes_on = tell(path, owner);
		}
	}
	if (goes_on && names >= PEM_CONFINED_NAMES &&
	    syscall(SYS_getdents64, fd, entries, sizeof(entries)) > 0)
		goes_on = tell_over(base, told_over);
	if (fd >= 0)
		close(fd);
	return goes_on;
}

static bool find_all(uid_t owner)
{
	static const char *const shared[] = {"/dev/shm", "/tmp"};
	const char *chosen = variable("PEM_RUNTIME_DIR"), *xdg = variable("XDG_RUNTIME_DIR");
	static char path[PATH_MAX];
	static bool told_over[2];
	bool goes_on = true;
	size_t i;

	if (chosen && *chosen == '/')
		goes_on = tell(chosen, owner);
	if (xdg && *xdg == '/' && snprintf(path, sizeof(path), "%s/pem", xdg) < (int)sizeof(path))
		goes_on = goes_on && tell(path, owner);
	snprintf(path, sizeof(path), "/run/user/%u/pem", (unsigned)owner);
	goes_on = goes_on && tell(path, owner);
	goes_on = goes_on && tell("/run/user/0/pem", owner);
	/* First by name: other users may fill these directories with more names than are read. */
	for (i = 0; goes_on && i < sizeof(shared) / sizeof(shared[0]); i++) {
		snprintf(path, sizeof(path), "%s/pem-%u", shared[i], (unsigned)owner);
		goes_on = tell(path, owner);
	}
	for (i = 0; goes_on && i < sizeof(shared) / sizeof(shared[0]); i++)
		goes_on = find_in(shared[i], owner, &told_over[i]);
	return goes_on;
}

int pem_confined__find(const struct pem_confined_setup *setup, bool user_mounts)
{
	struct pem_confined_request request;
	ssize_t got;

	refuses_overlays = user_mounts;
	do {
		got = read(PEM_CONFINED_PROCESS, environment + environment_bytes,
			   ENVIRON_BYTES - environment_bytes);
		environment_bytes += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	close(PEM_CONFINED_PROCESS);
	if (pem_confined__filter_calls())
		return 1;
	while (recv(PEM_CONFINED_SOCKET, &request, sizeof(request), 0) == sizeof(request)) {
		if (!find_all(setup->uid) || !pem_confined__done(request.number, 0))
			return 1;
	}
	return 0;
}
