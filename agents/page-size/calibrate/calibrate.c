// SPDX-License-Identifier: MIT
/*
 * calibrate.c - measures this machine: curves of pages, random accesses, and the kernel's work
 *
 * Three curves say how much the TLB holds. Each is of the time of an access against the number of
 * places that are visited, one line in each, in random order:
 *
 *	small	small pages
 *	parts	small parts of large pages
 *	large	large pages
 *
 * The lines are few enough for the caches, and those of a fourth curve, which lie side by side,
 * show what the caches add. If parts steps where small does, a hypervisor has split the large
 * pages.
 *
 * Measurements of all kinds take turns, in rounds: a disturbance then spoils some rounds of all
 * curves, not one curve. Of a point of a curve the least time counts, and of random accesses the
 * fifth of all that is least: what a machine takes that nobody disturbs.
 */
#include "calibrate.h"

#include "kernel.h"
#include "order.h"
#include "run.h"
#include "steps.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Each of two. */
#define ARENA_BYTES (1024 * MIB)
#define ARENA_BYTES_HASTY (256 * MIB)
#define ARENA_BYTES_MIN (64 * MIB)
#define LIMIT_MIN_S 2
/* With less time, less memory. */
#define HASTY_S 10
/* When each part ends, of the time limit; the rest is for a round that takes long. */
#define CURVES_END 0.2
#define RANDOM_END 0.7
#define WORK_END 0.8
#define CHASE_ACCESSES 40000
/* Measurements that differ by more among themselves say nothing. */
#define NOISE_MAX 0.5
/* A pool of fewer entries is fully associative, as those of processors are, by and large. */
#define ASSOCIATIVE_MAX 128u
#define WAYS 16u

__attribute__((format(printf, 2, 3))) static void fail(struct pem_error *error, const char *format,
						       ...)
{
	va_list args;

	if (!error)
		return;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
}

/* --- curves --- */

static const struct {
	size_t stride;
	uint32_t shift; /* of the arena's pages */
} shapes[CURVES] = {
	[SMALL] = {(size_t)1 << SMALL_SHIFT, SMALL_SHIFT},
	[PARTS] = {(size_t)1 << SMALL_SHIFT, LARGE_SHIFT},
	[LARGE] = {(size_t)1 << LARGE_SHIFT, LARGE_SHIFT},
	[NEAR] = {LINE_BYTES, SMALL_SHIFT},
};

static void measure_point(struct run *run, enum curve curve, size_t point)
{
	bool is_small = shapes[curve].shift == SMALL_SHIFT;
	const struct arena *arena = is_small ? &run->small : &run->other;
	size_t count = (size_t)run->pages[point];
	double ns;

	if ((!is_small && run->other_shift != shapes[curve].shift) ||
	    count * shapes[curve].stride > arena->bytes)
		return;
	lines__scatter(run->lines, arena, count, shapes[curve].stride, &run->dice);
	ns = lines__dependent_ns(run->lines, count, CHASE_ACCESSES);
	run->latency[curve][point] = fmin(run->latency[curve][point], ns);
	ns = lines__independent_ns(run->lines, count, CHASE_ACCESSES);
	run->throughput[curve][point] = fmin(run->throughput[curve][point], ns);
}

static void begin_curves(struct run *run)
{
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	double n, most = fmin(32768, fmax(8192, (double)cache / LINE_BYTES));
	enum curve curve;
	size_t i;

	for (n = 8; n <= most * 1.001; n *= exp2(0.25))
		run->pages[run->points++] = rint(n);
	for (curve = 0; curve < CURVES; curve++) {
		for (i = 0; i < run->points; i++)
			run->latency[curve][i] = run->throughput[curve][i] = HUGE_VAL;
	}
}

/* Those of the arenas that are there. */
static void measure_curves(struct run *run, double until_s)
{
	enum curve curve;
	size_t i, round;

	for (round = 0; round < ROUNDS_MIN || (round < ROUNDS_MAX && now_s() < until_s); round++) {
		for (i = 0; i < run->points; i++) {
			for (curve = 0; curve < CURVES; curve++)
				measure_point(run, curve, i);
		}
	}
}

