// SPDX-License-Identifier: MIT
/* explore_search.c - a search asks for runs, and calls the configuration best that wins its races
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "policy/policy.h"
#include "policy/search.h"
#include "rank_test.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define LEVELS 8u
#define TOLD 64u

/* --- a space of one parameter, and a policy that takes its levels in turn --- */

static const struct pem_explore_parameter parameter = {.name = "p", .levels = LEVELS};

static void at(const struct pem_explore_space *space, uint64_t number, uint32_t *levels)
{
	(void)space;
	levels[0] = (uint32_t)number;
}

static int allows(const struct pem_explore_space *space, uint32_t *levels)
{
	(void)space;
	return levels[0] != 7;
}

static const struct pem_explore_space space = {.size = sizeof(space),
					       .parameters = &parameter,
					       .parameter_count = 1,
					       .count = LEVELS,
					       .at = at,
					       .allows = allows};

static struct counting {
	uint32_t next, told;
	struct pem_explore_trial trials[TOLD];
	double values[TOLD];
	bool stop;
} counting;

static void *begin(const struct pem_explore_space *of, const struct pem_explore_options *options)
{
	(void)of;
	assert_int_equal(options->objectives, 1);
	memset(&counting, 0, sizeof(counting));
	return &counting;
}

static int next_config(void *policy, uint32_t *levels)
{
	(void)policy;
	levels[0] = counting.next++;
	return levels[0] <= LEVELS;
}

static int process_trial(void *policy, const struct pem_explore_trial *trial)
{
	(void)policy;
	assert_true(counting.told < TOLD);
	counting.trials[counting.told] = *trial;
	counting.values[counting.told++] = trial->values ? trial->values[0] : NAN;
	return 0;
}

static int process_record(void *policy, const struct pem_explore_record *record)
{
	(void)policy;
	(void)record;
	return 0;
}

static int stop_run(void *policy)
{
	(void)policy;
	return counting.stop;
}

static int is_done(void *policy)
{
	(void)policy;
	return 0;
}

static void end(void *policy)
{
	(void)policy;
}

static const struct pem_explore_policy policy = {.size = sizeof(policy),
						 .name = "counting",
						 .begin = begin,
						 .next_config = next_config,
						 .process_trial = process_trial,
						 .process_record = process_record,
						 .stop_run = stop_run,
						 .is_done = is_done,
						 .end = end};

static struct explore_search *search_of(uint32_t runs, uint32_t race_runs, uint32_t budget)
{
	const struct explore_search_options options = {.policy = {.size = sizeof(options.policy),
								  .seed = 1,
								  .budget = budget,
								  .objectives = 1},
						       .runs = runs,
						       .race_runs = race_runs};
	struct explore_search *search = explore_search__new(&space, &policy, &options);

	assert_non_null(search);
	return search;
}

static struct explore_search *search_in_pairs(void)
{
	const struct explore_search_options options = {
		.policy = {.size = sizeof(options.policy), .seed = 1, .objectives = 1},
		.counts_configurations = true,
		.runs = 1,
		.race_runs = 4,
		.pairs = true};
	struct explore_search *search = explore_search__new(&space, &policy, &options);

	assert_non_null(search);
	return search;
}

/* Expect that a level runs next, and give the run this value; NAN: it fails. */
static void run_next(struct explore_search *search, uint32_t expected, bool is_again, double value)
{
	uint32_t level = 99;
	const struct trial_race_run run = {.levels = &level,
					   .outcome = isnan(value) ? PEM_EXPLORE_FAILED
								   : PEM_EXPLORE_MEASURED,
					   .values = isnan(value) ? NULL : &value,
					   .seconds = 1};
	bool again = !is_again;

	assert_int_equal(explore_search__next(search, &level, &again), 1);
	assert_int_equal(level, expected);
	assert_int_equal(again, is_again);
	assert_int_equal(explore_search__add(search, &run), 0);
}

