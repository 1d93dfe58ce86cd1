// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * rights.c - calls by which a program gives up rights
 *
 * They concern users and groups, capabilities, root folder, namespaces, the clock and seccomp. No
 * events are raised here. libpem is told before the call, so that it can make what it can't make
 * afterwards (producer/rights.h).
 *
 * Not here: system calls that the program makes by its own instructions; what execve changes
 * (program.c).
 */
#include "libc/next.h"

#include "producer/rights.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Return whether this thread has no thread-local memory. Chromium's sandbox makes these calls in a
 * child of clone, in its parent's memory, with thread-local memory that is all zero. libpem can
 * prepare nothing there.
 */
static int has_no_thread(void)
{
	return pem_libc_call__is_silent(0);
}

static __attribute__((noinline)) void before_drop(void)
{
	if (!has_no_thread())
		pem_rights__before_drop();
}

static void before_move(void)
{
	if (!has_no_thread())
		pem_rights__before_move();
}

/* --- users, groups, capabilities --- */

#define DROP(type, name, parameters, ...)                                                          \
	PEM_LIBC_EXPORT type name parameters                                                       \
	{                                                                                          \
		before_drop();                                                                     \
		return PEM_LIBC_NEXT(name)(__VA_ARGS__);                                           \
	}

/* The C library has this function for libcap. No header declares it. */
int capset(cap_user_header_t header, const cap_user_data_t data);

DROP(int, setuid, (uid_t user), user)
DROP(int, setgid, (gid_t group), group)
DROP(int, seteuid, (uid_t user), user)
DROP(int, setegid, (gid_t group), group)
DROP(int, setreuid, (uid_t real, uid_t effective), real, effective)
DROP(int, setregid, (gid_t real, gid_t effective), real, effective)
DROP(int, setresuid, (uid_t real, uid_t effective, uid_t saved), real, effective, saved)
DROP(int, setresgid, (gid_t real, gid_t effective, gid_t saved), real, effective, saved)
DROP(int, setfsuid, (uid_t user), user)
DROP(int, setfsgid, (gid_t group), group)
DROP(int, setgroups, (size_t count, const gid_t *groups), count, groups)
DROP(int, initgroups, (const char *user, gid_t group), user, group)
DROP(int, capset, (cap_user_header_t header, const cap_user_data_t data), header, data)

/* --- root folder, namespaces --- */

static long after_move(long result)
{
	if (!result)
		pem_rights__after_move();
	return result;
}

PEM_LIBC_EXPORT int chroot(const char *path)
{
	before_move();
	return (int)after_move(PEM_LIBC_NEXT(chroot)(path));
}

/* Only a new mount namespace changes paths. */
PEM_LIBC_EXPORT int unshare(int flags)
{
	if (flags & CLONE_NEWNS) {
		before_move();
		return (int)after_move(PEM_LIBC_NEXT(unshare)(flags));
	}
	if (flags & CLONE_NEWUSER)
		before_drop();
	return PEM_LIBC_NEXT(unshare)(flags);
}

PEM_LIBC_EXPORT int setns(int fd, int type)
{
	before_move();
	return (int)after_move(PEM_LIBC_NEXT(setns)(fd, type));
}

/* --- the clock --- */

/*
 * Return whether a call of prctl denies the cycle counter to this thread. The kernel takes the
 * lower half of the argument.
 */
static bool denies_clock(int option, unsigned long mode)
{
	return option == PR_SET_TSC && (unsigned)mode == PR_TSC_SIGSEGV;
}

static void before_clock(int option, unsigned long mode)
{
	if (denies_clock(option, mode) && !has_no_thread())
		pem_rights__set_clock(false);
}

/* The call may have failed to deny the counter, or may have allowed it again. */
static void after_clock(int option, unsigned long mode, long result)
{
	if (option == PR_SET_TSC && !has_no_thread() &&
	    (result ? denies_clock(option, mode) : (unsigned)mode == PR_TSC_ENABLE))
		pem_rights__set_clock(true);
}

/* --- filters, and syscall user dispatch --- */

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_OFF 0
#define PR_SYS_DISPATCH_ON 1
#endif

/* mode, program: the next arguments of prctl. */
static enum pem_filter_effect before_prctl(int option, unsigned long mode, unsigned long program)
{
	if (has_no_thread())
		return PEM_FILTER_NONE;
	if (option == PR_SET_SECCOMP && mode == SECCOMP_MODE_FILTER)
		return pem_rights__before_filter((const struct sock_fprog *)program, false);
	if (option == PR_SET_SECCOMP && mode == SECCOMP_MODE_STRICT)
		return pem_rights__before_strict();
	if (option == PR_SET_SYSCALL_USER_DISPATCH && mode != PR_SYS_DISPATCH_OFF)
		return pem_rights__before_dispatch();
	return PEM_FILTER_NONE;
}

static void after_prctl(int option, unsigned long mode, enum pem_filter_effect effect, long result)
{
	if (effect != PEM_FILTER_NONE)
		pem_rights__after_filter(effect, !result);
	if (option == PR_SET_SYSCALL_USER_DISPATCH && mode == PR_SYS_DISPATCH_OFF && !result &&
	    !has_no_thread())
		pem_rights__end_dispatch();
}

PEM_LIBC_EXPORT int prctl(int option, ...)
{
	enum pem_filter_effect effect;
	unsigned long a[4];
	va_list more;
	int result, i;

	/*
	 * Read as many arguments as the kernel takes. An argument that the caller left out may have
	 * any value, for the kernel too.
	 */
	va_start(more, option);
	for (i = 0; i < 4; i++)
		a[i] = va_arg(more, unsigned long);
	va_end(more);
	effect = before_prctl(option, a[0], a[1]);
	before_clock(option, a[0]);
	result = PEM_LIBC_NEXT(prctl)(option, a[0], a[1], a[2], a[3]);
	after_clock(option, a[0], result);
	after_prctl(option, a[0], effect, result);
	return result;
}

