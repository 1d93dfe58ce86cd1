#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs that bring an allocator of their own: pem does nothing in them that the allocator, its locks, errno, dlerror or
the loader could notice.

Not here: what is recorded of unmodified programs (libc_programs.py), unmodified programs themselves.
"""
import glob
import os
import subprocess

from preload import LIBC, PRELOAD, compile_program, count, need_preload, record
from tap import BUILD, PEM, equal, need, run, run_all, skip, test, tmp

# As Chromium's: a spin lock that is not recursive, taken before any constructor runs, and inside of it calls of the C
# library's which pem stands in front of. Who comes in again inside of the lock would wait for ever: here it says so.
ALLOCATOR = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int lock, calls;
static __thread int inside __attribute__((tls_model("initial-exec")));
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char pool[64 << 20];
static size_t used;

static void enter(void)
{
	static const char text[] = "the allocator was called by what it calls\n";

	if (inside++) {
		write(2, text, sizeof(text) - 1);
		_exit(99);
	}
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		;
	int saved = errno;
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	sched_yield();
	sysconf(_SC_PAGESIZE);
	lseek(-1, 0, SEEK_CUR);
	munmap(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096);
	errno = saved;
}

static void leave(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	inside--;
}

void *malloc(size_t n)
{
	char *block;

	enter();
	calls++;
	block = pool + used + 16;
	memcpy(block - 16, &n, sizeof(n));
	used += (n + 31) & ~15ul;
	if (used > sizeof(pool) - 64)
		abort();
	leave();
	return block;
}

void free(void *block)
{
	enter();
	calls += block != NULL; /* the C library frees nothing for each library that has variables of threads */
	leave();
}

void *calloc(size_t a, size_t b) { return malloc(a * b); } /* never given out twice: all zero */

void *realloc(void *old, size_t n)
{
	size_t size = 0;
	void *block = malloc(n);

	if (old)
		memcpy(&size, (char *)old - 16, sizeof(size));
	memcpy(block, old ? old : "", size < n ? size : n);
	return block;
}

void *memalign(size_t a, size_t n)
{
	char *block = malloc(n + a);

	return (void *)(((unsigned long)block + a - 1) & -a);
}

void *aligned_alloc(size_t a, size_t n) { return memalign(a, n); }
int posix_memalign(void **block, size_t a, size_t n) { *block = memalign(a, n); return 0; }
size_t malloc_usable_size(void *block) { return 0; }

static void very_early(void) { free(malloc(10)); }
__attribute__((section(".preinit_array"), used)) static void (*preinit)(void) = very_early;
__attribute__((constructor(101))) static void early(void) { free(malloc(10)); }
"""

BUSY = ALLOCATOR + r"""
static void *work(void *arg)
{
	char *text;
	int i;

	for (i = 0; i < 100; i++) {
		text = strdup("hello");
		free(text);
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
	return arg;
}

int main(void)
{
	int before = calls, i, status;
	pthread_t threads[4];

	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	if (fork() == 0) {
		work(NULL);
		_exit(calls - before == 5);
	}
	wait(&status);
	i = calls - before;
	printf("%d calls of the allocator, status %d\n", i, status);
	return 0;
}
"""


def recorded_by_all(path, env=None):
    """A program alone, and under each of pem's verbs that start programs: what it says must be the same."""
    need_preload()
    alone = run([path], env=env)
    equal(alone[0], 0, "exit status alone, with " + alone[2])
    trace = tmp() + "/trace"
    for verb in (["record", "-q", "-e", "APP::*", "-o", trace], ["stat", "-e", "APP::*", "-o", tmp() + "/stat"], ["run"]):
        got = run([PEM] + verb + ["--", path], env=env, timeout=30)
        equal(got[:2], alone[:2], "under pem %s, with %s" % (verb[0], got[2]))
    rc, out, err = run([PEM, "report", trace])
    equal(rc, 0, "what pem report says of the balance, with " + out + err)
    return alone[1], trace


@test
def allocator_with_a_spin_lock():
    "a program whose allocator calls the C library inside of a spin lock runs the same, and pem never calls it"
    out, _ = recorded_by_all(compile_program(BUSY))
    assert " calls of the allocator, status 0\n" in out, out



# Takes the keys whose values the C library keeps without memory of its own, before any constructor can.
KEYS = ALLOCATOR + r"""
static void take_keys(void)
{
	pthread_key_t key;
	int i;

	for (i = 0; i < 40; i++)
		pthread_key_create(&key, NULL);
}
__attribute__((section(".preinit_array"), used)) static void (*take)(void) = take_keys;

static void *work(void *arg)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	if (arg)
		pthread_exit(arg);
	return arg;
}

int main(void)
{
	int before = calls, i;
	pthread_t thread;

	for (i = 0; i < 50; i++) {
		pthread_create(&thread, NULL, work, i % 2 ? &thread : NULL);
		pthread_join(thread, NULL);
	}
	i = calls - before;
	printf("%d calls of the allocator\n", i);
	return 0;
}
"""


@test
def program_that_took_the_first_keys():
    "a program that made forty keys of thread-specific data first runs the same, and its threads' ends show"
    path = compile_program(KEYS)
    recorded_by_all(path)
    _, events = record([path], "APP::Libc::Thread*")
    equal((count(events, "ThreadStart"), count(events, "ThreadEnd")), (50, 50), "threads")


@test
def threads_that_start_at_once():
    "two hundred threads made before any of them runs all get their function and argument"
    out, _ = recorded_by_all(compile_program(r"""
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
}"""))
    equal(out, "errno 77\n19900\n", "what it says")


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
    out, _ = recorded_by_all(compile_program(ERRNO, flags=["-ldl"]))
    equal(out, "done\n", "what it says")


@test
def child_with_memory_of_its_own_making():
    "a child of clone whose thread-local memory is all zero, as that of Chromium's sandbox, writes, execs and exits"
    out, _ = recorded_by_all(compile_program(r"""
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


run_all()
