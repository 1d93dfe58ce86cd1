/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * predicate.h - the tests of a compiled predicate
 *
 * Stubs (codegen/backends/c.c), the library (producer/notify.c), BPF programs
 * (codegen/backends/bpf.c) and the module's probes (codegen/backends/kmod.c) evaluate tests by
 * these inlines. For ad-hoc probes libpem/sources/kernel/attach/assemble.c writes the same as
 * instructions.
 *
 * Not here: the text of a predicate (libpem/predicate.c compiles 'size > 4096 && site != 0'), the
 * form of a test (abi.h).
 */
#ifndef PEM_PREDICATE_H
#define PEM_PREDICATE_H

#include <pem/abi.h>

/*
 * A filter: what has to hold of an event in this process. It is the process's private copy of a
 * rule's conditions. It never changes once a pointer to it is published.
 */
struct pem_filter {
	uint32_t tid; /* 0: any */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t distribution; /* with PEM_ACTION_DISTRIBUTION: PEM_DISTRIBUTION(...) */
	uint32_t test_count; /* 0: no predicate */
	/*
	 * A stub first tests that (thread id & stub_mask) == stub_tid. If that does not hold, the
	 * library decides.
	 */
	uint32_t stub_mask, stub_tid;
	/*
	 * test_count struct pem_test follow, at least one. pem_filter_tests() returns them, because
	 * C++ has no flexible arrays.
	 */
};
PEM_STATIC_ASSERT(sizeof(struct pem_filter) % 8 == 0, "tests follow aligned");

PEM_INLINE const struct pem_test *pem_filter_tests(const struct pem_filter *filter)
{
	return (const struct pem_test *)(const void *)(filter + 1);
}

/*
 * Return whether a test holds. word has the field in its highest bytes; the bytes below do not
 * matter.
 */
PEM_INLINE int pem_test_holds(const struct pem_test *test, uint64_t word)
{
	uint64_t key = word & test->mask;

	if (test->is_float)
		key ^= (uint64_t)((int64_t)key >> 63) >> 1;
	return (key ^ test->flip) - test->lo <= test->span;
}

/* Return whether a test holds, for a field that is not floating. */
PEM_INLINE int pem_test_holds_integer(const struct pem_test *test, uint64_t word)
{
	return ((word & test->mask) ^ test->flip) - test->lo <= test->span;
}

/* Return the index of the test that comes after this one, or PEM_TEST_PASS or PEM_TEST_FAIL. */
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
 * Return whether a predicate's tests can be evaluated on every record of at least fixed_bytes
 * bytes: each field ends within these, and each test leads to a later one.
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
 * Return whether a predicate of count tests holds of a record. pem_tests__valid has accepted the
 * tests for records of this length. A record's header stands before its fields, so the eight bytes
 * that end with a field lie inside the record. Not for BPF, whose loops need a bound.
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