/*
 * A system call returns a long. The function takes up to six arguments besides the number, the last
 * one on the stack.
 */
typedef long system_call(long number, long a, long b, long c, long d, long e, long f);

static system_call *next_syscall(void)
{
	return (system_call *)pem_libc_next__get(PEM_LIBC_NEXT_syscall);
}

static __attribute__((noinline)) long set_filter(long number, long a, long b, long c, long d,
						 long e, long f)
{
	enum pem_filter_effect effect = PEM_FILTER_NONE;
	long result;

	if (has_no_thread())
		effect = PEM_FILTER_NONE;
	else if (a == SECCOMP_SET_MODE_FILTER)
		effect = pem_rights__before_filter((const struct sock_fprog *)c,
						   b & SECCOMP_FILTER_FLAG_TSYNC);
	else if (a == SECCOMP_SET_MODE_STRICT)
		effect = pem_rights__before_strict();
	result = next_syscall()(number, a, b, c, d, e, f);
	/*
	 * With SECCOMP_FILTER_FLAG_NEW_LISTENER a positive result is a descriptor. With TSYNC alone
	 * it is a thread that could not get the filter.
	 */
	if (effect != PEM_FILTER_NONE)
		pem_rights__after_filter(
			effect, !result || (result > 0 && b & SECCOMP_FILTER_FLAG_NEW_LISTENER));
	return result;
}

static __attribute__((noinline)) long call_prctl(long number, long a, long b, long c, long d,
						 long e, long f)
{
	enum pem_filter_effect effect = before_prctl((int)a, (unsigned long)b, (unsigned long)c);
	long result;

	before_clock((int)a, (unsigned long)b);
	result = next_syscall()(number, a, b, c, d, e, f);
	after_clock((int)a, (unsigned long)b, result);
	after_prctl((int)a, (unsigned long)b, effect, result);
	return result;
}

static __attribute__((noinline)) long move(long number, long a, long b, long c, long d, long e,
					   long f)
{
	before_move();
	return after_move(next_syscall()(number, a, b, c, d, e, f));
}

/* A change by a system call that pem has to know about. */
enum change {
	CHANGES_NOTHING,
	CHANGES_BY_PRCTL,
	CHANGES_FILTER,
	CHANGES_ROOT,
	CHANGES_NAMESPACE,
	CHANGES_RIGHTS
};

static const uint8_t changes[] = {
	[SYS_prctl] = CHANGES_BY_PRCTL,   [SYS_seccomp] = CHANGES_FILTER,
	[SYS_chroot] = CHANGES_ROOT,      [SYS_pivot_root] = CHANGES_ROOT,
	[SYS_setns] = CHANGES_ROOT,       [SYS_unshare] = CHANGES_NAMESPACE,
	[SYS_setuid] = CHANGES_RIGHTS,    [SYS_setgid] = CHANGES_RIGHTS,
	[SYS_setreuid] = CHANGES_RIGHTS,  [SYS_setregid] = CHANGES_RIGHTS,
	[SYS_setresuid] = CHANGES_RIGHTS, [SYS_setresgid] = CHANGES_RIGHTS,
	[SYS_setgroups] = CHANGES_RIGHTS, [SYS_capset] = CHANGES_RIGHTS,
	[SYS_setfsuid] = CHANGES_RIGHTS,  [SYS_setfsgid] = CHANGES_RIGHTS,
};

static inline enum change change_of(long number)
{
	return (unsigned long)number < sizeof(changes) ? (enum change)changes[number]
						       : CHANGES_NOTHING;
}

/* Make a call that may change something, or the first call of all. */
static __attribute__((noinline)) long watched(long number, long a, long b, long c, long d, long e,
					      long f)
{
	switch (change_of(number)) {
	case CHANGES_BY_PRCTL:
		return call_prctl(number, a, b, c, d, e, f);
	case CHANGES_FILTER:
		return set_filter(number, a, b, c, d, e, f);
	case CHANGES_NAMESPACE:
		if (a & CLONE_NEWNS)
			return move(number, a, b, c, d, e, f);
		if (a & CLONE_NEWUSER)
			before_drop();
		break;
	case CHANGES_ROOT:
		return move(number, a, b, c, d, e, f);
	case CHANGES_RIGHTS:
		before_drop();
		break;
	case CHANGES_NOTHING:
		break;
	}
	return next_syscall()(number, a, b, c, d, e, f);
}

long pem_libc_syscall(long number, long a, long b, long c, long d, long e,
		      long f) __asm__("syscall") PEM_LIBC_EXPORT;

/*
 * The call is passed on by a jump, which keeps the caller's stack. A child of vfork, or of clone
 * with its own stack, returns into the caller: a frame of this function could be wrong there, or
 * missing. The file is compiled with -foptimize-sibling-calls. All code that needs a register of
 * its own is in watched(), so a call that changes nothing saves and restores none.
 */
long pem_libc_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	void *next = __atomic_load_n(&pem_libc_next[PEM_LIBC_NEXT_syscall], __ATOMIC_RELAXED);

	if (__builtin_expect(!next || change_of(number) != CHANGES_NOTHING, 0))
		return watched(number, a, b, c, d, e, f);
	return ((system_call *)next)(number, a, b, c, d, e, f);
}
