/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * fault.h - reading shared memory that its owner may cut off
 */
#ifndef PEM_CONSUMER_FAULT_H
#define PEM_CONSUMER_FAULT_H

#include <stdint.h>

/*
 * Should a touch of this shared memory raise SIGBUS, as its file was truncated: let it be zeroes
 * from there on, and set *cut. There may be any number. The first call installs the process's
 * handler. 0, or -ENOMEM. Any thread.
 */
int pem_fault__watch(void *mapping, uint64_t bytes, int *cut);
/* Let it be zeroes from here on, though its owner has not cut it off, and set *cut. */
void pem_fault__cut(void *mapping);
void pem_fault__forget(void *mapping);

#endif
