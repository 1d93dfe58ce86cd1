/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* wrappers.h - functions that allocate for their callers, and who calls them */
#ifndef PEM_LIBC_WRAPPERS_H
#define PEM_LIBC_WRAPPERS_H

#include <stdint.h>

/*
 * Return where the first caller that is no wrapper goes on: site itself if site is in none. site:
 * the return address of a call that is under way in this thread. Keeps errno. Async-signal-safe.
 */
uintptr_t pem_libc_caller(uintptr_t site);

#endif
