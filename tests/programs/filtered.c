/* SPDX-License-Identifier: MIT */
/*
 * filtered.c - a program that allocates memory before and after it takes a seccomp filter, which
 * kills it for any call that it does not need itself
 *
 * Use: filtered HOW WHAT COUNT. HOW: prctl, syscall, tsync, strict, raw (instructions of its own),
 * harmless (a filter that refuses nothing but reboot), second (after one that refuses nothing but
 * process_vm_readv), null (asks whether the kernel knows filters), errno and errno-raw (as prctl
 * and raw, but what is refused fails with EPERM). WHAT: alone, threads (they run already), later
 * (threads that come later), fork, exec (itself, in WHAT alone, having taken the filter before),
 * no-madvise, wait (up to two seconds before it goes on), clone (a child of clone takes the
 * filter).
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 3

static long count;
static int go;

static void allocate(void)
{
	void *volatile block;
	long i;

	for (i = 0; i < count; i++) {
		block = malloc((size_t)(16 + i % 64));
		free(block);
	}
}

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(3);
}

/* --- the filter --- */

static const int of_malloc[] = {SYS_brk,      SYS_mmap,         SYS_munmap,   SYS_mremap,
				SYS_mprotect, SYS_futex,        SYS_write,    SYS_exit_group,
				SYS_exit,     SYS_rt_sigreturn, SYS_getrandom};
static const int of_threads[] = {
	SYS_clone,          SYS_clone3,       SYS_set_robust_list,  SYS_rseq,
	SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_sched_getaffinity};
static const int of_fork[] = {SYS_clone, SYS_clone3, SYS_set_robust_list, SYS_rseq, SYS_wait4};
/* What the loader and the C library do as a program starts. */
static const int of_exec[] = {SYS_execve,          SYS_openat,  SYS_read,      SYS_close,
			      SYS_newfstatat,      SYS_pread64, SYS_prlimit64, SYS_set_tid_address,
			      SYS_set_robust_list, SYS_rseq,    SYS_fstat};

#ifdef SYS_arch_prctl
static const int of_x86_exec[] = {SYS_access, SYS_arch_prctl};
#endif

static struct sock_filter code[128];
static unsigned short length;

static void put(unsigned short op, unsigned char jt, unsigned char jf, unsigned k)
{
	code[length++] = (struct sock_filter){op, jt, jf, k};
}

static void allow(const int *calls, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		put(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (unsigned)calls[i]);
		put(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	}
}

#define ALLOW(calls) allow(calls, sizeof(calls) / sizeof(calls[0]))

static void begin(void)
{
	length = 0;
	put(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
}

static void compose_refusing(unsigned call)
{
	begin();
	put(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call);
	put(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS);
	put(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
}

static void compose(const char *how, const char *what)
{
	static const int madvise_too[] = {SYS_madvise};

	if (!strcmp(how, "harmless")) {
		compose_refusing(SYS_reboot);
		return;
	}
	begin();
	ALLOW(of_malloc);
	if (strcmp(what, "no-madvise"))
		ALLOW(madvise_too);
	if (!strcmp(what, "later") || !strcmp(what, "threads"))
		ALLOW(of_threads);
	if (!strcmp(what, "fork"))
		ALLOW(of_fork);
	if (!strcmp(what, "exec"))
		ALLOW(of_exec);
#ifdef SYS_arch_prctl
	if (!strcmp(what, "exec"))
		ALLOW(of_x86_exec);
#endif
	put(BPF_RET | BPF_K, 0, 0,
	    !strncmp(how, "errno", 5) ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_KILL_PROCESS);
}

static long raw_call(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;

	__asm__ __volatile__("syscall"
			     : "=a"(result)
			     : "a"(number), "D"(a), "S"(b), "d"(c)
			     : "rcx", "r11", "memory");
	return result;
#else
	return syscall(number, a, b, c);
#endif
}

static void take_filter(const char *how)
{
	struct sock_fprog program = {length, code};
	long result;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (!strcmp(how, "strict"))
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	else if (!strcmp(how, "prctl") || !strcmp(how, "harmless") || !strcmp(how, "errno"))
		result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
	else if (!strcmp(how, "raw") || !strcmp(how, "errno-raw"))
		result = raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program);
	else
		result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
				 strcmp(how, "tsync") ? 0 : SECCOMP_FILTER_FLAG_TSYNC, &program);
	if (result)
		_exit(4);
}

/* --- the work --- */

static void *work(void *unused)
{
	(void)unused;
	allocate();
	while (!__atomic_load_n(&go, __ATOMIC_ACQUIRE))
		;
	allocate();
	return NULL;
}

static void start_threads(pthread_t *threads)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, work, NULL))
			_exit(5);
	}
}

static void join_threads(const pthread_t *threads)
{
	int i;

	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

/* A child's child has none that is ready for it. */
static void fork_some(void)
{
	int i, status;
	pid_t child;

	for (i = 0; i < THREADS; i++) {
		child = fork();
		if (!child) {
			allocate();
			say("child\n");
			exit(i);
		}
		if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != i)
			_exit(6);
	}
}

/* No pthread_atfork handler is told of the child. */
static int clone_one(const char *how)
{
	long child = syscall(SYS_clone, SIGCHLD, 0L, 0L, 0L, 0L);
	int status;

	if (!child) {
		compose(how, "clone");
		take_filter(how);
		allocate();
		say("done\n");
		_exit(7);
	}
	if (waitpid((pid_t)child, &status, 0) != child || !WIFEXITED(status))
		return 9;
	return WEXITSTATUS(status);
}

/* Without a system call. */
static void wait_a_second(void)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (now.tv_sec - start.tv_sec < 2);
}

int main(int argc, char **argv)
{
	const char *how, *what;
	pthread_t threads[THREADS];

	if (argc != 4)
		return 2;
	how = argv[1];
	what = argv[2];
	count = atol(argv[3]);
	allocate();
	if (!strcmp(how, "none"))
		goto after;
	if (!strcmp(how, "null")) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) != -1 || errno != EFAULT)
			return 4;
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 8L) != -1 || errno != EFAULT)
			return 4;
		goto after;
	}
	if (!strcmp(what, "threads"))
		start_threads(threads);
	if (!strcmp(what, "clone"))
		return clone_one(how);
	if (!strcmp(how, "second")) {
		compose_refusing(SYS_process_vm_readv);
		take_filter("prctl");
	}
	compose(how, what);
	take_filter(how);
	if (!strcmp(what, "wait"))
		wait_a_second();
	if (!strcmp(what, "exec")) {
		execve(argv[0], (char *[]){argv[0], "none", "alone", argv[3], NULL}, environ);
		return 8;
	}
	if (!strcmp(what, "later"))
		start_threads(threads);
	__atomic_store_n(&go, 1, __ATOMIC_RELEASE);
	if (!strcmp(what, "threads") || !strcmp(what, "later"))
		join_threads(threads);
	if (!strcmp(what, "fork"))
		fork_some();
after:
	allocate();
	say("done\n");
	if (!strcmp(how, "strict"))
		syscall(SYS_exit, 7);
	return 7;
}
