/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fault.h - reading shared memory that its owner may cut off
 */
#ifndef PEM_CONSUMER_FAULT_H
#define PEM_CONSUMER_FAULT_H

#include <stdint.h>

/*
 * From now on, handle SIGBUS for this shared memory. A touch raises SIGBUS if the owner has
 * truncated the file. The handler then replaces the whole mapping by zeroes and sets *cut. Any
 * number of mappings may be watched. The first call installs the process's handler. Returns 0, or
 * -ENOMEM. Any thread may call it.
 */
int pem_fault__watch(void *mapping, uint64_t bytes, int *cut);
/*
 * Replace a watched mapping by zeroes now, though its owner has not truncated the file, and set
 * *cut.
 */
void pem_fault__cut(void *mapping);
void pem_fault__forget(void *mapping);

#endif
