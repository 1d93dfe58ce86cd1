// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * descriptor_calls.c - see descriptor_calls.h
 *
 * From the manual pages of Linux (section 2). An architecture lacks some of these.
 */
#include "descriptor_calls.h"

#include <stdlib.h>
#include <string.h>

/* In the order of strcmp(). */
static const char *const names[] = {
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

static int compare(const void *name, const void *element)
{
	return strcmp(name, *(const char *const *)element);
}

bool pem_call__takes_descriptor(const char *name)
{
	return bsearch(name, names, sizeof(names) / sizeof(names[0]), sizeof(names[0]), compare);
}
