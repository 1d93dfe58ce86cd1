/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* early.h - what each process that starts writes, in one page */
#ifndef PEM_EARLY_H
#define PEM_EARLY_H

/*
 * Put a variable beside the pointers that the loader fills, whose page a process has anyway
 * (pages.ld). Each page more takes a starting process some microseconds. For small variables that
 * are written while nobody observes the process.
 */
#define PEM_EARLY __attribute__((section(".data.early")))

#endif
