/* SPDX-License-Identifier: MIT */
/* kernel.h - what the kernel's work on pages costs, and how many large ones it could give */
#ifndef PAGE_SIZE_KERNEL_H
#define PAGE_SIZE_KERNEL_H

#include <stdint.h>

struct page_work {
	double first_touch_ns, copy_ns; /* of a page; 0: not measured */
	double collapse_ns; /* of a large page from small ones; 0: not measured, or not here */
};

/*
 * Measure once the work on pages of 1 << shift. Forks: the child only waits. 0, or -errno; then
 * *work is as far as it came. Blocks for some 100 ms.
 */
int page_work__measure(struct page_work *work, uint32_t shift);
/* Bytes of free memory that is in such pages, or 0 if the kernel does not say. */
uint64_t page_supply(uint32_t shift);
/* Bytes that programs could still allocate. */
uint64_t memory_available(void);
/* A loop that waits for no memory: two chains of additions. */
double instruction_ns(void);

#endif
