#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
What pem does inside of programs that watch closely: errno, dlerror, the C library's own calls and a thread's memory are as
without it.

Not here: programs that bring an allocator (libc_allocators.py), what is recorded (libc_programs.py).
"""
import os

from preload import compile_program, count, record, recorded_by_all
from tap import equal, run_all, skip, test, tmp

@test
def threads_that_start_at_once():
    "two hundred threads made before any of them runs all get their function and argument"
    path = compile_program(r"""
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
static pthread_barrier_t all;
static long sum;
static void *work(void *arg)
{
	pthread_barrier_wait(&all);
	__atomic_add_fetch(&sum, (long)arg, __ATOMIC_RELAXED);
	return arg;
}
int main(void)
{
	pthread_t threads[200];
	pthread_attr_t small;
	long i;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&all, NULL, 200);
	errno = 77;
	for (i = 0; i < 200; i++)
		pthread_create(&threads[i], &small, work, (void *)i);
	printf("errno %d\n", errno);
	for (i = 0; i < 200; i++)
		pthread_join(threads[i], NULL);
	printf("%ld\n", sum);
	return 0;
}""")
    equal(recorded_by_all(path), "errno 77\n19900\n", "what it says")
    equal(count(record([path], "APP::Libc::ThreadStart")[1], "ThreadStart"), 200, "threads that show")


@test
def own_getenv_with_a_lock():
    "a program whose own getenv holds a lock while it raises its first events does not wait for itself"
    path = compile_program(r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *find(const char *name)
{
	size_t length = strlen(name);
	char **v, *found = NULL;

	pthread_mutex_lock(&mutex);
	for (v = environ; !found && v && *v; v++)
		if (!strncmp(*v, name, length) && (*v)[length] == '=')
			found = *v + length + 1;
	pthread_mutex_unlock(&mutex);
	return found;
}
char *getenv(const char *name) { return find(name); }
char *secure_getenv(const char *name) { return find(name); }
__attribute__((constructor)) static void early(void) { getenv("NOTHING"); }
int main(void)
{
	int status;

	pthread_mutex_lock(&mutex);
	if (fork() == 0) {
		free(malloc(1));
		_exit(3);
	}
	pthread_mutex_unlock(&mutex);
	wait(&status);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}""", flags=["-rdynamic"])
    equal(recorded_by_all(path), "3\n", "what it says")


# Each call succeeds, and leaves errno and what dlerror is about to say alone. In the child pem can make no pool.
ERRNO = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static const struct timespec moment = {0, 1000};

#define KEEP(call) do { \
	errno = 77; \
	call; \
	if (errno != 77) \
		printf("line %d: %s: errno %d\n", __LINE__, #call, errno); \
} while (0)

static void say_dlerror(const char *where)
{
	const char *text = dlerror();

	if (!text || !strstr(text, "no_such_name"))
		printf("dlerror %s: %s\n", where, text ? text : "nothing");
}

static void early(void)
{
	dlsym(RTLD_DEFAULT, "no_such_name");
	KEEP(close(dup(0)));
	KEEP(usleep(1));
	say_dlerror("early");
}
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = early;

static void at_end(void *arg) { if (errno != 88) printf("errno at a thread's end: %d\n", errno); errno = 88; }
static pthread_key_t first, second;
static void *work(void *arg) { pthread_setspecific(first, arg); pthread_setspecific(second, arg); errno = 88; return arg; }
static void nothing(void) { }

