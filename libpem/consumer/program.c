/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * program.c - can libraries be preloaded into a program? By what its file says of itself
 */
#include "consumer/session.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Open a program as execvp finds it. -1: it does not. */
static int open_program(const char *name)
{
	const char *path = getenv("PATH"), *end;
	char file[PATH_MAX];

	if (strchr(name, '/'))
		return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	for (path = path ? path : "/bin:/usr/bin"; path; path = *end ? end + 1 : NULL) {
		end = path + strcspn(path, ":");
		if (snprintf(file, sizeof(file), "%.*s%s%s", (int)(end - path), path,
			     end > path ? "/" : "", name) < (int)sizeof(file) &&
		    !access(file, X_OK))
			return open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	return -1;
}

/*
 * Does it name a loader? Only that preloads. What can't be read is taken for one that does. is_musl: it is musl's, which ends
 * a program when a library that is preloaded needs the GNU C library.
 */
static bool has_loader(int fd, const Elf64_Ehdr *head, bool *is_musl)
{
	char path[64] = "";
	const char *name;
	Elf64_Phdr part;
	unsigned i;

	for (i = 0; i < head->e_phnum; i++) {
		if (pread(fd, &part, sizeof(part),
			  (off_t)(head->e_phoff + (uint64_t)i * head->e_phentsize)) !=
		    (ssize_t)sizeof(part))
			return true;
		if (part.p_type != PT_INTERP)
			continue;
		if (pread(fd, path, sizeof(path) - 1, (off_t)part.p_offset) > 0) {
			name = strrchr(path, '/');
			*is_musl = name && !strncmp(name, "/ld-musl-", strlen("/ld-musl-"));
		}
		return true;
	}
	return false;
}

/*
 * Does the kernel give it rights that this process lacks? Then its loader ignores what is preloaded (AT_SECURE). By what
 * libc/program_file.c says of programs that the command starts.
 */
static bool gains_rights(int fd)
{
	struct vfs_ns_cap_data caps;
	struct statvfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatvfs(fd, &fs) || fs.f_flag & ST_NOSUID)
		return false;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
	    ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	     ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) && st.st_gid != getgid())))
		return true;
	return getuid() &&
	       fgetxattr(fd, "security.capability", &caps, sizeof(caps)) >=
		       (ssize_t)XATTR_CAPS_SZ_2 &&
	       (caps.magic_etc & VFS_CAP_FLAGS_EFFECTIVE || caps.data[0].permitted ||
		caps.data[1].permitted);
}

const char *pem_program__refuses_preload(const char *name, bool *is_foreign)
{
	int fd = open_program(name);
	const char *why = NULL;
	bool is_musl = false;
	Elf64_Ehdr head;

	*is_foreign = false;
	if (fd < 0)
		return NULL;
	if (pread(fd, &head, sizeof(head), 0) == (ssize_t)sizeof(head) &&
	    !memcmp(head.e_ident, ELFMAG, SELFMAG)) {
		*is_foreign = head.e_ident[EI_CLASS] != ELFCLASS64;
		if (*is_foreign)
			why = "it is a 32-bit program";
		else if (!has_loader(fd, &head, &is_musl))
			why = "it is linked statically";
		else if (is_musl)
			why = "it uses another C library, musl";
		else if (gains_rights(fd))
			why = "it gains rights as it starts (setuid, setgid or file capabilities)";
		*is_foreign = *is_foreign || is_musl;
	}
	close(fd);
	return why;
}
