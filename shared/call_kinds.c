// SPDX-License-Identifier: MIT
/*
 * call_kinds.c - see call_kinds.h
 *
 * From the manual pages of Linux (section 2). An architecture lacks some of these.
 */
#include "call_kinds.h"

#include <stdlib.h>
#include <string.h>

/* In the order of strcmp(). */
static const char *const of_descriptor[] = {
	"accept",
	"accept4",
	"bind",
	"close",
	"connect",
	"copy_file_range",
	"dup",
	"dup2",
	"dup3",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"fadvise64",
	"fallocate",
	"fchdir",
	"fchmod",
	"fchown",
	"fcntl",
	"fdatasync",
	"fgetxattr",
	"finit_module",
	"flistxattr",
	"flock",
	"fremovexattr",
	"fsetxattr",
	"fstat",
	"fstatfs",
	"fsync",
	"ftruncate",
	"getdents",
	"getdents64",
	"getpeername",
	"getsockname",
	"getsockopt",
	"inotify_add_watch",
	"inotify_rm_watch",
	"io_uring_enter",
	"io_uring_register",
	"ioctl",
	"listen",
	"lseek",
	"pread64",
	"preadv",
	"preadv2",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"read",
	"readahead",
	"readv",
	"recvfrom",
	"recvmmsg",
	"recvmsg",
	"sendfile",
	"sendmmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
	"splice",
	"sync_file_range",
	"syncfs",
	"tee",
	"timerfd_gettime",
	"timerfd_settime",
	"vmsplice",
	"write",
	"writev",
};

/* In the order of strcmp(): the path is the first argument. */
static const char *const of_path[] = {
	"access",       "acct",      "chdir",   "chmod",     "chown", "chroot",    "creat",
	"execve",       "getxattr",  "lchown",  "lgetxattr", "link",  "listxattr", "llistxattr",
	"lremovexattr", "lsetxattr", "lstat",   "mkdir",     "mknod", "open",      "readlink",
	"removexattr",  "rename",    "rmdir",   "setxattr",  "stat",  "statfs",    "swapoff",
	"swapon",       "truncate",  "umount2", "unlink",    "utime", "utimes",
};

/* The same: the path is the second argument, behind the descriptor of a folder. */
static const char *const of_folder_and_path[] = {
	"execveat",  "faccessat", "faccessat2", "fchmodat",   "fchmodat2",         "fchownat",
	"futimesat", "linkat",    "mkdirat",    "mknodat",    "name_to_handle_at", "newfstatat",
	"open_tree", "openat",    "openat2",    "readlinkat", "renameat",          "renameat2",
	"statx",     "unlinkat",  "utimensat",
};

/* The same: the path may be empty (AT_EMPTY_PATH; readlinkat without it). */
static const char *const of_empty_path[] = {
	"execveat",   "faccessat2", "fchmodat2",  "fchownat", "linkat",    "name_to_handle_at",
	"newfstatat", "open_tree",  "readlinkat", "statx",    "utimensat",
};

/* In the order of strcmp(). */
static const char *const of_bytes[] = {
	"copy_file_range",
	"mq_timedreceive",
	"pread64",
	"preadv",
	"preadv2",
	"process_vm_readv",
	"process_vm_writev",
	"pwrite64",
	"pwritev",
	"pwritev2",
	"read",
	"readv",
	"recvfrom",
	"recvmsg",
	"sendfile",
	"sendmsg",
	"sendto",
	"splice",
	"tee",
	"vmsplice",
	"write",
	"writev",
};

static const struct {
	const char *name;
	enum pem_call_kind kind;
} of_kind[] = {
	{"read", PEM_CALL_READS},
	{"readv", PEM_CALL_READS},
	{"pread64", PEM_CALL_READS},
	{"preadv", PEM_CALL_READS},
	{"preadv2", PEM_CALL_READS},
	{"recvfrom", PEM_CALL_READS},
	{"recvmsg", PEM_CALL_READS},
	{"recvmmsg", PEM_CALL_READS},
	{"copy_file_range", PEM_CALL_READS},
	{"write", PEM_CALL_WRITES},
	{"writev", PEM_CALL_WRITES},
	{"pwrite64", PEM_CALL_WRITES},
	{"pwritev", PEM_CALL_WRITES},
	{"pwritev2", PEM_CALL_WRITES},
	{"sendto", PEM_CALL_WRITES},
	{"sendmsg", PEM_CALL_WRITES},
	{"sendmmsg", PEM_CALL_WRITES},
	{"vmsplice", PEM_CALL_WRITES},
	{"sendfile", PEM_CALL_WRITES},
	{"poll", PEM_CALL_POLLS},
	{"ppoll", PEM_CALL_POLLS},
	{"select", PEM_CALL_POLLS},
	{"pselect6", PEM_CALL_POLLS},
	{"epoll_wait", PEM_CALL_POLLS},
	{"epoll_pwait", PEM_CALL_POLLS},
	{"epoll_pwait2", PEM_CALL_POLLS},
	{"splice", PEM_CALL_SPLICES},
};

static int compare(const void *name, const void *element)
{
	return strcmp(name, *(const char *const *)element);
}

static bool is_in(const char *name, const char *const *names, size_t count)
{
	return bsearch(name, names, count, sizeof(names[0]), compare) != NULL;
}

#define COUNT(names) (sizeof(names) / sizeof((names)[0]))

bool pem_call__takes_descriptor(const char *name)
{
	return is_in(name, of_descriptor, COUNT(of_descriptor));
}

bool pem_call__takes_empty_path(const char *name)
{
	return is_in(name, of_empty_path, COUNT(of_empty_path));
}

int pem_call__path_argument(const char *name)
{
	if (is_in(name, of_path, COUNT(of_path)))
		return 0;
	return is_in(name, of_folder_and_path, COUNT(of_folder_and_path)) ? 1 : -1;
}

bool pem_call__returns_bytes(const char *name)
{
	return is_in(name, of_bytes, COUNT(of_bytes));
}

enum pem_call_kind pem_call__kind(const char *name)
{
	size_t i;

	for (i = 0; i < COUNT(of_kind); i++)
		if (!strcmp(name, of_kind[i].name))
			return of_kind[i].kind;
	return PEM_CALL_OTHER;
}