static void all(void)
{
	char *block, byte = 0;
	int pair[2], fd, child, status;
	pthread_t thread;
	FILE *file;

	dlsym(RTLD_DEFAULT, "no_such_name");
	KEEP(block = malloc(1000));
	KEEP(block = realloc(block, 2000));
	KEEP(free(block));
	KEEP(block = calloc(10, 10));
	KEEP(free(block));
	KEEP(posix_memalign((void **)&block, 64, 64));
	KEEP(free(block));
	KEEP(block = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	KEEP(block = mremap(block, 8192, 16384, MREMAP_MAYMOVE));
	KEEP(munmap(block, 16384));
	KEEP(sbrk(0));
	KEEP(pthread_mutex_lock(&mutex));
	KEEP(pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &moment));
	KEEP(pthread_cond_signal(&cond));
	KEEP(pthread_cond_broadcast(&cond));
	KEEP(pthread_mutex_unlock(&mutex));
	KEEP(pthread_mutex_trylock(&mutex));
	KEEP(pthread_mutex_unlock(&mutex));
	KEEP(pthread_rwlock_rdlock(&rwlock));
	KEEP(pthread_rwlock_unlock(&rwlock));
	KEEP(pthread_rwlock_wrlock(&rwlock));
	KEEP(pthread_rwlock_unlock(&rwlock));
	sem_init(&semaphore, 0, 0);
	KEEP(sem_post(&semaphore));
	KEEP(sem_wait(&semaphore));
	KEEP(pthread_create(&thread, NULL, work, &thread));
	KEEP(pthread_join(thread, NULL));
	KEEP(fd = open("/dev/zero", O_RDWR));
	KEEP(read(fd, &byte, 1));
	KEEP(write(fd, &byte, 1));
	KEEP(lseek(fd, 0, SEEK_SET));
	KEEP(dup2(fd, fd));
	KEEP(poll(&(struct pollfd){fd, POLLIN}, 1, 0));
	KEEP(close(fd));
	KEEP(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	KEEP(send(pair[0], &byte, 1, 0));
	KEEP(recv(pair[1], &byte, 1, 0));
	KEEP(close(pair[0]));
	KEEP(close(pair[1]));
	KEEP(file = fopen("/dev/zero", "r"));
	KEEP(fread(&byte, 1, 1, file));
	KEEP(fclose(file));
	KEEP(nanosleep(&moment, NULL));
	KEEP(usleep(1));
	KEEP(child = fork());
	if (child == 0)
		_exit(0);
	KEEP(waitpid(child, &status, 0));
	KEEP(posix_spawn(&child, "/bin/true", NULL, NULL, (char *[]){"true", NULL}, environ));
	KEEP(wait(&status));
	say_dlerror("in the end");
}

int main(void)
{
	struct rlimit none = {4, 4};
	int status;

	pthread_atfork(nothing, nothing, nothing);
	pthread_key_create(&first, at_end);
	pthread_key_create(&second, at_end);
	setvbuf(stdout, NULL, _IONBF, 0);
	all();
	if (fork() == 0) {
		struct rlimit little = {1000, 1000};

		/* pem can make neither a pool nor a control file. */
		setrlimit(RLIMIT_FSIZE, &little);
		all();
		if (fork() == 0) {
			close(3);
			setrlimit(RLIMIT_NOFILE, &none);
			KEEP(free(malloc(10)));
			KEEP(pthread_mutex_lock(&mutex));
			_exit(0);
		}
		wait(&status);
		_exit(0);
	}
	wait(&status);
	puts("done");
	return 0;
}
"""


@test
def errno_and_dlerror_are_the_programs():
    "calls that raise events leave errno and dlerror alone: the first ones, in threads, children, and where no pool can be made"
    out = recorded_by_all(compile_program(ERRNO, flags=["-ldl"]))
    equal(out, "done\n", "what it says")


@test
def child_with_memory_of_its_own_making():
    "a child of clone whose thread-local memory is all zero, as that of Chromium's sandbox, writes, execs and exits"
    out = recorded_by_all(compile_program(r"""
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char stack[65536], memory[65536];
static int child(void *arg)
{
	write(1, "child\n", 6);
	if (arg)
		execv(arg, (char *[]){"true", NULL});
	_exit(7);
}
static void run(const char *path)
{
	int status, flags = CLONE_FS | CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD;

	memset(memory, 0, sizeof(memory));
	waitpid(clone(child, stack + sizeof(stack), flags, (void *)path, NULL, memory + sizeof(memory) / 2), &status, 0);
	printf("status %x\n", status);
}
int main(void)
{
	setvbuf(stdout, NULL, _IONBF, 0);
	run(NULL);
	run("/bin/true");
	run("/no/such/program");
	return 0;
}"""))
    equal(out, "child\nstatus 700\nchild\nstatus 0\nchild\nstatus 700\n", "what it says")


# Has definitions of its own of what libpem asks the kernel for, and says how often they were called. Itself it never does.
OWN_CALLS = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int calls;
static const char *last = "none";
#define OWN(name, number, ...) { calls++; last = #name; return syscall(number, __VA_ARGS__); }
int open(const char *p, int flags, ...)
{
	va_list more;

	va_start(more, flags);
	OWN(open, SYS_openat, AT_FDCWD, p, flags, va_arg(more, int))
}
int openat(int d, const char *p, int flags, ...)
{
	va_list more;

	va_start(more, flags);
	OWN(openat, SYS_openat, d, p, flags, va_arg(more, int))
}
int close(int fd) OWN(close, SYS_close, fd)
long read(int fd, void *to, unsigned long n) OWN(read, SYS_read, fd, to, n)
int access(const char *p, int mode) OWN(access, SYS_faccessat, AT_FDCWD, p, mode)
int mkdir(const char *p, unsigned mode) OWN(mkdir, SYS_mkdirat, AT_FDCWD, p, mode)
int rename(const char *a, const char *b) OWN(rename, SYS_renameat, AT_FDCWD, a, AT_FDCWD, b)
int unlink(const char *p) OWN(unlink, SYS_unlinkat, AT_FDCWD, p, 0)
int stat(const char *p, void *st) OWN(stat, SYS_newfstatat, AT_FDCWD, p, st, 0)
int lstat(const char *p, void *st) OWN(lstat, SYS_newfstatat, AT_FDCWD, p, st, AT_SYMLINK_NOFOLLOW)
int fstat(int fd, void *st) OWN(fstat, SYS_fstat, fd, st)
int flock(int fd, int how) OWN(flock, SYS_flock, fd, how)
int ftruncate(int fd, long n) OWN(ftruncate, SYS_ftruncate, fd, n)
void *mmap(void *a, unsigned long n, int p, int f, int fd, long o) { calls++; last = "mmap"; return (void *)syscall(SYS_mmap, a, n, p, f, fd, o); }
int munmap(void *a, unsigned long n) OWN(munmap, SYS_munmap, a, n)
int mprotect(void *a, unsigned long n, int how) OWN(mprotect, SYS_mprotect, a, n, how)
int madvise(void *a, unsigned long n, int how) OWN(madvise, SYS_madvise, a, n, how)
int getpid(void) OWN(getpid, SYS_getpid, 0)
int getppid(void) OWN(getppid, SYS_getppid, 0)
unsigned geteuid(void) OWN(geteuid, SYS_geteuid, 0)

int nanosleep(const struct timespec *t, struct timespec *left) OWN(nanosleep, SYS_nanosleep, t, left)

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *arg)
{
	int i;

	for (i = 0; i < 20000; i++) {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
		free(malloc(100));
	}
	return arg;
}
int main(void)
{
	pthread_t thread;
	int status;

	work(NULL);
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	fflush(stdout);
	if (fork() == 0) {
		work(NULL);
		printf("in the child: %d, last %s\n", calls, last);
		fflush(stdout);
		_exit(0);
	}
	wait(&status);
	printf("%d, last %s\n", calls, last);
	return 0;
}
"""


@test
def program_with_calls_of_its_own():
    "a program that defines open, mmap and others itself is not called by libpem, which asks the kernel"
    out = recorded_by_all(compile_program(OWN_CALLS))
    equal(out, "in the child: 0, last none\n0, last none\n", "what it says")


CANCELLED = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static void *work(void *unused)
{
	char *arguments[] = {"x", NULL};

	pthread_cancel(pthread_self());
	execve("/", arguments, environ); /* fails */
	return "went on";
}
int main(void)
{
	void *result;
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, &result);
	puts(result == PTHREAD_CANCELED ? "cancelled" : result);
	return 0;
}"""


@test
def exec_is_no_cancellation_point():
    "a thread that is to be cancelled is not in execve"
    equal(recorded_by_all(compile_program(CANCELLED)), "went on\n", "what it says")


# It has given up rights, so that the libraries of what it starts are looked for.
SMALL_STACK = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
static ucontext_t caller, callee;
static char stack[65536];
static void work(void)
{
	char *arguments[] = {"x", NULL};

	execve("/nowhere", arguments, environ); /* fails */
}
int main(void)
{
	size_t i;

	free(malloc(1));
	if (setgid(getgid()))
		return 3;
	memset(stack, 1, sizeof(stack));
	getcontext(&callee);
	callee.uc_stack.ss_sp = stack;
	callee.uc_stack.ss_size = sizeof(stack);
	callee.uc_link = &caller;
	makecontext(&callee, work, 0);
	swapcontext(&caller, &callee);
	for (i = 0; i < sizeof(stack) && stack[i] == 1; i++)
		;
	if (sizeof(stack) - i < 4096)
		puts("small");
	else
		printf("%zu bytes\n", sizeof(stack) - i);
	return 0;
}"""


