// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * readable.h - whether memory that a program passes may be read
 *
 * The program may depend on EFAULT, and must not end where it would have got EFAULT. The functions
 * ask the kernel, with one system call for each page. The answer holds as long as no other thread
 * unmaps the page. A restricted thread makes no calls: there the answer is true. All functions keep
 * errno, and may be called in signal handlers and in children of vfork.
 */
#ifndef PEM_LIBC_READABLE_H
#define PEM_LIBC_READABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* Return whether all of a text may be read, its NUL included. */
bool pem_libc_readable__text(const char *text);
bool pem_libc_readable__memory(const void *from, size_t bytes);
/*
 * Return whether a list that ends with NULL may be read, and all its texts. NULL is an empty list,
 * as for execve.
 */
bool pem_libc_readable__texts(char *const texts[]);
/* Bytes of a text that an event keeps, and what tells where it is cut. */
#define PEM_LIBC_TEXT_BYTES 136u
/*
 * Copy the beginning of a text, as much as an event keeps of it, for an event after a call that may
 * let another thread free it. Returns to; NULL: the text can't be read, or is NULL.
 */
const char *pem_libc_readable__copy(char to[PEM_LIBC_TEXT_BYTES], const char *text);
/* Return the sum of the parts' lengths; 0: the kernel does not accept such an array. */
uint64_t pem_libc_readable__parts(const struct iovec *parts, size_t count);

#endif
