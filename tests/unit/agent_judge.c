// SPDX-License-Identifier: MIT
/*
 * agent_judge.c - how often an agent's comparison of runs errs: simulated runs whose truth is known
 *
 * The numbers come from a fixed generator, so that each run of this test is the same.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pem/agent.h>

#include <math.h>
#include <string.h>

#define RUNS_MAX 64u
#define EXPERIMENTS 2000u

static uint64_t state_of_dice = 42;

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
static double uniform(void)
{
	uint64_t x = state_of_dice += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (double)((x ^ x >> 31) >> 11) * 0x1p-53 + 0x1p-54;
}

/* Box and Muller (1958). */
static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* What came of an experiment: the verdict, and after how many runs. */
struct outcome {
	enum pem_agent_verdict verdict;
	unsigned runs;
};

/* Runs on trial until there is a verdict. effect: of the directive on the logarithm of time. */
static struct outcome experiment(double effect, double noise, unsigned groups)
{
	struct pem_agent_trial trials[RUNS_MAX];
	struct pem_agent_comparison c;
	struct outcome outcome = {PEM_AGENT_UNCLEAR, 0};
	unsigned n, treated = 0;

	for (n = 0; n < RUNS_MAX && outcome.verdict == PEM_AGENT_UNCLEAR; n++) {
		trials[n].group = n % groups;
		trials[n].treated = 2 * treated == n ? uniform() < 0.5 : 2 * treated < n;
		treated += trials[n].treated;
		trials[n].value = (1 + trials[n].group * 9) *
				  exp(noise * normal() + (trials[n].treated ? effect : 0));
		outcome.verdict = pem_agent__judge(trials, n + 1, 1, &c);
	}
	outcome.runs = n;
	return outcome;
}

/* The share of experiments, in %, that end with a verdict within a number of runs. */
static double share(enum pem_agent_verdict verdict, unsigned runs, double effect, double noise,
		    unsigned groups)
{
	unsigned count = 0, i;

	for (i = 0; i < EXPERIMENTS; i++) {
		const struct outcome outcome = experiment(effect, noise, groups);

		count += outcome.verdict == verdict && outcome.runs <= runs;
	}
	return 100.0 * count / EXPERIMENTS;
}

static void what_changes_nothing_is_seldom_taken_for_a_change(void **state)
{
	(void)state;
	assert_true(share(PEM_AGENT_SLOWER, RUNS_MAX, 0, 0.02, 1) +
			    share(PEM_AGENT_FASTER, RUNS_MAX, 0, 0.02, 1) <
		    5);
	assert_true(share(PEM_AGENT_SLOWER, RUNS_MAX, 0, 0.3, 1) +
			    share(PEM_AGENT_FASTER, RUNS_MAX, 0, 0.3, 1) <
		    5);
}

static void harm_is_found_within_ten_runs(void **state)
{
	(void)state;
	assert_true(share(PEM_AGENT_SLOWER, 10, log(1.1), 0.02, 1) > 95);
	assert_true(share(PEM_AGENT_SLOWER, 10, log(1.3), 0.05, 1) > 95);
}

static void a_gain_is_hardly_ever_taken_for_harm(void **state)
{
	(void)state;
	assert_true(share(PEM_AGENT_SLOWER, RUNS_MAX, log(0.95), 0.02, 1) < 0.5);
	assert_true(share(PEM_AGENT_FASTER, 24, log(0.95), 0.02, 1) > 95);
}

static void runs_of_other_inputs_are_compared_apart(void **state)
{
	(void)state;
	/* The second input takes ten times as long: mixed up, nothing could be seen. */
	assert_true(share(PEM_AGENT_FASTER, 32, log(0.9), 0.02, 2) > 95);
	assert_true(share(PEM_AGENT_SLOWER, RUNS_MAX, 0, 0.02, 2) +
			    share(PEM_AGENT_FASTER, RUNS_MAX, 0, 0.02, 2) <
		    5);
}

static void what_makes_no_difference_is_said_to_be_equal(void **state)
{
	(void)state;
	assert_true(share(PEM_AGENT_EQUAL, RUNS_MAX, 0, 0.005, 1) > 90);
}

