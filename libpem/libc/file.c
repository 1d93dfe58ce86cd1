// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * file.c - files by descriptor, with their events
 *
 * A program built with _FORTIFY_SOURCE calls the functions with two underscores. They also take the
 * room of the buffer. If the data does not fit, the program ends here, as it would in glibc.
 *
 * Not here: streams (stream.c), sockets (socket.c), what stdio reads and writes inside the C
 * library.
 */
#include "libc/next.h"
#include "libc/readable.h"

#include "stubs/libc_io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/uio.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "open and open64, pread and pread64 are one");

/* Functions of glibc. Its headers declare them only with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
ssize_t __read_chk(int fd, void *to, size_t count, size_t room);
ssize_t __pread_chk(int fd, void *to, size_t count, off_t offset, size_t room);
ssize_t __pread64_chk(int fd, void *to, size_t count, off_t offset, size_t room);
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room);
void __chk_fail(void) __attribute__((noreturn));

static int error_of(ssize_t result)
{
	return result < 0 ? errno : 0;
}

/* --- open, close --- */

#define HAS_MODE(flags) ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE)

/*
 * Events with a path are raised after the call, from a copy that was made before: an open may wait
 * until another thread has opened a FIFO's other end, and another thread may see that a name is
 * there, or gone. It may then free the path.
 */
static int note_open(int fd, int flags, const char *path)
{
	pem_notify_file_open(fd, error_of(fd), (uint32_t)flags, path);
	return fd;
}

PEM_LIBC_EXPORT int open(const char *path, int flags, ...)
{
	char text[PEM_LIBC_TEXT_BYTES];
	const char *known;
	mode_t mode = 0;
	va_list more;

	if (HAS_MODE(flags)) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	if (PEM_LIBC_UNWANTED(pem_enabled_file_open()))
		return PEM_LIBC_NEXT(open)(path, flags, mode);
	known = pem_libc_readable__copy(text, path);
	return note_open(PEM_LIBC_NEXT(open)(path, flags, mode), flags, known);
}

PEM_LIBC_EXPORT int open64(const char *path, int flags, ...) __attribute__((alias("open")));

PEM_LIBC_EXPORT int openat(int folder, const char *path, int flags, ...)
{
	char text[PEM_LIBC_TEXT_BYTES];
	const char *known;
	mode_t mode = 0;
	va_list more;

	if (HAS_MODE(flags)) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	if (PEM_LIBC_UNWANTED(pem_enabled_file_open()))
		return PEM_LIBC_NEXT(openat)(folder, path, flags, mode);
	known = pem_libc_readable__copy(text, path);
	return note_open(PEM_LIBC_NEXT(openat)(folder, path, flags, mode), flags, known);
}

PEM_LIBC_EXPORT int openat64(int folder, const char *path, int flags, ...)
	__attribute__((alias("openat")));

PEM_LIBC_EXPORT int __open_2(const char *path, int flags)
{
	char text[PEM_LIBC_TEXT_BYTES];
	const char *known;

	if (HAS_MODE(flags))
		__chk_fail();
	if (PEM_LIBC_UNWANTED(pem_enabled_file_open()))
		return PEM_LIBC_NEXT(open)(path, flags);
	known = pem_libc_readable__copy(text, path);
	return note_open(PEM_LIBC_NEXT(open)(path, flags), flags, known);
}

PEM_LIBC_EXPORT int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));

PEM_LIBC_EXPORT int __openat_2(int folder, const char *path, int flags)
{
	char text[PEM_LIBC_TEXT_BYTES];
	const char *known;

	if (HAS_MODE(flags))
		__chk_fail();
	if (PEM_LIBC_UNWANTED(pem_enabled_file_open()))
		return PEM_LIBC_NEXT(openat)(folder, path, flags);
	known = pem_libc_readable__copy(text, path);
	return note_open(PEM_LIBC_NEXT(openat)(folder, path, flags), flags, known);
}

PEM_LIBC_EXPORT int __openat64_2(int folder, const char *path, int flags)
	__attribute__((alias("__openat_2")));

