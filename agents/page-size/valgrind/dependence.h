/* SPDX-License-Identifier: GPL-2.0-or-later */
/* dependence.h - which loads of a superblock have addresses that come from what they loaded before
 */
#ifndef PEM_PAGE_SIZE_DEPENDENCE_H
#define PEM_PAGE_SIZE_DEPENDENCE_H

#include "tool.h"

/* Find out for all statements of a superblock, and forget the one before. */
void dependence__find(const IRSB *sb);
/* Is the statement, by its index, such a load? */
Bool dependence__chained(Int statement);
/* Is an address the stack pointer at the start and *offset? */
Bool dependence__on_stack(const IRExpr *address, Long *offset);

#endif
