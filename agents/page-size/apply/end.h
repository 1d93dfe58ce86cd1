/* SPDX-License-Identifier: MIT */
/*
 * end.h - what end.c calls; each library that is linked with it defines these in its start.c
 *
 * All keep errno, and are called by children of vfork, too, which are another process.
 */
#ifndef PAGE_APPLY_END_H
#define PAGE_APPLY_END_H

/* The program ends next, or becomes another. */
void endings__begin(void);
/* An exec has returned, which is what it failed with: the program goes on. Returns rc. */
int endings__failed(int rc);
/* The program gives up rights next, and may be killed for opening a file. */
void endings__confine(void);
/* An object was closed. */
void endings__closed(void);

#endif
