/* SPDX-License-Identifier: MIT */
/* names_spans.c - ranges that overlap in every way, against a search of all of them */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PEM_TEST_LIBDW
#include "names/names.h"

#define SPANS 12
#define ADDRESSES 40

/* The higher start holds, then the shorter one, then the later one. */
static uint32_t expected(const struct pem_span *spans, size_t count, uint64_t address)
{
	const struct pem_span *best = NULL;
	size_t i;

	for (i = 0; i < count; i++) {
		const struct pem_span *s = &spans[i];

		if (address < s->low || address >= s->high)
			continue;
		if (!best || s->low > best->low || (s->low == best->low && s->high <= best->high))
			best = s;
	}
	return best ? best->of : PEM_SPAN_NONE;
}

static void overlaps(void **state)
{
	unsigned int seed = 1, round;
	uint64_t address;
	uint32_t i;

	(void)state;
	for (round = 0; round < 3000; round++) {
		struct pem_spans spans = {0};
		struct pem_span given[SPANS];
		uint32_t count = (uint32_t)rand_r(&seed) % SPANS;

		for (i = 0; i < count; i++) {
			given[i].low = (uint64_t)rand_r(&seed) % ADDRESSES;
			given[i].high = (uint64_t)rand_r(&seed) % ADDRESSES;
			given[i].of = i;
			assert_int_equal(pem_spans__add(&spans, given[i].low, given[i].high, i), 0);
		}
		assert_int_equal(pem_spans__sort(&spans), 0);
		for (address = 0; address <= ADDRESSES; address++)
			assert_int_equal(pem_spans__find(&spans, address),
					 expected(given, count, address));
		pem_spans__free(&spans);
	}
}

static void ends_of_the_address_space(void **state)
{
	struct pem_spans spans = {0};

	(void)state;
	assert_int_equal(pem_spans__find(&spans, 0), PEM_SPAN_NONE);
	assert_int_equal(pem_spans__add(&spans, UINT64_MAX - 8, UINT64_MAX, 3), 0);
	assert_int_equal(pem_spans__add(&spans, 0, 1, 4), 0);
	assert_int_equal(pem_spans__sort(&spans), 0);
	assert_int_equal(pem_spans__find(&spans, 0), 4);
	assert_int_equal(pem_spans__find(&spans, 1), PEM_SPAN_NONE);
	assert_int_equal(pem_spans__find(&spans, UINT64_MAX - 1), 3);
	assert_int_equal(pem_spans__find(&spans, UINT64_MAX), PEM_SPAN_NONE);
	pem_spans__free(&spans);
}

/* A name of which each parameter has the one before twice. */
static char *demangle_levels(int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1f1PI1A1AE", *at = name + strlen(name);
	int i;

	for (i = 1; i <= levels; i++)
		at += sprintf(at, "S_IS%c_S%c_E", digits[i], digits[i]);
	return pem_symbols__demangle(name);
}

static void names_stay_short(void **state)
{
	char *plain = pem_symbols__demangle("_ZN3one3twoEi"), *made;

	(void)state;
	if (!plain)
		skip(); /* no libstdc++ here */
	assert_string_equal(plain, "one::two(int)");
	free(plain);
	made = demangle_levels(6);
	assert_non_null(made);
	free(made);
	/* It would have hundreds of kilobytes. */
	assert_null(demangle_levels(26));
	assert_null(pem_symbols__demangle("main"));
	assert_null(pem_symbols__demangle("_Z"));
	assert_null(pem_symbols__demangle("_Znonsense"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(overlaps),
		cmocka_unit_test(ends_of_the_address_space),
		cmocka_unit_test(names_stay_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
	print_message("libdw-dev is missing\n");
	return 77;
}
#endif
