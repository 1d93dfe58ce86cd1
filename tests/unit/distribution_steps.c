/* SPDX-License-Identifier: MIT */
/*
 * distribution_steps.c - the steps on a distribution that every producer shares, against wider
 * arithmetic (pem/distribution.h)
 */
#include <pem/distribution.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Values near what makes a word carry into the next. */
static const uint64_t values[] = {
	0,
	1,
	5,
	0xffffffff,
	0x100000000,
	0x7fffffffffffffff,
	0x8000000000000000,
	0xfffffffffffffffe,
	~0ULL,
};
#define COUNT (sizeof(values) / sizeof(values[0]))

static void sums_of_squares_carry(void **state)
{
	struct pem_distribution *d = calloc(1, sizeof(*d));
	unsigned __int128 sum, low, high, square;
	uint64_t magnitude;
	size_t i, round;
	int is_signed;

	(void)state;
	assert_non_null(d);
	for (is_signed = 0; is_signed < 2; is_signed++) {
		sum = low = high = 0;
		pem_distribution_reset(d, 1 + (uint64_t)is_signed);
		for (round = 0; round < 5; round++) {
			for (i = 0; i < COUNT; i++) {
				pem_distribution_add_square(d, values[i], (uint64_t)is_signed);
				sum += is_signed ? (unsigned __int128)(__int128)(int64_t)values[i]
						 : values[i];
				magnitude = is_signed && (int64_t)values[i] < 0 ? -values[i]
										: values[i];
				square = (unsigned __int128)magnitude * magnitude;
				low += square;
				high += low < square;
			}
		}
		assert_true(d->sum[0] == (uint64_t)sum && d->sum[1] == (uint64_t)(sum >> 64));
		assert_true(d->squares[0] == (uint64_t)low &&
			    d->squares[1] == (uint64_t)(low >> 64));
		assert_true(d->squares[2] == (uint64_t)high);
		assert_true(d->begin == 5 * COUNT && d->end == d->begin);
	}
	free(d);
}

static void buckets_are_highest_bits(void **state)
{
	uint32_t bit;

	(void)state;
	assert_int_equal(pem_distribution_bucket(0, 0), 0);
	assert_int_equal(pem_distribution_bucket(~0ULL, 1), 0);
	for (bit = 0; bit < 64; bit++) {
		assert_int_equal(pem_distribution_bucket(1ULL << bit, 0), bit + 1);
		assert_int_equal(pem_distribution_bucket(~0ULL >> (63 - bit), 0), bit + 1);
		assert_int_equal(pem_distribution_bucket(1ULL << bit, 1), bit < 63 ? bit + 1 : 0);
	}
}

static void the_least_frequent_entry_is_taken(void **state)
{
	struct pem_distribution *d = calloc(1, sizeof(*d));
	uint64_t i;

	(void)state;
	assert_non_null(d);
	pem_distribution_reset(d, 1);
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++) {
		pem_distribution_add_top(d, i);
		if (i != 7)
			pem_distribution_add_top(d, i);
	}
	for (i = 0; i < PEM_DISTRIBUTION_TOP; i++)
		assert_true(d->top[i].value == i && d->top[i].count == (i == 7 ? 1 : 2) &&
			    !d->top[i].error);
	pem_distribution_add_top(d, 1000);
	assert_true(d->top[7].value == 1000 && d->top[7].count == 2 && d->top[7].error == 1);
	assert_true(!(d->top[7].sequence & 1));
	free(d);
}

/*
 * What Space-Saving promises, of a stream where some values are frequent, most come once, and all
 * have one of few hashes.
 */
#define VALUES 4000u
#define EVENTS 20000u

static uint64_t value_of(uint32_t i)
{
	static const uint64_t hashes[] = {0, 0x81, 0x80};

	/* The inverse of the factor of pem_distribution_add_top. */
	return (hashes[i % 3] << 56 | i) * 0xf1de83e19937733dULL;
}

/* Add a value. One that has no entry takes one of the least frequent. */
static void add_checked(struct pem_distribution *d, uint64_t value)
{
	uint64_t least = ~0ULL;
	int has_entry = 0;
	uint32_t k;

	for (k = 0; k < PEM_DISTRIBUTION_TOP; k++) {
		has_entry |= d->top[k].count && d->top[k].value == value;
		least = d->top[k].count < least ? d->top[k].count : least;
	}
	pem_distribution_add_top(d, value);
	for (k = 0; d->top[k].value != value || !d->top[k].count;)
		k++;
	if (!has_entry)
		assert_true(d->top[k].error == least && d->top[k].count == least + 1);
}

static void frequent_values_keep_their_bounds(void **state)
{
	struct pem_distribution *d = calloc(1, sizeof(*d));
	uint64_t *times = calloc(VALUES, sizeof(*times)), sum = 0, random = 1;
	uint32_t i, k, which, seen[VALUES] = {0};

	(void)state;
	assert_true(d && times);
	assert_int_equal(0x9e3779b97f4a7c15ULL * 0xf1de83e19937733dULL, 1);
	pem_distribution_reset(d, 1);
	for (i = 0; i < EVENTS; i++) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		which = (uint32_t)(random >> 33);
		which = which % 2 ? which / 2 % 6 : which / 2 % VALUES;
		times[which]++;
		add_checked(d, value_of(which));
	}
	for (k = 0; k < PEM_DISTRIBUTION_TOP; k++) {
		for (i = 0; i < VALUES && value_of(i) != d->top[k].value;)
			i++;
		assert_in_range(i, 0, VALUES - 1);
		assert_int_equal(seen[i]++, 0);
		assert_in_range(times[i], d->top[k].count - d->top[k].error, d->top[k].count);
		sum += d->top[k].count;
	}
	assert_int_equal(sum, EVENTS);
	for (i = 0; i < 6; i++)
		assert_int_equal(seen[i], 1);
	/* Nothing is left of it when the distribution begins anew. */
	pem_distribution_reset(d, 2);
	for (i = 0; i < EVENTS; i++)
		add_checked(d, value_of(i % VALUES));
	free(times);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_of_squares_carry),
		cmocka_unit_test(buckets_are_highest_bits),
		cmocka_unit_test(the_least_frequent_entry_is_taken),
		cmocka_unit_test(frequent_values_keep_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
