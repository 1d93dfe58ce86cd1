/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sized.h - structs that one side allocates, the other side uses, and later versions make longer
 *
 * Such a struct begins with 'size_t size': the struct's bytes when its allocator was compiled.
 * libpem, exporters and sources use these functions on structs that they get. A program that uses
 * pem needs only the rules:
 *
 * A struct that is read (options, contexts): members that a shorter one lacks count as zero, their
 * default. A longer one is accepted if all bytes that this side does not know are zero. Otherwise
 * it is refused with -E2BIG. A size of 0 stands for the struct as it was in version 0.2.0, so that
 * {0} and {.pid = 1} are complete.
 *
 * A struct that is filled in, or an array of them: the size of the first element has to be set, and
 * is the distance between elements. Each element gets as many members as have room, and its size.
 * Bytes that this side does not know become zero. -EINVAL: the size is impossible, for instance
 * because it was not set.
 *
 * No function here blocks or allocates; all are thread-safe and async-signal-safe.
 */
#ifndef PEM_SIZED_H
#define PEM_SIZED_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* No struct is longer. A greater size means that it was not set. */
#define PEM_SIZED_MAX 65536u

/*
 * Copy a given struct to a struct of this side. bytes: the size of the struct here; first: its size
 * in 0.2.0. The copy's size becomes bytes. Returns 0. -EINVAL: the given struct is shorter than its
 * size member. -E2BIG: it sets members that this side does not know. On failure the copy is
 * unchanged.
 */
static inline int pem_sized__read(void *to, size_t bytes, const void *given, size_t first)
{
	const uint8_t *from = (const uint8_t *)given;
	size_t size, i;

	memcpy(&size, from, sizeof(size));
	if (size == 0)
		size = first;
	if (size < sizeof(size))
		return -EINVAL;
	if (size > PEM_SIZED_MAX)
		return -E2BIG;
	for (i = bytes; i < size; i++) {
		if (from[i])
			return -E2BIG;
	}
	memset(to, 0, bytes);
	memcpy(to, from, size < bytes ? size : bytes);
	memcpy(to, &bytes, sizeof(bytes));
	return 0;
}

/*
 * Check the size of a struct that is to be filled in, or of an array's first element. Returns 0, or
 * -EINVAL: no struct has such a size.
 */
static inline int pem_sized__check(const void *room)
{
	size_t size;

	if (!room)
		return -EINVAL;
	memcpy(&size, room, sizeof(size));
	return size < sizeof(size) || size > PEM_SIZED_MAX || size % sizeof(size) ? -EINVAL : 0;
}

/* Fill in element i of an array that pem_sized__check has accepted, from a struct of this side. */
static inline void pem_sized__write(void *array, size_t i, const void *from, size_t bytes)
{
	uint8_t *to;
	size_t size;

	memcpy(&size, array, sizeof(size));
	to = (uint8_t *)array + i * size;
	memcpy(to, from, size < bytes ? size : bytes);
	if (size > bytes)
		memset(to + bytes, 0, size - bytes);
	memcpy(to, &size, sizeof(size));
}

#ifdef __cplusplus
}
#endif
#endif
