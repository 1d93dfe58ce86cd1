/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * rights.h - what libpem-libc tells the producer of rights that the program is about to give up
 *
 * A process that changes its user, its root folder or a namespace can't make files in its session's
 * folder any more. A process with a seccomp filter may be killed for a system call that pem makes.
 * So these functions make what recording needs before that.
 *
 * A thread is restricted when its filter refuses a call that pem may make, and while it has syscall
 * user dispatch. From then on pem makes no system call in the thread. It gets nothing that does not
 * exist already, and events that need more are counted as lost.
 *
 * All functions keep errno, and any thread may call them, also in a process that has joined no
 * session. The comment of each function that is not async-signal-safe says so.
 */
#ifndef PEM_RIGHTS_H
#define PEM_RIGHTS_H

#include <pem/abi.h>

#include <stdbool.h>
#include <stdint.h>

#define PEM_RIGHTS_EXPORT __attribute__((visibility("default")))

struct sock_fprog;

/* What pem_rights__before_filter did. The caller passes it to pem_rights__after_filter. */
enum pem_filter_effect {
	PEM_FILTER_NONE, /* nothing was done: there is no filter, or the program can't be one */
	PEM_FILTER_HARMLESS, /* the filter lets pem's calls pass */
	PEM_FILTER_THREAD, /* this thread is restricted */
	PEM_FILTER_PROCESS, /* all threads are restricted */
	PEM_FILTER_STRICT, /* this thread is restricted, and may not read the clock either */
	PEM_FILTER_DISPATCH, /* this thread is restricted, and neither new threads nor children */
};

/*
 * The process is about to give up rights; that may fail. Make its pool in every session that it has
 * joined. May block on the process lock. Makes files.
 */
PEM_RIGHTS_EXPORT void pem_rights__before_drop(void);
/*
 * The process is about to change its root folder or mount namespace, too. Make also what its
 * children need, for as many children as man pem-record says.
 */
PEM_RIGHTS_EXPORT void pem_rights__before_move(void);
/* The process has changed it: paths lead elsewhere from now on. */
PEM_RIGHTS_EXPORT void pem_rights__after_move(void);
/* Has this process, or the one that forked it, given up rights by a call that libpem-libc saw? */
PEM_RIGHTS_EXPORT bool pem_rights__given_up(void);

/*
 * The thread is about to take a filter. program: as the caller gave it, not to be trusted.
 * all_threads: every thread of the process will have the filter (SECCOMP_FILTER_FLAG_TSYNC). When
 * this returns, the thread is restricted, unless the filter lets pem's calls pass. Not
 * async-signal-safe.
 */
PEM_RIGHTS_EXPORT enum pem_filter_effect pem_rights__before_filter(const struct sock_fprog *program,
								   bool all_threads);
/* The thread is about to enter strict mode. Not async-signal-safe. */
PEM_RIGHTS_EXPORT enum pem_filter_effect pem_rights__before_strict(void);
/*
 * The thread is about to switch syscall user dispatch on (PR_SET_SYSCALL_USER_DISPATCH). From then
 * on it is restricted, also while its selector lets calls pass. Not async-signal-safe.
 */
PEM_RIGHTS_EXPORT enum pem_filter_effect pem_rights__before_dispatch(void);
/* It has switched it off, or is the first thread of a child of fork, which does not have it. */
PEM_RIGHTS_EXPORT void pem_rights__end_dispatch(void);
/*
 * taken: the thread did take the filter. effect: the result of the function before.
 */
PEM_RIGHTS_EXPORT void pem_rights__after_filter(enum pem_filter_effect effect, bool taken);

/*
 * on false: the thread is about to lose the right to read the cycle counter (PR_SET_TSC). on true:
 * it has that right again. In between, its events are counted as lost, and so are the events of
 * threads and children that it starts. Not async-signal-safe.
 */
PEM_RIGHTS_EXPORT void pem_rights__set_clock(bool on);
/*
 * May this thread read the cycle counter? Asks the kernel if any thread of the process has lost the
 * right.
 */
bool pem_rights__has_clock(void);

/* Is this thread restricted? */
PEM_RIGHTS_EXPORT bool pem_rights__restricted(void);
/*
 * Is it restricted by a filter? A new thread is, and the program that the thread becomes, if the
 * thread is: the new thread calls pem_rights__inherit.
 */
PEM_RIGHTS_EXPORT bool pem_rights__filtered(void);
PEM_RIGHTS_EXPORT void pem_rights__inherit(bool filtered);
/*
 * Return this thread's id, without a system call if the thread is restricted. Bit 30 is not set,
 * because the word of the process lock uses it.
 */
PEM_RIGHTS_EXPORT uint32_t pem_rights__thread_id(void);
/*
 * Return the id of the process that forked this one, without a system call if the thread is
 * restricted.
 */
PEM_RIGHTS_EXPORT uint32_t pem_rights__parent_id(void);

/*
 * The process ends, perhaps without destructors: remove its control file. A child of vfork may call
 * it, and a signal handler.
 */
PEM_RIGHTS_EXPORT void pem_rights__ends(void);

/*
 * A system call of pem's has failed. Is the reason a seccomp filter that pem was not told of? If
 * so, the process is restricted from now on.
 */
bool pem_rights__notice_filter(void);
/*
 * The id of a process that has one thread and has just started, or was forked, as the C library has
 * it. 0: not found. Makes no system call.
 */
uint32_t pem_process__first_id(void);
/*
 * Is this thread restricted, or does it have a seccomp filter that pem was not told of? Such a
 * filter may refuse any call. Reads /proc, by calls that a program's loader makes, too.
 * Async-signal-safe.
 */
PEM_RIGHTS_EXPORT bool pem_rights__may_be_filtered(void);
/* Did a thread of this process take a filter that pem was told of, also a harmless one? */
bool pem_rights__took_filter(void);
/*
 * Is that so, or does this thread have any filter? For system calls that filters were not tried
 * with. Reads /proc.
 */
bool pem_rights__has_filter(void);

/* --- programs that this one starts; sessions: bit i is joined[i]; all async-signal-safe --- */

/* Return the sessions that this process has joined and that are not over. */
PEM_RIGHTS_EXPORT uint32_t pem_rights__sessions(void);
/*
 * Return those of them that a program does not join if it gets this value of PEM_SESSION; NULL: it
 * gets no value. Sessions that a consumer offered from outside need no such value.
 */
PEM_RIGHTS_EXPORT uint32_t pem_rights__not_named(const char *value);
/*
 * Return those of them whose page can't be opened by a program that is started here. Makes system
 * calls.
 */
PEM_RIGHTS_EXPORT uint32_t pem_rights__out_of_reach(void);
/*
 * Count a program that is not observed, before it is started. path: the program's. Makes no system
 * call.
 */
PEM_RIGHTS_EXPORT void pem_rights__count_unobserved(uint32_t sessions, enum pem_unobserved reason,
						    const char *path);
/* Take that count back: the program could not be started. */
PEM_RIGHTS_EXPORT void pem_rights__uncount_unobserved(uint32_t sessions,
						      enum pem_unobserved reason);

#endif
