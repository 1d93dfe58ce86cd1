/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sized.h - structs that one side allocates, the other side uses, and later versions make longer
 *
 * Such a struct begins with 'size_t size', its bytes as its allocator was compiled. libpem,
 * exporters and sources use these functions on what they are given. A program that uses pem needs
 * only the rules:
 *
 * A struct that is read (options, contexts): members that a shorter one lacks count as zero, their
 * default. A longer one is accepted as long as all that this side does not know is zero, and
 * refused with -E2BIG otherwise. A size of 0 stands for the struct as it was in version 0.2.0, so
 * that {0} and {.pid = 1} are complete.
 *
 * A struct that is filled in, or an array of them: the size of the first element has to be set, and
 * is the distance between elements. Each element gets as much as has room, its size, and zeroes in
 * what this side does not know. -EINVAL: no such size, as when it was not set.
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

/* No struct is longer. What says so was not set. */
#define PEM_SIZED_MAX 65536u

/*
 * Copy what was given to a struct of this side. bytes: of the struct here; first: of the struct in
 * 0.2.0. The copy's size becomes bytes. 0; -EINVAL: shorter than its size member; -E2BIG: it sets
 * what this side does not know. Then the copy is as it was.
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
 * 0: the size of a struct that is to be filled in, or of an array's first element, can be one; else
 * -EINVAL.
 */
static inline int pem_sized__check(const void *room)
{
	size_t size;

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
