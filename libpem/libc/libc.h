/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libc.h - libpem-libc.so: what its files share
 *
 * Preloaded into an unmodified program, it stands in front of functions of the C library and raises
 * the events of spec/app/libc.xml, libc_lock.xml and libc_io.xml. Each wrapper calls the next
 * definition in the program's own search order (its own allocator, if it brings one) and changes
 * neither result nor errno. What an event tells of memory that the program points to (a path, an
 * iovec, a socket address) is read once the kernel has said that it may be: a program may live by
 * EFAULT. While nobody listens a wrapper costs an indirect call and a load and test for each of its
 * events.
 *
 *	elf_names.c	finding definitions in the tables of loaded objects
 *	real.c		those of the functions of struct pem_libc_real; when all are found
 *	next.c		those of all other functions
 *	alloc.c		malloc and its kin, free
 *	map.c		mmap, mremap, munmap, brk
 *	thread.c	pthread_create, pthread_join
 *	lock.c		mutexes, reader-writer locks, condition variables, barriers, semaphores
 *	file.c		open, read, write, poll and the like
 *	stream.c	fopen, fread, fwrite, fflush, fclose
 *	socket.c	connect, accept, send, recv and the like
 *	program.c	fork, exec, exit, sleep, dlopen
 *	exec.c		programs that are started and can't be observed, and their environment
 *	readable.c	whether memory that the program hands in may be read
 *	older.c		older versions of some of them
 *	rights.c	setuid, chroot, unshare, seccomp and the like, without events
 *	silence.c		when not to stand there
 *
 * An allocation's event is raised after the call, a release's before it: so no other thread can
 * show the same address as allocated before it is shown as released. realloc can't keep this order:
 * whether it moves the block is known after it has released the old one only.
 *
 * Not here: what libc calls inside itself without its symbol table.
 */
#ifndef PEM_LIBC_H
#define PEM_LIBC_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PEM_LIBC_EXPORT __attribute__((visibility("default")))
#define PEM_LIBC_SITE ((uintptr_t)__builtin_return_address(0))

/*
 * The next definitions of the functions that programs call most: no wrapper of them asks whether
 * they are found. Until they are each points at a function that finds them. Loads and stores are
 * relaxed atomics: any value that was ever here is right.
 */
struct pem_libc_real {
	void *(*malloc)(size_t size);
	void *(*calloc)(size_t count, size_t size);
	void *(*realloc)(void *old, size_t size);
	void (*free)(void *block);
	int (*posix_memalign)(void **block, size_t alignment, size_t size);
	void *(*aligned_alloc)(size_t alignment, size_t size);
	void *(*memalign)(size_t alignment, size_t size);
	void *(*valloc)(size_t size);
	void *(*pvalloc)(size_t size);
	void *(*mmap)(void *address, size_t length, int protection, int flags, int fd,
		      off_t offset);
	int (*munmap)(void *address, size_t length);
	int (*pthread_create)(pthread_t *thread, const pthread_attr_t *attributes,
			      void *(*routine)(void *), void *argument);
};

extern struct pem_libc_real pem_libc_real;

#define PEM_LIBC_REAL(name) __atomic_load_n(&pem_libc_real.name, __ATOMIC_RELAXED)

/* Find these and those of next.h. false: the loader is not ready to be asked. Keeps errno. */
bool pem_libc_real__find(void);

/*
 * Is a call, which returns to site, to be passed on and nothing else? libpem's own are, which are
 * not the program's, and those of a child of clone with thread-local memory that the C library did
 * not set up: nothing of libpem's can be found there.
 */
int pem_libc_call__is_silent(uintptr_t site);

#endif
