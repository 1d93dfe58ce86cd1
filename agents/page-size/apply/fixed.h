/* SPDX-License-Identifier: MIT */
/*
 * fixed.h - memory that is there before anybody asks: data of objects, and the main thread's stack
 *
 * Both are found once, when the library is loaded, while one thread runs.
 */
#ifndef PAGE_APPLY_FIXED_H
#define PAGE_APPLY_FIXED_H

#include "directives.h"
#include "large.h"

void fixed__init(const struct directives *directives);
/* Is there such memory of listed sites? */
bool fixed__is_any(void);
/* As heap__look. */
bool fixed__look(uint32_t directive, struct large_look *look);

#endif
