/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * counters.h - the counters that a thread reads at events, and how it reads one by its page
 *
 *	counters.c		opens them, and reads them for any event
 *	counters_quick.c	the same at an event that is only logged, if they are open
 *	enclosed.c		those that enclosing probes read
 *	enclosed_calls.c	probes of languages that cannot use pem/probe.h
 */
#ifndef PEM_PRODUCER_COUNTERS_H
#define PEM_PRODUCER_COUNTERS_H

#include <pem/counted.h>
#include <pem/enclosed.h>
#include <pem/stub.h>

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/* A session's counters in one thread. */
struct pem_opened {
	/* The action word of events that the quick way serves; 0: not known yet, or none. */
	uint64_t action;
	uint64_t count;
	uint32_t incarnation; /* 0: not opened */
	uint32_t record_bytes; /* of a reading */
	uint32_t tid;
	uint32_t event_index; /* of readings, among the writer's cells */
	const struct perf_event_mmap_page *page[PEM_COUNTERS_MAX]; /* NULL: none */
	struct pem_counter counter[PEM_COUNTERS_MAX];
};

/*
 * The pages that enclosing probes read, by kind: of the last-level cache that of misses; that of
 * references comes last.
 */
#define PEM_PAGE_REFERENCES (PEM_ENCLOSED_COUNTER + PEM_ENCLOSED_COUNTER_MAX)
#define PEM_ENCLOSED_PAGES (PEM_PAGE_REFERENCES + 1)
struct pem_enclosed {
	const struct perf_event_mmap_page *page[PEM_ENCLOSED_PAGES]; /* NULL: none */
	uint64_t wanted[PEM_ENCLOSED_PAGES]; /* what it was opened for: see wanted_of() */
	uint8_t reading[PEM_ENCLOSED_PAGES]; /* enum pem_enclosed_reading */
};

/* What enclosed_calls.c has of a thread. */
struct pem_enclosed_calls {
	uint32_t open_count; /* in open: probes that were begun, the innermost last */
	uint32_t reserved;
	struct pem_enclosed_call {
		uint32_t by, id;
		uint64_t source; /* of what libpem measures; the clock of LAT and TPT; 0: nothing */
		uint64_t values[2];
		uint64_t sc;
	} open[PEM_ENCLOSED_OPEN_MAX];
	struct pem_enclosed_site {
		uint64_t key; /* (by + 1) << 32 | id; 0: free */
		uint64_t cycles, count; /* as in struct pem_probe_site */
	} site[PEM_ENCLOSED_SITE_MAX];
};

struct pem_thread_counters {
	struct pem_opened session[PEM_SESSIONS_MAX];
	struct pem_enclosed enclosed;
	struct pem_enclosed_calls calls;
	bool is_opening; /* a signal handler's event must not begin again */
};

/* Bytes of a reading's record up to its values (struct pem_hw_perf_hpms_in_thread_record). */
#define PEM_READING_BYTES 24u

/* Those that pem_read_register knows. */
#if defined(__x86_64__)
#define PEM_REGISTERS_MAX 0x80000000u /* with a bit for those that always count the same */
#else
#define PEM_REGISTERS_MAX 32u
#endif
#if defined(__ARM_FEATURE_BTI_DEFAULT)
#define PEM_LANDING "bti j\n\tnop\n\t" /* where a guarded jump may land */
#define PEM_LANDING_SHIFT "4" /* of the bytes of one case */
#else
#define PEM_LANDING ""
#define PEM_LANDING_SHIFT "3"
#endif

/*
 * Read a register of the performance monitoring unit, by the number that the kernel gave it less 1:
 * below PEM_REGISTERS_MAX.
 */
static inline uint64_t pem_read_register(uint32_t index)
{
#if defined(__x86_64__)
	uint32_t low, high;

	__asm__ __volatile__("rdpmc" : "=a"(low), "=d"(high) : "c"(index));
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t value;

	/*
	 * The number of a register is part of the instruction that reads it: jump to the one of
	 * 32, each with a branch behind it. The last one is the counter of cycles.
	 */
	__asm__ __volatile__(
		"adr %0, 1f\n\t"
		"add %0, %0, %1, lsl #" PEM_LANDING_SHIFT "\n\t"
		"br %0\n"
		"1:\n\t"
		".irp n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, "
		"19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30\n\t" PEM_LANDING
		"mrs %0, pmevcntr\\n\\()_el0\n\t"
		"b 2f\n\t"
		".endr\n\t" PEM_LANDING "mrs %0, pmccntr_el0\n"
		"2:"
		: "=&r"(value)
		: "r"((uint64_t)index));
	return value;
#else
	(void)index;
	return 0;
#endif
}

/*
 * Read a counter by its page. False: it is in no register just now. The kernel changes the page
 * only while this thread does not run, so the loop ends: the algorithm is that of
 * the kernel's header of perf events.
 */
static inline bool pem_read_page(const volatile struct perf_event_mmap_page *page, uint64_t *value)
{
	uint32_t sequence, index, width;
	uint64_t count, counted;

	do {
		sequence = page->lock;
		PEM_BARRIER();
		index = page->index;
		count = (uint64_t)page->offset;
		width = page->pmc_width & 63; /* of 64 bits: 0, and both shifts below are by 0 */
		if (__builtin_expect(index - 1 >= PEM_REGISTERS_MAX, 0)) /* 0: it is in none */
			return false;
		counted = pem_read_register(index - 1) << (-width & 63);
		count += (uint64_t)((int64_t)counted >> (-width & 63));
		PEM_BARRIER();
	} while (page->lock != sequence);
	*value = count;
	return true;
}

/* For perf_event_attr.config1: the program may read the counter (arm64, since Linux 5.17). */
#if defined(__aarch64__)
#define PEM_COUNTER_USER_ACCESS 2u
#else
#define PEM_COUNTER_USER_ACCESS 0u
#endif

struct pem_thread_full;

/* The thread's counters, none of them open yet. NULL: no memory. */
struct pem_thread_counters *pem_counted__make(struct pem_thread_full *thread);
/* Bytes of the mapping of an enclosing probe's page. */
size_t pem_enclosed__bytes(unsigned page);
/*
 * Open a counter of this thread; what the kernel does is left out (attr->exclude_kernel) if only
 * that is allowed. group: descriptor of its leader, or -1. Returns a descriptor, or -1 with errno.
 */
int pem_counted__open(struct perf_event_attr *attr, int group);
/* Map the page of a counter. NULL: there is none, or the thread may not read the counter. */
const struct perf_event_mmap_page *pem_counted__map(int fd);
/*
 * Ask the kernel for what it counts of this thread in software (PERF_COUNT_SW_*), by a system call.
 * tid: the thread's. False: it can't be known so, or the process is another one. Keeps errno.
 */
bool pem_counted__ask(uint64_t config, uint32_t tid, uint64_t *value);

#endif