PEM_LIBC_EXPORT int creat(const char *path, mode_t mode)
{
	char text[PEM_LIBC_TEXT_BYTES];
	const char *known;

	if (PEM_LIBC_UNWANTED(pem_enabled_file_open()))
		return PEM_LIBC_NEXT(creat)(path, mode);
	known = pem_libc_readable__copy(text, path);
	return note_open(PEM_LIBC_NEXT(creat)(path, mode), O_CREAT | O_WRONLY | O_TRUNC, known);
}

PEM_LIBC_EXPORT int creat64(const char *path, mode_t mode) __attribute__((alias("creat")));

PEM_LIBC_EXPORT int close(int fd)
{
	if (!PEM_LIBC_UNWANTED(pem_enabled_file_close()))
		pem_notify_file_close(fd);
	return PEM_LIBC_NEXT(close)(fd);
}

PEM_LIBC_EXPORT int dup(int fd)
{
	int copy = PEM_LIBC_NEXT(dup)(fd);

	if (!PEM_LIBC_UNWANTED(pem_enabled_file_duplicate()))
		pem_notify_file_duplicate(fd, copy);
	return copy;
}

PEM_LIBC_EXPORT int dup2(int fd, int wanted)
{
	int copy = PEM_LIBC_NEXT(dup2)(fd, wanted);

	if (!PEM_LIBC_UNWANTED(pem_enabled_file_duplicate()))
		pem_notify_file_duplicate(fd, copy);
	return copy;
}

PEM_LIBC_EXPORT int dup3(int fd, int wanted, int flags)
{
	int copy = PEM_LIBC_NEXT(dup3)(fd, wanted, flags);

	if (!PEM_LIBC_UNWANTED(pem_enabled_file_duplicate()))
		pem_notify_file_duplicate(fd, copy);
	return copy;
}

/* --- read, write --- */

static int read_enabled(void)
{
	return pem_enabled_file_read_begin() | pem_enabled_file_read_end();
}

static int write_enabled(void)
{
	return pem_enabled_file_write_begin() | pem_enabled_file_write_end();
}

static ssize_t read_end(int fd, ssize_t got)
{
	pem_notify_file_read_end(got, fd, error_of(got));
	return got;
}

static ssize_t write_end(int fd, ssize_t done)
{
	pem_notify_file_write_end(done, fd, error_of(done));
	return done;
}

PEM_LIBC_EXPORT ssize_t read(int fd, void *to, size_t count)
{
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(read)(fd, to, count);
	pem_notify_file_read_begin(-1, count, fd);
	return read_end(fd, PEM_LIBC_NEXT(read)(fd, to, count));
}

PEM_LIBC_EXPORT ssize_t __read_chk(int fd, void *to, size_t count, size_t room)
{
	if (count > room)
		__chk_fail();
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(read)(fd, to, count);
	pem_notify_file_read_begin(-1, count, fd);
	return read_end(fd, PEM_LIBC_NEXT(read)(fd, to, count));
}

PEM_LIBC_EXPORT ssize_t pread(int fd, void *to, size_t count, off_t offset)
{
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(pread)(fd, to, count, offset);
	pem_notify_file_read_begin(offset, count, fd);
	return read_end(fd, PEM_LIBC_NEXT(pread)(fd, to, count, offset));
}

PEM_LIBC_EXPORT ssize_t pread64(int fd, void *to, size_t count, off_t offset)
	__attribute__((alias("pread")));

PEM_LIBC_EXPORT ssize_t __pread_chk(int fd, void *to, size_t count, off_t offset, size_t room)
{
	if (count > room)
		__chk_fail();
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(pread)(fd, to, count, offset);
	pem_notify_file_read_begin(offset, count, fd);
	return read_end(fd, PEM_LIBC_NEXT(pread)(fd, to, count, offset));
}

PEM_LIBC_EXPORT ssize_t __pread64_chk(int fd, void *to, size_t count, off_t offset, size_t room)
	__attribute__((alias("__pread_chk")));

PEM_LIBC_EXPORT ssize_t readv(int fd, const struct iovec *parts, int count)
{
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(readv)(fd, parts, count);
	pem_notify_file_read_begin(-1, pem_libc_readable__parts(parts, (size_t)count), fd);
	return read_end(fd, PEM_LIBC_NEXT(readv)(fd, parts, count));
}

