// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * real.c - finding the functions that libpem-libc stands in front of
 *
 * Not here: the wrappers.
 *
 * The first call of any of them, which may come from the dynamic linker before any constructor ran, looks all of
 * them up with dlsym. dlsym itself may allocate: such a call finds its thread already looking, and is served from
 * the arena. Two threads may look at once; both find the same.
 *
 * Once an arena block exists, free and realloc must know it: they are then, for the rest of the process, the
 * checked variants. Publication, in sequentially consistent order:
 *	arena:	  A used = 1		then B free = checked
 *	resolver: C free = next's	then D if used, free = checked
 * If D misses A, then B comes after C: either way a block of the arena never reaches the next free.
 */
#include "libc/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define ARENA_BYTES 16384u
#define ARENA_ALIGN 16u

static _Alignas(64) uint8_t arena[ARENA_BYTES];
static size_t arena_next;
static int arena_used;

/* What the checked variants go on to; NULL until found. */
static void (*next_free)(void *block);
static void *(*next_realloc)(void *old, size_t size);

static __thread int resolving __attribute__((tls_model("initial-exec")));

static void *checked_realloc(void *old, size_t size);
static void checked_free(void *block);

/* --- the arena: each block is preceded by 16 bytes that hold its size --- */

int pem_libc_arena__has(const void *block)
{
	return (uintptr_t)block - (uintptr_t)arena < ARENA_BYTES;
}

size_t pem_libc_arena__size(const void *block)
{
	size_t size;

	memcpy(&size, (const uint8_t *)block - ARENA_ALIGN, sizeof(size));
	return size;
}