static struct pem_agent_trial trial(double value, uint32_t treated, uint32_t group)
{
	return (struct pem_agent_trial){.value = value, .treated = treated, .group = group};
}

static void the_comparison_says_by_how_much(void **state)
{
	const struct pem_agent_trial trials[] = {
		trial(1.0, 0, 7), trial(1.02, 0, 7), trial(0.98, 0, 7),
		trial(0.9, 1, 7), trial(0.92, 1, 7), trial(0.88, 1, 7),
		trial(5, 1, 8),   trial(-1, 0, 7),   trial(NAN, 1, 7)};
	struct pem_agent_comparison c;

	(void)state;
	pem_agent__judge(trials, sizeof(trials) / sizeof(trials[0]), 1, &c);
	assert_true(c.gain > 9.9 && c.gain < 10.1);
	assert_true(c.gain_low > 4 && c.gain_low < 7 && c.gain_high > 13 && c.gain_high < 16);
	assert_int_equal(c.treated, 3);
	assert_int_equal(c.controls, 3);
}

static void what_both_runs_of_a_pair_have_in_common_is_no_spread(void **state)
{
	/* The machine is ten times slower in each pair than in the one before; 10 % are gained. */
	struct pem_agent_trial trials[12];
	struct pem_agent_comparison c;
	double slower = 1;
	uint32_t i;

	(void)state;
	for (i = 0; i < 6; i++, slower *= 10) {
		trials[2 * i] = trial(slower, 0, i);
		trials[2 * i + 1] = trial(slower * (i % 2 ? 0.89 : 0.91), 1, i);
	}
	assert_int_equal(pem_agent__judge(trials, 12, 1, &c), PEM_AGENT_FASTER);
	assert_true(c.gain_low > 8 && c.gain_low < 9.5 && c.gain_high > 10.5 && c.gain_high < 12);
	/* Student's t of five differences: 2.571 * 0.0122 / sqrt(6). */
	assert_true(fabs(c.gain_high - c.gain_low - 2 * 90 * 0.0128) < 0.05);
	/* One group of more runs: the rest are no pairs. */
	for (i = 0; i < 12; i++)
		trials[i].group = i / 2 ? i / 2 : 1;
	assert_int_equal(pem_agent__judge(trials, 12, 1, &c), PEM_AGENT_UNCLEAR);
}

static void extreme_values_have_finite_gains(void **state)
{
	const struct pem_agent_trial trials[] = {trial(1e-300, 0, 0), trial(2e-300, 0, 0),
						 trial(1e300, 1, 0), trial(2e300, 1, 0)};
	struct pem_agent_comparison c;

	(void)state;
	pem_agent__judge(trials, 4, 1, &c);
	assert_true(c.gain < -1e6);
	assert_true(isfinite(c.gain) && isfinite(c.gain_low) && isfinite(c.gain_high));
}

static void too_few_runs_say_nothing(void **state)
{
	const struct pem_agent_trial trials[] = {trial(1, 0, 0), trial(9, 1, 0), trial(9, 1, 0)};
	struct pem_agent_comparison c;

	(void)state;
	assert_int_equal(pem_agent__judge(trials, 0, 1, &c), PEM_AGENT_UNCLEAR);
	assert_int_equal(pem_agent__judge(trials, 1, 1, &c), PEM_AGENT_UNCLEAR);
	assert_int_equal(pem_agent__judge(trials, 2, 1, NULL), PEM_AGENT_UNCLEAR);
	assert_true(c.gain == 0 && c.bayes_factor == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_changes_nothing_is_seldom_taken_for_a_change),
		cmocka_unit_test(harm_is_found_within_ten_runs),
		cmocka_unit_test(a_gain_is_hardly_ever_taken_for_harm),
		cmocka_unit_test(runs_of_other_inputs_are_compared_apart),
		cmocka_unit_test(what_makes_no_difference_is_said_to_be_equal),
		cmocka_unit_test(the_comparison_says_by_how_much),
		cmocka_unit_test(what_both_runs_of_a_pair_have_in_common_is_no_spread),
		cmocka_unit_test(extreme_values_have_finite_gains),
		cmocka_unit_test(too_few_runs_say_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
