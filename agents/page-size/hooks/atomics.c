// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * atomics.c - atomic operations, which compilers leave to the library
 *
 * The order of memory is a number of <stdatomic.h>. Where an order costs nothing on this processor,
 * the strongest is taken for all. Those of 16 bytes are made of cmpxchg16b, as libatomic's may be.
 */
#include "hooks.h"

#define CALLER ((uintptr_t)__builtin_return_address(0))

static inline __attribute__((always_inline)) void refer(const volatile void *address,
							uint64_t flags, uintptr_t caller)
{
	if (__builtin_expect(--pem_page_size_left < 0, 0))
		pem_page_size_turn((uintptr_t)address | flags, 0, caller);
}

/* Macros, because the functions differ in their types only. */
#define FUNCTION(result, name, ...)                                                                \
	HOOKS_EXPORT result name(__VA_ARGS__);                                                     \
	HOOKS_EXPORT result name(__VA_ARGS__)

#define CHANGE(bits, type, operation)                                                              \
	FUNCTION(type, __tsan_atomic##bits##_##operation, volatile type *at, type value,           \
		 int order)                                                                        \
	{                                                                                          \
		(void)order;                                                                       \
		refer(at, PROFILE_STORE, CALLER);                                                  \
		return __atomic_##operation(at, value, __ATOMIC_SEQ_CST);                          \
	}

#define COMPARE(bits, type, name)                                                                  \
	FUNCTION(int, __tsan_atomic##bits##_compare_exchange_##name, volatile type *at,            \
		 type *expected, type value, int order, int failed_order)                          \
	{                                                                                          \
		(void)order;                                                                       \
		(void)failed_order;                                                                \
		refer(at, PROFILE_STORE, CALLER);                                                  \
		return compare##bits(at, expected, value);                                         \
	}

#define COMPARES(bits, type)                                                                       \
	COMPARE(bits, type, strong)                                                                \
	COMPARE(bits, type, weak)                                                                  \
	FUNCTION(type, __tsan_atomic##bits##_compare_exchange_val, volatile type *at,              \
		 type expected, type value, int order, int failed_order)                           \
	{                                                                                          \
		(void)order;                                                                       \
		(void)failed_order;                                                                \
		refer(at, PROFILE_STORE, CALLER);                                                  \
		compare##bits(at, &expected, value);                                               \
		return expected;                                                                   \
	}

#define ATOMICS(bits, type)                                                                        \
	static inline int compare##bits(volatile type *at, type *expected, type value)             \
	{                                                                                          \
		return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,   \
						   __ATOMIC_SEQ_CST);                              \
	}                                                                                          \
	FUNCTION(type, __tsan_atomic##bits##_load, const volatile type *at, int order)             \
	{                                                                                          \
		(void)order;                                                                       \
		refer(at, 0, CALLER);                                                              \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                      \
	}                                                                                          \
	FUNCTION(void, __tsan_atomic##bits##_store, volatile type *at, type value, int order)      \
	{                                                                                          \
		refer(at, PROFILE_STORE, CALLER);                                                  \
		if (order == __ATOMIC_SEQ_CST)                                                     \
			__atomic_store_n(at, value, __ATOMIC_SEQ_CST);                             \
		else                                                                               \
			__atomic_store_n(at, value, __ATOMIC_RELEASE);                             \
	}                                                                                          \
	FUNCTION(type, __tsan_atomic##bits##_exchange, volatile type *at, type value, int order)   \
	{                                                                                          \
		(void)order;                                                                       \
		refer(at, PROFILE_STORE, CALLER);                                                  \
		return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);                           \
	}                                                                                          \
	CHANGE(bits, type, fetch_add)                                                              \
	CHANGE(bits, type, fetch_sub)                                                              \
	CHANGE(bits, type, fetch_and)                                                              \
	CHANGE(bits, type, fetch_or)                                                               \
	CHANGE(bits, type, fetch_xor)                                                              \
	CHANGE(bits, type, fetch_nand)                                                             \
	COMPARES(bits, type)

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

FUNCTION(void, __tsan_atomic_thread_fence, int order)
{
	if (order != __ATOMIC_RELAXED)
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

FUNCTION(void, __tsan_atomic_signal_fence, int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* --- 16 bytes --- */

typedef unsigned __int128 wide;

static inline int compare128(volatile wide *at, wide *expected, wide value)
{
	wide found = __sync_val_compare_and_swap(at, *expected, value);
	int done = found == *expected;

	*expected = found;
	return done;
}

static inline wide load128(const volatile wide *at)
{
	/* Writes what is there. */
	return __sync_val_compare_and_swap((volatile wide *)at, 0, 0);
}

FUNCTION(wide, __tsan_atomic128_load, const volatile wide *at, int order)
{
	(void)order;
	refer(at, 0, CALLER);
	return load128(at);
}

#define CHANGE128(operation, result)                                                               \
	FUNCTION(wide, __tsan_atomic128_##operation, volatile wide *at, wide value, int order)     \
	{                                                                                          \
		wide old = load128(at);                                                            \
                                                                                                   \
		(void)order;                                                                       \
		refer(at, PROFILE_STORE, CALLER);                                                  \
		while (!compare128(at, &old, (result)))                                            \
			;                                                                          \
		return old;                                                                        \
	}

CHANGE128(exchange, value)
CHANGE128(fetch_add, old + value)
CHANGE128(fetch_sub, old - value)
CHANGE128(fetch_and, old &value)
CHANGE128(fetch_or, old | value)
CHANGE128(fetch_xor, old ^ value)
CHANGE128(fetch_nand, ~(old &value))
COMPARES(128, wide)

FUNCTION(void, __tsan_atomic128_store, volatile wide *at, wide value, int order)
{
	wide old = load128(at);

	(void)order;
	refer(at, PROFILE_STORE, CALLER);
	while (!compare128(at, &old, value))
		;
}