static void expect_best(const struct explore_search *search, uint32_t level, double median,
			uint32_t runs)
{
	struct trial_winner best;

	assert_int_equal(trial_races__best(explore_search__races(search), &best), 1);
	assert_int_equal(best.levels[0], level);
	assert_float_equal(best.median, median, 1e-9);
	assert_int_equal(best.runs, runs);
}

/* Runs that an earlier process made. */
struct known {
	uint32_t level;
	double value;
};

static void add_known(struct explore_search *search, const struct known *runs, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct trial_race_run run = {
			.levels = &runs[i].level,
			.outcome = isnan(runs[i].value) ? PEM_EXPLORE_FAILED : PEM_EXPLORE_MEASURED,
			.values = &runs[i].value};

		assert_int_equal(explore_search__add(search, &run), 0);
	}
}

static void add_trial(struct explore_history *history, uint32_t level, const double *values)
{
	const struct pem_explore_trial trial = {.size = sizeof(trial),
						.levels = &level,
						.values = values,
						.outcome = PEM_EXPLORE_MEASURED};

	assert_int_equal(explore_history__add(history, &trial), 0);
}

static void without_races_the_least_is_best(void **state)
{
	struct explore_search *search = search_of(1, 0, 3);
	struct trial_winner best;
	uint32_t level;
	bool again;

	(void)state;
	assert_int_equal(trial_races__best(explore_search__races(search), &best), 0);
	run_next(search, 0, false, 5);
	run_next(search, 1, false, 3);
	run_next(search, 2, false, 4);
	expect_best(search, 1, 3, 1);
	assert_int_equal(counting.told, 3);
	/* The budget is used up. */
	assert_int_equal(explore_search__next(search, &level, &again), 0);
	explore_search__free(search);
}

static void configurations_run_several_times(void **state)
{
	struct explore_search *search = search_of(3, 0, 0);
	struct trial_winner best;

	(void)state;
	run_next(search, 0, false, 5);
	run_next(search, 0, true, 7);
	assert_int_equal(counting.told, 0);
	run_next(search, 0, true, 6);
	assert_int_equal(counting.told, 1);
	assert_float_equal(counting.values[0], 6, 1e-9);
	assert_int_equal(counting.trials[0].runs, 3);
	assert_float_equal(counting.trials[0].error, 1 / sqrt(3), 1e-9);
	assert_float_equal(counting.trials[0].seconds, 3, 1e-9);
	assert_int_equal(trial_races__best(explore_search__races(search), &best), 1);
	/* Student's t of 2 degrees of freedom. */
	assert_float_equal(best.high, 6 + 4.30265 / sqrt(3), 1e-4);
	assert_float_equal(best.low, 6 - 4.30265 / sqrt(3), 1e-4);
	explore_search__free(search);
}

static void a_lucky_run_loses_its_race(void **state)
{
	struct explore_search *search = search_of(1, 4, 0);

	(void)state;
	run_next(search, 0, false, 100);
	run_next(search, 1, false, 90); /* luck */
	expect_best(search, 0, 100, 1);
	run_next(search, 1, true, 111);
	run_next(search, 0, true, 101);
	run_next(search, 1, true, 112);
	run_next(search, 0, true, 102);
	run_next(search, 1, true, 113);
	run_next(search, 0, true, 99);
	run_next(search, 1, true, 114);
	expect_best(search, 0, 100.5, 4);
	/* The policy knows both again, with all their runs. */
	assert_int_equal(counting.told, 3);
	assert_float_equal(counting.values[1], 112, 1e-9);
	assert_int_equal(counting.trials[1].runs, 5);
	assert_float_equal(counting.values[2], 100.5, 1e-9);
	assert_int_equal(counting.trials[2].runs, 4);
	run_next(search, 2, false, 105);
	explore_search__free(search);
}