PEM_LIBC_EXPORT ssize_t write(int fd, const void *from, size_t count)
{
	if (PEM_LIBC_UNWANTED(write_enabled()))
		return PEM_LIBC_NEXT(write)(fd, from, count);
	pem_notify_file_write_begin(-1, count, fd);
	return write_end(fd, PEM_LIBC_NEXT(write)(fd, from, count));
}

PEM_LIBC_EXPORT ssize_t pwrite(int fd, const void *from, size_t count, off_t offset)
{
	if (PEM_LIBC_UNWANTED(write_enabled()))
		return PEM_LIBC_NEXT(pwrite)(fd, from, count, offset);
	pem_notify_file_write_begin(offset, count, fd);
	return write_end(fd, PEM_LIBC_NEXT(pwrite)(fd, from, count, offset));
}

PEM_LIBC_EXPORT ssize_t pwrite64(int fd, const void *from, size_t count, off_t offset)
	__attribute__((alias("pwrite")));

PEM_LIBC_EXPORT ssize_t writev(int fd, const struct iovec *parts, int count)
{
	if (PEM_LIBC_UNWANTED(write_enabled()))
		return PEM_LIBC_NEXT(writev)(fd, parts, count);
	pem_notify_file_write_begin(-1, pem_libc_readable__parts(parts, (size_t)count), fd);
	return write_end(fd, PEM_LIBC_NEXT(writev)(fd, parts, count));
}

PEM_LIBC_EXPORT off_t lseek(int fd, off_t offset, int whence)
{
	off_t position = PEM_LIBC_NEXT(lseek)(fd, offset, whence);

	if (!PEM_LIBC_UNWANTED(pem_enabled_file_seek()))
		pem_notify_file_seek(offset, position, fd, whence);
	return position;
}

PEM_LIBC_EXPORT off_t lseek64(int fd, off_t offset, int whence) __attribute__((alias("lseek")));

static int sync_enabled(void)
{
	return pem_enabled_file_sync_begin() | pem_enabled_file_sync_end();
}

PEM_LIBC_EXPORT int fsync(int fd)
{
	int rc;

	if (PEM_LIBC_UNWANTED(sync_enabled()))
		return PEM_LIBC_NEXT(fsync)(fd);
	pem_notify_file_sync_begin(fd);
	rc = PEM_LIBC_NEXT(fsync)(fd);
	pem_notify_file_sync_end(fd, error_of(rc));
	return rc;
}

PEM_LIBC_EXPORT int fdatasync(int fd)
{
	int rc;

	if (PEM_LIBC_UNWANTED(sync_enabled()))
		return PEM_LIBC_NEXT(fdatasync)(fd);
	pem_notify_file_sync_begin(fd);
	rc = PEM_LIBC_NEXT(fdatasync)(fd);
	pem_notify_file_sync_end(fd, error_of(rc));
	return rc;
}

PEM_LIBC_EXPORT int rename(const char *from, const char *to)
{
	char from_text[PEM_LIBC_TEXT_BYTES], to_text[PEM_LIBC_TEXT_BYTES];
	const char *known_from, *known_to;
	int rc;

	if (PEM_LIBC_UNWANTED(pem_enabled_file_rename()))
		return PEM_LIBC_NEXT(rename)(from, to);
	known_from = pem_libc_readable__copy(from_text, from);
	known_to = pem_libc_readable__copy(to_text, to);
	rc = PEM_LIBC_NEXT(rename)(from, to);
	pem_notify_file_rename(error_of(rc), known_from, known_to);
	return rc;
}

PEM_LIBC_EXPORT int unlink(const char *path)
{
	char text[PEM_LIBC_TEXT_BYTES];
	const char *known;
	int rc;

	if (PEM_LIBC_UNWANTED(pem_enabled_file_unlink()))
		return PEM_LIBC_NEXT(unlink)(path);
	known = pem_libc_readable__copy(text, path);
	rc = PEM_LIBC_NEXT(unlink)(path);
	pem_notify_file_unlink(error_of(rc), known);
	return rc;
}

/* --- waiting for several --- */

static int poll_enabled(void)
{
	return pem_enabled_file_poll_begin() | pem_enabled_file_poll_end();
}

static int poll_end(int ready)
{
	pem_notify_file_poll_end(ready, error_of(ready));
	return ready;
}

