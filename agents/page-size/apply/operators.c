// SPDX-License-Identifier: MIT
/*
 * operators.c - operator new and delete of C++, in all their forms
 *
 * They are here because a program's requests return to it from these, not from malloc inside of
 * them. The names are as the Itanium C++ ABI mangles them. A failure is the next definition's: only
 * that one can throw.
 */
#include "front.h"

/* The next definitions, as far as they are known. */
static void *known[32];

static void *find(unsigned index, const char *name, uintptr_t site)
{
	void *found = __atomic_load_n(&known[index], __ATOMIC_RELAXED);

	if (__builtin_expect(!found, 0)) {
		found = next__operator(name, site);
		__atomic_store_n(&known[index], found, __ATOMIC_RELAXED);
	}
	return found;
}

void operators__forget(void)
{
	unsigned i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		__atomic_store_n(&known[i], NULL, __ATOMIC_RELAXED);
}

/*
 * A macro, since the functions differ in their types. The arguments of the next definition are
 * those of this one. One that is found nowhere is malloc's: a program that has no C++ library can't
 * catch what new throws.
 */
#define OPERATOR_NEW(name, parameters, arguments, alignment, fallback)                             \
	APPLY_EXPORT void *name parameters;                                                        \
	APPLY_EXPORT void *name parameters                                                         \
	{                                                                                          \
		void *block = NULL, *found;                                                        \
                                                                                                   \
		if (front__is_alignment(alignment))                                                \
			block = front__try(CALL_SITE, size, alignment, false);                     \
		if (block)                                                                         \
			return block;                                                              \
		found = find(__COUNTER__, #name, CALL_SITE);                                       \
		return found ? ((void *(*)parameters)found)arguments : (fallback);                 \
	}

#define PLAIN (size_t size)
#define NOTHROW (size_t size, const void *tag)
#define ALIGNED (size_t size, size_t align)
#define ALIGNED_NOTHROW (size_t size, size_t align, const void *tag)
#define BY_MALLOC NEXT(malloc)(size)
#define BY_MEMALIGN NEXT(memalign)(align, size)

OPERATOR_NEW(_Znwm, PLAIN, (size), 16, BY_MALLOC)
OPERATOR_NEW(_Znam, PLAIN, (size), 16, BY_MALLOC)
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, NOTHROW, (size, tag), 16, BY_MALLOC)
OPERATOR_NEW(_ZnamRKSt9nothrow_t, NOTHROW, (size, tag), 16, BY_MALLOC)
OPERATOR_NEW(_ZnwmSt11align_val_t, ALIGNED, (size, align), align, BY_MEMALIGN)
OPERATOR_NEW(_ZnamSt11align_val_t, ALIGNED, (size, align), align, BY_MEMALIGN)
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, ALIGNED_NOTHROW, (size, align, tag), align,
	     BY_MEMALIGN)
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, ALIGNED_NOTHROW, (size, align, tag), align,
	     BY_MEMALIGN)

#define OPERATOR_DELETE(name, parameters, arguments)                                               \
	APPLY_EXPORT void name parameters;                                                         \
	APPLY_EXPORT void name parameters                                                          \
	{                                                                                          \
		void *found;                                                                       \
                                                                                                   \
		if (heap__owns(block)) {                                                           \
			heap__free(block);                                                         \
			return;                                                                    \
		}                                                                                  \
		found = find(__COUNTER__, #name, CALL_SITE);                                       \
		if (found)                                                                         \
			((void(*) parameters)found) arguments;                                     \
		else                                                                               \
			NEXT(free)(block);                                                         \
	}

OPERATOR_DELETE(_ZdlPv, (void *block), (block))
OPERATOR_DELETE(_ZdaPv, (void *block), (block))
OPERATOR_DELETE(_ZdlPvm, (void *block, size_t size), (block, size))
OPERATOR_DELETE(_ZdaPvm, (void *block, size_t size), (block, size))
OPERATOR_DELETE(_ZdlPvRKSt9nothrow_t, (void *block, const void *tag), (block, tag))
OPERATOR_DELETE(_ZdaPvRKSt9nothrow_t, (void *block, const void *tag), (block, tag))
OPERATOR_DELETE(_ZdlPvSt11align_val_t, (void *block, size_t align), (block, align))
OPERATOR_DELETE(_ZdaPvSt11align_val_t, (void *block, size_t align), (block, align))
OPERATOR_DELETE(_ZdlPvmSt11align_val_t, (void *block, size_t size, size_t align),
		(block, size, align))
OPERATOR_DELETE(_ZdaPvmSt11align_val_t, (void *block, size_t size, size_t align),
		(block, size, align))
OPERATOR_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t align, const void *tag),
		(block, align, tag))
OPERATOR_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *block, size_t align, const void *tag),
		(block, align, tag))
