/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* stacks.h - the stacks of calls that allocations name */
#ifndef PEM_LIBC_STACKS_H
#define PEM_LIBC_STACKS_H

#include <stdint.h>

/*
 * Return the number of the stack of a call that returns to site and is under way in this thread, as
 * APP::Stack::Frame has it. Raises that event for each call of the stack that the thread's lane may
 * lack. For a caller that knows that a session wants it. Async-signal-safe.
 */
uint64_t pem_libc_stack(uintptr_t site);

/* Other code may lie at the addresses of calls from now on. Async-signal-safe. */
void pem_libc_stacks__forget(void);

#endif
