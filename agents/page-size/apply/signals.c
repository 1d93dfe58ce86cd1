// SPDX-License-Identifier: MIT
/*
 * signals.c - functions for signals: each is the next definition's, once SIGURG is the program's
 *
 * Not here: what a program does by system calls of its own.
 */
#include "signals.h"

#include "next.h"
#include "wake.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/signalfd.h>

#define EACH(DO)                                                                                   \
	DO(sigaction)                                                                              \
	DO(signal)                                                                                 \
	DO(sysv_signal)                                                                            \
	DO(sigset)                                                                                 \
	DO(sighold)                                                                                \
	DO(siginterrupt)                                                                           \
	DO(sigprocmask)                                                                            \
	DO(pthread_sigmask)                                                                        \
	DO(sigblock)                                                                               \
	DO(sigsetmask)                                                                             \
	DO(sigpending)                                                                             \
	DO(sigwait)                                                                                \
	DO(sigwaitinfo)                                                                            \
	DO(sigtimedwait)                                                                           \
	DO(signalfd)                                                                               \
	DO(sigaltstack)

#define NUMBER(name) NUMBER_##name,
#define NAME(name) #name,

enum { EACH(NUMBER) COUNT };

typedef void (*handler)(int);

static const char *const names[COUNT] = {EACH(NAME)};
static void *found[COUNT];

static void *find(int i)
{
	void *known = __atomic_load_n(&found[i], __ATOMIC_RELAXED);

	if (!known) {
		known = next__function(names[i]);
		__atomic_store_n(&found[i], known, __ATOMIC_RELAXED);
	}
	return known;
}

#define FOUND(name, type) ((type)find(NUMBER_##name))

void signals__find(void)
{
	int i;

	for (i = 0; i < COUNT; i++)
		find(i);
}

/* --- handlers --- */

int signals__action(int number, const struct sigaction *action, struct sigaction *was)
{
	typedef int function(int, const struct sigaction *, struct sigaction *);

	return FOUND(sigaction, function *)(number, action, was);
}

static void stop_for(int number)
{
	if (number == SIGURG)
		wake__stop();
}

APPLY_EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *was)
{
	/* If the program has no alternate stack, such a handler expects the usual one. */
	if (action && action->sa_flags & SA_ONSTACK)
		wake__stop();
	stop_for(number);
	return signals__action(number, action, was);
}

APPLY_EXPORT handler signal(int number, handler to)
{
	stop_for(number);
	return FOUND(signal, handler(*)(int, handler))(number, to);
}

APPLY_EXPORT handler sysv_signal(int number, handler to)
{
	stop_for(number);
	return FOUND(sysv_signal, handler(*)(int, handler))(number, to);
}

/* What signal is for programs that are compiled with _XOPEN_SOURCE */
APPLY_EXPORT handler __sysv_signal(int number, handler to)
{
	stop_for(number);
	return FOUND(sysv_signal, handler(*)(int, handler))(number, to);
}

APPLY_EXPORT handler sigset(int number, handler to)
{
	stop_for(number);
	return FOUND(sigset, handler(*)(int, handler))(number, to);
}

APPLY_EXPORT int siginterrupt(int number, int on)
{
	stop_for(number);
	return FOUND(siginterrupt, int (*)(int, int))(number, on);
}

/* --- masks: the timer's signal is the main thread's --- */

static void stop_blocked(bool is_blocked)
{
	if (is_blocked && wake__is_main_thread())
		wake__stop();
}

static bool blocks(int how, const sigset_t *set)
{
	return set && how != SIG_UNBLOCK && sigismember(set, SIGURG) == 1;
}

APPLY_EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *was)
{
	typedef int function(int, const sigset_t *, sigset_t *);

	stop_blocked(blocks(how, set));
	return FOUND(sigprocmask, function *)(how, set, was);
}

APPLY_EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *was)
{
	typedef int function(int, const sigset_t *, sigset_t *);

	stop_blocked(blocks(how, set));
	return FOUND(pthread_sigmask, function *)(how, set, was);
}

APPLY_EXPORT int sighold(int number)
{
	stop_for(number);
	return FOUND(sighold, int (*)(int))(number);
}

static bool blocks_word(int mask)
{
	return (unsigned)mask >> (SIGURG - 1) & 1;
}

APPLY_EXPORT int sigblock(int mask)
{
	stop_blocked(blocks_word(mask));
	return FOUND(sigblock, int (*)(int))(mask);
}

APPLY_EXPORT int sigsetmask(int mask)
{
	stop_blocked(blocks_word(mask));
	return FOUND(sigsetmask, int (*)(int))(mask);
}

/* --- what waits; handlers of the program may block the signal, too --- */

APPLY_EXPORT int sigpending(sigset_t *set)
{
	wake__stop();
	return FOUND(sigpending, int (*)(sigset_t *))(set);
}

APPLY_EXPORT int sigwait(const sigset_t *set, int *number)
{
	wake__stop();
	return FOUND(sigwait, int (*)(const sigset_t *, int *))(set, number);
}

APPLY_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	wake__stop();
	return FOUND(sigwaitinfo, int (*)(const sigset_t *, siginfo_t *))(set, info);
}

APPLY_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *wait)
{
	typedef int function(const sigset_t *, siginfo_t *, const struct timespec *);

	wake__stop();
	return FOUND(sigtimedwait, function *)(set, info, wait);
}

APPLY_EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
	wake__stop();
	return FOUND(signalfd, int (*)(int, const sigset_t *, int))(fd, set, flags);
}

APPLY_EXPORT int sigaltstack(const stack_t *stack, stack_t *was)
{
	wake__stop();
	wake__drop_stack();
	return FOUND(sigaltstack, int (*)(const stack_t *, stack_t *))(stack, was);
}
