// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * program_file.c - whether libraries may be preloaded into a program, from its file
 *
 * This file only makes system calls directly: a thread is not cancelled in execve, and nothing may
 * be allocated.
 *
 * The callers act on the answer: processes/environment.c for a recording's command, libc/exec.c for
 * the programs that this command starts.
 */
#include "producer/program_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK_BYTES 512u /* on the stack, which may be a signal handler's */
#define PATH_BYTES 512u /* of a program that is searched for, as well */
#define BLOCKS 8u /* linkers put the loader's name into these */

/* --- gaining rights --- */

/*
 * The id of users that a user namespace has no id for. The kernel ignores set-id bits of their
 * files.
 */
#define OVERFLOW_ID 65534u

/* Does the kernel ignore set-id bits and capabilities of this file? */
static bool is_nosuid(const char *path)
{
	struct statfs fs;

	return !syscall(SYS_statfs, path, &fs) && fs.f_flags & ST_NOSUID;
}

static bool gains_id(const char *path, const struct stat *st)
{
	uid_t user = (uid_t)syscall(SYS_geteuid);
	gid_t group = (gid_t)syscall(SYS_getegid);
	bool honoured = st->st_mode & (S_ISUID | S_ISGID) &&
			syscall(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
			!is_nosuid(path);

	if (honoured && st->st_mode & S_ISUID && st->st_uid != OVERFLOW_ID)
		user = st->st_uid;
	if (honoured && (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    st->st_gid != OVERFLOW_ID)
		group = st->st_gid;
	return user != (uid_t)syscall(SYS_getuid) || group != (gid_t)syscall(SYS_getgid);
}

static bool gains_capabilities(const char *path)
{
	struct vfs_ns_cap_data caps;
	long n = syscall(SYS_getxattr, path, "security.capability", &caps, sizeof(caps));

	if (n < (long)XATTR_CAPS_SZ_2 || is_nosuid(path))
		return false;
	return caps.magic_etc & VFS_CAP_FLAGS_EFFECTIVE || caps.data[0].permitted ||
	       caps.data[1].permitted;
}

/*
 * Is this process root, which gains nothing by capabilities? No call is made where the process's
 * first user is known.
 */
static bool is_root(void)
{
	return pem_rights__given_up() ? !syscall(SYS_getuid) : !getauxval(AT_UID);
}

/*
 * Will the kernel set AT_SECURE for this program? See cap_bprm_creds_from_file() in the kernel's
 * security/commoncap.c.
 */
static bool is_privileged(const char *path, const struct stat *st)
{
	return ((st->st_mode & (S_ISUID | S_ISGID) || pem_rights__given_up()) &&
		gains_id(path, st)) ||
	       (!is_root() && gains_capabilities(path));
}

/* --- the loader --- */

/*
 * The place of the loader's name in the file. 0: there is none, or the place is not known. head is
 * the first block of the file.
 */
static uint64_t loader_at(const Elf64_Ehdr *head, bool *is_static)
{
	const Elf64_Phdr *part = (const void *)(head + 1);
	const unsigned char *end = (const unsigned char *)head + BLOCK_BYTES;
	unsigned i;

	*is_static = false;
	if (head->e_phoff != sizeof(*head) || head->e_phentsize != sizeof(*part))
		return 0;
	for (i = 0; i < head->e_phnum && (const unsigned char *)(part + i + 1) <= end; i++) {
		if (part[i].p_type == PT_INTERP)
			return part[i].p_offset;
		/* The program header of a loader's name comes before the first loaded segment. */
		*is_static = *is_static || part[i].p_type == PT_LOAD;
		if (*is_static)
			break;
	}
	return 0;
}

/* Is the loader musl's? It ends a program whose preloaded libraries it cannot load. */
static bool names_musl(int fd, unsigned char *block, uint64_t at)
{
	static const char start[] = "/ld-musl-";
	const unsigned char *name;
	unsigned i;

	for (i = 0; i < BLOCKS && at >= BLOCK_BYTES; i++, at -= BLOCK_BYTES) {
		if (syscall(SYS_read, fd, block, BLOCK_BYTES) != (long)BLOCK_BYTES)
			return false;
	}
	if (!at || at >= BLOCK_BYTES - sizeof(start))
		return false;
	block[BLOCK_BYTES - 1] = 0;
	name = (const unsigned char *)strrchr((const char *)block + at, '/');
	return name && !strncmp((const char *)name, start, sizeof(start) - 1);
}

/* A loader itself names no loader, and preloads libraries all the same. */
static bool is_loader(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strncmp(name, "ld-", 3) || !strncmp(name, "ld.so", 5);
}

static enum pem_program_kind kind_of_text(const char *path, bool *is_script)
{
	_Alignas(Elf64_Ehdr) unsigned char block[BLOCK_BYTES] = {0};
	enum pem_program_kind kind = PEM_PROGRAM_USUAL;
	bool is_static;
	uint64_t at;
	long got;
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*is_script = false;
	if (fd < 0)
		return kind;
	got = syscall(SYS_read, fd, block, sizeof(block));
	*is_script = got > 2 && !memcmp(block, "#!", 2);
	if (got > EI_CLASS && !memcmp(block, ELFMAG, SELFMAG)) {
		if (block[EI_CLASS] == ELFCLASS32) {
			kind = PEM_PROGRAM_32_BIT;
		} else if (got == sizeof(block)) {
			at = loader_at((const Elf64_Ehdr *)(const void *)block, &is_static);
			if (is_static && !is_loader(path))
				kind = PEM_PROGRAM_STATIC;
			else if (at && names_musl(fd, block, at))
				kind = PEM_PROGRAM_MUSL;
		}
	}
	syscall(SYS_close, fd);
	return kind;
}

static enum pem_program_kind kind_of(const char *path, enum pem_program_question question)
{
	enum pem_program_kind kind;
	bool is_script;
	struct stat st;

	if (syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0))
		return errno == ENOENT || errno == ENOTDIR || errno == EFAULT ? PEM_PROGRAM_MISSING
									      : PEM_PROGRAM_USUAL;
	if (!S_ISREG(st.st_mode) || !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
		return PEM_PROGRAM_MISSING;
	kind = kind_of_text(path, &is_script);
	/* The kernel ignores the set-id bits of a script. */
	if (question == PEM_PROGRAM_KIND && kind == PEM_PROGRAM_USUAL && !is_script &&
	    is_privileged(path, &st))
		kind = PEM_PROGRAM_PRIVILEGED;
	return kind;
}

/*
 * The kind of the first program of this name in a list of folders. Folders with a long path are not
 * searched: if no other folder has the program, nothing is known of it.
 */
static enum pem_program_kind search(const char *name, const char *folders,
				    enum pem_program_question question)
{
	enum pem_program_kind kind, if_missing = PEM_PROGRAM_MISSING;
	char path[PATH_BYTES];
	size_t bytes = strlen(name) + 1, n;

	for (;; folders += n + 1) {
		n = strcspn(folders, ":");
		if (n + 1 + bytes > sizeof(path)) {
			if_missing = PEM_PROGRAM_USUAL;
		} else {
			memcpy(path, folders, n);
			if (n)
				path[n] = '/';
			memcpy(path + n + (n != 0), name, bytes);
			kind = kind_of(path, question);
			if (kind != PEM_PROGRAM_MISSING)
				return kind;
		}
		if (!folders[n])
			return if_missing;
	}
}

enum pem_program_kind pem_program_file__kind(const char *name, const char *folders,
					     enum pem_program_question question)
{
	bool is_script;

	/* An open and a read are what each start needs. */
	if (!folders && question == PEM_PROGRAM_LOADER)
		return kind_of_text(name, &is_script);
	if (!folders || strchr(name, '/'))
		return kind_of(name, question);
	return *name ? search(name, folders, question) : PEM_PROGRAM_MISSING;
}
