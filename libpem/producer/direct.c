/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * direct.c - system calls that libpem.so.1 makes without the C library
 *
 * A program may define open, mmap and the like itself, or preload a library that does. These
 * definitions may allocate, take a lock, or change paths and users (fakeroot). libpem calls such
 * functions in the middle of an event, where the program may hold that lock. So the shared library
 * has its own hidden ones. Section 2 of the manual describes them. They are no cancellation points.
 *
 * libpem.a does not contain them: a program would be linked with them. Functions that only
 * consumers call are not here.
 */
#include "internal_call.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

/* --- the call itself --- */

long pem_direct_syscall(long number, long a, long b, long c, long d, long e,
			long f) __asm__("syscall") HIDDEN;

long pem_direct_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long result = pem_internal_syscall(number, a, b, c, d, e, f);

	if ((unsigned long)result < -4095ul)
		return result;
	errno = (int)-result;
	return -1;
}

/*
 * Make the system call that the C library makes, since seccomp filters are written for that: the
 * older call where the processor has it.
 */
#if defined(SYS_unlink)
#define CALL_AT(old, new, path, argument) syscall(SYS_##old, path, argument)
#else
#define CALL_AT(old, new, path, argument) syscall(SYS_##new, AT_FDCWD, path, argument)
#endif

/* --- files by name --- */

HIDDEN int openat(int directory, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	return (int)syscall(SYS_openat, directory, path, flags, mode);
}

HIDDEN int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

HIDDEN int access(const char *path, int mode)
{
	return (int)CALL_AT(access, faccessat, path, mode);
}

HIDDEN int mkdir(const char *path, mode_t mode)
{
	return (int)CALL_AT(mkdir, mkdirat, path, mode);
}

HIDDEN int rename(const char *from, const char *to)
{
#ifdef SYS_rename
	return (int)syscall(SYS_rename, from, to);
#else
	return (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
#endif
}

HIDDEN int unlink(const char *path)
{
	return (int)CALL_AT(unlink, unlinkat, path, 0); /* unlink takes no second argument */
}

HIDDEN int stat(const char *restrict path, struct stat *restrict st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

HIDDEN int lstat(const char *restrict path, struct stat *restrict st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

HIDDEN int statfs(const char *path, struct statfs *fs)
{
	return (int)syscall(SYS_statfs, path, fs);
}

/* --- files by descriptor --- */

HIDDEN int close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

HIDDEN int flock(int fd, int operation)
{
	return (int)syscall(SYS_flock, fd, operation);
}

HIDDEN int fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

HIDDEN int ftruncate(int fd, off_t bytes)
{
	return (int)syscall(SYS_ftruncate, fd, bytes);
}

HIDDEN off_t lseek(int fd, off_t offset, int whence)
{
	return syscall(SYS_lseek, fd, offset, whence);
}

HIDDEN ssize_t read(int fd, void *to, size_t bytes)
{
	return syscall(SYS_read, fd, to, bytes);
}

HIDDEN ssize_t write(int fd, const void *from, size_t bytes)
{
	return syscall(SYS_write, fd, from, bytes);
}

/* --- memory --- */

HIDDEN void *mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
}

HIDDEN int munmap(void *address, size_t bytes)
{
	return (int)syscall(SYS_munmap, address, bytes);
}

HIDDEN int mprotect(void *address, size_t bytes, int protection)
{
	return (int)syscall(SYS_mprotect, address, bytes, protection);
}

HIDDEN int madvise(void *address, size_t bytes, int advice)
{
	return (int)syscall(SYS_madvise, address, bytes, advice);
}

/* --- the process --- */

HIDDEN pid_t getpid(void)
{
	return (pid_t)syscall(SYS_getpid);
}

HIDDEN pid_t getppid(void)
{
	return (pid_t)syscall(SYS_getppid);
}

HIDDEN uid_t geteuid(void)
{
	return (uid_t)syscall(SYS_geteuid);
}

HIDDEN int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
	return (int)syscall(SYS_prlimit64, 0, resource, NULL, limit);
}

HIDDEN int nanosleep(const struct timespec *time, struct timespec *left)
{
	return (int)syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, time, left);
}

HIDDEN int sched_yield(void)
{
	return (int)syscall(SYS_sched_yield);
}

HIDDEN int prctl(int option, ...)
{
	unsigned long a[4];
	va_list more;
	int i;

	va_start(more, option);
	for (i = 0; i < 4; i++)
		a[i] = va_arg(more, unsigned long);
	va_end(more);
	return (int)syscall(SYS_prctl, option, a[0], a[1], a[2], a[3]);
}

/* As the C library's, which leaves its own two signals alone. */
HIDDEN int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict before)
{
	uint64_t signals;

	if (set) {
		memcpy(&signals, set, sizeof(signals));
		signals &= ~(3ull << (__SIGRTMIN - 1));
	}
	return syscall(SYS_rt_sigprocmask, how, set ? &signals : NULL, before, sizeof(signals))
		       ? errno
		       : 0;
}
