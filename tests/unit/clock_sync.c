// SPDX-License-Identifier: MIT
/*
 * clock_sync.c - the cycle counter's rate, and its value at times of CLOCK_MONOTONIC
 */

#include "core/clock_sync.h"
#include <pem/clock.h>
#include <pem/pem.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define HZ 2500000000ull

/* Pairs at 1 s, 2 s, ... whose cycles are given by how the counter ran from one to the next. */
static struct pem_clock_sync made(const uint64_t *cycles, unsigned count)
{
	struct pem_clock_sync sync = {.hz = HZ};
	unsigned i;

	for (i = 0; i < count; i++)
		sync.pair[sync.count++ % PEM_CLOCK_PAIRS] =
			(struct pem_clock_pair){cycles[i], (i + 1) * 1000000000ull, 10};
	return sync;
}

static void exact_at_the_pairs(void **state)
{
	static const uint64_t cycles[] = {1000, 1000 + HZ, 2000 + 2 * HZ, 1500 + 3 * HZ};
	struct pem_clock_sync sync = made(cycles, 4);
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_true(pem_clock_sync__cycles_at(&sync, (i + 1) * 1000000000ull) == cycles[i]);
}

static void linear_between_them(void **state)
{
	static const uint64_t cycles[] = {1000, 1000 + HZ, 3000 + 2 * HZ};
	struct pem_clock_sync sync = made(cycles, 3);

	(void)state;
	assert_true(pem_clock_sync__cycles_at(&sync, 1500000000) == 1000 + HZ / 2);
	assert_true(pem_clock_sync__cycles_at(&sync, 2500000000) == 2000 + HZ + HZ / 2);
}

static void at_the_rate_outside(void **state)
{
	static const uint64_t cycles[] = {5 * HZ, 6 * HZ};
	struct pem_clock_sync sync = made(cycles, 2);

	(void)state;
	assert_true(pem_clock_sync__cycles_at(&sync, 500000000) == 4 * HZ + HZ / 2);
	assert_true(pem_clock_sync__cycles_at(&sync, 4000000000) == 8 * HZ);
	assert_true(pem_clock_sync__cycles_at(&sync, 12000000000ull) == 16 * HZ);
}

/*
 * The line of the last conversion, kept for the next, gives to the cycle what is calculated without
 * it.
 */
static void a_kept_line_is_exact(void **state)
{
	static const uint64_t cycles[] = {1000, 1000 + HZ, 3007 + 2 * HZ, 2999 + 3 * HZ};
	struct pem_clock_sync kept = made(cycles, 4), fresh = kept;
	unsigned seed = 5, i, used = 0;
	uint64_t ns;

	(void)state;
	for (i = 0; i < 20000; i++) {
		ns = (i % 4 + 1) * 1000000000ull + (unsigned)rand_r(&seed) % 1000000000u;
		pem_clock_sync__cycles_at(&kept, ns - ns % 1000000000u);
		used += kept.line.span_ns > ns - kept.line.from_ns;
		fresh.line.span_ns = 0;
		assert_true(pem_clock_sync__cycles_at(&kept, ns) ==
			    pem_clock_sync__cycles_at(&fresh, ns));
	}
	assert_int_equal(used, 20000);
}

static void never_backwards(void **state)
{
	uint64_t cycles[PEM_CLOCK_PAIRS + 20], last = 0, ns, at;
	unsigned seed = 7, i;
	struct pem_clock_sync sync;

	(void)state;
	for (i = 0; i < PEM_CLOCK_PAIRS + 20; i++)
		cycles[i] = (i + 1) * HZ + (unsigned)rand_r(&seed) % 100000;
	sync = made(cycles, PEM_CLOCK_PAIRS + 20); /* the oldest are overwritten by now */
	for (ns = 21000000000ull; ns < 90000000000ull; ns += 333333333) {
		at = pem_clock_sync__cycles_at(&sync, ns);
		assert_true(at > last);
		last = at;
	}
}

static uint64_t monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define READINGS 200

/* One clock read between two readings of the other. */
struct bracket {
	uint64_t before, ns, after;
};

static void read_brackets(struct pem_clock_sync *sync, struct bracket *brackets)
{
	const struct timespec pause = {0, 2000000};
	int i;

	pem_clock_sync__init(sync);
	for (i = 0; i < READINGS; i++) {
		brackets[i].before = pem_clock();
		brackets[i].ns = monotonic();
		brackets[i].after = pem_clock();
		if (i % 20 == 0)
			nanosleep(&pause, NULL);
		pem_clock_sync__update(sync);
	}
	assert_true(sync->count > 5);
}

/* How many readings convert to a moment outside of their bracket by more than the stated error. */
static unsigned outside(struct pem_clock_sync *sync, const struct bracket *brackets)
{
	uint64_t at, error = (uint64_t)((double)pem_clock_sync__error_ns(sync) * (double)sync->hz /
					1e9) +
			     1;
	unsigned count = 0;
	int i;

	for (i = 0; i < READINGS; i++) {
		at = pem_clock_sync__cycles_at(sync, brackets[i].ns);
		count += at + error < brackets[i].before || at > brackets[i].after + error;
	}
	return count;
}

static void bound_holds(void **state)
{
	struct bracket brackets[READINGS];
	struct pem_clock_sync sync;

	(void)state;
	read_brackets(&sync, brackets);
	assert_int_equal(outside(&sync, brackets), 0);
}

/*
 * The same readings, and a relation of the clocks that is wrong by two microseconds more than it
 * says.
 */
static void a_shifted_clock_is_outside_the_bound(void **state)
{
	struct bracket brackets[READINGS];
	struct pem_clock_sync sync;
	uint64_t shift;
	unsigned i;

	(void)state;
	read_brackets(&sync, brackets);
	shift = sync.worst_cycles + sync.hz / 500000;
	for (i = 0; i < PEM_CLOCK_PAIRS; i++)
		sync.pair[i].cycles += shift;
	/*
	 * Where the bracket itself was wide, for this thread was interrupted in it, nothing shows.
	 */
	assert_in_range(outside(&sync, brackets), READINGS / 2, READINGS);
}

struct reading {
	uint64_t before, after; /* cycles */
	double seconds;
};

static struct reading read_raw(void)
{
	struct timespec ts;
	struct reading r;

	r.before = pem_clock();
	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	r.after = pem_clock();
	r.seconds = (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
	return r;
}

/* The rate is that of the clock which is not steered, to 0.1 %, however late this thread ran. */
static void rate_is_the_counters(void **state)
{
	const struct timespec pause = {0, 20000000};
	struct reading start = read_raw(), end;
	double hz = (double)pem_clock__hz();

	(void)state;
	nanosleep(&pause, NULL);
	end = read_raw();
	assert_true(hz > 1e6);
	assert_true((double)(end.before - start.after) / (end.seconds - start.seconds) <
		    hz * 1.001);
	assert_true((double)(end.after - start.before) / (end.seconds - start.seconds) >
		    hz * 0.999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_at_the_pairs),
		cmocka_unit_test(linear_between_them),
		cmocka_unit_test(at_the_rate_outside),
		cmocka_unit_test(a_kept_line_is_exact),
		cmocka_unit_test(never_backwards),
		cmocka_unit_test(bound_holds),
		cmocka_unit_test(a_shifted_clock_is_outside_the_bound),
		cmocka_unit_test(rate_is_the_counters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
