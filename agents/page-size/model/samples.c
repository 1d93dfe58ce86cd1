// SPDX-License-Identifier: MIT
/* samples.c - takes rows, and drops half of them when there are too many */
#include "samples.h"

#include <stdlib.h>
#include <string.h>

#define BYTES_MAX ((size_t)8 << 20)
/* With fewer rows the standard error of a miss ratio could be above 0.8 percentage points. */
#define ROWS_MIN ((size_t)8192)
#define ROWS_MAX ((size_t)65536)
#define ROWS_FIRST ((size_t)256)

/* Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003. */
static uint64_t next_random(struct samples *samples)
{
	uint64_t x = samples->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	samples->random = x;
	return x * 0x2545f4914f6cdd1dull >> 16;
}

void samples__init(struct samples *samples, uint32_t width, uint64_t seed)
{
	size_t rows = BYTES_MAX / (width * sizeof(uint16_t));

	memset(samples, 0, sizeof(*samples));
	samples->width = width;
	samples->capacity_max = rows < ROWS_MIN ? ROWS_MIN : rows > ROWS_MAX ? ROWS_MAX : rows;
	samples->period = 1;
	samples->random = seed * 2 + 1;
}

void samples__destroy(struct samples *samples)
{
	free(samples->rows);
}

static void halve(struct samples *samples)
{
	size_t i, kept = 0, bytes = samples->width * sizeof(uint16_t);

	for (i = 0; i < samples->count; i++) {
		if (next_random(samples) & 1)
			continue;
		if (kept != i)
			memcpy(&samples->rows[kept * samples->width],
			       &samples->rows[i * samples->width], bytes);
		kept++;
	}
	samples->count = kept;
	samples->period *= 2;
}

/* A power of two: distances between samples are uniform with the period as their mean. */
static uint64_t next_skip(struct samples *samples)
{
	if (samples->period == 1)
		return 0;
	return next_random(samples) % (2 * samples->period - 1);
}

uint16_t *samples__add(struct samples *samples)
{
	size_t capacity;
	uint16_t *rows;
	bool drop = false;

	/* The new row, too, is kept with probability 1/2. */
	if (samples->count == samples->capacity_max) {
		halve(samples);
		drop = next_random(samples) & 1;
	}
	if (samples->count == samples->capacity) {
		capacity = samples->capacity ? samples->capacity * 2 : ROWS_FIRST;
		if (capacity > samples->capacity_max)
			capacity = samples->capacity_max;
		rows = realloc(samples->rows, capacity * samples->width * sizeof(*rows));
		if (!rows)
			return NULL;
		samples->rows = rows;
		samples->capacity = capacity;
	}
	samples->skip = next_skip(samples);
	rows = &samples->rows[samples->count * samples->width];
	samples->count += !drop;
	return rows;
}
