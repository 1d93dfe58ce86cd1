/* SPDX-License-Identifier: MIT */
/*
 * fixed.h - memory that is there before anybody asks: data of objects, and the main thread's stack
 *
 * Both are served once, when the library is loaded: one thread runs, and little was written.
 */
#ifndef PAGE_APPLY_FIXED_H
#define PAGE_APPLY_FIXED_H

#include "directives.h"

void fixed__init(const struct directives *directives);
/* As maps__directive. */
int fixed__directive(uintptr_t start, uintptr_t end);
void fixed__after_fork_child(void);

#endif
