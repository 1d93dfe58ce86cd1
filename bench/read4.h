// SPDX-License-Identifier: MIT
/*
 * read4.h - 4 counters of the calling thread, read by the bare protocol of the kernel's mapped page
 *
 * Cycles and instructions, each with and without the kernel's: what benchmarks of reading counters
 * compare with. Not here: how libpem reads them (libpem/producer/counters.c).
 */
#ifndef PEM_BENCH_READ4_H
#define PEM_BENCH_READ4_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define READ4_COUNT 4

/* Indexes into what read4() stores. */
enum { READ4_CYCLES, READ4_USER_CYCLES, READ4_INSTRUCTIONS, READ4_USER_INSTRUCTIONS };

/* The page of each counter. */
struct read4 {
	const volatile struct perf_event_mmap_page *page[READ4_COUNT];
};

/* A counter's register, by the number that the page holds less 1. */
static inline uint64_t read4_register(uint32_t index)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ __volatile__("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t value;

	switch (index) {
#define READ4_CASE(n)                                                                              \
	case n:                                                                                    \
		__asm__ __volatile__("mrs %0, pmevcntr" #n "_el0" : "=r"(value));                  \
		return value
		READ4_CASE(0);
		READ4_CASE(1);
		READ4_CASE(2);
		READ4_CASE(3);
		READ4_CASE(4);
		READ4_CASE(5);
		READ4_CASE(6);
		READ4_CASE(7);
		READ4_CASE(8);
		READ4_CASE(9);
		READ4_CASE(10);
		READ4_CASE(11);
		READ4_CASE(12);
		READ4_CASE(13);
		READ4_CASE(14);
		READ4_CASE(15);
		READ4_CASE(16);
		READ4_CASE(17);
		READ4_CASE(18);
		READ4_CASE(19);
		READ4_CASE(20);
		READ4_CASE(21);
		READ4_CASE(22);
		READ4_CASE(23);
		READ4_CASE(24);
		READ4_CASE(25);
		READ4_CASE(26);
		READ4_CASE(27);
		READ4_CASE(28);
		READ4_CASE(29);
		READ4_CASE(30);
#undef READ4_CASE
	case 31:
		__asm__ __volatile__("mrs %0, pmccntr_el0" : "=r"(value));
		return value;
	default:
		return 0;
	}
#else
	(void)index;
	return 0;
#endif
}

/* As the comment of struct perf_event_mmap_page says, of a counter that is never multiplexed. */
static inline uint64_t read4_page(const volatile struct perf_event_mmap_page *page)
{
	uint32_t sequence, index, width;
	uint64_t count, counted;

	do {
		sequence = page->lock;
		__asm__ __volatile__("" ::: "memory");
		index = page->index;
		count = (uint64_t)page->offset;
		if (page->cap_user_rdpmc && index) {
			width = page->pmc_width;
			counted = read4_register(index - 1) << (64 - width);
			count += (uint64_t)((int64_t)counted >> (64 - width));
		}
		__asm__ __volatile__("" ::: "memory");
	} while (page->lock != sequence);
	return count;
}

/* Read the 4. A function, as a library's would be. */
static __attribute__((noinline)) void read4(const struct read4 *from, uint64_t values[READ4_COUNT])
{
	int i;

	for (i = 0; i < READ4_COUNT; i++)
		values[i] = read4_page(from->page[i]);
}

/* Open the calling thread's. Returns what can't be had, NULL: all are there. */
static inline const char *read4_open(struct read4 *out)
{
	static const char *const names[READ4_COUNT] = {
		"cycles", "the program's cycles", "instructions", "the program's instructions"};
	struct perf_event_attr attr = {.size = sizeof(attr), .type = PERF_TYPE_HARDWARE};
	int i, fd, leader = -1;
	void *page;

#if defined(__aarch64__)
	attr.config1 = 2; /* may be read by the program */
#endif
	for (i = 0; i < READ4_COUNT; i++) {
		attr.config = i < READ4_INSTRUCTIONS ? PERF_COUNT_HW_CPU_CYCLES
						     : PERF_COUNT_HW_INSTRUCTIONS;
		attr.exclude_kernel = i & 1;
		attr.exclude_hv = 1;
		fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, PERF_FLAG_FD_CLOEXEC);
		if (fd < 0)
			return names[i];
		if (leader < 0)
			leader = fd;
		page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
		if (page == MAP_FAILED)
			return names[i];
		out->page[i] = page;
		if (!out->page[i]->cap_user_rdpmc || !out->page[i]->index)
			return names[i];
	}
	return NULL;
}

#endif
