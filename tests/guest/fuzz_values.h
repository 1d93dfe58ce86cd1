/* SPDX-License-Identifier: MIT */
/*
 * fuzz_values.h - random values for a system call, right, nearly right or wrong, and memory that is
 * there, half there or not
 *
 * Not here: what they are for (module_fuzz.c).
 */
#ifndef PEM_TESTS_FUZZ_VALUES_H
#define PEM_TESTS_FUZZ_VALUES_H

#include <pem/abi.h>
#include <pem/kmod.h>

#include <string.h>
#include <sys/mman.h>

#define MAPS 8
#define PAGE 4096u

/*
 * Where structures lie: memory of all threads, a page before one that can't be read, four that
 * can't be written to.
 */
static uint8_t *shared_bytes, *before_hole, *read_only;

/* 0: there is no memory. */
static inline int make_memory(void)
{
	shared_bytes =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	before_hole =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	read_only = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return shared_bytes != MAP_FAILED && before_hole != MAP_FAILED && read_only != MAP_FAILED &&
	       mprotect(before_hole + PAGE, PAGE, PROT_NONE) == 0;
}

/* A thread: its random numbers, what it mapped, and chunks that it took. */
struct user {
	uint64_t seed;
	struct {
		uint8_t *at;
		size_t bytes;
	} map[MAPS];
	uint32_t taken[64];
	uint32_t taken_count, taken_cpu;
	uint8_t memory[4 * PAGE] __attribute__((aligned(4096)));
};

static inline uint64_t next(struct user *u) /* splitmix64 (Steele, Lea, Flood, OOPSLA 2014) */
{
	uint64_t z = (u->seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline uint32_t below(struct user *u, uint32_t n)
{
	return (uint32_t)(next(u) % n);
}

static inline int one_in(struct user *u, uint32_t n)
{
	return below(u, n) == 0;
}

/* A number that some check may have forgotten. */
static inline uint64_t odd(struct user *u)
{
	static const uint64_t numbers[] = {
		0,          1,          2,          4095,           4096,           8191,
		8192,       65536,      1u << 20,   (1u << 20) + 1, 0x7fffffff,     0x80000000,
		0xfffffffe, 0xffffffff, 1ull << 36, INT64_MAX,      UINT64_MAX - 7, UINT64_MAX};

	return one_in(u, 4) ? next(u) : numbers[below(u, sizeof(numbers) / sizeof(numbers[0]))];
}

/* --- which command --- */

static inline unsigned long any_disguise(struct user *u, unsigned long command)
{
	switch (below(u, 24)) {
	case 0:
		return command ^ 1ul << below(u, 32);
	case 1:
		return _IOC(_IOC_READ | _IOC_WRITE, 'P', below(u, 256), below(u, 1u << 14));
	default:
		return command;
	}
}

/*
 * A command, seldom another device's, another one, or of another size or direction. It becomes WORK
 * only from WORK: a caller that expects an answer would wait until somebody stops the session, for
 * ever if nobody has its file any more.
 */
static inline unsigned long disguise(struct user *u, unsigned long command)
{
	unsigned long other = any_disguise(u, command);

	if (_IOC_NR(other) == _IOC_NR(PEM_KMOD_WORK) && _IOC_NR(command) != _IOC_NR(PEM_KMOD_WORK))
		return command;
	return other;
}

/* --- where a structure lies, and what is wrong with it --- */

/* Lay bytes where the kernel is to find them. */
static inline void *place(struct user *u, const void *bytes, size_t count, uint32_t at)
{
	uint8_t *to = u->memory + at;
	size_t half;

	switch (below(u, 32)) {
	case 0:
		return NULL;
	case 1:
		return (void *)(uintptr_t)(odd(u) << 12);
	case 2: /* the kernel's own */
		return (void *)(uintptr_t)(0xffff888000000000ull + (next(u) & 0xffffff8));
	case 3: /* the rest is not there */
		half = count ? below(u, (uint32_t)count) : 0;
		to = before_hole + PAGE - half;
		memcpy(to, bytes, half);
		return to;
	case 4: /* can't be written to */
		return read_only + below(u, PAGE);
	case 5: /* others write there, too */
		to = shared_bytes + (next(u) & (PAGE - 8));
		break;
	case 6:
		to += 1 + below(u, 7);
		break;
	}
	memcpy(to, bytes, count);
	return to;
}

/* The size that a structure begins with. */
static inline void resize(struct user *u, void *structure, size_t bytes)
{
	static const int32_t steps[] = {-8, -4, -1, 1, 4, 8, 64};
	uint32_t *size = structure;

	if (!one_in(u, 16))
		return;
	if (one_in(u, 2))
		*size = (uint32_t)odd(u);
	else
		*size = (uint32_t)((int32_t)bytes +
				   steps[below(u, sizeof(steps) / sizeof(steps[0]))]);
}

static inline void mutate(struct user *u, void *structure, size_t bytes)
{
	uint32_t i, n = one_in(u, 6) ? 1 + below(u, 3) : 0;
	uint64_t value;
	size_t width;

	for (i = 0; i < n; i++) {
		value = odd(u);
		width = one_in(u, 2) ? 4 : 8;
		memcpy((uint8_t *)structure + below(u, (uint32_t)(bytes / width)) * width, &value,
		       width);
	}
	resize(u, structure, bytes);
}

/*
 * A pointer that was to be found by the kernel, after mutate(): one that is another now must not
 * lead to memory of ours that nobody offered.
 */
static inline uint64_t harmless(uint64_t pointer, const void *planned)
{
	return pointer == (uintptr_t)planned || pointer < PAGE ? pointer : pointer | 1ull << 63;
}

/* One of a predicate of so many, mostly as it should be. */
static inline void random_test(struct user *u, struct pem_test *test, uint32_t index,
			       uint32_t count)
{
	uint8_t later = (uint8_t)(index + 1 < count ? index + 1 + below(u, count - index - 1)
						    : PEM_TEST_PASS);

	*test = (struct pem_test){.mask = ~0ull, .lo = next(u) & 0xff, .span = odd(u)};
	test->end = (uint16_t)(9 + below(u, 24));
	test->on_true = one_in(u, 2) ? PEM_TEST_PASS : later;
	test->on_false = one_in(u, 2) ? PEM_TEST_FAIL : later;
	if (one_in(u, 10))
		mutate(u, test, sizeof(*test));
}

#endif
