/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * seccomp.h - would a seccomp filter refuse the system calls that pem makes in a program?
 */
#ifndef PEM_SECCOMP_H
#define PEM_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

#define PEM_SECCOMP_CALLS 1u /* some call but the one below is refused */
#define PEM_SECCOMP_WAKE 2u /* waking a consumer (futex) is refused */

/*
 * For rt_sigprocmask: no operation of its own, so that it only looks whether the mask can be read.
 */
#define PEM_SECCOMP_NO_OPERATION (-1)

/*
 * Run a filter for every call that pem may make. Returns PEM_SECCOMP_*, joined by |; 0: all pass,
 * or those fail with an errno that nothing is lost by. A program that the kernel would not take is
 * as good as one that refuses all. Async-signal-safe.
 */
uint32_t pem_seccomp__refused(const struct sock_filter *code, uint32_t count);

#endif