@test
def exec_on_a_small_stack():
    "execve takes little of the stack of a handler, or of a child of clone"
    equal(record([compile_program(SMALL_STACK)], "APP::Libc::Malloc")[0], "small\n", "what it takes")


# Reading the clock is SIGSEGV in between.
CLOCKLESS = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *work(void *arg) { free(malloc(10)); return arg; }
static void live(void)
{
	pthread_t thread;
	int status;
	pid_t child;

	work(NULL);
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	child = fork();
	if (!child) {
		free(malloc(10));
		_exit(setgid(getgid()) || (fork() ? wait(&status) < 0 || status : 0) ? 1 : 0);
	}
	waitpid(child, &status, 0);
	printf("child %d\n", status);
}
int main(void)
{
	int i;

	free(malloc(10));
	for (i = 0; i < 2; i++) {
		if (i ? syscall(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV) : prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0))
			return 0; /* not this processor's */
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
		live();
		if (i ? syscall(SYS_prctl, PR_SET_TSC, PR_TSC_ENABLE) : prctl(PR_SET_TSC, PR_TSC_ENABLE, 0, 0, 0))
			return 1;
		free(malloc(77));
	}
	live();
	return 0;
}"""


@test
def without_a_clock():
    "a program that may not read the cycle counter lives, and is recorded where it may"
    program = compile_program(CLOCKLESS)
    if "child 0\n" * 3 != recorded_by_all(program):
        skip("this processor's cycle counter can't be denied to a thread")
    events = record([program], "APP::Libc::Malloc")[1]
    equal(count(events, "Malloc", size=77), 2, "those after")
    equal(count(events, "Malloc", size=10), 1 + 3, "those before, and of the thread and child after")


# argv[1] is of 32 bits: pem's libraries would be taken out of its environment. Each start fails, as what it is given is too large.
TOO_LARGE = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define VARIABLES 3000000
#define BYTES 20000000
int main(int argc, char **argv)
{
	char **all = calloc(VARIABLES + 1, sizeof(*all)), *path = malloc(BYTES + 1);
	char *arguments[] = {"x", NULL}, *preload = getenv("LD_PRELOAD");
	int folder = open("/", O_RDONLY | O_DIRECTORY), i;

	for (i = 0; i < VARIABLES; i++)
		all[i] = "A=B";
	if (preload)
		all[0] = preload - strlen("LD_PRELOAD=");
	memset(path, 'x', BYTES);
	path[BYTES] = 0;
	execve(argv[1], arguments, all);
	printf("environment: %s\n", strerror(errno));
	execveat(folder, path, arguments, environ, 0);
	printf("path: %s\n", strerror(errno));
	return 0;
}"""


@test
def starts_that_are_too_large():
    "a program that hands in a huge environment or path to start a program gets the kernel's error"
    foreign = tmp() + "/foreign"
    with open(foreign, "wb") as file:
        file.write(b"\x7fELF\x01\x01\x01".ljust(600, b"\0"))
    os.chmod(foreign, 0o755)
    out = record([compile_program(TOO_LARGE), foreign], "APP::Libc::Malloc")[0]
    equal(out, "environment: Argument list too long\npath: File name too long\n", "what it says")


run_all()
