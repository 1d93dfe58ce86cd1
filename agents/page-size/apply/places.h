/* SPDX-License-Identifier: MIT */
/* places.h - where the data of each directive lie, or have lain: for the report (apply.h) */
#ifndef PAGE_APPLY_PLACES_H
#define PAGE_APPLY_PLACES_H

#include <stdint.h>

#define PLACES_MAX 16u /* of a directive */

struct places {
	uint32_t count;
	struct {
		uintptr_t start, end;
	} list[PLACES_MAX];
};

/*
 * Places that touch are one. Where there are too many, the last one reaches to the new one, and
 * holds more than the directive's data. One thread at a time.
 */
void places__add(uint32_t directive, uintptr_t start, uintptr_t end);
/* Of a directive, in no order. */
const struct places *places__of(uint32_t directive);

#endif
