// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * entry.c - the functions that compilers call for plain references to memory
 *
 * Each counts down and returns, unless its reference is looked at. What marks the begin of a
 * function, locks and fibers is for finding races: those functions are empty.
 */
#include "hooks.h"

#define LINE 64u /* a range counts as a reference for each of so many bytes */
#define CALLER ((uintptr_t)__builtin_return_address(0))

static inline __attribute__((always_inline)) void refer(uint64_t reference, uint32_t bytes,
							uintptr_t caller)
{
	if (__builtin_expect(--pem_page_size_left < 0, 0))
		pem_page_size_turn(reference, bytes, caller);
}

static void refer_range(uint64_t reference, size_t bytes, uintptr_t caller)
{
	uint64_t count = (bytes + LINE - 1) / LINE, i;

	if ((uint64_t)pem_page_size_left >= count && pem_page_size_left >= 0) {
		pem_page_size_left -= (int64_t)count;
		return;
	}
	for (i = 0; i < count; i++)
		refer(reference + i * LINE, 0, caller);
}

/* Macros, because the functions differ in their names only. */
#define LOAD(name, bytes)                                                                          \
	HOOKS_EXPORT void __tsan_##name(const void *address);                                      \
	HOOKS_EXPORT void __tsan_##name(const void *address)                                       \
	{                                                                                          \
		refer((uintptr_t)address, bytes, CALLER);                                          \
	}
#define STORE(name)                                                                                \
	HOOKS_EXPORT void __tsan_##name(void *address);                                            \
	HOOKS_EXPORT void __tsan_##name(void *address)                                             \
	{                                                                                          \
		refer((uintptr_t)address | PROFILE_STORE, 0, CALLER);                              \
	}
/* clang's -tsan-compound-read-before-write */
#define CHANGE(name)                                                                               \
	HOOKS_EXPORT void __tsan_##name(void *address);                                            \
	HOOKS_EXPORT void __tsan_##name(void *address)                                             \
	{                                                                                          \
		refer((uintptr_t)address, 0, CALLER);                                              \
		refer((uintptr_t)address | PROFILE_STORE, 0, CALLER);                              \
	}

LOAD(read1, 0)
LOAD(read2, 0)
LOAD(read4, 4)
LOAD(read8, 8)
LOAD(read16, 0)
LOAD(unaligned_read2, 0)
LOAD(unaligned_read4, 0)
LOAD(unaligned_read8, 0)
LOAD(unaligned_read16, 0)
LOAD(volatile_read1, 0)
LOAD(volatile_read2, 0)
LOAD(volatile_read4, 0)
LOAD(volatile_read8, 0)
LOAD(volatile_read16, 0)
LOAD(unaligned_volatile_read2, 0)
LOAD(unaligned_volatile_read4, 0)
LOAD(unaligned_volatile_read8, 0)
LOAD(unaligned_volatile_read16, 0)
LOAD(vptr_read, 8)

STORE(write1)
STORE(write2)
STORE(write4)
STORE(write8)
STORE(write16)
STORE(unaligned_write2)
STORE(unaligned_write4)
STORE(unaligned_write8)
STORE(unaligned_write16)
STORE(volatile_write1)
STORE(volatile_write2)
STORE(volatile_write4)
STORE(volatile_write8)
STORE(volatile_write16)
STORE(unaligned_volatile_write2)
STORE(unaligned_volatile_write4)
STORE(unaligned_volatile_write8)
STORE(unaligned_volatile_write16)

CHANGE(read_write1)
CHANGE(read_write2)
CHANGE(read_write4)
CHANGE(read_write8)
CHANGE(read_write16)
CHANGE(unaligned_read_write2)
CHANGE(unaligned_read_write4)
CHANGE(unaligned_read_write8)
CHANGE(unaligned_read_write16)

HOOKS_EXPORT void __tsan_vptr_update(void *address, const void *value);
HOOKS_EXPORT void __tsan_vptr_update(void *address, const void *value)
{
	(void)value;
	refer((uintptr_t)address | PROFILE_STORE, 0, CALLER);
}

HOOKS_EXPORT void __tsan_read_range(const void *address, size_t bytes);
HOOKS_EXPORT void __tsan_read_range(const void *address, size_t bytes)
{
	refer_range((uintptr_t)address, bytes, CALLER);
}

