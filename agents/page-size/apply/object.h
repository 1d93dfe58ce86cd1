/* SPDX-License-Identifier: MIT */
/* object.h - the numbers of objects that are loaded */
#ifndef PAGE_APPLY_OBJECT_H
#define PAGE_APPLY_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The number of an object (sites/site.h) that is mapped from start to end. bias: what the loader
 * added to its addresses. False: it can't be told. Async-signal-safe.
 */
bool object__number(uintptr_t start, uintptr_t end, uintptr_t bias, uint64_t *object);

#endif
