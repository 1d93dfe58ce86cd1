// SPDX-License-Identifier: MIT
/*
 * idle.c - allocates when it is asked to, one line of standard input after the other, and does
 * nothing else; it has no events of its own
 *
 *	alloc N		N times 77 bytes
 *	keep		a child of fork stays, for:
 *	child N		the child does so
 *	vfork N		a child of vfork does so, once a file is gone whose path is the argument
 *	bare N		a child of _Fork does so
 *	filter		a seccomp filter ends the process if it opens a file; libc is not asked
 *	told		as filter, and libc is asked
 *	fork		as filter, in a child, once the file of the argument is gone
 *	user N		the process becomes another user
 *	root		the process changes its root folder
 *	signal		a handler of SIGUSR1 does so once, on a stack of 8 KiB
 *	fill		the process gets as many mappings as it may have
 *	thread		as filter, for a new thread alone
 *	clearenv	the process removes its variables
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int kept[2][2]; /* pipes to the child, and back */

static void allocate(unsigned count)
{
	void *volatile memory;

	while (count--) {
		memory = malloc(77);
		free(memory);
	}
}

static void keep(void)
{
	unsigned count;

	if (pipe(kept[0]) || pipe(kept[1]))
		exit(2);
	if (fork())
		return;
	close(kept[0][1]);
	while (read(kept[0][0], &count, sizeof(count)) == sizeof(count)) {
		allocate(count);
		if (write(kept[1][1], &count, sizeof(count)) < 0)
			break;
	}
	_exit(0);
}

static void ask_child(unsigned count)
{
	if (write(kept[0][1], &count, sizeof(count)) < 0 ||
	    read(kept[1][0], &count, sizeof(count)) != sizeof(count))
		exit(2);
}

/* Functions of the C library would be events. */
static long call(long number, long a, long b, const void *c)
{
	long result = -1;

#if defined(__x86_64__)
	__asm__ __volatile__("syscall"
			     : "=a"(result)
			     : "0"(number), "D"(a), "S"(b), "d"(c)
			     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register const void *x2 __asm__("x2") = c;

	__asm__ __volatile__("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	result = x0;
#endif
	return result;
}

static void wait_for_end_of(const char *path)
{
	while (path && !call(SYS_faccessat, AT_FDCWD, (long)path, NULL))
		;
}

static void end_child_with(unsigned count, const char *path)
{
	wait_for_end_of(path);
	allocate(count);
	_exit(0);
}

/* Set it by a function that pem sees, or by one that it does not see. */
static void set_filter(int is_told)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = 4, .filter = code};

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (is_told ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
		    : call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		exit(3);
}

/* As the C library calls it, in daemon() for one: without an event of its own. */
extern pid_t __fork(void);

static pid_t fork_filtered(const char *path)
{
	pid_t pid;

	wait_for_end_of(path);
	pid = __fork();
	if (pid)
		return pid;
	set_filter(0);
	allocate(1);
	_exit(0);
}

static void handle(int number)
{
	(void)number;
	allocate(1);
}

static void use_small_stack(void)
{
	struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK | SA_RESTART};
	char *memory = mmap(NULL, 16384, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = {.ss_sp = memory + 8192, .ss_size = 8192};

	if (mprotect(stack.ss_sp, stack.ss_size, PROT_READ | PROT_WRITE) ||
	    sigaltstack(&stack, NULL) || sigaction(SIGUSR1, &action, NULL))
		exit(6);
}

static void fill(void)
{
	const int protection[] = {PROT_NONE, PROT_READ};
	unsigned i = 0;

	while (mmap(NULL, 4096, protection[i++ % 2], MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED)
		;
}

static volatile int is_filtered;

static void *filtered_thread(void *unused)
{
	set_filter(0);
	is_filtered = 1;
	while (1)
		pause();
	return unused;
}

static void start_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, filtered_thread, NULL))
		exit(6);
	while (!is_filtered)
		usleep(1000);
}

static void do_it(const char *what, unsigned count, const char *path)
{
	int status = 0;
	pid_t pid = 0;

	if (!strcmp(what, "alloc"))
		allocate(count);
	else if (!strcmp(what, "keep"))
		keep();
	else if (!strcmp(what, "child"))
		ask_child(count);
	else if (!strcmp(what, "vfork") && !(pid = vfork()))
		end_child_with(count, path);
	else if (!strcmp(what, "bare") && !(pid = _Fork()))
		end_child_with(count, NULL);
	else if (!strcmp(what, "filter") || !strcmp(what, "told"))
		set_filter(!strcmp(what, "told"));
	else if (!strcmp(what, "fork"))
		pid = fork_filtered(path);
	else if (!strcmp(what, "root") && chroot("/"))
		exit(4);
	else if (!strcmp(what, "user") && setuid(count))
		exit(4);
	else if (!strcmp(what, "signal"))
		use_small_stack();
	else if (!strcmp(what, "fill"))
		fill();
	else if (!strcmp(what, "thread"))
		start_thread();
	else if (!strcmp(what, "clearenv"))
		clearenv();
	if (pid > 0 && (waitpid(pid, &status, 0) < 0 || status))
		exit(5);
}

int main(int argc, char **argv)
{
	char line[64], what[16];
	unsigned count;

	/* Their buffers are allocated now. */
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		count = 0;
		if (sscanf(line, "%15s %u", what, &count) < 1)
			return 1;
		do_it(what, count, argc > 1 ? argv[1] : NULL);
		puts("ready");
		fflush(stdout);
	}
	return 0;
}
