/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * accumulate.c - statistics that stubs leave to the library: of floating values, of other epochs,
 * and distributions
 *
 * The caller finds the cell or the struct pem_distribution. Each has one writer.
 */
#include "producer/producer.h"

#include <pem/distribution.h>

#include <string.h>

static const uint8_t type_bytes[] = {0, 1, 2, 4, 8, 1,
				     2, 4, 8, 4, 8}; /* bytes of a value, by enum pem_type */

static double bits_to_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t double_to_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static double load_floating(const uint8_t *at, uint32_t type)
{
	double d;
	float f;

	if (type == PEM_TYPE_FLOAT64) {
		memcpy(&d, at, sizeof(d));
		return d;
	}
	memcpy(&f, at, sizeof(f));
	return (double)f;
}

/*
 * Does the action word name a field that can be added up? The word lies in shared memory, so its
 * offset is checked. With a wrong offset the event is counted, and nothing is added.
 */
static bool has_field(uint64_t action, uint32_t bytes)
{
	uint32_t type = PEM_ACTION_TYPE(action);

	return PEM_ACTION_FIELD(action) != PEM_NO_FIELD && type >= PEM_TYPE_UINT8 &&
	       type <= PEM_TYPE_FLOAT64 && PEM_ACTION_OFFSET(action) + type_bytes[type] <= bytes;
}

/*
 * Add a floating value to a cell. The sum is kept as a double's bits, and the tag says so. Min and
 * max are kept as keys that order as the values do: a negative number with all bits inverted, any
 * other with the sign bit inverted.
 */
static void add_double(struct pem_cell *cell, uint64_t tag, double value)
{
	uint64_t bits = double_to_bits(value), sum;
	uint64_t key = bits >> 63 ? ~bits : bits ^ (1ULL << 63);

	tag |= PEM_CELL_FLOAT;
	sum = cell->tag == tag ? cell->sum : 0;
	/*
	 * The sum is added as the difference of two bit patterns, so that pem_cell_add's integer
	 * addition stores it.
	 */
	pem_cell_add(cell, tag, double_to_bits(bits_to_double(sum) + value) - sum, key);
}

void pem_accumulate(struct pem_cell *cell, uint64_t action, const uint8_t *record, uint32_t bytes)
{
	uint32_t type = PEM_ACTION_TYPE(action), offset = PEM_ACTION_OFFSET(action);
	uint64_t tag = PEM_ACTION_TAG(action), value;

	if (!has_field(action, bytes)) {
		pem_cell_add(cell, tag, 0, 0);
	} else if (type <= PEM_TYPE_INT64) {
		value = pem_load_integer(record + offset, type);
		pem_cell_add(cell, tag, value,
			     type >= PEM_TYPE_INT8 ? pem_stat_key_signed((int64_t)value) : value);
	} else {
		add_double(cell, tag, load_floating(record + offset, type));
	}
}

bool pem_distribution__exists(const struct pem_ring *ring, uint32_t index, uint32_t lane)
{
	uint32_t *distributions = &ring->lanes[lane].distributions, bit = 1u << index;

	if (__atomic_load_n(distributions, __ATOMIC_RELAXED) & bit)
		return true;
	if (!pem_populate(pem_pool__distribution(ring, index, lane),
			  sizeof(struct pem_distribution)))
		return false;
	/*
	 * LC: consumers read the distribution from here on. Another thread may set a bit of lane 0
	 * at the same time.
	 */
	__atomic_fetch_or(distributions, bit, __ATOMIC_RELEASE);
	return true;
}

bool pem_further__exist(const struct pem_ring *ring, uint32_t lane)
{
	if (!ring->further)
		return false;
	if (__atomic_load_n(&ring->lanes[lane].further, __ATOMIC_RELAXED))
		return true;
	if (!pem_populate(pem_pool__further(ring, lane, 0),
			  PEM_FURTHER_CELLS * sizeof(struct pem_cell)))
		return false;
	/* LC: consumers read the cells from here on */
	__atomic_store_n(&ring->lanes[lane].further, 1, __ATOMIC_RELEASE);
	return true;
}

/*
 * Update the mean and the sum of squared distances from it by one value: Welford, Technometrics
 * 4(3), 1962.
 */
static void add_distance(struct pem_distribution *distribution, double value)
{
	double mean = bits_to_double(distribution->sum[0]), distance = value - mean;
	uint64_t n = distribution->begin + 1;

	mean += distance / (double)n;
	__atomic_store_n(&distribution->begin, n, __ATOMIC_RELAXED);
	/* SA: begin before the values */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&distribution->sum[0], double_to_bits(mean), __ATOMIC_RELAXED);
	__atomic_store_n(&distribution->squares[0],
			 double_to_bits(bits_to_double(distribution->squares[0]) +
					distance * (value - mean)),
			 __ATOMIC_RELAXED);
	/* SB: the values before the end */
	__atomic_store_n(&distribution->end, n, __ATOMIC_RELEASE);
}

/* The histogram bucket of a value's whole part. */
static uint32_t bucket_of(double value)
{
	if (!(value >= 1)) /* true also for NaN */
		return 0;
	return value < 0x1p63 ? pem_distribution_bucket((uint64_t)value, 0)
			      : PEM_DISTRIBUTION_BUCKETS - 1;
}

bool pem_accumulate_distribution(const struct pem_ring *ring, uint32_t lane, uint32_t word,
				 uint64_t action, const uint8_t *record, uint32_t bytes)
{
	uint32_t type = PEM_ACTION_TYPE(action), keep = PEM_DISTRIBUTION_KEEP(word);
	uint64_t tag = PEM_DISTRIBUTION_TAG(word, action), value;
	bool is_float = type > PEM_TYPE_INT64, is_signed = !is_float && type >= PEM_TYPE_INT8;
	struct pem_distribution *distribution;
	double d = 0;

	if (PEM_DISTRIBUTION_INDEX(word) >= PEM_DISTRIBUTION_COUNT || !has_field(action, bytes))
		return true;
	if (!pem_distribution__exists(ring, PEM_DISTRIBUTION_INDEX(word), lane))
		return false;
	distribution = pem_pool__distribution(ring, PEM_DISTRIBUTION_INDEX(word), lane);
	if (is_float) {
		tag |= PEM_CELL_FLOAT;
		d = load_floating(record + PEM_ACTION_OFFSET(action), type);
		value = double_to_bits(d);
	} else {
		value = pem_load_integer(record + PEM_ACTION_OFFSET(action), type);
	}
	if (distribution->tag != tag)
		pem_distribution_reset(distribution, tag);
	if (keep & PEM_DISTRIBUTION_VARIANCE && is_float)
		add_distance(distribution, d);
	else if (keep & PEM_DISTRIBUTION_VARIANCE)
		pem_distribution_add_square(distribution, value, is_signed);
	if (keep & PEM_DISTRIBUTION_HISTOGRAM)
		pem_distribution_add_bucket(distribution,
					    is_float ? bucket_of(d)
						     : pem_distribution_bucket(value, is_signed));
	if (keep & PEM_DISTRIBUTION_VALUES)
		pem_distribution_add_top(distribution, value);
	return true;
}
