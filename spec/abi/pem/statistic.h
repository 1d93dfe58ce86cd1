/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * statistic.h - count, sum, least and greatest value of an event: the steps on a cell
 *
 * Programs, the kernel module and BPF programs compile these inlines. They differ in how a word is
 * stored and how stores are ordered: see the macros below. Not here: the distribution of values
 * (distribution.h).
 *
 * A cell has one writer and any number of readers. The writer counts in stat_begin before it
 * changes the cell and in stat_end after it. A reader that finds equal counts in both, and an
 * unchanged tag, has a consistent set.
 *
 * Ordering: architecture.md (share/doc/pem), Barriers. A barrier has the letters of its pair:
 * capital where a value is published, small where it is read.
 */
#ifndef PEM_STATISTIC_H
#define PEM_STATISTIC_H

#include <pem/abi.h>

/*
 *	PEM_LOAD(x)            loads the word x once
 *	PEM_STORE(x, v)        stores v to x once
 *	PEM_ORDER_STORES(x)    stores before it are seen before stores after it. x belongs to the
 *			       writer alone, and keeps its value.
 *	PEM_RELEASE(x, v)      stores v to x; stores before it are seen before v
 *	PEM_WIDTH(v)           the number of v's highest 1 bit, counted from 1; 0: v is 0
 *	PEM_HIDE(v)            BPF: hides v from clang, so that clang keeps the arithmetic instead
 *			       of making jumps of it
 *	PEM_UNROLL             BPF: the next loop becomes straight code
 */
#if defined(__bpf__)
#define PEM_LOAD(x) (*(volatile __typeof__(x) *)&(x))
#define PEM_STORE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
/*
 * BPF has no barrier instruction. x86 keeps stores in order. On other machines an atomic operation
 * that returns a result orders them.
 */
#if defined(__TARGET_ARCH_x86)
#define PEM_ORDER_STORES(x) __asm__ volatile("" ::: "memory")
#define PEM_RELEASE(x, v)                                                                          \
	do {                                                                                       \
		__asm__ volatile("" ::: "memory");                                                 \
		PEM_STORE(x, v);                                                                   \
	} while (0)
#else
#define PEM_ORDER_STORES(x)                                                                        \
	do {                                                                                       \
		__typeof__(x) old_ = __sync_fetch_and_add(&(x), 0);                                \
		__asm__ volatile("" ::"r"(old_));                                                  \
	} while (0)
#define PEM_RELEASE(x, v) ((void)__sync_lock_test_and_set(&(x), v))
#endif
#define PEM_HIDE(v) __asm__("" : "+r"(v))
#define PEM_WIDTH(v) pem_width(v)
/* This function has no jump: the verifier walks the code behind a jump once for each way. */
PEM_INLINE uint64_t pem_width(uint64_t bits)
{
	bits |= bits >> 1;
	bits |= bits >> 2;
	bits |= bits >> 4;
	bits |= bits >> 8;
	bits |= bits >> 16;
	bits |= bits >> 32;
	bits = (uint64_t)__builtin_popcountll(bits);
	PEM_HIDE(bits);
	return bits;
}
#define PEM_UNROLL _Pragma("unroll")
#elif defined(__KERNEL__)
#define PEM_LOAD(x) READ_ONCE(x)
#define PEM_STORE(x, v) WRITE_ONCE(x, v)
#define PEM_ORDER_STORES(x) smp_wmb()
#define PEM_RELEASE(x, v) smp_store_release(&(x), v)
#define PEM_WIDTH(v) ((v) ? 64 - (uint64_t)__builtin_clzll(v) : 0)
#define PEM_HIDE(v) ((void)0)
#define PEM_UNROLL
#else
#define PEM_LOAD(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define PEM_STORE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELAXED)
#define PEM_ORDER_STORES(x) __atomic_thread_fence(__ATOMIC_RELEASE)
#define PEM_RELEASE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELEASE)
#define PEM_WIDTH(v) ((v) ? 64 - (uint64_t)__builtin_clzll(v) : 0)
#define PEM_HIDE(v) ((void)0)
#define PEM_UNROLL
#endif

/*
 * Add to a word that this thread alone changes, and others read. x86: in one instruction, and in
 * the order of the program.
 */
static inline void pem_add(uint64_t *word, uint64_t value)
{
#if defined(__x86_64__) && !defined(__bpf__)
	__asm__ __volatile__("addq %1, %0" : "+m"(*word) : "er"(value) : "cc", "memory");
#else
	PEM_STORE(*word, PEM_LOAD(*word) + value);
#endif
}

/*
 * Return the order-preserving key of a signed value, for a cell's min and max. Unsigned comparison
 * of keys orders the values. The key of an unsigned value is the value.
 */
PEM_INLINE uint64_t pem_stat_key_signed(int64_t value)
{
	return (uint64_t)value ^ (1ULL << 63);
}

/* Begin to change a cell. Returns the count to pass to pem_cell_end. */
PEM_INLINE uint64_t pem_cell_begin(struct pem_cell *cell)
{
	uint64_t n = PEM_LOAD(cell->stat_begin) + 1;

	PEM_STORE(cell->stat_begin, n);
	/* SA */
	PEM_ORDER_STORES(cell->stat_begin);
	return n;
}

/* Add a value and its key; sum is what the cell's sum was. */
PEM_INLINE void pem_cell_put(struct pem_cell *cell, uint64_t sum, uint64_t value, uint64_t key)
{
	PEM_STORE(cell->sum, sum + value);
	if (key < cell->min)
		PEM_STORE(cell->min, key);
	if (key > cell->max)
		PEM_STORE(cell->max, key);
}

