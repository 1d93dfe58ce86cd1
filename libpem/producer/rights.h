/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rights.h - what libpem-libc tells the producer of rights that the program is about to give up
 *
 * A process that changes its user, its root folder or a namespace can't make files in its session's
 * folder any more; one with a seccomp filter may die of a system call that pem makes. What
 * recording needs is made before, by these functions.
 *
 * A thread is restricted when its filter refuses a call that pem may make. From then on pem makes
 * no system call in it: what is not there already is not to be had, and events that need it are
 * counted as lost.
 *
 * All of them keep errno, and may be called from any thread, also of a process that has joined no
 * session. They are not async-signal-safe where they say so.
 */
#ifndef PEM_RIGHTS_H
#define PEM_RIGHTS_H

#include <pem/abi.h>

#include <stdbool.h>
#include <stdint.h>

#define PEM_RIGHTS_EXPORT __attribute__((visibility("default")))

struct sock_fprog;

/* What pem_rights__before_filter made ready, for pem_rights__after_filter. */
enum pem_filter_effect {
	PEM_FILTER_NONE, /* nothing was done: there is no filter, or it can't be one */
	PEM_FILTER_HARMLESS, /* it lets pem's calls pass */
	PEM_FILTER_THREAD, /* this thread is restricted */
	PEM_FILTER_PROCESS, /* all threads are */
	PEM_FILTER_STRICT, /* this thread is, and may not read the clock either */
};

/*
 * The process is about to give up rights, and may fail to: make its pool in every session that it
 * has joined. May block on the process lock, and makes files.
 */
PEM_RIGHTS_EXPORT void pem_rights__before_drop(void);
/*
 * It is about to change its root folder or mount namespace, too: what its children need is also
 * made, for so many of them as man pem-record says.
 */
PEM_RIGHTS_EXPORT void pem_rights__before_move(void);
/* It has done so: paths lead elsewhere from here on. */
PEM_RIGHTS_EXPORT void pem_rights__after_move(void);
/* Has this process, or the one that forked it, given up rights by a call that libpem-libc saw? */
PEM_RIGHTS_EXPORT bool pem_rights__given_up(void);

/*
 * The thread is about to take a filter; program as the caller gave it, and not to be trusted;
 * all_threads: every thread of the process will have it (SECCOMP_FILTER_FLAG_TSYNC). The thread is
 * restricted when this returns, unless the filter lets pem's calls pass. Not async-signal-safe.
 */
PEM_RIGHTS_EXPORT enum pem_filter_effect pem_rights__before_filter(const struct sock_fprog *program,
								   bool all_threads);
/* The same for strict mode. */
PEM_RIGHTS_EXPORT enum pem_filter_effect pem_rights__before_strict(void);
/* Whether it did take it; effect: what the function before returned. */
PEM_RIGHTS_EXPORT void pem_rights__after_filter(enum pem_filter_effect effect, bool taken);

/*
 * The thread is about to lose the right to read the cycle counter (PR_SET_TSC), on: false; or has
 * it again. In between its events are counted as lost, and so are those of threads and children
 * that have lost it with it. Not async-signal-safe.
 */
PEM_RIGHTS_EXPORT void pem_rights__set_clock(bool on);
/* May this thread read it? Asks the kernel in a process that has lost the right in any thread. */
bool pem_rights__has_clock(void);

/*
 * Is this thread restricted? A new thread is if the one that creates it is: pem_rights__inherit, in
 * the new one.
 */
PEM_RIGHTS_EXPORT bool pem_rights__restricted(void);
PEM_RIGHTS_EXPORT void pem_rights__inherit(bool restricted);
/*
 * This thread's id, without a system call where it is restricted. Bit 30 is not set: the process
 * lock's word uses it.
 */
PEM_RIGHTS_EXPORT uint32_t pem_rights__thread_id(void);
/* The process that forked this one, likewise. */
PEM_RIGHTS_EXPORT uint32_t pem_rights__parent_id(void);

/*
 * A call of pem's has failed. Is a seccomp filter why, which nobody told of? Then the process is
 * restricted from here on.
 */
bool pem_rights__notice_filter(void);
/*
 * Is this thread restricted, or has it a seccomp filter that nobody told pem of, and which may
 * refuse any call? Reads /proc, by the calls that a program's loader makes, too. Async-signal-safe.
 */
PEM_RIGHTS_EXPORT bool pem_rights__may_be_filtered(void);

/* --- programs that this one starts; sessions: bit i is joined[i]; all async-signal-safe --- */

/* Those that this process has joined and that are not over. */
PEM_RIGHTS_EXPORT uint32_t pem_rights__sessions(void);
/* Of those: that a program does not join which is given this value of PEM_SESSION; NULL: none. */
PEM_RIGHTS_EXPORT uint32_t pem_rights__not_named(const char *value);
/* Of those: whose page a program that is started here can't open. Makes system calls. */
PEM_RIGHTS_EXPORT uint32_t pem_rights__out_of_reach(void);
/* Count a program that is not observed, before it is started; path: its. Makes no system call. */
PEM_RIGHTS_EXPORT void pem_rights__count_unobserved(uint32_t sessions, enum pem_unobserved reason,
						    const char *path);
/* It could not be started after all. */
PEM_RIGHTS_EXPORT void pem_rights__uncount_unobserved(uint32_t sessions,
						      enum pem_unobserved reason);

#endif
