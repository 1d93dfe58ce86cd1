// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * map.c - mmap and munmap with their events
 *
 * libpem maps its pools in the middle of an event. These calls are passed on unseen: they are not the program's,
 * and an event about them would map again.
 */
#include "libc/libc.h"

#include "stubs/libc.h"

#include <sys/mman.h>

PEM_LIBC_EXPORT void *mmap(void *address, size_t length, int protection, int flags, int fd,
			   off_t offset)
{
	void *mapping = PEM_LIBC_REAL(mmap)(address, length, protection, flags, fd, offset);

	if (mapping != MAP_FAILED && !pem_libc_site__is_own(PEM_LIBC_SITE))
		pem_notify_libc_mmap((uintptr_t)mapping, length, (uint32_t)protection,
				     (uint32_t)flags);
	return mapping;
}

_Static_assert(sizeof(off_t) == 8, "mmap and mmap64 are one");
PEM_LIBC_EXPORT void *mmap64(void *address, size_t length, int protection, int flags, int fd,
			     off_t offset) __attribute__((alias("mmap")));

PEM_LIBC_EXPORT int munmap(void *address, size_t length)
{
	if (!pem_libc_site__is_own(PEM_LIBC_SITE))
		pem_notify_libc_munmap((uintptr_t)address, length);
	return PEM_LIBC_REAL(munmap)(address, length);
}
