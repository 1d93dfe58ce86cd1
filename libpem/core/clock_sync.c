/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * clock_sync.c - the rate of the cycle counter, and its value at a time of CLOCK_MONOTONIC
 */
#include "core/clock_sync.h"

#include <pem/clock.h>
#include <pem/pem.h>

#include <linux/perf_event.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static uint64_t time_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

uint64_t pem_monotonic_ns(void)
{
	return time_ns(CLOCK_MONOTONIC);
}

/*
 * Read a clock several times between two readings of the cycle counter. Returns the reading with
 * the least error.
 */
static struct pem_clock_pair read_pair(clockid_t id)
{
	struct pem_clock_pair best = {0, 0, ~0ull};
	uint64_t before, ns, after;
	int i;

	for (i = 0; i < 8; i++) {
		before = pem_clock();
		ns = time_ns(id);
		after = pem_clock();
		if (after - before < best.error_cycles)
			best = (struct pem_clock_pair){before + (after - before) / 2, ns,
						       after - before};
	}
	best.error_cycles = best.error_cycles / 2 + 1;
	return best;
}

/*
 * Return the counter's rate as the kernel has it. The kernel tells every perf_event reader how it
 * turns cycles into nanoseconds: ns = cycles * mult >> shift (perf_event_open(2), cap_user_time).
 * 0: the kernel does not tell it here.
 */
static uint64_t hz_from_kernel(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	struct perf_event_mmap_page *page;
	uint64_t hz = 0;
	int fd;

	fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return 0;
	page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (page != MAP_FAILED) {
		if (page->cap_user_time && page->time_mult && page->time_shift < 64)
			hz = (uint64_t)(((unsigned __int128)1000000000u << page->time_shift) /
					page->time_mult);
		munmap(page, 4096);
	}
	close(fd);
	return hz;
}

static uint64_t hz_by_measuring(void)
{
	/* The error is a few millionths. Traces get a better rate at their end. */
	const struct timespec pause = {0, 5000000};
	struct pem_clock_pair a = read_pair(CLOCK_MONOTONIC_RAW), b;

	nanosleep(&pause, NULL);
	b = read_pair(CLOCK_MONOTONIC_RAW);
	return (uint64_t)((unsigned __int128)(b.cycles - a.cycles) * 1000000000u /
			  (b.monotonic_ns - a.monotonic_ns));
}

static uint64_t clock_hz;

static void find_hz(void)
{
	clock_hz = hz_from_kernel();
	if (!clock_hz)
		clock_hz = hz_by_measuring();
}

uint64_t pem_clock__hz(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_hz);
	return clock_hz;
}

void pem_clock_sync__init(struct pem_clock_sync *sync)
{
	memset(sync, 0, sizeof(*sync));
	sync->hz = pem_clock__hz();
	sync->pair[0] = read_pair(CLOCK_MONOTONIC);
	sync->first = sync->pair[0];
	sync->worst_cycles = sync->pair[0].error_cycles;
	sync->count = 1;
}

static uint64_t extrapolate(const struct pem_clock_sync *sync, const struct pem_clock_pair *from,
			    uint64_t ns)
{
	__int128 distance = (__int128)ns - (__int128)from->monotonic_ns;

	return (uint64_t)((__int128)from->cycles + distance * (__int128)sync->hz / 1000000000);
}

void pem_clock_sync__update(struct pem_clock_sync *sync)
{
	const struct pem_clock_pair *last = &sync->pair[(sync->count - 1) % PEM_CLOCK_PAIRS];
	struct pem_clock_pair pair = read_pair(CLOCK_MONOTONIC);
	uint64_t expected, off;

	if (pair.monotonic_ns - last->monotonic_ns < 1000000)
		return;
	/*
	 * A line is drawn between two pairs. Between them, the clock differs from that line by at
	 * most the distance of this pair from the line before.
	 */
	expected = extrapolate(sync, last, pair.monotonic_ns);
	off = expected > pair.cycles ? expected - pair.cycles : pair.cycles - expected;
	if (off + pair.error_cycles > sync->worst_cycles)
		sync->worst_cycles = off + pair.error_cycles;
	sync->pair[sync->count++ % PEM_CLOCK_PAIRS] = pair;
	/* The line may reach past the new pair. */
	sync->line.span_ns = 0;
}

static void set_line(struct pem_clock_line *line, const struct pem_clock_pair *from,
		     uint64_t cycles, uint64_t ns, uint64_t span_ns)
{
	if (cycles >> 32 >= ns || span_ns > UINT32_MAX) {
		line->span_ns = 0;
		return;
	}
	line->from_ns = from->monotonic_ns;
	line->from_cycles = from->cycles;
	line->slope = (((unsigned __int128)cycles << 64) + ns - 1) / ns;
	line->span_ns = span_ns;
}

static uint64_t interpolate(struct pem_clock_sync *sync, const struct pem_clock_pair *from,
			    const struct pem_clock_pair *to, uint64_t ns)
{
	uint64_t cycles = to->cycles - from->cycles, span = to->monotonic_ns - from->monotonic_ns;

	set_line(&sync->line, from, cycles, span, span);
	return from->cycles +
	       (uint64_t)((unsigned __int128)(ns - from->monotonic_ns) * cycles / span);
}

uint64_t pem_clock_sync__cycles_at(struct pem_clock_sync *sync, uint64_t ns)
{
	const struct pem_clock_pair *later = NULL, *pair;
	const struct pem_clock_line *line = &sync->line;
	uint64_t oldest = sync->count > PEM_CLOCK_PAIRS ? sync->count - PEM_CLOCK_PAIRS : 0, i;

	if (ns - line->from_ns < line->span_ns)
		return line->from_cycles + (uint64_t)((ns - line->from_ns) * line->slope >> 64);
	for (i = sync->count; i-- > oldest;) {
		pair = &sync->pair[i % PEM_CLOCK_PAIRS];
		if (pair->monotonic_ns <= ns) {
			if (later && later->monotonic_ns != pair->monotonic_ns)
				return interpolate(sync, pair, later, ns);
			if (!later)
				set_line(&sync->line, pair, sync->hz, 1000000000, UINT32_MAX);
			return extrapolate(sync, pair, ns);
		}
		later = pair;
	}
	return extrapolate(sync, later, ns);
}

uint64_t pem_clock_sync__hz(struct pem_clock_sync *sync)
{
	struct pem_clock_pair now = read_pair(CLOCK_MONOTONIC);
	uint64_t ns = now.monotonic_ns - sync->first.monotonic_ns;

	if (ns < 100000000)
		return sync->hz;
	return (uint64_t)((unsigned __int128)(now.cycles - sync->first.cycles) * 1000000000u / ns);
}

uint64_t pem_clock_sync__error_ns(const struct pem_clock_sync *sync)
{
	return (uint64_t)((unsigned __int128)sync->worst_cycles * 1000000000u / sync->hz) + 1;
}