static void a_loser_does_not_race_again(void **state)
{
	struct explore_search *search = search_of(1, 1, 0);

	(void)state;
	run_next(search, 0, false, 100);
	run_next(search, 1, false, 90);
	/* By ranks neither is better, so it loses, with a median of 97.5. */
	run_next(search, 1, true, 105);
	expect_best(search, 0, 100, 1);
	run_next(search, 2, false, 110);
	expect_best(search, 0, 100, 1);
	run_next(search, 3, false, 110);
	explore_search__free(search);
}

/* Levels 0 and 1 have lost races, and the winner has failed: the best of them is the best one. */
static void losers_that_are_left_do_not_race(void **state)
{
	static const struct known runs[] = {
		{0, 2}, {0, 9},   {0, 2}, {0, 9},   {0, 2},   {1, 1},   {1, 3.2},
		{1, 1}, {1, 3.2}, {1, 1}, {2, 0.5}, {2, 0.6}, {2, 0.4}, {2, NAN},
	};
	/* Its median gets worse than that of level 0, which by ranks is still worse. */
	static const struct known more = {1, 3.2};
	struct explore_search *search = search_of(1, 4, 0);

	(void)state;
	add_known(search, runs, sizeof(runs) / sizeof(runs[0]));
	expect_best(search, 1, 1, 5);
	add_known(search, &more, 1);
	expect_best(search, 1, 2.1, 6);
	assert_false(trial_races__are_on(explore_search__races(search)));
	explore_search__free(search);
}

static void a_better_one_wins_its_race(void **state)
{
	struct explore_search *search = search_of(1, 4, 0);

	(void)state;
	run_next(search, 0, false, 100);
	run_next(search, 1, false, 90);
	run_next(search, 1, true, 91);
	run_next(search, 0, true, 101);
	run_next(search, 1, true, 140); /* disturbed */
	run_next(search, 0, true, 102);
	run_next(search, 1, true, 92);
	run_next(search, 0, true, 103);
	expect_best(search, 0, 101.5, 4);
	run_next(search, 1, true, 93);
	expect_best(search, 1, 92, 5);
	explore_search__free(search);
}

/* Expect that this rival runs beside this best one, and give both their values. */
static void run_pair(struct explore_search *search, uint32_t rival, uint32_t best,
		     double rival_value, double best_value)
{
	const uint32_t *const levels[] = {&rival, &best};
	const double values[] = {rival_value, best_value};
	uint32_t level = 99;
	bool again = false;

	assert_int_equal(explore_search__next(search, &level, &again), 1);
	assert_int_equal(level, rival);
	assert_true(again);
	assert_non_null(trial_races__beside(explore_search__races(search)));
	assert_int_equal(trial_races__beside(explore_search__races(search))[0], best);
	assert_int_equal(trial_races__add_pair(explore_search__races(search), levels, values), 0);
}

static void a_race_in_pairs_is_decided_by_ratios(void **state)
{
	struct explore_search *search = search_in_pairs();

	(void)state;
	run_next(search, 0, false, 100);
	run_next(search, 1, false, 70); /* lucky */
	run_pair(search, 1, 0, 97, 100);
	run_pair(search, 1, 0, 194.2, 200); /* a machine that is slower for both */
	run_pair(search, 1, 0, 290.8, 300);
	/* In units of the best one's own run. */
	expect_best(search, 1, (290.8 / 3 + 97) / 2, 4);
	assert_null(trial_races__beside(explore_search__races(search)));
	run_next(search, 2, false, 99);
	expect_best(search, 1, (290.8 / 3 + 97) / 2, 4);
	explore_search__free(search);
}

static void void_pairs_end_a_race(void **state)
{
	struct explore_search *search = search_in_pairs();
	uint32_t i;

	(void)state;
	run_next(search, 0, false, 100);
	run_next(search, 1, false, 90);
	for (i = 0; i < 4; i++)
		run_pair(search, 1, 0, i % 2 ? NAN : 90, i % 2 ? 100 : NAN);
	expect_best(search, 0, 100, 1);
	run_next(search, 2, false, 110);
	explore_search__free(search);
}

