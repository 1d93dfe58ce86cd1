/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * libc.h - libpem-libc.so: what its files share
 *
 * The library is preloaded into an unmodified program. It stands in front of functions of the C
 * library and raises the events of spec/app/libc.xml, libc_lock.xml and libc_io.xml. Each wrapper
 * calls the next definition in the program's own search order: the program's own allocator, if it
 * has one. A wrapper changes neither result nor errno.
 *
 * An event may contain memory that the program points to: a path, an iovec, a socket address. The
 * wrapper first asks the kernel whether this memory may be read, because a program may depend on
 * EFAULT. It reads the memory before the call: the call may let another thread free it. While no
 * session wants its events, a wrapper costs an indirect call, and a load and test for each of its
 * events.
 *
 *	elf_names.c	finding definitions in the tables of loaded objects
 *	real.c		definitions of struct pem_libc_real; when all definitions are found
 *	next.c		definitions of all other functions
 *	alloc.c		malloc and its kin, free
 *	wrappers.c	functions that allocate for their callers
 *	stacks.c	the stacks of calls that allocations name
 *	frames.c	from a function to its caller
 *	map.c		mmap, mremap, munmap, brk
 *	thread.c	pthread_create, pthread_join
 *	lock.c		mutexes, reader-writer locks, condition variables, barriers, semaphores
 *	file.c		open, read, write, poll and the like
 *	stream.c	fopen, fread, fwrite, fflush, fclose
 *	socket.c	connect, accept, send, recv and the like
 *	program.c	fork, exec, exit, sleep, dlopen
 *	spawn.c		posix_spawn
 *	exec.c		started programs that can't be observed, and their environment
 *	readable.c	whether memory that the program passes may be read
 *	older.c		older versions of some functions
 *	rights.c	setuid, chroot, unshare, seccomp and the like, without events
 *	internal.c		system calls of the wrappers' own
 *	silence.c	when wrappers only pass calls on
 *	objects.c	which programs and libraries lie in memory
 *
 * An allocation's event is raised after the call, a release's event before it. So no other thread
 * can show an address as allocated again before the trace shows it as released. realloc can't keep
 * this order: only after it has released the old block is it known whether it moved the block.
 *
 * Not here: calls that libc makes inside itself without its symbol table.
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
 * The next definitions of the functions that programs call most. Their wrappers do not test whether
 * they are found: until then each pointer points at a function that finds them. Loads and stores
 * are relaxed atomics: every value that was ever stored here is right.
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

#define PEM_LIBC_REAL_COUNT (sizeof(struct pem_libc_real) / sizeof(void *))
#define PEM_LIBC_REAL_INDEX(name) (offsetof(struct pem_libc_real, name) / sizeof(void *))

/* How often each was called before this library's constructors ran. These calls have no events. */
extern uint32_t pem_libc_real__early[PEM_LIBC_REAL_COUNT];

#define PEM_LIBC_REAL(name) __atomic_load_n(&pem_libc_real.name, __ATOMIC_RELAXED)

/*
 * Find the definitions of this table. Returns false if the loader is not ready. Keeps
 * errno.
 */
bool pem_libc_real__find(void);

/*
 * Return whether a call that returns to site is only passed on, without an event. This holds for
 * libpem's own calls, which are not the program's. It also holds in a child of clone whose
 * thread-local memory the C library did not set up: libpem can find nothing of its own there.
 */
int pem_libc_call__is_silent(uintptr_t site);

/* As syscall(), for a call that the program did not ask for. Async-signal-safe. */
long pem_libc_internal_call(long number, ...);

/* Raise an event for each object that was loaded since the last call. Not async-signal-safe. */
void pem_libc_objects__raise(void);

#endif