/* Return a time in milliseconds: at least 1 if it is not 0; -1: no limit. */
static int32_t milliseconds(int is_endless, long seconds, long nanoseconds)
{
	if (is_endless)
		return -1;
	if (seconds >= INT32_MAX / 1000)
		return INT32_MAX;
	return (int32_t)(seconds * 1000 + (nanoseconds + 999999) / 1000000);
}

static int32_t of_timespec(const struct timespec *t)
{
	return milliseconds(!t, t ? t->tv_sec : 0, t ? t->tv_nsec : 0);
}

PEM_LIBC_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
	if (PEM_LIBC_UNWANTED(poll_enabled()))
		return PEM_LIBC_NEXT(poll)(fds, count, timeout_ms);
	pem_notify_file_poll_begin(PEM_LIBC_SITE, timeout_ms);
	return poll_end(PEM_LIBC_NEXT(poll)(fds, count, timeout_ms));
}

PEM_LIBC_EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout_ms, size_t room)
{
	if (count > room / sizeof(*fds))
		__chk_fail();
	if (PEM_LIBC_UNWANTED(poll_enabled()))
		return PEM_LIBC_NEXT(poll)(fds, count, timeout_ms);
	pem_notify_file_poll_begin(PEM_LIBC_SITE, timeout_ms);
	return poll_end(PEM_LIBC_NEXT(poll)(fds, count, timeout_ms));
}

PEM_LIBC_EXPORT int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
			  const sigset_t *mask)
{
	if (PEM_LIBC_UNWANTED(poll_enabled()))
		return PEM_LIBC_NEXT(ppoll)(fds, count, timeout, mask);
	pem_notify_file_poll_begin(PEM_LIBC_SITE, of_timespec(timeout));
	return poll_end(PEM_LIBC_NEXT(ppoll)(fds, count, timeout, mask));
}

PEM_LIBC_EXPORT int select(int count, fd_set *read_fds, fd_set *write_fds, fd_set *except_fds,
			   struct timeval *timeout)
{
	if (PEM_LIBC_UNWANTED(poll_enabled()))
		return PEM_LIBC_NEXT(select)(count, read_fds, write_fds, except_fds, timeout);
	pem_notify_file_poll_begin(PEM_LIBC_SITE,
				   milliseconds(!timeout, timeout ? timeout->tv_sec : 0,
						timeout ? timeout->tv_usec * 1000 : 0));
	return poll_end(PEM_LIBC_NEXT(select)(count, read_fds, write_fds, except_fds, timeout));
}

PEM_LIBC_EXPORT int pselect(int count, fd_set *read_fds, fd_set *write_fds, fd_set *except_fds,
			    const struct timespec *timeout, const sigset_t *mask)
{
	if (PEM_LIBC_UNWANTED(poll_enabled()))
		return PEM_LIBC_NEXT(pselect)(count, read_fds, write_fds, except_fds, timeout,
					      mask);
	pem_notify_file_poll_begin(PEM_LIBC_SITE, of_timespec(timeout));
	return poll_end(
		PEM_LIBC_NEXT(pselect)(count, read_fds, write_fds, except_fds, timeout, mask));
}

PEM_LIBC_EXPORT int epoll_wait(int epoll, struct epoll_event *events, int count, int timeout_ms)
{
	if (PEM_LIBC_UNWANTED(poll_enabled()))
		return PEM_LIBC_NEXT(epoll_wait)(epoll, events, count, timeout_ms);
	pem_notify_file_poll_begin(PEM_LIBC_SITE, timeout_ms);
	return poll_end(PEM_LIBC_NEXT(epoll_wait)(epoll, events, count, timeout_ms));
}

PEM_LIBC_EXPORT int epoll_pwait(int epoll, struct epoll_event *events, int count, int timeout_ms,
				const sigset_t *mask)
{
	if (PEM_LIBC_UNWANTED(poll_enabled()))
		return PEM_LIBC_NEXT(epoll_pwait)(epoll, events, count, timeout_ms, mask);
	pem_notify_file_poll_begin(PEM_LIBC_SITE, timeout_ms);
	return poll_end(PEM_LIBC_NEXT(epoll_pwait)(epoll, events, count, timeout_ms, mask));
}
