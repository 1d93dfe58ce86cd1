/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * distribution.c - adding up distributions
 *
 * Not here: adding a value (pem/distribution.h).
 */
#include "distribution.h"

#include <stdbool.h>
#include <string.h>

static double to_double(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t to_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* Numbers of 192 bits, modulo 2^192, low word first. */

static void add_words(uint64_t *to, const uint64_t *from, unsigned words)
{
	unsigned __int128 carry = 0;
	unsigned i;

	for (i = 0; i < words; i++) {
		carry += (unsigned __int128)to[i] + from[i];
		to[i] = (uint64_t)carry;
		carry >>= 64;
	}
}

static void subtract(uint64_t to[3], const uint64_t from[3])
{
	const uint64_t one[3] = {1, 0, 0}, complement[3] = {~from[0], ~from[1], ~from[2]};

	add_words(to, complement, 3);
	add_words(to, one, 3);
}

static void multiply(const uint64_t a[3], const uint64_t b[3], uint64_t product[3])
{
	unsigned __int128 carry;
	unsigned i, k;

	memset(product, 0, 3 * sizeof(*product));
	for (i = 0; i < 3; i++) {
		for (k = 0, carry = 0; i + k < 3; k++) {
			carry += (unsigned __int128)a[i] * b[k] + product[i + k];
			product[i + k] = (uint64_t)carry;
			carry >>= 64;
		}
	}
}

static void extend(uint64_t low, uint64_t high, uint64_t words[3])
{
	words[0] = low;
	words[1] = high;
	words[2] = high >> 63 ? ~0ull : 0;
}

/*
 * Add sums of squared distances from the mean. Source: Chan, Golub, LeVeque: Updating formulae and
 * a pairwise algorithm for computing sample variances, 1979.
 */
static void add_distances(struct pem_distribution *to, const struct pem_distribution *from)
{
	double n = (double)to->end, m = (double)from->end;
	double mean = to_double(to->sum[0]), distance = to_double(from->sum[0]) - mean;

	to->squares[0] = to_bits(to_double(to->squares[0]) + to_double(from->squares[0]) +
				 distance * distance * (n * m / (n + m)));
	to->sum[0] = to_bits(mean + distance * (m / (n + m)));
}

void pem_distribution__add(struct pem_distribution *to, const struct pem_distribution *from)
{
	uint32_t i;

	to->tag = from->tag;
	if (from->end) {
		if (from->tag & PEM_CELL_FLOAT) {
			add_distances(to, from);
		} else {
			add_words(to->sum, from->sum, 2);
			add_words(to->squares, from->squares, 3);
		}
		to->end += from->end;
	}
	for (i = 0; i < PEM_DISTRIBUTION_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
}

/*
 * The sum of (value - m)^2 is Q - 2 m S + n m^2, where S and Q are the exact sums of values and of
 * squares. With a whole number m near the mean the result is small, so nothing is lost when it is
 * converted to floating.
 */
double pem_distribution__variance(const struct pem_distribution *w)
{
	__int128 sum = (__int128)((unsigned __int128)w->sum[1] << 64 | w->sum[0]), whole;
	uint64_t m[3], s[3], n[3] = {w->end, 0, 0}, product[3], square[3], rest[3];
	double distance;

	if (!w->end)
		return 0;
	if (w->tag & PEM_CELL_FLOAT)
		return to_double(w->squares[0]) / (double)w->end;
	whole = sum / (__int128)w->end;
	extend((uint64_t)whole, (uint64_t)(whole >> 64), m);
	extend(w->sum[0], w->sum[1], s);
	memcpy(rest, w->squares, sizeof(rest));
	multiply(m, s, product);
	subtract(rest, product);
	subtract(rest, product);
	multiply(m, m, square);
	multiply(n, square, product);
	add_words(rest, product, 3);
	distance = (double)(sum - whole * (__int128)w->end) / (double)w->end;
	return ((double)rest[0] + (double)rest[1] * 0x1p64 + (double)rest[2] * 0x1p128) /
		       (double)w->end -
	       distance * distance;
}

/* --- most frequent values --- */

/* Return how often a value that has no entry in a part may have come there. */
static uint64_t missed_by(const struct pem_distribution_top top[PEM_DISTRIBUTION_TOP])
{
	uint64_t least = top[0].count;
	uint32_t i;

	for (i = 1; i < PEM_DISTRIBUTION_TOP; i++)
		least = top[i].count < least ? top[i].count : least;
	return least;
}

static bool is_before(const struct pem_distribution_top *a, const struct pem_distribution_top *b)
{
	return a->count != b->count ? a->count > b->count : a->value < b->value;
}

/* qsort may allocate, and this function runs in programs, inside of malloc. */
static void sort(struct pem_distribution_top *top, uint32_t count)
{
	struct pem_distribution_top moved;
	uint32_t i, k;

	for (i = 1; i < count; i++) {
		moved = top[i];
		for (k = i; k && is_before(&moved, &top[k - 1]); k--)
			top[k] = top[k - 1];
		top[k] = moved;
	}
}

static struct pem_distribution_top *find(struct pem_distribution_top *top, uint32_t count,
					 uint64_t value)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (top[i].count && top[i].value == value)
			return &top[i];
	}
	return NULL;
}

void pem_distribution__merge_top(struct pem_distribution_top to[PEM_TOP_MERGED], uint64_t *missed,
				 const struct pem_distribution_top *from, uint32_t from_count,
				 uint64_t from_missed)
{
	struct pem_distribution_top all[2 * PEM_TOP_MERGED], *same;
	uint32_t count, i;

	for (count = 0; count < PEM_TOP_MERGED && to[count].count; count++) {
		all[count] = to[count];
		all[count].count += from_missed;
		all[count].error += from_missed;
	}
	for (i = 0; i < from_count && i < PEM_TOP_MERGED; i++) {
		if (!from[i].count)
			continue;
		same = find(all, count, from[i].value);
		if (same && find(to, PEM_TOP_MERGED, from[i].value)) {
			same->count += from[i].count - from_missed;
			same->error += from[i].error - from_missed;
			/*
			 * A value that moved to another entry while the part was read may be there
			 * twice. It counts once.
			 */
		} else if (!same) {
			all[count] = from[i];
			all[count].count += *missed;
			all[count++].error += *missed;
		}
	}
	sort(all, count);
	*missed += from_missed;
	if (count > PEM_TOP_MERGED && all[PEM_TOP_MERGED].count > *missed)
		*missed = all[PEM_TOP_MERGED].count;
	for (i = 0; i < PEM_TOP_MERGED; i++)
		to[i] = i < count ? all[i] : (struct pem_distribution_top){0};
}

void pem_distribution__add_top(struct pem_distribution_top to[PEM_TOP_MERGED], uint64_t *missed,
			       const struct pem_distribution_top from[PEM_DISTRIBUTION_TOP])
{
	pem_distribution__merge_top(to, missed, from, PEM_DISTRIBUTION_TOP, missed_by(from));
}