static void a_pair_of_no_race_does_nothing(void **state)
{
	struct explore_search *search = search_in_pairs();
	const uint32_t all[] = {0, 1, 2};
	const uint32_t *const levels[] = {&all[1], &all[2]};
	const double values[] = {1, 2};

	(void)state;
	assert_int_equal(trial_races__add_pair(explore_search__races(search), levels, values), 0);
	run_next(search, 0, false, 100);
	run_next(search, 1, false, 110);
	run_next(search, 2, false, 90);
	assert_int_equal(trial_races__add_pair(explore_search__races(search), levels, values), 0);
	run_pair(search, 2, 0, 90, 100);
	explore_search__free(search);
}

static void values_that_repeat_need_no_test(void **state)
{
	struct explore_search *search = search_of(1, 4, 0);

	(void)state;
	run_next(search, 0, false, 100);
	run_next(search, 1, false, 90);
	run_next(search, 1, true, 90);
	run_next(search, 0, true, 100);
	expect_best(search, 1, 90, 2);
	run_next(search, 2, false, 95);
	explore_search__free(search);
}

static void a_failure_is_never_best(void **state)
{
	struct explore_search *search = search_of(1, 4, 0);

	(void)state;
	run_next(search, 0, false, NAN);
	assert_int_equal(counting.trials[0].outcome, PEM_EXPLORE_FAILED);
	run_next(search, 1, false, 100);
	run_next(search, 2, false, 110);
	run_next(search, 3, false, 90);
	run_next(search, 3, true, NAN);
	expect_best(search, 1, 100, 1);
	run_next(search, 4, false, 95);
	run_next(search, 4, true, 95);
	run_next(search, 1, true, NAN); /* the best one, in a race */
	expect_best(search, 4, 95, 2);
	run_next(search, 5, false, INFINITY);
	expect_best(search, 4, 95, 2);
	assert_int_equal(counting.trials[counting.told - 1].outcome, PEM_EXPLORE_FAILED);
	explore_search__free(search);
}

static void runs_of_an_earlier_process_lead_to_the_same_state(void **state)
{
	static const struct known runs[] = {{0, 100}, {1, 90}, {1, 91}, {0, 101}, {1, 92}};
	struct explore_search *search = search_of(1, 4, 0);

	(void)state;
	add_known(search, runs, sizeof(runs) / sizeof(runs[0]));
	expect_best(search, 0, 100.5, 2);
	run_next(search, 0, true, 102);
	expect_best(search, 1, 91, 3);
	explore_search__free(search);
}

static void a_configuration_that_was_interrupted_is_not_best(void **state)
{
	static const struct known runs[] = {{0, 5}, {0, 5}, {1, 1}, {2, 7}, {2, 7}};
	struct explore_search *search = search_of(2, 0, 0);

	(void)state;
	add_known(search, runs, sizeof(runs) / sizeof(runs[0]));
	expect_best(search, 0, 5, 2);
	explore_search__free(search);
}

static void what_the_space_does_not_have_is_refused(void **state)
{
	struct explore_search *search = search_of(1, 0, 0);
	uint32_t level;
	bool again;

	(void)state;
	counting.next = 7; /* not allowed; then a level that the parameter does not have */
	assert_int_equal(explore_search__next(search, &level, &again), -ERANGE);
	assert_int_equal(explore_search__next(search, &level, &again), -ERANGE);
	explore_search__free(search);
}

static void a_run_of_a_race_is_not_stopped(void **state)
{
	const struct pem_explore_record record = {.size = sizeof(record), .value = 1};
	struct explore_search *search = search_of(1, 4, 0);

	(void)state;
	run_next(search, 0, false, 100);
	counting.stop = true;
	assert_int_equal(explore_search__record(search, &record), 1);
	run_next(search, 1, false, 90);
	assert_int_equal(explore_search__record(search, &record), 0);
	explore_search__free(search);
}

