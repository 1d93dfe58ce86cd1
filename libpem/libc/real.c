// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * real.c - the next definitions of libc.h's functions, and when all definitions are found
 *
 * All definitions are found before any constructor of the program runs, or in the first call of any
 * function, which may come from the dynamic linker. Finding them calls no function of the program,
 * so the caller may hold a lock of the program's allocator. Two threads may do it at once: both
 * find the same.
 *
 * The loader runs this library's constructors before all others (-z initfirst), but for one library
 * that has the same mark and that it loaded later. Calls that came before are counted as lost.
 *
 * Not here: the wrappers, and how a name is found (elf_names.c).
 */
#include "libc/next.h"

#include "libc/elf_names.h"

#include <errno.h>
#include <string.h>

#define COUNT PEM_LIBC_REAL_COUNT
#define INDEX(name) PEM_LIBC_REAL_INDEX(name)

typedef void *__attribute__((may_alias)) any_pointer;

static const char *const names[COUNT] = {
	[INDEX(malloc)] = "malloc",
	[INDEX(calloc)] = "calloc",
	[INDEX(realloc)] = "realloc",
	[INDEX(free)] = "free",
	[INDEX(posix_memalign)] = "posix_memalign",
	[INDEX(aligned_alloc)] = "aligned_alloc",
	[INDEX(memalign)] = "memalign",
	[INDEX(valloc)] = "valloc",
	[INDEX(pvalloc)] = "pvalloc",
	[INDEX(mmap)] = "mmap",
	[INDEX(munmap)] = "munmap",
	[INDEX(pthread_create)] = "pthread_create",
};

static void *missing_alloc(size_t size)
{
	(void)size;
	errno = ENOMEM;
	return NULL;
}

static void *missing_alloc2(size_t a, size_t b)
{
	(void)a;
	return missing_alloc(b);
}

static int missing_posix_memalign(void **block, size_t alignment, size_t size)
{
	(void)block, (void)alignment, (void)size;
	return ENOMEM;
}

static void *missing_realloc(void *old, size_t size)
{
	(void)old;
	return missing_alloc(size);
}

static void missing_free(void *block)
{
	(void)block;
}

static void *missing_mmap(void *address, size_t length, int protection, int flags, int fd,
			  off_t offset)
{
	(void)address, (void)length, (void)protection, (void)flags, (void)fd, (void)offset;
	errno = ENOSYS;
	return (void *)-1;
}

static int missing_munmap(void *address, size_t length)
{
	(void)address, (void)length;
	errno = ENOSYS;
	return -1;
}

static int missing_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
				  void *(*routine)(void *), void *argument)
{
	(void)thread, (void)attributes, (void)routine, (void)argument;
	return EAGAIN;
}

/* Functions for a C library that lacks one: each fails as documented. */
static const struct pem_libc_real missing = {
	.malloc = missing_alloc,
	.calloc = missing_alloc2,
	.realloc = missing_realloc,
	.free = missing_free,
	.posix_memalign = missing_posix_memalign,
	.aligned_alloc = missing_alloc2,
	.memalign = missing_alloc2,
	.valloc = missing_alloc,
	.pvalloc = missing_alloc,
	.mmap = missing_mmap,
	.munmap = missing_munmap,
	.pthread_create = missing_pthread_create,
};

static bool find(struct pem_libc_real *table)
{
	const any_pointer *stand_in = (const any_pointer *)&missing;
	any_pointer *to = (any_pointer *)table;
	void *found[COUNT];
	size_t i;

	if (!pem_elf__find_next(names, found, COUNT))
		return false;
	for (i = 0; i < COUNT; i++)
		__atomic_store_n(&to[i], found[i] ? found[i] : stand_in[i], __ATOMIC_RELAXED);
	return true;
}

bool pem_libc_real__find(void)
{
	if (!find(&pem_libc_real))
		return false;
	/* It is passed on by a jump, which needs its address (rights.c). */
	pem_libc_next__get(PEM_LIBC_NEXT_syscall);
	return true;
}

/*
 * Of two constructors of one library, the one with the lower number runs first. 101 is the lowest
 * number that is not reserved.
 */
__attribute__((constructor(101))) static void find_before_main(void)
{
	pem_libc_real__find();
}

/* --- what wrappers call until then; if nothing is found yet, a call fails as documented --- */

/* These calls are passed on by a table of their own, so that each of them is counted. */
static struct pem_libc_real before_main;
uint32_t pem_libc_real__early[COUNT];

static bool is_found(size_t index)
{
	__atomic_fetch_add(&pem_libc_real__early[index], 1, __ATOMIC_RELAXED);
	return find(&before_main);
}

#define FOUND(name) (is_found(INDEX(name)) ? before_main.name : missing.name)

static void *first_malloc(size_t size)
{
	return FOUND(malloc)(size);
}

static void *first_calloc(size_t count, size_t size)
{
	return FOUND(calloc)(count, size);
}

static void *first_realloc(void *old, size_t size)
{
	return FOUND(realloc)(old, size);
}

static void first_free(void *block)
{
	FOUND(free)(block);
}

static int first_posix_memalign(void **block, size_t alignment, size_t size)
{
	return FOUND(posix_memalign)(block, alignment, size);
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
	return FOUND(aligned_alloc)(alignment, size);
}

static void *first_memalign(size_t alignment, size_t size)
{
	return FOUND(memalign)(alignment, size);
}

static void *first_valloc(size_t size)
{
	return FOUND(valloc)(size);
}

static void *first_pvalloc(size_t size)
{
	return FOUND(pvalloc)(size);
}

static void *first_mmap(void *address, size_t length, int protection, int flags, int fd,
			off_t offset)
{
	return FOUND(mmap)(address, length, protection, flags, fd, offset);
}

static int first_munmap(void *address, size_t length)
{
	return FOUND(munmap)(address, length);
}

static int first_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
				void *(*routine)(void *), void *argument)
{
	return FOUND(pthread_create)(thread, attributes, routine, argument);
}

struct pem_libc_real pem_libc_real = {
	.malloc = first_malloc,
	.calloc = first_calloc,
	.realloc = first_realloc,
	.free = first_free,
	.posix_memalign = first_posix_memalign,
	.aligned_alloc = first_aligned_alloc,
	.memalign = first_memalign,
	.valloc = first_valloc,
	.pvalloc = first_pvalloc,
	.mmap = first_mmap,
	.munmap = first_munmap,
	.pthread_create = first_pthread_create,
};
