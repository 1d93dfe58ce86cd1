// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * alloc.c - the allocation functions of the C library, with their events
 *
 * Not here: finding the real ones (real.c). The file is compiled with -fno-builtin, because a
 * compiler that knows malloc may change its definition.
 */
#include "libc/libc.h"
#include "libc/stacks.h"
#include "libc/wrappers.h"

#include "stubs/libc.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

static inline uint64_t stack_of(uintptr_t site)
{
	return __builtin_expect(pem_enabled_stack_frame(), 0) ? pem_libc_stack(site) : 0;
}

/* Raise an allocation's event; its site is in the first caller that is no wrapper. */
static inline void allocated(size_t size, const void *block, uintptr_t site)
{
	if (__builtin_expect(pem_enabled_libc_malloc(), 0))
		pem_notify_libc_malloc(size, (uintptr_t)block, pem_libc_caller(site),
				       stack_of(site));
}

PEM_LIBC_EXPORT void *malloc(size_t size)
{
	void *block = PEM_LIBC_REAL(malloc)(size);

	allocated(size, block, PEM_LIBC_SITE);
	return block;
}

PEM_LIBC_EXPORT void *calloc(size_t count, size_t size)
{
	void *block = PEM_LIBC_REAL(calloc)(count, size);
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX;
	if (__builtin_expect(pem_enabled_libc_calloc(), 0))
		pem_notify_libc_calloc(bytes, (uintptr_t)block, pem_libc_caller(PEM_LIBC_SITE),
				       stack_of(PEM_LIBC_SITE));
	return block;
}

/*
 * Size 0 releases old, whatever is returned. This is shown as a release, and as an allocation of 0
 * bytes if a block is returned.
 */
static void *resize(void *old, size_t size, uintptr_t site)
{
	void *block;

	if (size || !old) {
		block = PEM_LIBC_REAL(realloc)(old, size);
		if (__builtin_expect(pem_enabled_libc_realloc(), 0))
			pem_notify_libc_realloc((uintptr_t)old, size, (uintptr_t)block,
						pem_libc_caller(site), stack_of(site));
		return block;
	}
	pem_notify_libc_free((uintptr_t)old);
	block = PEM_LIBC_REAL(realloc)(old, size);
	if (block)
		allocated(size, block, site);
	return block;
}

/* realloc under a name that no other library can stand in front of. */
void *own_realloc(void *old, size_t size);
void *own_realloc(void *old, size_t size)
{
	return resize(old, size, PEM_LIBC_SITE);
}
PEM_LIBC_EXPORT void *realloc(void *old, size_t size) __attribute__((alias("own_realloc")));

/*
 * The call is not passed on: the next reallocarray would call realloc above, and the event would be
 * raised twice. If an allocator stands in front of this library, its realloc is called, as the C
 * library does, because the block is its own.
 */
PEM_LIBC_EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	if (realloc != own_realloc)
		return realloc(old, bytes);
	return resize(old, bytes, PEM_LIBC_SITE);
}

PEM_LIBC_EXPORT void free(void *block)
{
	if (!block)
		return;
	pem_notify_libc_free((uintptr_t)block);
	PEM_LIBC_REAL(free)(block);
}

PEM_LIBC_EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
	int rc = PEM_LIBC_REAL(posix_memalign)(block, alignment, size);

	allocated(size, rc ? NULL : *block, PEM_LIBC_SITE);
	return rc;
}

PEM_LIBC_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	void *block = PEM_LIBC_REAL(aligned_alloc)(alignment, size);

	allocated(size, block, PEM_LIBC_SITE);
	return block;
}

PEM_LIBC_EXPORT void *memalign(size_t alignment, size_t size)
{
	void *block = PEM_LIBC_REAL(memalign)(alignment, size);

	allocated(size, block, PEM_LIBC_SITE);
	return block;
}

PEM_LIBC_EXPORT void *valloc(size_t size)
{
	void *block = PEM_LIBC_REAL(valloc)(size);

	allocated(size, block, PEM_LIBC_SITE);
	return block;
}

PEM_LIBC_EXPORT void *pvalloc(size_t size)
{
	void *block = PEM_LIBC_REAL(pvalloc)(size);

	allocated(size, block, PEM_LIBC_SITE);
	return block;
}
