/* SPDX-License-Identifier: MIT */
/* grow.h - arrays that grow by doubling */
#ifndef PEM_SHARED_GROW_H
#define PEM_SHARED_GROW_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Make room for needed elements of element_bytes. array: address of the caller's pointer to the
 * first element, of whatever type, from malloc or NULL. *capacity: the elements there is room for.
 * Returns 0, or -ENOMEM and changes nothing. Allocates; not async-signal-safe.
 */
static inline int pem_grow(void *array, size_t element_bytes, size_t needed, size_t *capacity)
{
	size_t wanted = *capacity != 0 ? *capacity : 8;
	void *elements;

	if (needed <= *capacity)
		return 0;
	do {
		if (wanted > SIZE_MAX / 2)
			return -ENOMEM;
		wanted *= 2;
	} while (wanted < needed);
	/* The caller's pointer has the type of its elements, so only its bytes are copied. */
	memcpy(&elements, array, sizeof(elements));
	elements = reallocarray(elements, wanted, element_bytes);
	if (elements == NULL)
		return -ENOMEM;
	memcpy(array, &elements, sizeof(elements));
	*capacity = wanted;
	return 0;
}

/* The same, and until there are needed elements, add some of zeros to the *count that there are. */
static inline int pem_grow_zeros(void *array, size_t element_bytes, size_t needed, size_t *count,
				 size_t *capacity)
{
	char *elements;

	if (needed <= *count)
		return 0;
	if (pem_grow(array, element_bytes, needed, capacity))
		return -ENOMEM;
	memcpy(&elements, array, sizeof(elements));
	memset(elements + *count * element_bytes, 0, (needed - *count) * element_bytes);
	*count = needed;
	return 0;
}

#endif
