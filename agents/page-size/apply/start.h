/* SPDX-License-Identifier: MIT */
/* start.h - the state of the library in this process */
#ifndef PAGE_APPLY_START_H
#define PAGE_APPLY_START_H

#include <stdbool.h>

struct directives;

/* Directives were read, and they say something. Never changes after the constructor. */
extern bool apply__active;
/*
 * The program has given up rights, and may be killed for opening a file. No file is opened any
 * more, so no large page is asked for. A forked child inherits it.
 */
extern bool apply__confined;
extern struct directives apply__directives;

#endif
