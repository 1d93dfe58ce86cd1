/* SPDX-License-Identifier: MIT */
/*
 * sketch.h - percentiles of many values in little memory, with a known greatest error
 *
 * The layout is HdrHistogram's, for floating values: each power of two has PEM_SKETCH_STEPS bins
 * of equal width. So a percentile is at most PEM_SKETCH_ERROR of itself away from the value of that
 * rank. Whole numbers below 2 * PEM_SKETCH_STEPS have a bin each and are exact. Only bins that have
 * values take memory: 16 bytes each, so that a sketch takes no more than its values would.
 *
 * Two sketches merge exactly: the result is that of all values in one.
 */
#ifndef PEM_SHARED_SKETCH_H
#define PEM_SHARED_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEM_SKETCH_STEP_BITS 6u
#define PEM_SKETCH_STEPS (1u << PEM_SKETCH_STEP_BITS)
#define PEM_SKETCH_ERROR (0.5 / PEM_SKETCH_STEPS) /* 0.8 % */

struct pem_sketch_bin {
	int32_t index; /* negative ones are of values below 0 */
	uint64_t count;
};

/* All zero: no value was added yet. Not thread-safe. */
struct pem_sketch {
	struct pem_sketch_bin *bins; /* by increasing index */
	size_t bin_count, bin_capacity;
	uint64_t count; /* values */
	double least, most;
	bool has_fractions; /* some value is not a whole number */
	size_t last; /* bin that the last value was in */
};

/* Add a value that is no NAN. Returns 0, or -ENOMEM and adds nothing. */
int pem_sketch__add(struct pem_sketch *sketch, double value);
/* The same for a value that occurred count times, at least once. */
int pem_sketch__add_many(struct pem_sketch *sketch, double value, uint64_t count);
/* Add all values of another sketch. Returns 0; -ENOMEM: some of them are missing. */
int pem_sketch__merge(struct pem_sketch *to, const struct pem_sketch *from);
/*
 * The least value that a share of all values, in thousandths, does not exceed: the value of rank
 * ceil(count * per_mille / 1000), or the first one's, to PEM_SKETCH_ERROR. It lies from the least
 * to the greatest value. NAN: there is no value.
 */
double pem_sketch__percentile(const struct pem_sketch *sketch, unsigned int per_mille);
void pem_sketch__free(struct pem_sketch *sketch);

#endif