PEM_INLINE void pem_cell_end(struct pem_cell *cell, uint64_t n)
{
	/* SB */
	PEM_RELEASE(cell->stat_end, n);
}

/* Begin a cell's statistic anew, with another tag. */
static inline void pem_cell_reset(struct pem_cell *cell, uint64_t tag)
{
	PEM_STORE(cell->stat_begin, ~0ULL); /* unequal to any count while the cell changes */
	/* SA */
	PEM_ORDER_STORES(cell->stat_begin);
	PEM_STORE(cell->sum, 0);
	PEM_STORE(cell->min, ~0ULL);
	PEM_STORE(cell->max, 0);
	PEM_STORE(cell->tag, tag);
	/* SB */
	PEM_RELEASE(cell->stat_end, 0);
	/* SB */
	PEM_RELEASE(cell->stat_begin, 0);
}

/* Add one value to a cell's statistic. Integers only: libpem computes a floating sum. */
PEM_INLINE void pem_cell_update(struct pem_cell *cell, uint64_t value, uint64_t key)
{
	uint64_t n = pem_cell_begin(cell);

	pem_cell_put(cell, cell->sum, value, key);
	pem_cell_end(cell, n);
}

/*
 * Can a signal handler in the middle of pem_cell_count do the same to the cell, and nothing is
 * lost? Else its thread must be marked meanwhile.
 */
#if defined(__x86_64__) && !defined(__bpf__)
#define PEM_COUNT_NESTS 1

/* Store a new least or greatest key, if it still is one, in steps that no handler interrupts. */
#define PEM_CELL_STORE(word, key, is_new)                                                          \
	do {                                                                                       \
		uint64_t found_ = PEM_LOAD(word);                                                  \
		while ((key)is_new found_)                                                         \
			__asm__ __volatile__("cmpxchgq %2, %1\n\tcmove %2, %0"                     \
					     : "+&a"(found_), "+m"(word)                           \
					     : "r"(key)                                            \
					     : "cc", "memory");                                    \
	} while (0)

/*
 * Let the updates that were begun be finished. A handler may begin and finish some in the middle.
 * Not 1 more than before: a child that a handler forked would add 1, too, to what both share.
 */
PEM_INLINE void pem_cell_finish(struct pem_cell *cell)
{
	uint64_t n;

	/* SB */
	__asm__ __volatile__("1:\tmovq %2, %0\n\tmovq %0, %1\n\tcmpq %0, %2\n\tjne 1b"
			     : "=&r"(n), "=m"(cell->stat_end)
			     : "m"(cell->stat_begin)
			     : "cc", "memory");
}
#else
#define PEM_COUNT_NESTS 0
#endif

/*
 * As pem_cell_update, in fewer instructions. A handler that leaves it by longjmp leaves an event
 * that the next one counts. While a handler interrupts it, a reader may find an event that is
 * counted and not yet added. If the handler begins the cell anew, the interrupted event still goes
 * into its sum, least and greatest.
 */
PEM_INLINE void pem_cell_count(struct pem_cell *cell, uint64_t value, uint64_t key)
{
#if PEM_COUNT_NESTS
	/* SA: pem_add keeps the order */
	pem_add(&cell->stat_begin, 1);
	pem_add(&cell->sum, value);
	if (__builtin_expect(key < cell->min, 0))
		PEM_CELL_STORE(cell->min, key, <);
	if (__builtin_expect(key > cell->max, 0))
		PEM_CELL_STORE(cell->max, key, >);
	pem_cell_finish(cell);
#else
	pem_cell_update(cell, value, key);
#endif
}

/* As pem_cell_count, for an event of which no field is added up: it has the value 0. */
PEM_INLINE void pem_cell_count_event(struct pem_cell *cell)
{
#if PEM_COUNT_NESTS
	pem_add(&cell->stat_begin, 1);
	pem_cell_finish(cell);
#else
	pem_cell_update(cell, 0, 0);
#endif
}

/* Add one value for tag. If the cell holds another tag's statistic, that is forgotten. */
PEM_INLINE void pem_cell_add(struct pem_cell *cell, uint64_t tag, uint64_t value, uint64_t key)
{
	if (__builtin_expect(cell->tag != tag, 0))
		pem_cell_reset(cell, tag);
	pem_cell_update(cell, value, key);
}

#ifndef __bpf__

/*
 * Copy one cell's statistic. Returns 1, or 0 if its writer was changing it at each of tries
 * attempts; copy is then what was read last. A thread that was killed during an update leaves its
 * cell so.
 */
static inline int pem_cell_read(const struct pem_cell *cell, struct pem_cell *copy, unsigned tries)
{
	do {
		/* sb */
		copy->stat_end = __atomic_load_n(&cell->stat_end, __ATOMIC_ACQUIRE);
		copy->tag = PEM_LOAD(cell->tag);
		copy->sum = PEM_LOAD(cell->sum);
		copy->min = PEM_LOAD(cell->min);
		copy->max = PEM_LOAD(cell->max);
		/* sa */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		copy->stat_begin = PEM_LOAD(cell->stat_begin);
		/* The tag again: a later one may have come to the same count meanwhile. */
		if (copy->stat_begin == copy->stat_end && PEM_LOAD(cell->tag) == copy->tag)
			return 1;
	} while (--tries);
	return 0;
}

#endif
#endif
