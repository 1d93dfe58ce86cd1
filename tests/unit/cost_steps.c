/* SPDX-License-Identifier: MIT */
/*
 * cost_steps.c - that what steps take beside each other holds while other load disturbs the machine
 */
#include "cost/cost.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* --- a machine whose speed is known --- */

#define PERIOD_NS 2e7
#define BURST_NS 2e6
#define BURST_FACTOR 5
#define PHASES 80
#define CLOCK_STEP_NS 10
#define READ_NS 4000 /* as long as a walk through memory takes */

#define PLAIN_NS 10
#define LOGGED_NS 40
#define COUNTED_NS 15

static bool simulated;
static double simulated_ns;

/* Pass time, more of it while other load has the caches. */
static void work(double ns)
{
	double at = simulated_ns - PERIOD_NS * (uint64_t)(simulated_ns / PERIOD_NS);

	simulated_ns += at < BURST_NS ? ns * BURST_FACTOR : ns;
}

/* In place of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
	uint64_t ns;

	if (!simulated)
		return (int)syscall(SYS_clock_gettime, clock, now);
	work(READ_NS);
	ns = (uint64_t)simulated_ns;
	if (clock == CLOCK_MONOTONIC)
		ns -= ns % CLOCK_STEP_NS;
	*now = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
	return 0;
}

static void work_plain(void *arg)
{
	(void)arg;
	work(PLAIN_NS);
}

static void work_logged(void *arg)
{
	(void)arg;
	work(LOGGED_NS);
}

static void work_counted(void *arg)
{
	(void)arg;
	work(COUNTED_NS);
}

static bool take_turn(void *arg, unsigned step, enum pem_caches caches, double *ns)
{
	const struct pem_stepper *steppers = arg;

	*ns = pem_step__turn_ns(&steppers[step], caches);
	return true;
}

static void a_step_takes_as_much_longer_as_it_does_alone(void **state)
{
	volatile uint8_t *memory = pem_step__memory();
	struct pem_stepper steppers[] = {{work_plain, NULL, memory, 500, 1, 0},
					 {work_logged, NULL, memory, 500, 1, 0},
					 {work_counted, NULL, memory, 500, 1, 0}};
	const double longer_ns[] = {0, LOGGED_NS - PLAIN_NS, COUNTED_NS - PLAIN_NS};
	struct pem_step taken[3];
	unsigned phase, s;

	(void)state;
	simulated = true;
	for (phase = 0; phase < PHASES; phase++) {
		simulated_ns = 10 * PERIOD_NS + phase * PERIOD_NS / PHASES + phase * 0.7;
		taken[0] = pem_step__measure(&steppers[0]);
		assert_true(pem_step__compare(take_turn, steppers, 3, taken));
		for (s = 1; s < 3; s++) {
			assert_float_equal(taken[s].warm - taken[0].warm, longer_ns[s], 0.1);
			assert_float_equal(taken[s].cooler - taken[0].cooler, longer_ns[s], 0.1);
			/* Each clock is read within a step of it. */
			assert_float_equal(taken[s].cold - taken[0].cold, longer_ns[s],
					   CLOCK_STEP_NS / 2);
		}
	}
	simulated = false;
	free((void *)memory);
}

/* --- this machine --- */

#define LOOPS 4
#define MEASUREMENTS 60

static pid_t start_loop(void)
{
	pid_t child = fork();

	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!child)
		;
	assert_true(child > 0);
	return child;
}

/* A record takes a reading of the clock and more stores than a value that is added. */
static void a_record_costs_more_than_a_value_beside_busy_loops(void **state)
{
	const struct pem_cost *cost;
	struct pem_costs costs;
	pid_t loops[LOOPS];
	unsigned i, in_order = 0;

	(void)state;
	for (i = 0; i < LOOPS; i++)
		loops[i] = start_loop();
	for (i = 0; i < MEASUREMENTS; i++) {
		memset(&costs, 0, sizeof(costs));
		pem_session__measure_kinds(NULL, 1u << PEM_COST_USER, NULL, &costs);
		cost = &costs.each[PEM_COST_USER];
		/* Cold, both wait for memory above all. */
		in_order +=
			cost->log_ns > cost->stat_ns && 2 * cost->cold_log_ns > cost->cold_stat_ns;
	}
	for (i = 0; i < LOOPS; i++) {
		kill(loops[i], SIGKILL);
		waitpid(loops[i], NULL, 0);
	}
	assert_int_equal(in_order, MEASUREMENTS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_takes_as_much_longer_as_it_does_alone),
		cmocka_unit_test(a_record_costs_more_than_a_value_beside_busy_loops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