static void a_configuration_that_comes_again_replaces_its_trial(void **state)
{
	const struct pem_explore_options options = {.size = sizeof(options), .objectives = 1};
	struct explore_history history;
	uint32_t i;

	(void)state;
	explore_history__begin(&history, &space, &options);
	for (i = 0; i < 6; i++) {
		const double value = i < 3 ? 1 + i : 10 - i;

		add_trial(&history, i % 3, &value);
	}
	assert_int_equal(history.tried.count, 3);
	for (i = 0; i < 3; i++)
		assert_float_equal(history.given[i], 7 - i, 1e-9);
	explore_history__end(&history);
}

static void several_objectives_are_weighed_by_chance(void **state)
{
	static const double values[3][2] = {{0, 1}, {10, 0}, {20, 2}};
	const struct pem_explore_options options = {
		.size = sizeof(options), .seed = 1, .objectives = 2};
	struct explore_history history;
	uint32_t i, firsts = 0;

	(void)state;
	explore_history__begin(&history, &space, &options);
	for (i = 0; i < 3; i++)
		add_trial(&history, i, values[i]);
	for (i = 0; i < 100; i++) {
		assert_true(explore_history__weigh(&history));
		assert_true(history.values[2] > fmax(history.values[0], history.values[1]));
		firsts += history.values[0] < history.values[1];
	}
	assert_in_range(firsts, 20, 80);
	explore_history__end(&history);
}

/* The test by its definition: over all subsets of the joint values. */
static double by_subsets(const double *values, size_t count, size_t all_count)
{
	size_t subset, i, k, all = 0, below = 0;
	double sums[2];

	for (subset = 0; subset < (size_t)1 << all_count; subset++) {
		if ((size_t)__builtin_popcountl(subset) != count)
			continue;
		sums[0] = sums[1] = 0;
		for (i = 0; i < all_count; i++) {
			double rank = 0;

			for (k = 0; k < all_count; k++)
				rank += values[k] < values[i] ? 1 : values[k] > values[i] ? 0 : 0.5;
			sums[0] += subset >> i & 1 ? rank : 0;
			sums[1] += i < count ? rank : 0;
		}
		all++;
		below += sums[0] <= sums[1] + 1e-9;
	}
	return (double)below / (double)all;
}

static void rank_test_is_exact(void **state)
{
	static const double values[][8] = {{1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1},
					   {1, 1, 1, 2, 2, 2, 3, 3}, {5, 5, 5, 5, 5, 5, 5, 5},
					   {3, 1, 4, 1, 5, 9, 2, 6}, {2, 7, 1, 8, 2, 8, 1, 8}};
	size_t i, count;

	(void)state;
	assert_float_equal(pem_rank_test(values[0], 3, values[0] + 3, 3), 0.05, 1e-12);
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		for (count = 1; count < 8; count++)
			assert_float_equal(
				pem_rank_test(values[i], count, values[i] + count, 8 - count),
				by_subsets(values[i], count, 8), 1e-12);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_races_the_least_is_best),
		cmocka_unit_test(configurations_run_several_times),
		cmocka_unit_test(a_lucky_run_loses_its_race),
		cmocka_unit_test(a_loser_does_not_race_again),
		cmocka_unit_test(losers_that_are_left_do_not_race),
		cmocka_unit_test(a_better_one_wins_its_race),
		cmocka_unit_test(a_race_in_pairs_is_decided_by_ratios),
		cmocka_unit_test(void_pairs_end_a_race),
		cmocka_unit_test(a_pair_of_no_race_does_nothing),
		cmocka_unit_test(values_that_repeat_need_no_test),
		cmocka_unit_test(a_failure_is_never_best),
		cmocka_unit_test(runs_of_an_earlier_process_lead_to_the_same_state),
		cmocka_unit_test(a_configuration_that_was_interrupted_is_not_best),
		cmocka_unit_test(what_the_space_does_not_have_is_refused),
		cmocka_unit_test(a_run_of_a_race_is_not_stopped),
		cmocka_unit_test(a_configuration_that_comes_again_replaces_its_trial),
		cmocka_unit_test(several_objectives_are_weighed_by_chance),
		cmocka_unit_test(rank_test_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
