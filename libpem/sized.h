/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sized.h - structs of libpem's callers, read and filled by the rules of <pem/sized.h>
 *
 * Errors are sentences.
 */
#ifndef PEM_LIBPEM_SIZED_H
#define PEM_LIBPEM_SIZED_H

#include <pem/model.h>
#include <pem/sized.h>

/* As pem_sized__read. what: the struct's name, for error. */
int pem_sized__take(void *to, size_t bytes, const void *given, size_t first, const char *what,
		    struct pem_error *error);
/* As pem_sized__check, for an array of count elements. With count 0 the array is not read. */
int pem_sized__check_array(const void *array, size_t count);

/*
 * Read *(given) into *(to), both a struct NAME. LAST was its last member in version 0.2.0. Returns
 * 0, or -errno with error.
 */
#define PEM_READ_SIZED(name, to, given, last, error)                                               \
	pem_sized__take(to, sizeof(struct name), given,                                            \
			offsetof(struct name, last) + sizeof((to)->last), "struct " #name, error)

#endif
