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

from preload import LIBC, PRELOAD, compile_program, need_preload
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
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
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
        equal(run([PEM] + verb + ["--", path], env=env, timeout=30), alone, "under pem " + verb[0])
    rc, out, err = run([PEM, "report", trace])
    equal(rc, 0, "what pem report says of the balance, with " + out + err)
    return alone[1], trace


@test
def allocator_with_a_spin_lock():
    "a program whose allocator calls the C library inside of a spin lock runs the same, and pem never calls it"
    out, _ = recorded_by_all(compile_program(BUSY))
    assert " calls of the allocator, status 0\n" in out, out


run_all()
