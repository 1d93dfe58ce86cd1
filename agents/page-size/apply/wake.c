// SPDX-License-Identifier: MIT
/*
 * wake.c - the timer, the signal and the stack
 *
 * The library stands in front of functions for signals (signals.c), so nothing here calls those.
 */
#include "wake.h"

#include "arena.h"
#include "look.h"
#include "report.h"
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define WAIT_MIN_NS 10000000u
#define STACK_BYTES (64u << 10)
#define SIGNALS_MAX 64
/* Not set while the handler runs, which may so decide that it isn't set after it either. */
#define STACK_FLAGS (int)(1u << 31) /* SS_AUTODISARM */

/* WAKE_GONE: for good, and until wake__init */
enum wake_state { WAKE_GONE, WAKE_NONE, WAKE_BEING_MADE, WAKE_THERE };

static struct {
	enum wake_state state;
	bool is_set; /* the timer has yet to expire */
	timer_t id;
	char *stack; /* above a page that can't be touched; NULL: not mapped yet */
} wake;

bool wake__is_main_thread(void)
{
	return syscall(SYS_gettid) == getpid();
}

static bool move_state(enum wake_state from, enum wake_state to)
{
	return __atomic_compare_exchange_n(&wake.state, &from, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static void expired(int signal, siginfo_t *info, void *context);

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == expired;
}

/* Only this library uses SIGURG, and this thread takes it. */
static bool is_signal_free(void)
{
	struct sigaction action;
	uint64_t blocked;

	if (signals__action(SIGURG, NULL, &action) ||
	    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, sizeof(blocked)))
		return false;
	return !(blocked >> (SIGURG - 1) & 1) &&
	       (is_ours(&action) ||
		(!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_DFL));
}

/* --- the stack --- */

static bool is_our_stack(const stack_t *stack)
{
	return wake.stack && !(stack->ss_flags & SS_DISABLE) && stack->ss_sp == wake.stack;
}

/* Without an alternate stack such a handler runs on the program's own stack. */
static bool has_handler_on_stack(void)
{
	struct sigaction action;
	int i;

	for (i = 1; i <= SIGNALS_MAX; i++) {
		if (i != SIGURG && !signals__action(i, NULL, &action) &&
		    action.sa_flags & SA_ONSTACK)
			return true;
	}
	return false;
}

static bool map_stack(void)
{
	char *start;

	if (wake.stack)
		return true;
	start = (char *)syscall(SYS_mmap, NULL, STACK_BYTES + ARENA_PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (start == MAP_FAILED)
		return false;
	if (syscall(SYS_mprotect, start, (size_t)ARENA_PAGE, PROT_NONE)) {
		syscall(SYS_munmap, start, STACK_BYTES + ARENA_PAGE);
		return false;
	}
	wake.stack = start + ARENA_PAGE;
	return true;
}

static bool set_stack(void)
{
	stack_t stack;

	if (syscall(SYS_sigaltstack, NULL, &stack))
		return false;
	if (is_our_stack(&stack)) /* a child's, which has it from its parent */
		return true;
	if (!(stack.ss_flags & SS_DISABLE) || has_handler_on_stack() || !map_stack())
		return false;
	stack = (stack_t){.ss_sp = wake.stack, .ss_flags = STACK_FLAGS, .ss_size = STACK_BYTES};
	return !syscall(SYS_sigaltstack, &stack, NULL);
}

void wake__drop_stack(void)
{
	stack_t stack;
	int saved = errno;

	if (!syscall(SYS_sigaltstack, NULL, &stack) && is_our_stack(&stack)) {
		stack = (stack_t){.ss_flags = SS_DISABLE};
		syscall(SYS_sigaltstack, &stack, NULL);
	}
	errno = saved;
}

/* --- the timer --- */

static void set_timer(uint64_t ns)
{
	uint64_t wait = ns < WAIT_MIN_NS ? WAIT_MIN_NS : ns;
	const struct itimerspec when = {
		.it_value = {(time_t)(wait / 1000000000u), (long)(wait % 1000000000u)}};

	if (ns && __atomic_load_n(&wake.state, __ATOMIC_SEQ_CST) == WAKE_THERE)
		wake.is_set = !timer_settime(wake.id, 0, &when, NULL);
}

/* A signal that is ignored is not pending any more. The C library would also set a flag. */
static void drop_signal(void)
{
	static const uint64_t none[8]; /* the kernel's own structure */
	struct sigaction action;

	if (!signals__action(SIGURG, NULL, &action) && is_ours(&action))
		syscall(SYS_rt_sigaction, SIGURG, none, NULL, sizeof(uint64_t));
}

void wake__stop(void)
{
	enum wake_state was = __atomic_load_n(&wake.state, __ATOMIC_SEQ_CST);
	int saved = errno;

	/* A child of vfork has its parent's memory, but no timer. */
	if (was == WAKE_GONE || !report__is_process())
		return;
	was = __atomic_exchange_n(&wake.state, WAKE_GONE, __ATOMIC_SEQ_CST);
	if (was == WAKE_THERE)
		timer_delete(wake.id);
	drop_signal();
	wake__drop_stack();
	errno = saved;
}

static void expired(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;
	int saved = errno;

	(void)signal;
	if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &wake) {
		/* Somebody else's: never again. */
		wake__stop();
		interrupted->uc_stack = (stack_t){.ss_flags = SS_DISABLE};
	} else {
		wake.is_set = false;
		set_timer(look__expired());
	}
	errno = saved;
}

static void make(void)
{
	struct sigaction action = {.sa_sigaction = expired,
				   .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
				 .sigev_signo = SIGURG,
				 .sigev_value = {.sival_ptr = &wake}};
	bool has_timer;

	if (!move_state(WAKE_NONE, WAKE_BEING_MADE))
		return;
	event._sigev_un._tid = getpid();
	sigfillset(&action.sa_mask);
	has_timer = set_stack() && !timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &wake.id);
	if (has_timer && !signals__action(SIGURG, &action, NULL) &&
	    move_state(WAKE_BEING_MADE, WAKE_THERE))
		return;
	__atomic_store_n(&wake.state, WAKE_GONE, __ATOMIC_SEQ_CST);
	if (has_timer)
		timer_delete(wake.id);
	drop_signal();
	wake__drop_stack();
}

void wake__after(uint64_t ns)
{
	if (!ns || wake.is_set || __atomic_load_n(&wake.state, __ATOMIC_SEQ_CST) == WAKE_GONE ||
	    !wake__is_main_thread() || !is_signal_free())
		return;
	make();
	set_timer(ns);
}

void wake__init(void)
{
	if (is_signal_free())
		wake.state = WAKE_NONE;
}

void wake__after_fork_child(void)
{
	wake.is_set = false;
	if (wake.state != WAKE_GONE)
		wake.state = WAKE_NONE;
}
