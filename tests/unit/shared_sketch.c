/* SPDX-License-Identifier: MIT */
/*
 * shared_sketch.c - percentiles of a sketch beside those of the sorted values
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUES 20000

static double values[VALUES];

static int lower(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Values over many powers of two, the same in each run. */
static void fill(int whole, int with_negative)
{
	uint64_t state = 88172645463325252ull;
	size_t i;

	for (i = 0; i < VALUES; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		values[i] = exp2((double)(state % 100000) / 100000 * 60) / (whole ? 1 : 1e6);
		if (whole)
			values[i] = floor(values[i]);
		if (with_negative && state >> 60 < 6)
			values[i] = -values[i];
	}
}

/* Compare each percentile with the value of its rank. Sorts the values. */
static void compare(const struct pem_sketch *sketch)
{
	unsigned int per_mille;
	double exact, got;

	qsort(values, VALUES, sizeof(values[0]), lower);
	assert_int_equal(sketch->count, VALUES);
	for (per_mille = 0; per_mille <= 1000; per_mille++) {
		exact = values[per_mille == 0 ? 0 : VALUES * per_mille / 1000 - 1];
		got = pem_sketch__percentile(sketch, per_mille);
		if (fabs(got - exact) > PEM_SKETCH_ERROR * fabs(exact))
			fail_msg("%u: %g, exactly %g", per_mille, got, exact);
	}
	assert_true(pem_sketch__percentile(sketch, 1000) <= values[VALUES - 1]);
}

static void check(int whole, int with_negative)
{
	struct pem_sketch sketch = {0};
	size_t i;

	fill(whole, with_negative);
	for (i = 0; i < VALUES; i++)
		assert_int_equal(pem_sketch__add(&sketch, values[i]), 0);
	compare(&sketch);
	pem_sketch__free(&sketch);
}

static void percentiles_are_within_the_stated_error(void **state)
{
	(void)state;
	check(1, 0);
	check(0, 0);
	check(1, 1);
	check(0, 1);
}

static void merged_sketches_are_that_of_all_values(void **state)
{
	struct pem_sketch parts[3] = {{0}}, sum = {0}, all = {0};
	size_t i;

	(void)state;
	fill(0, 1);
	for (i = 0; i < VALUES; i++) {
		assert_int_equal(pem_sketch__add(&parts[i % 3 == 0 ? 0 : 1], values[i]), 0);
		assert_int_equal(pem_sketch__add(&all, values[i]), 0);
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(pem_sketch__merge(&sum, &parts[i]), 0);
	compare(&sum);
	assert_int_equal(sum.bin_count, all.bin_count);
	for (i = 0; i < all.bin_count; i++) {
		assert_int_equal(sum.bins[i].index, all.bins[i].index);
		assert_int_equal(sum.bins[i].count, all.bins[i].count);
	}
	assert_true(sum.least == all.least && sum.most == all.most);
	for (i = 0; i < 3; i++)
		pem_sketch__free(&parts[i]);
	pem_sketch__free(&sum);
	pem_sketch__free(&all);
}

static void small_whole_numbers_are_exact(void **state)
{
	struct pem_sketch sketch = {0};
	unsigned int i;

	(void)state;
	for (i = 0; i < 100; i++)
		assert_int_equal(pem_sketch__add(&sketch, i), 0);
	for (i = 1; i <= 100; i++)
		assert_true(pem_sketch__percentile(&sketch, 10 * i) == i - 1);
	pem_sketch__free(&sketch);
}

static void a_single_value_is_exact(void **state)
{
	static const double odd[] = {0,       -1,      1e300,    0x1p64,   -0x1p63,
				     1000003, 1.00001, INFINITY, -INFINITY};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		struct pem_sketch sketch = {0};

		assert_true(isnan(pem_sketch__percentile(&sketch, 500)));
		assert_int_equal(pem_sketch__add(&sketch, odd[i]), 0);
		assert_true(pem_sketch__percentile(&sketch, 999) == odd[i]);
		pem_sketch__free(&sketch);
	}
}

static void a_value_counts_as_often_as_it_occurred(void **state)
{
	struct pem_sketch sketch = {0};

	(void)state;
	assert_int_equal(pem_sketch__add_many(&sketch, 10, 899), 0);
	assert_int_equal(pem_sketch__add_many(&sketch, 20, 101), 0);
	assert_int_equal(sketch.count, 1000);
	assert_true(pem_sketch__percentile(&sketch, 899) == 10);
	assert_true(pem_sketch__percentile(&sketch, 900) == 20);
	pem_sketch__free(&sketch);
}

static void memory_is_that_of_its_bins(void **state)
{
	struct pem_sketch sketch = {0};
	size_t i;

	(void)state;
	for (i = 0; i < 1000000; i++)
		assert_int_equal(pem_sketch__add(&sketch, (double)(1024 + i % 1024)), 0);
	assert_int_equal(sketch.bin_count, PEM_SKETCH_STEPS);
	pem_sketch__free(&sketch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_within_the_stated_error),
		cmocka_unit_test(merged_sketches_are_that_of_all_values),
		cmocka_unit_test(small_whole_numbers_are_exact),
		cmocka_unit_test(a_single_value_is_exact),
		cmocka_unit_test(a_value_counts_as_often_as_it_occurred),
		cmocka_unit_test(memory_is_that_of_its_bins),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
