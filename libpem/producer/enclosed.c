// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * enclosed.c - what enclosing probes read of their thread (pem/enclosed.h)
 *
 * A thread opens each counter at its first probe that wants it, for itself alone, maps the page and
 * closes the descriptor: the program has as many as before. Faults and switches are events of the
 * kernel's software that write a record each into a ring of one page, which is mapped for reading:
 * then the kernel overwrites the oldest, never stops, and data_head only grows. Counters of the
 * processor are read by their pages (counters.h). They are pinned: one that shares its register
 * with another user's has no value, and none that is too small.
 *
 * In a child of fork the pages are not mapped, and its threads have new states, which open their
 * own. What a signal handler began before it forked ends in the child as not read.
 */
#include "producer/counters.h"
#include "producer/producer.h"
#include "producer/rights.h"

#include <pem/enclosed.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What each counter counts, with COUNTER_SET; 0: nothing. */
#define COUNTER_SET (1ull << 63)
static uint64_t chosen[PEM_ENCLOSED_COUNTER_MAX];

/* Position of a switch: two records, as the thread loses the CPU and as it has one again. */
static const uint8_t shifts[] = {[PEM_ENCLOSED_FAULTS] = 3, [PEM_ENCLOSED_SWITCHES] = 4};
PEM_STATIC_ASSERT(sizeof(struct perf_event_header) == 1 << 3, "a record without any sample");

size_t pem_enclosed__bytes(unsigned page)
{
	size_t one = (size_t)sysconf(_SC_PAGESIZE);

	return page < PEM_ENCLOSED_MAPPED ? 2 * one : one;
}

/* --- opening --- */