/* What pages add at a point; the caches' part is taken away. */
static double added(const double (*times)[STEP_POINTS_MAX], enum curve curve, size_t i)
{
	return fmax(0, times[curve][i] - times[NEAR][i]);
}

static size_t find_steps(const struct run *run, enum curve curve, struct step *steps)
{
	double ns[STEP_POINTS_MAX];
	size_t i;

	for (i = 0; i < run->points && run->latency[curve][i] < HUGE_VAL; i++)
		ns[i] = run->latency[NEAR][0] + added(run->latency, curve, i);
	return steps__find(run->pages, ns, i, steps);
}

static void describe_curves(struct run *run)
{
	size_t i;

	run__say(run,
		 "ns of an access that waits, by the number of places: small pages, parts of large "
		 "pages, large pages, lines side by side");
	for (i = 0; i < run->points; i++)
		run__say(run, "%6.0f %8.2f %8.2f %8.2f %8.2f", run->pages[i],
			 run->latency[SMALL][i], run->latency[PARTS][i], run->latency[LARGE][i],
			 run->latency[NEAR][i]);
}

/* --- from curves to a geometry --- */

static struct page_pool pool_of(uint32_t sizes, double entries)
{
	uint32_t n = (uint32_t)fmin(fmax(1, round(entries)), PAGE_ENTRIES_MAX);

	if (n <= ASSOCIATIVE_MAX)
		return (struct page_pool){sizes, n, n, PAGE_LRU};
	return (struct page_pool){sizes, (n + WAYS / 2) / WAYS * WAYS, WAYS, PAGE_LRU};
}

/* The mean of what pages add from one number of them on; until: exclusive. */
static double mean_added(const double (*times)[STEP_POINTS_MAX], const struct run *run,
			 enum curve curve, double from, double until)
{
	double sum = 0;
	size_t i, n = 0;

	for (i = 0; i < run->points; i++) {
		if (run->pages[i] < from || run->pages[i] >= until || times[curve][i] == HUGE_VAL)
			continue;
		sum += added(times, curve, i);
		n++;
	}
	return n ? sum / (double)n : 0;
}

/* Where the parts of other pages step later than small pages do, an entry maps more of them. */
static uint32_t entry_shift(const struct step *small, size_t smalls, const struct step *parts,
			    size_t count, uint32_t most)
{
	double shift;

	if (!smalls || !count)
		return most;
	shift = SMALL_SHIFT + round(log2(parts[0].at / small[0].at));
	return (uint32_t)fmin(fmax(shift, SMALL_SHIFT), most);
}

static void shape_levels(struct run *run, const struct step *small, size_t smalls)
{
	struct page_geometry *geometry = &run->calibration->geometry;
	uint32_t sizes = (1u << geometry->size_count) - 1, i;
	struct step large[STEPS_MAX];
	struct page_level *level;

	/* Without a step all pages that were visited fit. */
	geometry->level_count = smalls ? (uint32_t)smalls : 1;
	for (i = 0; i < geometry->level_count; i++) {
		level = &geometry->levels[i];
		level->pool_count = 1;
		level->pools[0] =
			pool_of(sizes, smalls ? small[i].at : run->pages[run->points - 1]);
	}
	level = &geometry->levels[0];
	/*
	 * Large pages have entries of their own if they have fewer. There are too few large pages
	 * to find the end of the second level: it is taken to hold both.
	 */
	if (smalls && geometry->size_count > 1 && find_steps(run, LARGE, large) &&
	    large[0].at < small[0].at * 0.75) {
		level->pool_count = 2;
		level->pools[0].sizes = 1;
		level->pools[1] = pool_of(2, large[0].at);
	}
	if (smalls < 2)
		return;
	level = &geometry->levels[1];
	level->hit_ns = mean_added(run->latency, run, SMALL, small[0].at * 1.5, small[0].at * 4);
	level->hidden_ns = fmax(0, level->hit_ns - mean_added(run->throughput, run, SMALL,
							      small[0].at * 1.5, small[0].at * 4));
}

