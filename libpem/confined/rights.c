// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rights.c - how pem-confined gives up its rights, and is limited to one directory and a few system
 * calls
 */
#include "confined/confined.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int clear_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2];

	memset(none, 0, sizeof(none));
	return syscall(SYS_capset, &header, none) ? -errno : 0;
}

int pem_confined__drop_rights(const struct pem_confined_setup *setup)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (setup->switch_user &&
	    (syscall(SYS_setgroups, (size_t)setup->group_count, setup->groups) ||
	     syscall(SYS_setresgid, setup->gid, setup->gid, setup->gid) ||
	     syscall(SYS_setresuid, setup->uid, setup->uid, setup->uid)))
		return -errno;
	/* This process was root's: the user must not read its memory. */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return -errno;
	return clear_capabilities();
}

/* --- Landlock --- */

/* Some systems have a header that is older than these rights. */
#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif
#ifndef LANDLOCK_ACCESS_FS_IOCTL_DEV
#define LANDLOCK_ACCESS_FS_IOCTL_DEV (1ULL << 15)
#endif
#define ACCESS_FIRST_ABI ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define ACCESS_FOLDER                                                                              \
	(LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |                            \
	 LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR |                             \
	 LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                            \
	 LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_TRUNCATE)

int pem_confined__allow_only(int folder_fd)
{
	struct landlock_path_beneath_attr rule = {.parent_fd = folder_fd};
	struct landlock_ruleset_attr ruleset = {.handled_access_fs = ACCESS_FIRST_ABI};
	int fd, result = 0;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

	/* The kernel has no Landlock, or it is switched off. */
	if (abi < 1)
		return 0;
	if (abi >= 2)
		ruleset.handled_access_fs |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		ruleset.handled_access_fs |= LANDLOCK_ACCESS_FS_TRUNCATE;
	if (abi >= 5)
		ruleset.handled_access_fs |= LANDLOCK_ACCESS_FS_IOCTL_DEV;
	fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
	if (fd < 0)
		return -errno;
	rule.allowed_access = ACCESS_FOLDER & ruleset.handled_access_fs;
	if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) ||
	    syscall(SYS_landlock_restrict_self, fd, 0))
		result = -errno;
	close(fd);
	return result;
}

/* --- seccomp --- */

#if defined(__x86_64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#endif

static const int allowed_calls[] = {
	SYS_openat2,         SYS_mkdirat,         SYS_unlinkat,     SYS_getdents64,
	SYS_fstat,           SYS_newfstatat,      SYS_fstatfs,      SYS_read,
	SYS_pread64,         SYS_close,           SYS_sendmsg,      SYS_recvmsg,
	SYS_recvfrom,        SYS_ppoll,           SYS_fallocate,    SYS_flock,
	SYS_lseek,           SYS_exit_group,      SYS_rt_sigreturn, SYS_clock_gettime,
	SYS_clock_nanosleep, SYS_restart_syscall, SYS_statx,
};
#define CALLS (sizeof(allowed_calls) / sizeof(allowed_calls[0]))

int pem_confined__filter_calls(void)
{
	struct sock_filter code[CALLS + 6], *at = code;
	struct sock_fprog program = {.filter = code};
	size_t i;

	*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, arch));
	*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE, 1, 0);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	*at++ = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					     offsetof(struct seccomp_data, nr));
	for (i = 0; i < CALLS; i++)
		*at++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
						     (uint32_t)allowed_calls[i],
						     (uint8_t)(CALLS - i), 0);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	*at++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)(at - code);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) && errno != EINVAL &&
	    errno != ENOSYS)
		return -errno;
	return 0;
}

int pem_confined__open_beneath(int folder_fd, const char *name, uint64_t flags, uint64_t mode)
{
	struct open_how how = {.flags = flags | O_CLOEXEC | O_NOFOLLOW,
			       .mode = mode,
			       .resolve = RESOLVE_BENEATH | RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS |
					  RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, folder_fd, name, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}
