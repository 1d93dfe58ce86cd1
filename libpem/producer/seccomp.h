/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seccomp.h - would a seccomp filter refuse the system calls that pem makes in a program?
 */
#ifndef PEM_SECCOMP_H
#define PEM_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#define PEM_SECCOMP_CALLS 1u /* some call other than the next one is refused */
#define PEM_SECCOMP_WAKE 2u /* waking a consumer (futex) is refused */
/*
 * No filter's: the thread has syscall user dispatch, so any call may come to the program's handler
 * of SIGSYS. Neither a new thread nor a child has it.
 */
#define PEM_SECCOMP_DISPATCH 4u

/*
 * An operation of rt_sigprocmask that does not exist. The call then only checks that the mask can
 * be read.
 */
#define PEM_SECCOMP_NO_OPERATION (-1)

/*
 * Run a filter for every call that pem may make. Returns PEM_SECCOMP_*, joined by |. 0: all calls
 * pass; a call may fail with an errno if nothing is lost by that. A program that the kernel would
 * not accept counts as one that refuses all calls. Async-signal-safe.
 */
uint32_t pem_seccomp__refused(const struct sock_filter *code, uint32_t count);

#endif