void *pem_libc_arena__alloc(size_t size)
{
	size_t need, at;

	if (size > ARENA_BYTES)
		goto full;
	need = ARENA_ALIGN + ((size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1));
	at = __atomic_load_n(&arena_next, __ATOMIC_RELAXED);
	do { /* reserves bytes and orders nothing: they are the caller's alone */
		if (need > ARENA_BYTES - at)
			goto full;
	} while (!__atomic_compare_exchange_n(&arena_next, &at, at + need, 1, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	__atomic_store_n(&arena_used, 1, __ATOMIC_SEQ_CST); /* A */
	__atomic_store_n(&pem_libc_real.free, checked_free, __ATOMIC_SEQ_CST); /* B */
	__atomic_store_n(&pem_libc_real.realloc, checked_realloc, __ATOMIC_SEQ_CST); /* B */
	memcpy(arena + at, &size, sizeof(size));
	return arena + at + ARENA_ALIGN;
full:
	errno = ENOMEM;
	return NULL;
}

/* --- looking up --- */

#define FIND(name)                                                                                 \
	do {                                                                                       \
		void *found_ = dlsym(RTLD_NEXT, #name);                                            \
		memcpy(&found.name, &found_, sizeof(found_));                                      \
	} while (0)
#define PUBLISH(name)                                                                              \
	__atomic_store_n(&pem_libc_real.name, found.name ? found.name : missing.name,              \
			 __ATOMIC_RELAXED)

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

/* For a C library without one of them: it fails as it is documented to. */
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

static void publish(const struct pem_libc_real *from)
{
	struct pem_libc_real found = *from;

	__atomic_store_n(&next_free, found.free ? found.free : missing.free, __ATOMIC_SEQ_CST);
	__atomic_store_n(&next_realloc, found.realloc ? found.realloc : missing.realloc,
			 __ATOMIC_SEQ_CST);
	PUBLISH(malloc);
	PUBLISH(calloc);
	PUBLISH(posix_memalign);
	PUBLISH(aligned_alloc);
	PUBLISH(memalign);
	PUBLISH(valloc);
	PUBLISH(pvalloc);
	PUBLISH(mmap);
	PUBLISH(munmap);
	PUBLISH(pthread_create);
	__atomic_store_n(&pem_libc_real.free, next_free, __ATOMIC_SEQ_CST); /* C */
	__atomic_store_n(&pem_libc_real.realloc, next_realloc, __ATOMIC_SEQ_CST); /* C */
	if (__atomic_load_n(&arena_used, __ATOMIC_SEQ_CST)) { /* D */
		__atomic_store_n(&pem_libc_real.free, checked_free, __ATOMIC_SEQ_CST);
		__atomic_store_n(&pem_libc_real.realloc, checked_realloc, __ATOMIC_SEQ_CST);
	}
}

/* Find all of them. 0: this thread is at it already. Keeps errno. */
static int resolve(void)
{
	struct pem_libc_real found;
	int saved_errno = errno;

	if (resolving)
		return 0;
	resolving = 1;
	FIND(malloc);
	FIND(calloc);
	FIND(realloc);
	FIND(free);
	FIND(posix_memalign);
	FIND(aligned_alloc);
	FIND(memalign);
	FIND(valloc);
	FIND(pvalloc);
	FIND(mmap);
	FIND(munmap);
	FIND(pthread_create);
	pem_libc_next__find_all();
	publish(&found);
	resolving = 0;
	errno = saved_errno;
	return 1;
}

void pem_libc_real__find(void)
{
	resolve();
}

/* --- what the wrappers call until then --- */

static void *first_malloc(size_t size)
{
	return resolve() ? PEM_LIBC_REAL(malloc)(size) : pem_libc_arena__alloc(size);
}

static void *first_calloc(size_t count, size_t size)
{
	size_t bytes;

	if (resolve())
		return PEM_LIBC_REAL(calloc)(count, size);
	return pem_libc_arena__alloc(__builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX
										 : bytes);
}

static void *checked_realloc(void *old, size_t size)
{
	void *(*next)(void *, size_t) = __atomic_load_n(&next_realloc, __ATOMIC_RELAXED);
	size_t old_size;
	void *block;

	if (!next && resolve())
		next = __atomic_load_n(&next_realloc, __ATOMIC_RELAXED);
	if (next && !pem_libc_arena__has(old))
		return next(old, size);
	block = next ? PEM_LIBC_REAL(malloc)(size) : pem_libc_arena__alloc(size);
	if (block && pem_libc_arena__has(old)) {
		old_size = pem_libc_arena__size(old);
		memcpy(block, old, old_size < size ? old_size : size);
	}
	return block;
}

static void checked_free(void *block)
{
	void (*next)(void *) = __atomic_load_n(&next_free, __ATOMIC_RELAXED);

	if (pem_libc_arena__has(block))
		return;
	if (!next && resolve())
		next = __atomic_load_n(&next_free, __ATOMIC_RELAXED);
	if (next)
		next(block);
}

static int first_posix_memalign(void **block, size_t alignment, size_t size)
{
	return resolve() ? PEM_LIBC_REAL(posix_memalign)(block, alignment, size) : ENOMEM;
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
	return resolve() ? PEM_LIBC_REAL(aligned_alloc)(alignment, size) : missing_alloc(size);
}

static void *first_memalign(size_t alignment, size_t size)
{
	return resolve() ? PEM_LIBC_REAL(memalign)(alignment, size) : missing_alloc(size);
}

static void *first_valloc(size_t size)
{
	return resolve() ? PEM_LIBC_REAL(valloc)(size) : missing_alloc(size);
}

static void *first_pvalloc(size_t size)
{
	return resolve() ? PEM_LIBC_REAL(pvalloc)(size) : missing_alloc(size);
}

static void *first_mmap(void *address, size_t length, int protection, int flags, int fd,
			off_t offset)
{
	if (!resolve())
		return missing_mmap(address, length, protection, flags, fd, offset);
	return PEM_LIBC_REAL(mmap)(address, length, protection, flags, fd, offset);
}

static int first_munmap(void *address, size_t length)
{
	return resolve() ? PEM_LIBC_REAL(munmap)(address, length) : missing_munmap(address, length);
}

static int first_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
				void *(*routine)(void *), void *argument)
{
	if (!resolve())
		return EAGAIN;
	return PEM_LIBC_REAL(pthread_create)(thread, attributes, routine, argument);
}

struct pem_libc_real pem_libc_real = {
	.malloc = first_malloc,
	.calloc = first_calloc,
	.realloc = checked_realloc,
	.free = checked_free,
	.posix_memalign = first_posix_memalign,
	.aligned_alloc = first_aligned_alloc,
	.memalign = first_memalign,
	.valloc = first_valloc,
	.pvalloc = first_pvalloc,
	.mmap = first_mmap,
	.munmap = first_munmap,
	.pthread_create = first_pthread_create,
};
