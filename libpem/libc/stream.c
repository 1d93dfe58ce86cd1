// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * stream.c - stdio's streams by blocks, with their events
 *
 * Not here: reading and writing by characters, lines and formats, which the buffer serves at a
 * lower cost than an event; files by descriptor (file.c).
 */
#include "libc/next.h"
#include "libc/readable.h"

#include "stubs/libc_io.h"

#include <errno.h>
#include <stdio.h>

#undef fread_unlocked /* macros */
#undef fwrite_unlocked

/* Functions of glibc. Its headers declare them only with _FORTIFY_SOURCE. */
size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream);
size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count, FILE *stream);
void __chk_fail(void) __attribute__((noreturn));

/* The event has copies, as that of open (file.c). */
PEM_LIBC_EXPORT FILE *fopen(const char *path, const char *access)
{
	char path_text[PEM_LIBC_TEXT_BYTES], access_text[PEM_LIBC_TEXT_BYTES];
	const char *known_path, *known_access;
	FILE *stream;

	if (PEM_LIBC_UNWANTED(pem_enabled_stdio_open()))
		return PEM_LIBC_NEXT(fopen)(path, access);
	known_path = pem_libc_readable__copy(path_text, path);
	known_access = pem_libc_readable__copy(access_text, access);
	stream = PEM_LIBC_NEXT(fopen)(path, access);
	pem_notify_stdio_open((uintptr_t)stream, stream ? 0 : errno, known_path, known_access);
	return stream;
}

PEM_LIBC_EXPORT FILE *fopen64(const char *path, const char *access) __attribute__((alias("fopen")));

PEM_LIBC_EXPORT int fclose(FILE *stream)
{
	int rc;

	if (PEM_LIBC_UNWANTED(pem_enabled_stdio_close_begin() | pem_enabled_stdio_close_end()))
		return PEM_LIBC_NEXT(fclose)(stream);
	pem_notify_stdio_close_begin((uintptr_t)stream);
	rc = PEM_LIBC_NEXT(fclose)(stream);
	pem_notify_stdio_close_end((uintptr_t)stream, rc ? errno : 0);
	return rc;
}

static int read_enabled(void)
{
	return pem_enabled_stdio_read_begin() | pem_enabled_stdio_read_end();
}

static int write_enabled(void)
{
	return pem_enabled_stdio_write_begin() | pem_enabled_stdio_write_end();
}

static int flush_enabled(void)
{
	return pem_enabled_stdio_flush_begin() | pem_enabled_stdio_flush_end();
}

/* The product does not overflow: all elements were in memory. */
static size_t read_end(FILE *stream, size_t size, size_t got)
{
	pem_notify_stdio_read_end((uintptr_t)stream, got * size);
	return got;
}

static size_t write_end(FILE *stream, size_t size, size_t done)
{
	pem_notify_stdio_write_end((uintptr_t)stream, done * size);
	return done;
}

PEM_LIBC_EXPORT size_t fread(void *to, size_t size, size_t count, FILE *stream)
{
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(fread)(to, size, count, stream);
	pem_notify_stdio_read_begin((uintptr_t)stream, size * count);
	return read_end(stream, size, PEM_LIBC_NEXT(fread)(to, size, count, stream));
}

PEM_LIBC_EXPORT size_t fread_unlocked(void *to, size_t size, size_t count, FILE *stream)
{
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(fread_unlocked)(to, size, count, stream);
	pem_notify_stdio_read_begin((uintptr_t)stream, size * count);
	return read_end(stream, size, PEM_LIBC_NEXT(fread_unlocked)(to, size, count, stream));
}

static void check_room(size_t room, size_t size, size_t count)
{
	size_t bytes;

	if (__builtin_mul_overflow(size, count, &bytes) || bytes > room)
		__chk_fail();
}

PEM_LIBC_EXPORT size_t __fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream)
{
	check_room(room, size, count);
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(fread)(to, size, count, stream);
	pem_notify_stdio_read_begin((uintptr_t)stream, size * count);
	return read_end(stream, size, PEM_LIBC_NEXT(fread)(to, size, count, stream));
}

PEM_LIBC_EXPORT size_t __fread_unlocked_chk(void *to, size_t room, size_t size, size_t count,
					    FILE *stream)
{
	check_room(room, size, count);
	if (PEM_LIBC_UNWANTED(read_enabled()))
		return PEM_LIBC_NEXT(fread_unlocked)(to, size, count, stream);
	pem_notify_stdio_read_begin((uintptr_t)stream, size * count);
	return read_end(stream, size, PEM_LIBC_NEXT(fread_unlocked)(to, size, count, stream));
}

PEM_LIBC_EXPORT size_t fwrite(const void *from, size_t size, size_t count, FILE *stream)
{
	if (PEM_LIBC_UNWANTED(write_enabled()))
		return PEM_LIBC_NEXT(fwrite)(from, size, count, stream);
	pem_notify_stdio_write_begin((uintptr_t)stream, size * count);
	return write_end(stream, size, PEM_LIBC_NEXT(fwrite)(from, size, count, stream));
}

PEM_LIBC_EXPORT size_t fwrite_unlocked(const void *from, size_t size, size_t count, FILE *stream)
{
	if (PEM_LIBC_UNWANTED(write_enabled()))
		return PEM_LIBC_NEXT(fwrite_unlocked)(from, size, count, stream);
	pem_notify_stdio_write_begin((uintptr_t)stream, size * count);
	return write_end(stream, size, PEM_LIBC_NEXT(fwrite_unlocked)(from, size, count, stream));
}

PEM_LIBC_EXPORT int fflush(FILE *stream)
{
	int rc;

	if (PEM_LIBC_UNWANTED(flush_enabled()))
		return PEM_LIBC_NEXT(fflush)(stream);
	pem_notify_stdio_flush_begin((uintptr_t)stream);
	rc = PEM_LIBC_NEXT(fflush)(stream);
	pem_notify_stdio_flush_end((uintptr_t)stream, rc ? errno : 0);
	return rc;
}

PEM_LIBC_EXPORT int fflush_unlocked(FILE *stream)
{
	int rc;

	if (PEM_LIBC_UNWANTED(flush_enabled()))
		return PEM_LIBC_NEXT(fflush_unlocked)(stream);
	pem_notify_stdio_flush_begin((uintptr_t)stream);
	rc = PEM_LIBC_NEXT(fflush_unlocked)(stream);
	pem_notify_stdio_flush_end((uintptr_t)stream, rc ? errno : 0);
	return rc;
}
