/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * sample_cost.c - measure what a sample costs the sampled thread, for the overhead ledger
 *
 * A sample is an interrupt of a timer, which is most of its cost: some microseconds in a virtual
 * machine. A thread that only reads the clock sees each interrupt as a gap. It is sampled some
 * fifty times as often as in a recording, by the CPU's clock, which every machine has. So most gaps
 * are samples. The gap of median length is a sample, since gaps in which something else ran are
 * longer. The samples are taken out of the buffer at once, so that the kernel has room for the next
 * one and copies it in full.
 */
#include "cost/cost.h"

#include <pem/clock.h>
#include <pem/pem.h>

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERIOD_NS 100000 /* 10 kHz; kernels accept some more before they reduce the rate */
#define WATCH_NS 100000000
#define GAPS_MAX 200
#define GAPS_LEAST 20 /* with fewer gaps the result means nothing */
#define GAP_NS_LEAST 300 /* some ten turns of the loop */
#define BUFFER_PAGES 16
#define STACK_BYTES 8192 /* as the sampler has the kernel copy (sources/counters/sampler.c) */

/* Registers that a stack is unwound with. */
#if defined(__x86_64__)
#define REGISTERS 0xff01ffull
#else
#define REGISTERS 0x1ffffffffull
#endif

struct clock {
	int fd;
	struct perf_event_mmap_page *page;
	size_t bytes;
};

static int open_event(enum pem_stacks stacks, bool user_only)
{
	struct perf_event_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.size = sizeof(attr);
	attr.type = PERF_TYPE_SOFTWARE;
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = PERIOD_NS;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	if (stacks != PEM_STACKS_NONE)
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (stacks == PEM_STACKS_TABLES) {
		attr.exclude_callchain_user = 1;
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = REGISTERS;
		attr.sample_stack_user = STACK_BYTES;
	}
	attr.disabled = 1;
	attr.exclude_kernel = user_only;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static bool open_clock(struct clock *clock, enum pem_stacks stacks)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	clock->fd = open_event(stacks, false);
	if (clock->fd < 0)
		clock->fd = open_event(stacks, true);
	if (clock->fd < 0)
		return false;
	clock->bytes = (BUFFER_PAGES + 1) * page;
	clock->page = mmap(NULL, clock->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, clock->fd, 0);
	if (clock->page != MAP_FAILED)
		return true;
	close(clock->fd);
	return false;
}

/* Count the samples in the buffer, and empty it. */
static uint64_t take_samples(const struct clock *clock)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const uint8_t *data = (const uint8_t *)clock->page + page;
	/* linux: after the records before it */
	uint64_t head = __atomic_load_n(&clock->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = clock->page->data_tail, samples = 0;
	const struct perf_event_header *header;

	/* Records begin at multiples of 8, so a header never goes around the end. */
	while (tail < head) {
		header = (const void *)(data + tail % (BUFFER_PAGES * page));
		if (header->size < sizeof(*header))
			break;
		samples += header->type == PERF_RECORD_SAMPLE;
		tail += header->size;
	}
	/* linux: before it overwrites what was read */
	__atomic_store_n(&clock->page->data_tail, head, __ATOMIC_RELEASE);
	return samples;
}

/*
 * Read the clock in a loop until enough gaps were seen, or for WATCH_NS. A gap is a time between
 * two readings that is longer than a turn of the loop. Counts samples. Returns the number of gaps.
 */
static size_t watch(const struct clock *clock, double *gaps, uint64_t *samples)
{
	const double cycles_per_ns = (double)pem_clock__hz() / 1e9;
	const uint64_t least = (uint64_t)(GAP_NS_LEAST * cycles_per_ns);
	uint64_t before = pem_clock(), end = before + (uint64_t)(WATCH_NS * cycles_per_ns), now;
	size_t count = 0;

	while (count < GAPS_MAX && before < end) {
		now = pem_clock();
		if (now - before >= least) {
			gaps[count++] = pem_cycles_ns((double)(now - before));
			*samples += take_samples(clock);
			now = pem_clock();
		}
		before = now;
	}
	return count;
}

/* Watch from below a frame that is as large as what the kernel copies of a stack. */
static __attribute__((noinline)) size_t watch_deep(const struct clock *clock, double *gaps,
						   uint64_t *samples)
{
	volatile uint8_t frame[STACK_BYTES];
	size_t i, count;

	for (i = 0; i < sizeof(frame); i += 64)
		frame[i] = (uint8_t)i;
	count = watch(clock, gaps, samples);
	return frame[0] ? 0 : count; /* it lives as long as the watch */
}

double pem_sample_ns(enum pem_stacks stacks)
{
	double gaps[GAPS_MAX];
	uint64_t samples = 0;
	struct clock clock;
	size_t count;

	if (!open_clock(&clock, stacks))
		return 0;
	ioctl(clock.fd, PERF_EVENT_IOC_ENABLE, 0);
	count = watch_deep(&clock, gaps, &samples);
	ioctl(clock.fd, PERF_EVENT_IOC_DISABLE, 0);
	munmap(clock.page, clock.bytes);
	close(clock.fd);
	if (count < GAPS_LEAST || samples * 2 <= count)
		return 0;
	qsort(gaps, count, sizeof(*gaps), pem_step__by_value);
	return gaps[count / 2];
}
