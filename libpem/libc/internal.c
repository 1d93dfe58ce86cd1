// SPDX-License-Identifier: LGPL-2.1-or-later
/* internal.c - system calls that the wrappers make for themselves, not for the program
 * (pem/internal.h) */
#include "internal_call.h"

#include "libc/libc.h"

#include <errno.h>

long pem_libc_make_call(long number, long a, long b, long c, long d, long e,
			long f) __asm__("pem_libc_internal_call");

long pem_libc_make_call(long number, long a, long b, long c, long d, long e, long f)
{
	long result = pem_internal_syscall(number, a, b, c, d, e, f);

	if ((unsigned long)result < -4095ul)
		return result;
	errno = (int)-result;
	return -1;
}
