#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Programs that bring an allocator, or have one preloaded: pem never calls it, and no lock of its is waited for.

Not here: what is recorded of unmodified programs (libc_programs.py), errno and others (libc_harmless.py).
"""
import glob

from preload import STUBS, compile_program, count, need_preload, record, recorded_by_all
from tap import PEM, equal, run, run_all, skip, test, tmp

LONG_S = 8

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


@test
def allocator_with_a_spin_lock():
    "a program whose allocator calls the C library inside of a spin lock runs the same, and pem never calls it"
    out = recorded_by_all(compile_program(BUSY))
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


# Threads that give what others allocated free, in many sizes; children that do so, too.
WORK = r"""
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *blocks[4][1000];
static pthread_barrier_t all;
static void *work(void *arg)
{
	long self = (long)arg, i, sum = 0;

	for (i = 0; i < 1000; i++) {
		blocks[self][i] = i % 3 ? malloc(i * 37 % 5000 + 1) : calloc(i + 1, 3);
		memset(blocks[self][i], (int)i, i % 3 ? i * 37 % 5000 + 1 : (i + 1) * 3);
	}
	pthread_barrier_wait(&all);
	for (i = 0; i < 1000; i++) {
		char *block = blocks[(self + 1) % 4][i];

		sum += (unsigned char)block[0];
		if (i % 5 == 0)
			block = realloc(block, 6000);
		free(block);
	}
	free(aligned_alloc(64, 640));
	return (void *)sum;
}
static long rounds(void)
{
	pthread_t threads[4];
	long i, sum = 0;
	void *result;

	pthread_barrier_init(&all, NULL, 4);
	for (i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &result);
		sum += (long)result;
	}
	return sum;
}
int main(void)
{
	int status;

	printf("%ld\n", rounds());
	fflush(stdout);
	if (fork() == 0) {
		printf("%ld\n", rounds());
		fflush(stdout);
		_exit(0);
	}
	wait(&status);
	printf("%d\n", status);
	return 0;
}
"""


def beside(package, name):
    """The program with an allocator preloaded, before and after pem's libraries: same output, balanced trace."""
    need_preload()
    found = glob.glob("/usr/lib/*/" + name) + glob.glob("/usr/lib/" + name) + glob.glob("/usr/lib64/" + name)
    if not found:
        skip("%s is not here (Debian: %s)" % (name, package))
    path = compile_program(WORK)
    alone = run([path])
    equal(alone[0], 0, "exit status alone")
    for order in (found[0] + ":$LD_PRELOAD", "$LD_PRELOAD:" + found[0]):
        trace = tmp() + "/trace"
        command = ["sh", "-c", 'LD_PRELOAD="%s" exec "$0"' % order, path]
        got = run([PEM, "record", "-q", "-e", STUBS, "-o", trace, "--"] + command, timeout=30)
        equal(got[:2], alone[:2], "with LD_PRELOAD=%s, which said %s" % (order, got[2]))
        rc, out, err = run([PEM, "report", trace])
        equal(rc, 0, "what pem report says of the balance, with " + out + err)


@test
def beside_jemalloc():
    "a program with jemalloc preloaded, before or after pem, runs the same, and its trace balances"
    beside("libjemalloc2", "libjemalloc.so.2")


@test
def beside_mimalloc():
    "a program with mimalloc preloaded, before or after pem, runs the same, and its trace balances"
    beside("libmimalloc2.0", "libmimalloc.so.2*")


@test
def beside_tcmalloc():
    "a program with tcmalloc preloaded, before or after pem, runs the same, and its trace balances"
    beside("libtcmalloc-minimal4", "libtcmalloc_minimal.so.4")


run_all()
