// SPDX-License-Identifier: MIT
/* sketch.c - percentiles of many values in little memory (contract: sketch.h) */
#include "sketch.h"
#include "grow.h"

#include <math.h>

#define MANTISSA_BITS 52u /* of a double, below its exponent */

/*
 * The first bits of a double are its exponent, and then the first ones of its fraction: they number
 * the bins in the order of their values. Source: Masson, Rim, Lee: DDSketch, VLDB 2019, section 2,
 * with the linear interpolation of the logarithm.
 */
static int32_t bin_of(double value)
{
	double magnitude = fabs(value);
	uint64_t bits;
	int32_t index;

	memcpy(&bits, &magnitude, sizeof(bits));
	index = (int32_t)(bits >> (MANTISSA_BITS - PEM_SKETCH_STEP_BITS));
	return value < 0 ? -index : index;
}

static double begin_of(int32_t magnitude)
{
	uint64_t bits = (uint64_t)magnitude << (MANTISSA_BITS - PEM_SKETCH_STEP_BITS);
	double begin;

	memcpy(&begin, &bits, sizeof(begin));
	return begin;
}

/* The first bin from an index on. */
static size_t find(const struct pem_sketch *s, int32_t index)
{
	size_t low = 0, high = s->bin_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (s->bins[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int add_to_bin(struct pem_sketch *s, int32_t index, uint64_t count)
{
	size_t at = s->last;

	if (at >= s->bin_count || s->bins[at].index != index)
		at = find(s, index);
	if (at == s->bin_count || s->bins[at].index != index) {
		if (pem_grow(&s->bins, sizeof(*s->bins), s->bin_count + 1, &s->bin_capacity) < 0)
			return -ENOMEM;
		memmove(&s->bins[at + 1], &s->bins[at], (s->bin_count - at) * sizeof(*s->bins));
		s->bins[at] = (struct pem_sketch_bin){.index = index};
		s->bin_count++;
	}
	s->last = at;
	s->bins[at].count += count;
	s->count += count;
	return 0;
}

static void reach(struct pem_sketch *s, bool is_first, double least, double most)
{
	s->least = is_first || least < s->least ? least : s->least;
	s->most = is_first || most > s->most ? most : s->most;
}

int pem_sketch__add(struct pem_sketch *s, double value)
{
	return pem_sketch__add_many(s, value, 1);
}

int pem_sketch__add_many(struct pem_sketch *s, double value, uint64_t count)
{
	bool is_first = s->count == 0;

	if (add_to_bin(s, bin_of(value), count) < 0)
		return -ENOMEM;
	reach(s, is_first, value, value);
	s->has_fractions |= value != floor(value);
	return 0;
}

int pem_sketch__merge(struct pem_sketch *to, const struct pem_sketch *from)
{
	int rc = 0;
	size_t i;

	if (from->count != 0)
		reach(to, to->count == 0, from->least, from->most);
	to->has_fractions |= from->has_fractions;
	for (i = 0; rc == 0 && i < from->bin_count; i++)
		rc = add_to_bin(to, from->bins[i].index, from->bins[i].count);
	return rc;
}

/*
 * The middle of a bin. Of whole numbers a bin has those from its begin to one below its end, so
 * that their middle is half a number lower. A bin narrower than 1 has one: its begin.
 */
static double middle_of(const struct pem_sketch *s, int32_t index)
{
	int32_t magnitude = index < 0 ? -index : index;
	double begin = begin_of(magnitude), end = begin_of(magnitude + 1);
	double middle = begin + (end - begin) / 2;

	if (!s->has_fractions)
		middle = end - begin > 1 ? floor(middle - 0.5) : begin;
	return index < 0 ? -middle : middle;
}

double pem_sketch__percentile(const struct pem_sketch *s, unsigned int per_mille)
{
	/* Whole thousands first: the product would not fit. */
	uint64_t rank = s->count / 1000 * per_mille + (s->count % 1000 * per_mille + 999) / 1000;
	uint64_t before = 0;
	double value;
	size_t i;

	if (s->count == 0)
		return NAN;
	if (rank == 0)
		rank = 1;
	for (i = 0; i + 1 < s->bin_count; i++) {
		before += s->bins[i].count;
		if (before >= rank)
			break;
	}
	value = middle_of(s, s->bins[i].index);
	if (value < s->least)
		return s->least;
	return value < s->most ? value : s->most;
}

void pem_sketch__free(struct pem_sketch *s)
{
	free(s->bins);
	memset(s, 0, sizeof(*s));
}
