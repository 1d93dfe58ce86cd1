// SPDX-License-Identifier: MIT
/* cli_metric.c - what a metric of the catalogue comes to (cli/metric.c) */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "cli/cli.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

/* What was counted of an event. */
struct count {
	const char *event;
	double value;
};

/* The counts of a test; the last one has no event. */
static double value_of(const struct pem_metric_term *term, size_t metric, const void *arg)
{
	const struct count *c;

	(void)metric;
	for (c = arg; c->event != NULL; c++)
		if (strcmp(c->event, term->event) == 0) {
			assert_string_equal(term->field, "value");
			return c->value;
		}
	return NAN;
}

/* The value of a metric of the catalogue. NAN: it has none. */
static double metric(const char *name, const struct count *counts)
{
	struct pem_model *model = pem_model__new();
	struct cli_metrics metrics = {
		.model = model, .seconds = 2, .value = value_of, .arg = counts};
	struct json_object *array, *entry;
	double value = NAN;
	size_t i, declared = 0;

	assert_true(model && pem_model__add_catalogue(model, NULL) > 0);
	for (i = 0; i < pem_model__metric_count(model); i++)
		declared += strcmp(pem_model__metric(model, i)->name, name) == 0;
	assert_int_equal(declared, 1);
	array = cli_metrics__json(&metrics, true);
	for (i = 0; i < json_object_array_length(array); i++) {
		entry = json_object_array_get_idx(array, i);
		if (strcmp(json_object_get_string(json_object_object_get(entry, "metric")), name) ==
		    0)
			value = json_object_get_double(json_object_object_get(entry, "value"));
	}
	json_object_put(array);
	pem_model__free(model);
	return value;
}

/* A ratio of the catalogue, and the events that it is made of. */
static const struct {
	const char *name, *of, *to;
} ratios[] = {
	{"HW::HWPerf::CyclesPerInstruction", "HW::HWPerf::Cycles", "HW::HWPerf::Instructions"},
	{"HW::Branch::MissRatio", "HW::Branch::Mispredicted", "HW::Branch::Retired"},
	{"HW::Cache::L1DataLoadMissRatio", "HW::Cache::L1DataLoadMisses", "HW::Cache::L1DataLoads"},
	{"HW::Cache::LastLevelMissRatio", "HW::HWPerf::CacheMisses",
	 "HW::Cache::LastLevelReferences"},
	{"HW::Cache::LastLevelLoadMissRatio", "HW::Cache::LastLevelLoadMisses",
	 "HW::Cache::LastLevelLoads"},
	{"HW::Tlb::DataLoadMissRatio", "HW::Tlb::DataLoadMisses", "HW::Tlb::DataLoads"},
};
#define RATIOS (sizeof(ratios) / sizeof(ratios[0]))

/* Ratio i of two counts. */
static double ratio(size_t i, double of, double to)
{
	const struct count counts[] = {{ratios[i].of, of}, {ratios[i].to, to}, {NULL, 0}};

	return metric(ratios[i].name, counts);
}

static void a_ratio_is_misses_by_accesses(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < RATIOS; i++)
		assert_true(ratio(i, 30, 240) == 0.125);
}

static void without_an_access_there_is_no_ratio(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < RATIOS; i++) {
		assert_true(isnan(ratio(i, 0, 0)));
		assert_true(isnan(ratio(i, 5, 0)));
	}
}

static void without_a_miss_it_is_zero(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < RATIOS; i++)
		assert_true(ratio(i, 0, 7) == 0);
}

static void a_part_that_was_not_counted_gives_no_number(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < RATIOS; i++) {
		const struct count of[] = {{ratios[i].of, 30}, {NULL, 0}};
		const struct count to[] = {{ratios[i].to, 240}, {NULL, 0}};

		assert_true(isnan(metric(ratios[i].name, of)));
		assert_true(isnan(metric(ratios[i].name, to)));
	}
}

static void no_two_ratios_share_a_counter(void **state)
{
	size_t a, b;

	(void)state;
	/* The counters of a metric are counted together: a chain of metrics would not fit. */
	for (a = 0; a < RATIOS; a++)
		for (b = 0; b < a; b++) {
			assert_string_not_equal(ratios[a].of, ratios[b].of);
			assert_string_not_equal(ratios[a].to, ratios[b].to);
			assert_string_not_equal(ratios[a].of, ratios[b].to);
			assert_string_not_equal(ratios[a].to, ratios[b].of);
		}
}

/* 300 lines of 64 bytes in 6000 ns. */
static void a_bandwidth_is_bytes_by_time(void **state)
{
	const struct count counts[] = {
		{"HW::HWPerf::CacheMisses", 300}, {"HW::Software::TaskClock", 6000}, {NULL, 0}};

	(void)state;
	assert_true(metric("HW::Cache::MissBandwidth", counts) == 3.2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ratio_is_misses_by_accesses),
		cmocka_unit_test(without_an_access_there_is_no_ratio),
		cmocka_unit_test(without_a_miss_it_is_zero),
		cmocka_unit_test(a_part_that_was_not_counted_gives_no_number),
		cmocka_unit_test(no_two_ratios_share_a_counter),
		cmocka_unit_test(a_bandwidth_is_bytes_by_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
