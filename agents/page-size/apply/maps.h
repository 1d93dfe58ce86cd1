/* SPDX-License-Identifier: MIT */
/*
 * maps.h - memory that listed sites map: its place, its pages, and what becomes of it
 *
 * A mapping belongs to the program, which may do with it what it likes. Here is only noted where it
 * lies, so that its large pages are counted.
 */
#ifndef PAGE_APPLY_MAPS_H
#define PAGE_APPLY_MAPS_H

#include "directives.h"
#include "large.h"

#define MAPS_MAX 1024u /* mappings at one time; further ones have small pages */

/* Some directive is of a map site. */
extern bool maps__active;

void maps__init(const struct directives *directives);
/* As heap__look. */
bool maps__look(uint32_t directive, struct large_look *look);
void maps__before_fork(void);
void maps__after_fork(bool is_child);

#endif
