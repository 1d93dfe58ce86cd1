/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/*
 * predicate.h - is an event wanted? The tests of a compiled predicate, for stubs, BPF programs and the module alike
 *
 * Not here: what people write (libpem/predicate.c compiles 'size > 4096 && site != 0'), the test's form (abi.h).
 */
#ifndef PEM_PREDICATE_H
#define PEM_PREDICATE_H

#include <pem/abi.h>

/* What has to hold of an event in this process: its private copy of a rule's. Never changes once it is pointed to. */
struct pem_filter {
	uint32_t tid; /* 0: any */
	uint32_t cpu; /* PEM_NO_CPU: any */
	uint32_t wide; /* index of the statistic among the session's wide ones */
	uint32_t test_count; /* 0: no predicate */
	struct pem_test test[];
};

/* Does one test hold of a record? end - 8 to end - 1 must lie inside of it, its header included. */
PEM_INLINE int pem_test_holds(const struct pem_test *test, const uint8_t *record)
{
	uint64_t key;

	__builtin_memcpy(&key, record + test->end - 8, sizeof(key));
	key &= test->mask;
	if (test->is_float)
		key ^= (uint64_t)((int64_t)key >> 63) >> 1;
	key ^= test->flip;
	return key - test->lo <= test->span;
}

/* Does a predicate of count tests, checked by pem_tests__valid, hold? Not for BPF, whose loops need a bound. */
PEM_INLINE int pem_tests_pass(const struct pem_test *tests, uint32_t count, const uint8_t *record)
{
	uint32_t i = 0;

	while (i < count)
		i = pem_test_holds(&tests[i], record) ? tests[i].on_true : tests[i].on_false;
	return i == PEM_TEST_PASS;
}

#endif
