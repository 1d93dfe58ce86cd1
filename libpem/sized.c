/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sized.c - see sized.h
 */
#include "sized.h"
#include "util.h"

int pem_sized__take(void *to, size_t bytes, const void *given, size_t first, const char *what,
		    struct pem_error *error)
{
	int result = pem_sized__read(to, bytes, given, first);
	size_t size;

	if (!result)
		return 0;
	memcpy(&size, given, sizeof(size));
	if (size > PEM_SIZED_MAX)
		return pem_error__set(
			error, result,
			"%s has a size of %zu, more than any: it was not initialized; "
			"set it to sizeof(%s), and the rest to zero",
			what, size, what);
	if (result == -E2BIG)
		return pem_error__set(error, result,
				      "%s has %zu bytes, and sets some that this libpem (%s) does "
				      "not know: its %zu first ones are known; install the libpem "
				      "that the program was compiled for",
				      what, size, PEM_VERSION, bytes);
	return pem_error__set(error, result, "%s has a size of %zu: set it to sizeof(%s)", what,
			      size, what);
}

int pem_sized__check_array(const void *array, size_t count)
{
	return count ? pem_sized__check(array) : 0;
}
