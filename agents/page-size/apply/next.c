// SPDX-License-Identifier: MIT
/* next.c - finding the next definitions by dlsym */
#include "next.h"

#include "lock.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#define COUNT (sizeof(struct next) / sizeof(void *))
#define NAME(name) [offsetof(struct next, name) / sizeof(void *)] = #name

typedef void *__attribute__((may_alias)) any_pointer;

static const char *const names[COUNT] = {
	NAME(malloc),
	NAME(calloc),
	NAME(realloc),
	NAME(reallocarray),
	NAME(free),
	NAME(posix_memalign),
	NAME(aligned_alloc),
	NAME(memalign),
	NAME(valloc),
	NAME(pvalloc),
	NAME(malloc_usable_size),
	NAME(mmap),
	NAME(munmap),
	NAME(mprotect),
	NAME(mremap),
};

/* The thread that looks for them: dlsym itself may allocate. */
static uintptr_t finding;

static bool find(void)
{
	any_pointer *to = (any_pointer *)&next;
	void *found[COUNT];
	int saved = errno;
	size_t i;

	if (__atomic_load_n(&finding, __ATOMIC_RELAXED) == lock__self())
		return false;
	__atomic_store_n(&finding, lock__self(), __ATOMIC_RELAXED);
	for (i = 0; i < COUNT; i++)
		found[i] = dlsym(RTLD_NEXT, names[i]);
	for (i = 0; i < COUNT; i++) {
		if (found[i])
			__atomic_store_n(&to[i], found[i], __ATOMIC_RELAXED);
	}
	__atomic_store_n(&finding, 0, __ATOMIC_RELAXED);
	errno = saved;
	return true;
}

void next__find(void)
{
	find();
}

void *next__function(const char *name)
{
	int saved = errno;
	void *found = dlsym(RTLD_NEXT, name);

	errno = saved;
	return found;
}

static bool is_here(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);
	const ElfW(Sym) *symbol = NULL;
	struct dl_find_object here, there;
	Dl_info info;

	/* To a program at fixed addresses, a function's address may be that of its call of it. */
	if (found && dladdr1(found, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol &&
	    symbol->st_shndx == SHN_UNDEF)
		return true;
	return found && !_dl_find_object(found, &there) && !_dl_find_object(&next, &here) &&
	       there.dlfo_link_map == here.dlfo_link_map;
}

bool next__is_allocator(void)
{
	static const char *const family[] = {"malloc", "calloc", "realloc", "free",
					     "malloc_usable_size"};
	int saved = errno;
	size_t i = 0;

	while (i < sizeof(family) / sizeof(family[0]) && is_here(family[i]))
		i++;
	errno = saved;
	return i == sizeof(family) / sizeof(family[0]);
}

void *next__operator(const char *name, uintptr_t site)
{
	static const char *const libraries[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
	struct dl_find_object object;
	int saved = errno;
	void *found = dlsym(RTLD_NEXT, name), *library;
	size_t i;

	for (i = 0; !found && i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		found = library ? dlsym(library, name) : NULL;
	}
	/* To this C library an object and its handle are one. */
	if (!found && !_dl_find_object((void *)site, &object))
		found = dlsym(object.dlfo_link_map, name);
	errno = saved;
	return found;
}

/* --- what is called until then; within dlsym each fails as documented, which dlsym knows --- */

static void *none(void)
{
	errno = ENOMEM;
	return NULL;
}

static void *first_malloc(size_t size)
{
	return find() ? NEXT(malloc)(size) : none();
}

static void *first_calloc(size_t count, size_t size)
{
	return find() ? NEXT(calloc)(count, size) : none();
}

static void *first_realloc(void *old, size_t size)
{
	return find() ? NEXT(realloc)(old, size) : none();
}

static void *first_reallocarray(void *old, size_t count, size_t size)
{
	return find() ? NEXT(reallocarray)(old, count, size) : none();
}

static void first_free(void *block)
{
	if (find())
		NEXT(free)(block);
}

static int first_posix_memalign(void **block, size_t alignment, size_t size)
{
	return find() ? NEXT(posix_memalign)(block, alignment, size) : ENOMEM;
}

static void *first_aligned_alloc(size_t alignment, size_t size)
{
	return find() ? NEXT(aligned_alloc)(alignment, size) : none();
}

static void *first_memalign(size_t alignment, size_t size)
{
	return find() ? NEXT(memalign)(alignment, size) : none();
}

static void *first_valloc(size_t size)
{
	return find() ? NEXT(valloc)(size) : none();
}

static void *first_pvalloc(size_t size)
{
	return find() ? NEXT(pvalloc)(size) : none();
}

static size_t first_malloc_usable_size(void *block)
{
	return find() ? NEXT(malloc_usable_size)(block) : 0;
}

static void *first_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t at)
{
	return find() ? NEXT(mmap)(address, bytes, protection, flags, fd, at) : MAP_FAILED;
}

static int first_munmap(void *address, size_t bytes)
{
	return find() ? NEXT(munmap)(address, bytes) : -1;
}

static int first_mprotect(void *address, size_t bytes, int protection)
{
	return find() ? NEXT(mprotect)(address, bytes, protection) : -1;
}

static void *first_mremap(void *old, size_t old_bytes, size_t bytes, int flags, ...)
{
	va_list more;
	void *to;

	va_start(more, flags);
	to = va_arg(more, void *);
	va_end(more);
	return find() ? NEXT(mremap)(old, old_bytes, bytes, flags, to) : MAP_FAILED;
}

struct next next = {
	.malloc = first_malloc,
	.calloc = first_calloc,
	.realloc = first_realloc,
	.reallocarray = first_reallocarray,
	.free = first_free,
	.posix_memalign = first_posix_memalign,
	.aligned_alloc = first_aligned_alloc,
	.memalign = first_memalign,
	.valloc = first_valloc,
	.pvalloc = first_pvalloc,
	.malloc_usable_size = first_malloc_usable_size,
	.mmap = first_mmap,
	.munmap = first_munmap,
	.mprotect = first_mprotect,
	.mremap = first_mremap,
};
