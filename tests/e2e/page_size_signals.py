#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
libpem-page-size.so and signals: it looks for memory as the main thread uses processor time, and a program finds nothing of that

Each program but those that only compute prints the same alone and with directives.
"""
from page_sites import Directives, calls, program
from tap import equal, run, run_all, skip, test

COMMON = r"""
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <ucontext.h>
/* Use processor time of this thread, and call nothing of the library's. */
static void compute(int ms)
{
	struct timespec begin, now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do {
		for (volatile int i = 0; i < 10000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}
/* Something to look for, by and by: most of it is not there. */
static void listed(void) { char *block = hot(64 << 20); block[0] = 1; KEEP; }
/* AnonHugePages of the process in KiB, read without a call of the library's. */
static long large_kib(void)
{
	static char text[4096];
	int fd = open("/proc/self/smaps_rollup", O_RDONLY);
	ssize_t got = read(fd, text, sizeof(text) - 1);
	char *at;
	close(fd);
	text[got > 0 ? got : 0] = 0;
	at = strstr(text, "AnonHugePages:");
	return at ? atol(at + 14) : -1;
}
"""


def build(source):
    return program(COMMON + source)


def directives_for(path):
    return Directives("heap " + calls(path, "hot", "malloc")[0])


def same(source, prints=None):
    "Run a program alone and with directives: the same end, and the same words."
    path = build(source)
    alone = run([path])
    if prints is not None:
        equal(alone, (0, prints, ""), "alone")
    equal(run([path], env=directives_for(path).env()), alone, "with directives")


COMPUTES = r"""
int main(void)
{
	size_t n = 16 << 20;
	char *table = hot(n);
	memset(table, 1, n);
	for (int i = 0; i < 400 && large_kib() < 12 << 10; i++)
		compute(10);
	printf("%d\n", large_kib() >= 12 << 10);
	return 0;
}"""


@test
def computes():
    "a program that only computes once its memory is filled gets large pages"
    path = build(COMPUTES)
    directives = directives_for(path)
    equal(directives.run([path]), "1\n", "12 MiB are large")


@test
def blocked():
    "a program that blocks all signals and computes has none pending: by sigpending, sigtimedwait, signalfd, ppoll"
    same(r"""
int main(void)
{
	struct timespec none = {0, 0};
	struct pollfd wait = {-1, 0, 0};
	sigset_t all, old, pending;
	int fd;
	listed();
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &old);
	compute(100);
	fd = signalfd(-1, &all, SFD_NONBLOCK);
	wait = (struct pollfd){fd, POLLIN, 0};
	printf("%d ", poll(&wait, 1, 0));
	printf("%d ", ppoll(NULL, 0, &none, &old));
	printf("%d ", sigpending(&pending) || sigismember(&pending, SIGURG));
	printf("%d\n", sigtimedwait(&all, NULL, &none));
	return 0;
}""", "0 0 0 -1\n")


@test
def blocked_later():
    "nor has one that blocks them long after, while a signal may be on its way"
    same(r"""
int main(void)
{
	sigset_t all, old;
	int found = 0;
	struct timespec none = {0, 0};
	listed();
	compute(60);
	sigfillset(&all);
	for (int i = 0; i < 10; i++) {
		pthread_sigmask(SIG_BLOCK, &all, &old);
		compute(30);
		found += ppoll(NULL, 0, &none, &old) != 0;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		compute(10);
	}
	printf("%d %d\n", found, sigtimedwait(&all, NULL, &none));
	return 0;
}""", "0 -1\n")


@test
def asked():
    "a program that asks for the handler of SIGURG finds its own, and its alternate stack"
    same(r"""
static void handler(int number) { (void)number; }
int main(void)
{
	struct sigaction action;
	stack_t stack;
	listed();
	compute(50);
	printf("%d ", sigaltstack(NULL, &stack) || stack.ss_flags != SS_DISABLE);
	printf("%d ", sigaction(SIGURG, NULL, &action) || action.sa_handler != SIG_DFL || action.sa_flags);
	printf("%d ", signal(SIGURG, handler) == SIG_DFL);
	compute(50);
	printf("%d\n", signal(SIGURG, SIG_IGN) == handler);
	return 0;
}""", "0 0 1 1\n")


@test
def sent():
    "SIGURG that somebody sends is ignored, and so is the next"
    same(r"""
int main(void)
{
	struct timespec pause = {0, 1000};
	stack_t stack;
	listed();
	compute(50);
	for (int i = 0; i < 2; i++)
		raise(SIGURG);
	/* Not asked by the library's function, which would put it away. */
	printf("%d ", syscall(SYS_sigaltstack, NULL, &stack) || stack.ss_flags != SS_DISABLE);
	printf("%d\n", nanosleep(&pause, NULL));
	return 0;
}""", "0 0\n")


@test
def handler_on_stack():
    "a handler that asks for an alternate stack and sets none has the usual stack"
    for when in ("before", "after"):
        same(r"""
static size_t at;
static void handler(int number) { volatile char here[256 << 10]; (void)number; here[0] = 1; at = (size_t)here; }
int main(void)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	char here;
	if (%d)
		sigaction(SIGUSR1, &action, NULL);
	listed();
	compute(50);
	if (!%d)
		sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	printf("%%d\n", (size_t)&here - at < 1 << 20);
	return 0;
}""" % (when == "before", when == "before"), "1\n")


CONFINED = r"""
#define ALLOW(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
int main(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_clock_gettime),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog filter = {sizeof(code) / sizeof(*code), code};
	listed();
	compute(%d);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || %s)
		return 3;
	compute(200);
	write(1, "done\n", 5);
	_exit(0);
}"""


@test
def confined():
    "a program that allows itself no return from handlers (seccomp) lives, whether it computed before or not"
    if run([build("int main(void) { return prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0; }")])[0]:
        skip("this kernel has no seccomp")
    for ms in (0, 50):
        for call in ("prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)", "syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter)"):
            same(CONFINED % (ms, call), "done\n")


@test
def coroutine():
    "nothing is written below the small stack of a coroutine"
    same(r"""
static char memory[64 << 10];
static ucontext_t home, there;
static void work(void) { compute(200); }
int main(void)
{
	size_t start = 32 << 10, changed = 0;
	listed();
	compute(1); /* the dynamic linker finds the clock on this stack */
	memset(memory, 0x5a, start);
	getcontext(&there);
	there.uc_stack = (stack_t){.ss_sp = memory + start, .ss_size = 2048};
	there.uc_link = &home;
	makecontext(&there, work, 0);
	swapcontext(&home, &there);
	for (size_t i = 0; i < start; i++)
		changed += memory[i] != 0x5a;
	printf("%zu\n", changed);
	return 0;
}""", "0\n")


@test
def errno_at_the_start():
    "errno is 0 when a program starts"
    same(r"""
#include <errno.h>
static int early;
__attribute__((constructor)) static void begin(void) { early = errno; }
int main(void)
{
	int at_start = errno;

	printf("%d %d\n", early, at_start);
	return 0;
}""", "0 0\n")


run_all()