static void shape(struct run *run)
{
	struct page_geometry *geometry = &run->calibration->geometry;
	struct step small[STEPS_MAX], parts[STEPS_MAX];
	size_t smalls = find_steps(run, SMALL, small), count = 0;
	double most = run->pages[run->points - 1], from;
	enum curve curve = SMALL;

	geometry->shifts[0] = SMALL_SHIFT;
	geometry->size_count = 1;
	if (run->other_shift == LARGE_SHIFT) {
		geometry->shifts[geometry->size_count++] = LARGE_SHIFT;
		count = find_steps(run, PARTS, parts);
		geometry->entry_shifts[1] = entry_shift(small, smalls, parts, count, LARGE_SHIFT);
		if (geometry->entry_shifts[1] < LARGE_SHIFT)
			curve = PARTS;
	}
	shape_levels(run, small, smalls);
	/* Walks with tables and lines in the caches: those of large pages. */
	from = smalls ? fmin(small[smalls - 1].at * 3, most * 0.7) : most;
	geometry->walk_latency_ns[0] = mean_added(run->latency, run, SMALL, from, HUGE_VAL);
	geometry->walk_throughput_ns[0] = mean_added(run->throughput, run, SMALL, from, HUGE_VAL);
	if (geometry->size_count > 1) {
		geometry->walk_latency_ns[1] = mean_added(run->latency, run, curve, from, HUGE_VAL);
		geometry->walk_throughput_ns[1] =
			mean_added(run->throughput, run, curve, from, HUGE_VAL);
	}
}

void page_calibration__update_supply(struct page_calibration *calibration)
{
	const struct page_geometry *geometry = &calibration->geometry;
	uint32_t size;

	for (size = 0; size < geometry->size_count; size++)
		calibration->supply_bytes[size] = page_supply(geometry->shifts[size]);
}

/* --- the kernel's work --- */

static void measure_work(struct run *run, double until_s)
{
	double touch[ROUNDS_MAX], copy[ROUNDS_MAX], collapse[ROUNDS_MAX];
	struct page_calibration *calibration = run->calibration;
	struct page_geometry *geometry = &calibration->geometry;
	struct page_work work;
	size_t round, done;
	uint32_t size;

	for (size = 0; size < geometry->size_count; size++) {
		for (round = 0, done = 0;
		     round < ROUNDS_MIN || (round < 2 * ROUNDS_MIN && now_s() < until_s); round++) {
			if (page_work__measure(&work, geometry->shifts[size]) < 0)
				continue;
			touch[done] = work.first_touch_ns;
			copy[done] = work.copy_ns;
			collapse[done++] = work.collapse_ns;
		}
		if (!done)
			continue;
		geometry->first_touch_ns[size] = order__median(touch, done);
		calibration->copy_ns[size] = order__median(copy, done);
		/* Small pages are what a large one is made of. */
		if (!size && geometry->size_count > 1)
			calibration->collapse_ns[geometry->size_count - 1] =
				order__median(collapse, done);
	}
	page_calibration__update_supply(calibration);
	calibration->ns_per_instruction = HUGE_VAL;
	for (round = 0; round < ROUNDS_MAX; round++)
		calibration->ns_per_instruction =
			fmin(calibration->ns_per_instruction, instruction_ns());
}

/* --- all of it --- */

static void describe(struct run *run)
{
	const struct page_geometry *geometry = &run->calibration->geometry;
	uint32_t i, j;

	for (i = 0; i < geometry->level_count; i++) {
		for (j = 0; j < geometry->levels[i].pool_count; j++)
			run__say(run,
				 "level %u: %u entries of %u ways for sizes %#x, a hit adds %.2f "
				 "ns, "
				 "%.2f ns where accesses overlap",
				 i + 1, geometry->levels[i].pools[j].entries,
				 geometry->levels[i].pools[j].ways,
				 geometry->levels[i].pools[j].sizes, geometry->levels[i].hit_ns,
				 geometry->levels[i].hit_ns - geometry->levels[i].hidden_ns);
	}
	for (i = 0; i < geometry->size_count; i++)
		run__say(run,
			 "pages of 2^%u bytes, 2^%u in a TLB entry: a walk adds %.2f ns, %.2f ns "
			 "where accesses overlap; first touch %.0f ns",
			 geometry->shifts[i],
			 geometry->entry_shifts[i] ? geometry->entry_shifts[i]
						   : geometry->shifts[i],
			 geometry->walk_latency_ns[i], geometry->walk_throughput_ns[i],
			 geometry->first_touch_ns[i]);
	run__say(run, "walks overlap within %.0f instructions", geometry->window_instructions);
}

