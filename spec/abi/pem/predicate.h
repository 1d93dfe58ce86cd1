/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * predicate.h - is an event wanted? The tests of a compiled predicate, for stubs, BPF programs and
 * the module alike
 *
 * Not here: what people write (libpem/predicate.c compiles 'size > 4096 && site != 0'), the test's
 * form (abi.h).
 */
#ifndef PEM_PREDICATE_H
#define PEM_PREDICATE_H

#include <pem/abi.h>

/*
 * What has to hold of an event in this process: its private copy of a rule's. Never changes once it
 * is pointed to.
 */
struct pem_filter {
	uint32_t tid; /* 0: any */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t distribution; /* with PEM_ACTION_DISTRIBUTION: PEM_DISTRIBUTION(...) */
	uint32_t test_count; /* 0: no predicate */
	/*
	 * What a stub asks for first: of the thread's id, the bits of the mask. Where that does not
	 * hold, the library judges.
	 */
	uint32_t stub_mask, stub_tid;
	/*
	 * then as many struct pem_test, at least one: pem_filter_tests(), as C++ has no flexible
	 * arrays
	 */
};
PEM_STATIC_ASSERT(sizeof(struct pem_filter) % 8 == 0, "tests follow aligned");

PEM_INLINE const struct pem_test *pem_filter_tests(const struct pem_filter *filter)
{
	return (const struct pem_test *)(const void *)(filter + 1);
}

/*
 * Does a test hold when word has the field in its highest bytes? What lies below it does not
 * matter.
 */
PEM_INLINE int pem_test_holds(const struct pem_test *test, uint64_t word)
{
	uint64_t key = word & test->mask;

	if (test->is_float)
		key ^= (uint64_t)((int64_t)key >> 63) >> 1;
	return (key ^ test->flip) - test->lo <= test->span;
}

/* The same of a field that is no floating one. */
PEM_INLINE int pem_test_holds_integer(const struct pem_test *test, uint64_t word)
{
	return ((word & test->mask) ^ test->flip) - test->lo <= test->span;
}

/* Which test comes after this one, or PEM_TEST_PASS or PEM_TEST_FAIL. */
PEM_INLINE uint32_t pem_test_next(const struct pem_test *test, uint64_t word)
{
	return pem_test_holds(test, word) ? test->on_true : test->on_false;
}

PEM_INLINE uint32_t pem_test_next_integer(const struct pem_test *test, uint64_t word)
{
	return pem_test_holds_integer(test, word) ? test->on_true : test->on_false;
}

PEM_INLINE int pem_test_leads_on(uint32_t from, uint32_t to, uint32_t count)
{
	return (to > from && to < count) || to == PEM_TEST_PASS || to == PEM_TEST_FAIL;
}

/*
 * Can these tests of a predicate be evaluated on every record of at least fixed_bytes bytes? Each
 * ends within them, and goes on to a later one.
 */
static inline int pem_tests__valid(const struct pem_test *tests, uint32_t count,
				   uint32_t fixed_bytes)
{
	uint32_t i;

	if (count > PEM_TESTS_MAX)
		return 0;
	for (i = 0; i < count; i++) {
		if (tests[i].end <= sizeof(struct pem_record_header) ||
		    tests[i].end > fixed_bytes || !pem_test_leads_on(i, tests[i].on_true, count) ||
		    !pem_test_leads_on(i, tests[i].on_false, count))
			return 0;
	}
	return 1;
}

/*
 * Does a predicate of count tests, checked by pem_tests__valid for records so long, hold of a
 * record? Its header stands in front of its fields, so that the eight bytes that end with one are
 * inside of it. Not for BPF, whose loops need a bound.
 */
PEM_INLINE int pem_tests_pass(const struct pem_test *tests, uint32_t count, const uint8_t *record)
{
	uint32_t i = 0;
	uint64_t word;

	while (i < count) {
		__builtin_memcpy(&word, record + tests[i].end - 8, sizeof(word));
		i = pem_test_next(&tests[i], word);
	}
	return i == PEM_TEST_PASS;
}

#endif
