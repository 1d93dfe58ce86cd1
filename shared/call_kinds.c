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

static int compare(const void *name, const void *element)
{
	return strcmp(name, *(const char *const *)element);
}

bool pem_call__takes_descriptor(const char *name)
{
	return bsearch(name, of_descriptor, sizeof(of_descriptor) / sizeof(of_descriptor[0]),
		       sizeof(of_descriptor[0]), compare);
}

bool pem_call__returns_bytes(const char *name)
{
	return bsearch(name, of_bytes, sizeof(of_bytes) / sizeof(of_bytes[0]), sizeof(of_bytes[0]),
		       compare);
}