static const struct perf_event_mmap_page *map_ring(int fd)
{
	void *page =
		mmap(NULL, pem_enclosed__bytes(PEM_ENCLOSED_FAULTS), PROT_READ, MAP_SHARED, fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

static void open_position(struct pem_thread_full *thread, uint32_t kind)
{
	struct pem_enclosed *e = &thread->counters->enclosed;
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE};
	int fd;

	if (kind == PEM_ENCLOSED_FAULTS) {
		attr.config = PERF_COUNT_SW_PAGE_FAULTS;
		attr.sample_period = 1;
	} else {
		attr.config = PERF_COUNT_SW_DUMMY;
		attr.context_switch = 1;
		attr.exclude_kernel = 1; /* switches are written all the same, and to anybody */
	}
	fd = pem_counted__open(&attr, -1);
	if (fd < 0)
		return;
	e->page[kind] = map_ring(fd);
	close(fd);
	if (!e->page[kind])
		return;
	e->reading[kind] = kind == PEM_ENCLOSED_FAULTS && attr.exclude_kernel
				   ? PEM_ENCLOSED_READ_MAPPED_USER
				   : PEM_ENCLOSED_READ_MAPPED;
	thread->shared.position_reading[kind] = e->reading[kind];
	thread->shared.position_shift[kind] = shifts[kind];
	PEM_BARRIER();
	thread->shared.position[kind] = (const uint64_t *)&e->page[kind]->data_head;
}

/* Open a counter of the processor. Returns its descriptor, which the caller closes, or -1. */
static int open_register(struct pem_enclosed *e, unsigned page, uint32_t type, uint64_t config,
			 int group)
{
	struct perf_event_attr attr = {.type = type,
				       .config = config,
				       .config1 = PEM_COUNTER_USER_ACCESS,
				       .pinned = group < 0};
	int fd = pem_counted__open(&attr, group);

	if (fd < 0)
		return -1;
	e->page[page] = pem_counted__map(fd);
	e->reading[page] =
		attr.exclude_kernel ? PEM_ENCLOSED_READ_MAPPED_USER : PEM_ENCLOSED_READ_MAPPED;
	return fd;
}

static void open_registers(struct pem_enclosed *e, uint32_t kind, uint64_t config)
{
	int leader, fd = -1;

	if (kind == PEM_ENCLOSED_LLC) {
		leader = open_register(e, kind, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, -1);
		if (leader >= 0)
			fd = open_register(e, PEM_PAGE_REFERENCES, PERF_TYPE_HARDWARE,
					   PERF_COUNT_HW_CACHE_REFERENCES, leader);
	} else {
		leader = open_register(e, kind, PERF_TYPE_RAW, config & ~COUNTER_SET, -1);
	}
	if (fd >= 0)
		close(fd);
	if (leader >= 0)
		close(leader);
}

static void close_page(struct pem_enclosed *e, unsigned page)
{
	if (e->page[page])
		munmap((void *)e->page[page], pem_enclosed__bytes(page));
	e->page[page] = NULL;
}

/* What the page of a kind is to be opened for, never 0; 0: nothing, as of a counter that is not
 * set. */
static uint64_t wanted_of(uint32_t kind)
{
	return kind < PEM_ENCLOSED_COUNTER
		       ? COUNTER_SET
		       : __atomic_load_n(&chosen[kind - PEM_ENCLOSED_COUNTER], __ATOMIC_RELAXED);
}

/* Open what a kind needs, once. Where a filter may forbid that it is not tried again. */
static void open_kind(struct pem_thread_full *thread, uint32_t kind)
{
	struct pem_thread_counters *counters = pem_restricted() ? NULL : pem_counted__make(thread);
	uint64_t wanted = wanted_of(kind);
	struct pem_enclosed *e;

	/* A signal handler's probe opens nothing in the middle of this. */
	if (!counters || counters->enclosed.wanted[kind] == wanted || counters->is_opening)
		return;
	e = &counters->enclosed;
	counters->is_opening = true;
	PEM_BARRIER();
	close_page(e, kind);
	e->wanted[kind] = wanted;
	if (wanted && !pem_rights__has_filter()) {
		if (kind < PEM_ENCLOSED_MAPPED)
			open_position(thread, kind);
		else
			open_registers(e, kind, wanted);
	}
	PEM_BARRIER();
	counters->is_opening = false;
}

/* --- reading --- */

/* NULL: nothing was opened. */
static const struct pem_enclosed *enclosed_of(const struct pem_thread_full *thread)
{
	return thread->counters ? &thread->counters->enclosed : NULL;
}

/* Of a counter of the processor. Returns whether all its pages could be read. */
static bool read_registers(const struct pem_enclosed *e, uint32_t kind, uint64_t *values)
{
	values[0] = values[1] = 0;
	return e && e->page[kind] && pem_read_page(e->page[kind], &values[0]) &&
	       (kind != PEM_ENCLOSED_LLC ||
		(e->page[PEM_PAGE_REFERENCES] &&
		 pem_read_page(e->page[PEM_PAGE_REFERENCES], &values[1])));
}

static const uint64_t software[] = {[PEM_ENCLOSED_FAULTS] = PERF_COUNT_SW_PAGE_FAULTS,
				    [PEM_ENCLOSED_SWITCHES] = PERF_COUNT_SW_CONTEXT_SWITCHES};

/* A source that a system call was asked: the thread's, odd. */
static uint64_t call_source(const struct pem_thread_full *thread)
{
	return (uint64_t)thread->shared.tid << 1 | 1;
}

static uint64_t begin_mapped(struct pem_thread_full *thread, uint32_t kind, uint64_t *values)
{
	const uint64_t *position = thread->shared.position[kind];

	if (position) {
		values[0] = __atomic_load_n(position, __ATOMIC_RELAXED);
		return (uintptr_t)position;
	}
	return pem_counted__ask(software[kind], thread->shared.tid, values)
		       ? call_source(thread)
		       : PEM_ENCLOSED_SOURCE_NONE;
}

uint64_t pem_probe__begin(uint32_t kind, uint64_t *values)
{
	struct pem_thread_full *thread;
	uint64_t source = PEM_ENCLOSED_SOURCE_NONE;
	int saved_errno = errno;

	values[0] = values[1] = 0;
	if (kind >= PEM_ENCLOSED_COUNTER + PEM_ENCLOSED_COUNTER_MAX && kind != PEM_ENCLOSED_CLOCK)
		return source;
	thread = pem_thread__get();
	if (!thread)
		goto out;
	if (kind == PEM_ENCLOSED_CLOCK) {
		values[0] = thread->lacks_clock ? 0 : pem_clock();
		goto out;
	}
	open_kind(thread, kind);
	if (kind < PEM_ENCLOSED_MAPPED)
		source = begin_mapped(thread, kind, values);
	else if (read_registers(enclosed_of(thread), kind, values))
		source = (uintptr_t)enclosed_of(thread)->page[kind];
out:
	errno = saved_errno;
	return source;
}

/* The values now, if they are from the same source. Returns enum pem_enclosed_reading. */
static uint32_t read_again(const struct pem_thread_full *thread, uint32_t kind, uint64_t source,
			   uint64_t *now)
{
	const struct pem_enclosed *e = enclosed_of(thread);
	const uint64_t *position;

	if (kind >= PEM_ENCLOSED_MAPPED)
		return e && source == (uintptr_t)e->page[kind] && read_registers(e, kind, now)
			       ? e->reading[kind]
			       : PEM_ENCLOSED_NOT_READ;
	position = thread->shared.position[kind];
	if (position && source == (uintptr_t)position) {
		now[0] = __atomic_load_n(position, __ATOMIC_RELAXED);
		return e->reading[kind];
	}
	return source == call_source(thread) &&
			       pem_counted__ask(software[kind], thread->shared.tid, now)
		       ? PEM_ENCLOSED_READ_CALL
		       : PEM_ENCLOSED_NOT_READ;
}

uint32_t pem_probe__end(uint32_t kind, uint64_t source, uint64_t *values)
{
	struct pem_thread_full *thread;
	uint32_t reading = PEM_ENCLOSED_NOT_READ;
	uint64_t now[2] = {0, 0};
	int saved_errno = errno;

	thread = kind < PEM_ENCLOSED_COUNTER + PEM_ENCLOSED_COUNTER_MAX &&
				 source != PEM_ENCLOSED_SOURCE_NONE
			 ? pem_thread__get()
			 : NULL;
	if (thread)
		reading = read_again(thread, kind, source, now);
	values[0] = reading ? now[0] - values[0] : 0;
	values[1] = reading ? now[1] - values[1] : 0;
	if (kind < PEM_ENCLOSED_MAPPED && reading != PEM_ENCLOSED_READ_CALL)
		values[0] >>= shifts[kind];
	errno = saved_errno;
	return reading;
}

int pem_probe__set_counter(uint32_t counter, uint32_t event, uint32_t mask)
{
	if (counter >= PEM_ENCLOSED_COUNTER_MAX)
		return -EINVAL;
	__atomic_store_n(&chosen[counter], COUNTER_SET | (uint64_t)mask << 8 | event,
			 __ATOMIC_RELAXED);
	return 0;
}