/* Pages of another size take the place of those before. -ENOTSUP: the kernel gives none. */
static int begin_other(struct run *run, uint32_t shift)
{
	int rc;

	arena__free(&run->other);
	run->other_shift = 0;
	rc = arena__init(&run->other, run->small.bytes, shift);
	if (!rc)
		run->other_shift = shift;
	if (rc == -ENOTSUP)
		run__say(run, "The kernel gives no pages of %zu KiB, or too few to measure them.",
			 ((size_t)1 << shift) / 1024);
	return rc;
}

static int measure_large(struct run *run)
{
	int rc = begin_other(run, LARGE_SHIFT);

	if (rc < 0 && rc != -ENOTSUP)
		return rc;
	measure_curves(run, run->began_s + run->limit_s * CURVES_END);
	describe_curves(run);
	shape(run);
	if (!run->other_shift)
		return 0;
	rc = run__measure_savings(run, run->began_s + run->limit_s * RANDOM_END);
	if (rc < 0)
		return rc;
	fit__walks(&run->calibration->geometry, run->savings, run->savings_count);
	fit__window(&run->calibration->geometry, run->sparse, SPARSE_POINTS);
	return 0;
}

/* Each kind of pages in turn: 0, or -errno. */
static int measure_pages(struct run *run, struct pem_error *error)
{
	size_t bytes = run->limit_s < HASTY_S ? ARENA_BYTES_HASTY : ARENA_BYTES;
	uint64_t room = memory_available() / 8;
	int rc;

	while (bytes > ARENA_BYTES_MIN && bytes > room)
		bytes /= 2;
	rc = arena__init(&run->small, bytes, SMALL_SHIFT);
	begin_curves(run);
	if (!rc)
		rc = measure_large(run);
	arena__free(&run->small);
	arena__free(&run->other);
	if (rc < 0)
		fail(error, "no memory to measure in: %zu MiB are needed", 2 * bytes / MIB);
	return rc;
}

static int measure_all(struct run *run, struct pem_error *error)
{
	struct page_calibration *calibration = run->calibration;
	const char *reason;
	int rc = measure_pages(run, error);

	if (rc < 0)
		return rc;
	measure_work(run, run->began_s + run->limit_s * WORK_END);
	describe(run);
	if (calibration->noise > NOISE_MAX) {
		fail(error,
		     "this machine is too busy to be measured: equal measurements differ by "
		     "%.0f %%; try again when it is quieter",
		     calibration->noise * 100);
		return -EAGAIN;
	}
	if (page_geometry__check(&calibration->geometry, &reason) < 0) {
		fail(error, "the measurements make no sense, try again: %s", reason);
		return -EAGAIN;
	}
	return 0;
}

int page_calibrate(struct page_calibration *calibration, double limit_s,
		   void (*progress)(const char *sentence, void *arg), void *arg,
		   struct pem_error *error)
{
	struct page_calibration found = {0};
	cpu_set_t before, one;
	struct run *run;
	int rc, pinned;

	if (!(limit_s >= LIMIT_MIN_S)) {
		fail(error, "a calibration takes %d s at least", LIMIT_MIN_S);
		return -EINVAL;
	}
	run = calloc(1, sizeof(*run));
	if (!run) {
		fail(error, "no memory for the measurements");
		return -ENOMEM;
	}
	run->calibration = &found;
	run->progress = progress;
	run->arg = arg;
	run->limit_s = limit_s;
	run->began_s = now_s();
	run->dice = (uint64_t)(run->began_s * 1e9);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	pinned = !sched_getaffinity(0, sizeof(before), &before) &&
		 !sched_setaffinity(0, sizeof(one), &one);
	rc = measure_all(run, error);
	if (pinned)
		sched_setaffinity(0, sizeof(before), &before);
	arena__free(&run->small);
	arena__free(&run->other);
	found.seconds = now_s() - run->began_s;
	free(run);
	if (!rc)
		*calibration = found;
	return rc;
}
