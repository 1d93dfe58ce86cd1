// SPDX-License-Identifier: MIT
/*
 * front.c - the allocation functions of the C library
 *
 * A block is released, resized and measured by whom its address belongs to, whoever calls. The file
 * is compiled with -fno-builtin, because a compiler that knows malloc may change its definition.
 */
#include "front.h"

#include "look.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int front__directive(uint32_t kind, uint32_t group, uintptr_t site)
{
	return callers__find(kind, group, site);
}

void *front__alloc(uint32_t group, uintptr_t site, size_t size, size_t alignment, bool zero)
{
	int directive = callers__find(PAGE_SITE_HEAP, group, site);

	return directive < 0 ? NULL : heap__alloc((uint32_t)directive, size, alignment, zero);
}

APPLY_EXPORT void *malloc(size_t size)
{
	void *block;

	look__call();
	block = front__try(CALL_SITE, size, 16, false);
	return block ? block : NEXT(malloc)(size);
}

APPLY_EXPORT void *calloc(size_t count, size_t size)
{
	void *block = NULL;
	size_t bytes;

	look__call();
	if (!__builtin_mul_overflow(count, size, &bytes))
		block = front__try(CALL_SITE, bytes, 16, true);
	return block ? block : NEXT(calloc)(count, size);
}

/* A block of an arena. Where that has no room, the program's own allocator has. */
static void *resize_own(void *old, size_t size)
{
	size_t usable;
	void *block;

	if (!size) {
		heap__free(old);
		return NULL;
	}
	block = heap__resize(old, size);
	if (block)
		return block;
	block = NEXT(malloc)(size);
	if (!block)
		return NULL;
	usable = heap__usable(old);
	heap__copy(block, old, usable < size ? usable : size);
	heap__free(old);
	return block;
}

/*
 * A block of the program's own allocator that grows under a directive moves to its arena, unless it
 * is so large that two of it for a moment are too much.
 */
static void *resize_other(void *old, size_t size, uintptr_t site)
{
	uint32_t group = front__group(site);
	size_t usable = 0;
	void *block;

	if (__builtin_expect(!group, 1))
		return NULL;
	if (old) {
		usable = NEXT(malloc_usable_size)(old);
		if (usable >= size || usable >= ARENA_CHUNK)
			return NULL;
	}
	block = front__alloc(group, site, size, 16, false);
	if (block && old) {
		memcpy(block, old, usable);
		NEXT(free)(old);
	}
	return block;
}

APPLY_EXPORT void *realloc(void *old, size_t size)
{
	void *block;

	look__call();
	if (heap__owns(old))
		return resize_own(old, size);
	block = resize_other(old, size, CALL_SITE);
	return block ? block : NEXT(realloc)(old, size);
}

APPLY_EXPORT void *reallocarray(void *old, size_t count, size_t size)
{
	void *block;
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	if (heap__owns(old))
		return resize_own(old, bytes);
	block = resize_other(old, bytes, CALL_SITE);
	return block ? block : NEXT(reallocarray)(old, count, size);
}

APPLY_EXPORT void free(void *block)
{
	look__call();
	if (heap__owns(block))
		heap__free(block);
	else
		NEXT(free)(block);
}

APPLY_EXPORT int posix_memalign(void **block, size_t alignment, size_t size)
{
	void *own = NULL;

	if (front__is_alignment(alignment) && alignment >= sizeof(void *))
		own = front__try(CALL_SITE, size, alignment, false);
	if (!own)
		return NEXT(posix_memalign)(block, alignment, size);
	*block = own;
	return 0;
}

APPLY_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	void *block = NULL;

	if (front__is_alignment(alignment))
		block = front__try(CALL_SITE, size, alignment, false);
	return block ? block : NEXT(aligned_alloc)(alignment, size);
}

APPLY_EXPORT void *memalign(size_t alignment, size_t size)
{
	void *block = NULL;

	if (front__is_alignment(alignment))
		block = front__try(CALL_SITE, size, alignment, false);
	return block ? block : NEXT(memalign)(alignment, size);
}

APPLY_EXPORT void *valloc(size_t size)
{
	void *block = front__try(CALL_SITE, size, (size_t)getpagesize(), false);

	return block ? block : NEXT(valloc)(size);
}

APPLY_EXPORT void *pvalloc(size_t size)
{
	size_t page = (size_t)getpagesize(), bytes;
	void *block = NULL;

	if (!__builtin_add_overflow(size, page - 1, &bytes))
		block = front__try(CALL_SITE, bytes / page * page, page, false);
	return block ? block : NEXT(pvalloc)(size);
}

APPLY_EXPORT size_t malloc_usable_size(void *block)
{
	return heap__owns(block) ? heap__usable(block) : NEXT(malloc_usable_size)(block);
}