HOOKS_EXPORT void __tsan_write_range(void *address, size_t bytes);
HOOKS_EXPORT void __tsan_write_range(void *address, size_t bytes)
{
	refer_range((uintptr_t)address | PROFILE_STORE, bytes, CALLER);
}

/*
 * memcpy and its kin, by the names that clang gives them. In the archive by their own names, too:
 * gcc leaves those, and what the program itself calls comes here instead of to the C library.
 */
#define COPIES(prefix)                                                                             \
	HOOKS_EXPORT void *prefix##memcpy(void *to, const void *from, size_t bytes);               \
	HOOKS_EXPORT void *prefix##memcpy(void *to, const void *from, size_t bytes)                \
	{                                                                                          \
		refer_range((uintptr_t)from, bytes, CALLER);                                       \
		refer_range((uintptr_t)to | PROFILE_STORE, bytes, CALLER);                         \
		return pem_page_size_move(to, from, bytes);                                        \
	}                                                                                          \
	HOOKS_EXPORT void *prefix##memmove(void *to, const void *from, size_t bytes);              \
	HOOKS_EXPORT void *prefix##memmove(void *to, const void *from, size_t bytes)               \
	{                                                                                          \
		refer_range((uintptr_t)from, bytes, CALLER);                                       \
		refer_range((uintptr_t)to | PROFILE_STORE, bytes, CALLER);                         \
		return pem_page_size_move(to, from, bytes);                                        \
	}                                                                                          \
	HOOKS_EXPORT void *prefix##memset(void *to, int value, size_t bytes);                      \
	HOOKS_EXPORT void *prefix##memset(void *to, int value, size_t bytes)                       \
	{                                                                                          \
		refer_range((uintptr_t)to | PROFILE_STORE, bytes, CALLER);                         \
		return pem_page_size_fill(to, value, bytes);                                       \
	}

COPIES(__tsan_)
#ifdef HOOKS_ARCHIVE
COPIES()
#endif

/* --- what says nothing about memory --- */

#define NOTHING(name, ...)                                                                         \
	HOOKS_EXPORT void __tsan_##name(__VA_ARGS__);                                              \
	HOOKS_EXPORT void __tsan_##name(__VA_ARGS__)                                               \
	{                                                                                          \
	}

typedef void *pointer;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(init, void)
NOTHING(func_entry, pointer caller)
NOTHING(func_exit, void)
NOTHING(ignore_thread_begin, void)
NOTHING(ignore_thread_end, void)
NOTHING(acquire, pointer address)
NOTHING(release, pointer address)
NOTHING(mutex_create, pointer mutex, unsigned flags)
NOTHING(mutex_destroy, pointer mutex, unsigned flags)
NOTHING(mutex_pre_lock, pointer mutex, unsigned flags)
NOTHING(mutex_post_lock, pointer mutex, unsigned flags, int recursion)
NOTHING(mutex_post_unlock, pointer mutex, unsigned flags)
NOTHING(mutex_pre_signal, pointer mutex, unsigned flags)
NOTHING(mutex_post_signal, pointer mutex, unsigned flags)
NOTHING(mutex_pre_divert, pointer mutex, unsigned flags)
NOTHING(mutex_post_divert, pointer mutex, unsigned flags)
NOTHING(destroy_fiber, pointer fiber)
NOTHING(switch_to_fiber, pointer fiber, unsigned flags)
NOTHING(set_fiber_name, pointer fiber, const char *name)
#pragma GCC diagnostic pop

HOOKS_EXPORT int __tsan_mutex_pre_unlock(void *mutex, unsigned flags);
HOOKS_EXPORT int __tsan_mutex_pre_unlock(void *mutex, unsigned flags)
{
	(void)mutex;
	(void)flags;
	return 0;
}

/* A fiber that is not NULL, as programs check. */
HOOKS_EXPORT void *__tsan_create_fiber(unsigned flags);
HOOKS_EXPORT void *__tsan_create_fiber(unsigned flags)
{
	static char fiber;

	(void)flags;
	return &fiber;
}

HOOKS_EXPORT void *__tsan_get_current_fiber(void);
HOOKS_EXPORT void *__tsan_get_current_fiber(void)
{
	return __tsan_create_fiber(0);
}
