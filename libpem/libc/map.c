// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * map.c - mmap, mremap, munmap and the data segment, with their events
 *
 * libpem maps its pools in the middle of an event. These calls are passed on without an event: they
 * are not the program's, and an event about them would map again.
 */
#include "libc/next.h"

#include "stubs/libc.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

PEM_LIBC_EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd,
			   off_t offset)
{
	void *mapping = PEM_LIBC_REAL(mmap)(address, length, protection, flags, fd, offset);

	if (mapping != MAP_FAILED && !pem_libc_call__is_silent(PEM_LIBC_SITE))
		pem_notify_libc_mmap((uintptr_t)mapping, length, (uint32_t)protection,
				     (uint32_t)flags);
	return mapping;
}

_Static_assert(sizeof(off_t) == 8, "mmap and mmap64 are one");
PEM_LIBC_EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd,
			     off_t offset) __attribute__((alias("mmap")));

PEM_LIBC_EXPORT int munmap(void *address, size_t length)
{
	if (!pem_libc_call__is_silent(PEM_LIBC_SITE))
		pem_notify_libc_munmap((uintptr_t)address, length);
	return PEM_LIBC_REAL(munmap)(address, length);
}

PEM_LIBC_EXPORT void *mremap(void *address, size_t old_length, size_t length, int flags, ...)
{
	void *mapping, *wanted = NULL;
	va_list more;

	if (flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) {
		va_start(more, flags);
		wanted = va_arg(more, void *);
		va_end(more);
	}
	mapping = PEM_LIBC_NEXT(mremap)(address, old_length, length, flags, wanted);
	if (mapping != MAP_FAILED && !PEM_LIBC_UNWANTED(pem_enabled_libc_mremap()))
		pem_notify_libc_mremap((uintptr_t)address, old_length, (uintptr_t)mapping, length,
				       (uint32_t)flags);
	return mapping;
}

PEM_LIBC_EXPORT void *sbrk(intptr_t increment)
{
	uint8_t *before = PEM_LIBC_NEXT(sbrk)(increment);

	if (increment && before != MAP_FAILED && !PEM_LIBC_UNWANTED(pem_enabled_libc_break()))
		pem_notify_libc_break(increment, (uintptr_t)(before + increment));
	return before;
}

PEM_LIBC_EXPORT int brk(void *end)
{
	int rc = PEM_LIBC_NEXT(brk)(end);

	if (rc == 0 && !PEM_LIBC_UNWANTED(pem_enabled_libc_break()))
		pem_notify_libc_break(0, (uintptr_t)end);
	return rc;
}
