/* SPDX-License-Identifier: MIT */
/* extents.h - where the data of each directive lie, or have lain: for the report (apply.h) */
#ifndef PAGE_APPLY_EXTENTS_H
#define PAGE_APPLY_EXTENTS_H

#include <stdint.h>

#define EXTENTS_MAX 16u /* of a directive */

struct extents {
	uint32_t count;
	struct {
		uintptr_t start, end;
	} list[EXTENTS_MAX];
};

/*
 * Extents of a directive that touch are one. Where there are too many, the last one reaches to the new one, and
 * holds more than the directive's data. One thread at a time.
 */
void extents__add(uint32_t directive, uintptr_t start, uintptr_t end);
/* Of a directive, in no order. */
const struct extents *extents__of(uint32_t directive);

#endif
