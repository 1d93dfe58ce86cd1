// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * readable.h - memory that a program hands in: may it be read?
 *
 * The program may live by EFAULT, and must not end where it would have got that. The kernel is
 * asked, by one system call for each page; what it answers holds as long as no other thread unmaps
 * the page. A restricted thread makes no calls: there the answer is yes. All keep errno, and may be
 * called in handlers of signals and children of vfork.
 */
#ifndef PEM_LIBC_READABLE_H
#define PEM_LIBC_READABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* May all of a text be read, its end included? */
bool pem_libc_readable__text(const char *text);
bool pem_libc_readable__memory(const void *from, size_t bytes);
/*
 * May a list that ends with NULL be read, and all its texts? A list at NULL is an empty one, as for
 * execve.
 */
bool pem_libc_readable__texts(char *const texts[]);
/* How many bytes an array of parts stands for; 0: the kernel takes no such array. */
uint64_t pem_libc_readable__parts(const struct iovec *parts, size_t count);

#endif
