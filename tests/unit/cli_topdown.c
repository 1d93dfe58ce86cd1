// SPDX-License-Identifier: MIT
/* cli_topdown.c - quotients of the catalogue, top-down level 1, worked out by hand */
#include "cli/cli.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What was counted. */
struct counted {
	const char *event;
	double value;
};

static double value_of(const struct pem_metric_term *term, size_t metric, const void *arg)
{
	const struct counted *c;

	(void)metric;
	for (c = arg; c->event != NULL; c++)
		if (strcmp(c->event, term->event) == 0)
			return c->value;
	return NAN;
}

/* The value of a metric of the catalogue. NAN: it is not known. */
static double known(const char *name, const struct counted *counted)
{
	struct pem_model *model = pem_model__new();
	struct cli_metrics metrics = {
		.model = model, .seconds = 1, .value = value_of, .arg = counted};
	struct json_object *array, *value;
	double found = NAN;
	size_t i;

	assert_true(pem_model__add_catalogue(model, NULL) > 0);
	array = cli_metrics__json(&metrics, true);
	for (i = 0; i < json_object_array_length(array); i++) {
		struct json_object *entry = json_object_array_get_idx(array, i);

		json_object_object_get_ex(entry, "metric", &value);
		if (strcmp(json_object_get_string(value), name) != 0)
			continue;
		json_object_object_get_ex(entry, "value", &value);
		found = json_object_get_double(value);
	}
	json_object_put(array);
	pem_model__free(model);
	return found;
}

#define CLASS "HW::TopDown::"
#define CYCLES "HW::HWPerf::Cycles"

/* 1000 cycles of 4 slots: 1800 retired, 2000 + 4 * 50 - 1800 lost, 600 not delivered, 1200 left. */
static const struct counted skylake_counted[] = {{CYCLES, 1000},
						 {CLASS "SkylakeNotDelivered", 600},
						 {CLASS "SkylakeIssued", 2000},
						 {CLASS "SkylakeRetired", 1800},
						 {CLASS "SkylakeRecovery", 50},
						 {NULL, 0}};

static void skylake(void **state)
{
	(void)state;
	assert_true(known(CLASS "SkylakeRetiring", skylake_counted) == 0.45);
	assert_true(known(CLASS "SkylakeBadSpeculation", skylake_counted) == 0.1);
	assert_true(known(CLASS "SkylakeFrontendBound", skylake_counted) == 0.15);
	assert_true(known(CLASS "SkylakeBackendBound", skylake_counted) == 0.3);
	assert_true(isnan(known(CLASS "Zen4Retiring", skylake_counted)));
}

/* 1000 cycles of 6 slots: 1500 retired of 2100, 900 not delivered, 2400 stalled, 600 another's. */
static void zen4(void **state)
{
	static const struct counted counted[] = {{CYCLES, 1000},
						 {CLASS "Zen4NotDelivered", 900},
						 {CLASS "Zen4BackendStalls", 2400},
						 {CLASS "Zen4Contended", 600},
						 {CLASS "Zen4Dispatched", 2100},
						 {CLASS "Zen4Retired", 1500},
						 {NULL, 0}};

	(void)state;
	assert_true(known(CLASS "Zen4Retiring", counted) == 0.25);
	assert_true(known(CLASS "Zen4BadSpeculation", counted) == 0.1);
	assert_true(known(CLASS "Zen4FrontendBound", counted) == 0.15);
	assert_true(known(CLASS "Zen4BackendBound", counted) == 0.4);
	assert_true(known(CLASS "Zen4SharedCore", counted) == 0.1);
}

static void without_cycles_there_is_no_share(void **state)
{
	static const struct counted counted[] = {
		{CYCLES, 0}, {CLASS "Zen4Retired", 1500}, {NULL, 0}};

	(void)state;
	assert_true(isnan(known(CLASS "Zen4Retiring", counted)));
	assert_true(isnan(known(CLASS "Zen4Retiring", counted + 1)));
}

static void a_missing_part_leaves_the_others(void **state)
{
	static const struct counted counted[] = {{CYCLES, 1000},
						 {CLASS "SkylakeIssued", 2000},
						 {CLASS "SkylakeRetired", 1800},
						 {NULL, 0}};

	(void)state;
	assert_true(known(CLASS "SkylakeRetiring", counted) == 0.45);
	assert_true(isnan(known(CLASS "SkylakeBadSpeculation", counted)));
	assert_true(isnan(known(CLASS "SkylakeBackendBound", counted)));
}

/* Counters that ran at different times may contradict each other. This is shown, not hidden. */
static void a_share_below_zero_stays_so(void **state)
{
	static const struct counted counted[] = {{CYCLES, 100},
						 {CLASS "Zen4Dispatched", 540},
						 {CLASS "Zen4Retired", 600},
						 {NULL, 0}};

	(void)state;
	assert_true(known(CLASS "Zen4BadSpeculation", counted) == -0.1);
}

/* One term in the middle of the sums was counted at other times. */
static struct cli_estimate one_apart(const struct pem_metric_term *term, size_t metric,
				     const void *arg)
{
	bool is_apart = strcmp(term->event, CLASS "SkylakeRetired") == 0;

	(void)metric;
	(void)arg;
	return (struct cli_estimate){
		.enabled_ns = 100, .running_ns = 50, .together = is_apart ? 2 : 1};
}

static void a_term_that_was_counted_apart_is_told(void **state)
{
	struct pem_model *model = pem_model__new();
	struct cli_metrics metrics = {.model = model,
				      .seconds = 1,
				      .value = value_of,
				      .estimate = one_apart,
				      .arg = skylake_counted};
	struct json_object *array, *value;
	unsigned apart = 0, same = 0;
	size_t i;

	(void)state;
	assert_true(pem_model__add_catalogue(model, NULL) > 0);
	array = cli_metrics__json(&metrics, true);
	for (i = 0; i < json_object_array_length(array); i++) {
		struct json_object *entry = json_object_array_get_idx(array, i);

		assert_true(json_object_object_get_ex(entry, "same_times", &value));
		*(json_object_get_boolean(value) ? &same : &apart) += 1;
	}
	/* Retiring and bad speculation have it, the frontend and the backend have not. */
	assert_int_equal(apart, 2);
	assert_int_equal(same, 2);
	json_object_put(array);
	pem_model__free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(skylake),
		cmocka_unit_test(zen4),
		cmocka_unit_test(without_cycles_there_is_no_share),
		cmocka_unit_test(a_missing_part_leaves_the_others),
		cmocka_unit_test(a_share_below_zero_stays_so),
		cmocka_unit_test(a_term_that_was_counted_apart_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
