// SPDX-License-Identifier: MIT
/*
 * page_size_calibrate.c - steps of curves, costs from savings, the text of a calibration, and a
 * short measurement of this machine
 *
 * Not here: whether the times are right. bench/page_size_calibrate.c shows that.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "agents/page-size/calibrate/calibrate.h"
#include "agents/page-size/calibrate/chase.h"
#include "agents/page-size/calibrate/fit.h"
#include "agents/page-size/calibrate/steps.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB 1048576.0
#define TEXT_BYTES 2048

/* --- steps --- */

static uint64_t dice = 42;

/* A ladder of pages as the calibration climbs it. */
static size_t ladder(double *pages)
{
	size_t count = 0;
	double n;

	for (n = 8; n < 17000; n *= exp2(0.25))
		pages[count++] = rint(n);
	return count;
}

/* Between 1 - noise and 1 + noise. */
static double noisy(double noise)
{
	return 1 + noise * ((double)dice_roll(&dice, 2001) / 1000 - 1);
}

static void flat_curves_have_no_step(void **state)
{
	double pages[STEP_POINTS_MAX], ns[STEP_POINTS_MAX];
	size_t count = ladder(pages), i, round;
	struct step steps[STEPS_MAX];

	(void)state;
	for (round = 0; round < 100; round++) {
		for (i = 0; i < count; i++)
			ns[i] = 5 * noisy(0.08);
		assert_int_equal(steps__find(pages, ns, count, steps), 0);
	}
	assert_int_equal(steps__find(pages, ns, 0, steps), 0);
	assert_int_equal(steps__find(pages, ns, 1, steps), 0);
}

static void two_steps_are_found_in_noise(void **state)
{
	double pages[STEP_POINTS_MAX], ns[STEP_POINTS_MAX];
	size_t count = ladder(pages), i, round;
	struct step steps[STEPS_MAX];

	(void)state;
	for (round = 0; round < 100; round++) {
		for (i = 0; i < count; i++)
			ns[i] = (pages[i] <= 96 ? 1 : pages[i] <= 2048 ? 2.7 : 20) * noisy(0.08);
		assert_int_equal(steps__find(pages, ns, count, steps), 2);
		assert_in_range(steps[0].at, 90, 108);
		assert_in_range(steps[1].at, 2000, 2450);
		assert_float_equal(steps[0].below, 1, 0.1);
		assert_float_equal(steps[0].above, 2.7, 0.3);
		assert_float_equal(steps[1].above, 20, 2);
	}
}

/* Replacement that is not LRU, and tables that leave the caches: the step is a slope. */
static void slopes_begin_where_pages_no_longer_fit(void **state)
{
	double pages[STEP_POINTS_MAX], ns[STEP_POINTS_MAX];
	size_t count = ladder(pages), i;
	struct step steps[STEPS_MAX];

	(void)state;
	for (i = 0; i < count; i++)
		ns[i] = pages[i] <= 64     ? 1
			: pages[i] <= 1500 ? 3
					   : 3 + 25 * (1 - pow(1500 / pages[i], 2));
	assert_int_equal(steps__find(pages, ns, count, steps), 2);
	assert_in_range(steps[0].at, 60, 80);
	assert_in_range(steps[1].at, 1400, 2000);
}

static void one_step_alone(void **state)
{
	double pages[STEP_POINTS_MAX], ns[STEP_POINTS_MAX];
	size_t count = ladder(pages), i, round;
	struct step steps[STEPS_MAX];

	(void)state;
	for (round = 0; round < 100; round++) {
		for (i = 0; i < count; i++)
			ns[i] = (pages[i] <= 512 ? 2 : 9) * noisy(0.08);
		assert_int_equal(steps__find(pages, ns, count, steps), 1);
		assert_in_range(steps[0].at, 500, 620);
	}
}

static void one_point_is_no_step(void **state)
{
	double pages[STEP_POINTS_MAX], ns[STEP_POINTS_MAX];
	size_t count = ladder(pages), i;
	struct step steps[STEPS_MAX];

	(void)state;
	for (i = 0; i < count; i++)
		ns[i] = 2;
	/* A disturbance, in the middle and at the end. */
	ns[count / 2] = 50;
	assert_int_equal(steps__find(pages, ns, count, steps), 0);
	ns[count / 2] = 2;
	ns[count - 1] = 50;
	assert_int_equal(steps__find(pages, ns, count, steps), 0);
}

/* --- costs from savings --- */

static struct page_geometry split_geometry(void)
{
	return (struct page_geometry){
		.size_count = 2,
		.shifts = {12, 21},
		.entry_shifts = {0, 12},
		.level_count = 2,
		.levels = {{.pool_count = 1, .pools = {{3, 96, 96, PAGE_LRU}}},
			   {.pool_count = 1,
			    .pools = {{3, 4096, 16, PAGE_LRU}},
			    .hit_ns = 2,
			    .hidden_ns = 1.5}},
		.walk_latency_ns = {0, 15},
		.walk_throughput_ns = {0, 2},
	};
}

/* The savings that a geometry predicts. */
static size_t savings_of(const struct page_geometry *geometry, struct saving *savings)
{
	size_t count = 0;
	double bytes;

	for (bytes = 32 * MIB; bytes <= 1024 * MIB; bytes *= 2) {
		savings[count].bytes = bytes;
		savings[count].latency_ns = fit__random_ns(geometry, 0, bytes, 1) -
					    fit__random_ns(geometry, 1, bytes, 1);
		savings[count++].throughput_ns = fit__random_ns(geometry, 0, bytes, 0) -
						 fit__random_ns(geometry, 1, bytes, 0);
	}
	return count;
}

static void walks_are_found_again(void **state)
{
	struct page_geometry geometry = split_geometry(), truth = geometry;
	struct saving savings[FIT_POINTS_MAX];

	(void)state;
	truth.walk_latency_ns[0] = 40;
	truth.walk_throughput_ns[0] = 3;
	fit__walks(&geometry, savings, savings_of(&truth, savings));
	assert_int_equal(geometry.level_count, 2);
	assert_float_equal(geometry.walk_latency_ns[0], 40, 1e-6);
	assert_float_equal(geometry.walk_throughput_ns[0], 3, 1e-6);
}

static struct page_level table_lines(uint32_t lines, double latency_ns, double throughput_ns)
{
	return (struct page_level){.pool_count = 1,
				   .pools = {{1, lines, 16, PAGE_LRU}},
				   .group_shift = 3,
				   .hit_ns = latency_ns,
				   .hidden_ns = latency_ns - throughput_ns};
}

/* Tables that are near, farther, and far. */
static void kinds_of_walks_are_found_again(void **state)
{
	struct page_geometry geometry = split_geometry(), truth = geometry;
	struct saving savings[FIT_POINTS_MAX];
	uint32_t levels, i;

	(void)state;
	for (levels = 3; levels <= 4; levels++) {
		truth = geometry = split_geometry();
		truth.level_count = levels;
		truth.levels[2] = table_lines(2048, 25, 3);
		truth.levels[3] = table_lines(8192, 33, 3.5);
		truth.walk_latency_ns[0] = 60;
		truth.walk_throughput_ns[0] = 5;
		fit__walks(&geometry, savings, savings_of(&truth, savings));
		assert_int_equal(geometry.level_count, levels);
		for (i = 2; i < levels; i++) {
			assert_memory_equal(&geometry.levels[i].pools, &truth.levels[i].pools,
					    sizeof(truth.levels[i].pools));
			assert_int_equal(geometry.levels[i].group_shift, 3);
			assert_float_equal(geometry.levels[i].hit_ns, truth.levels[i].hit_ns, 1e-6);
			assert_float_equal(geometry.levels[i].hidden_ns, truth.levels[i].hidden_ns,
					   1e-6);
		}
		assert_float_equal(geometry.walk_latency_ns[0], 60, 1e-6);
		assert_float_equal(geometry.walk_throughput_ns[0], 5, 1e-6);
	}
}

/* Where measurements make no sense the costs still do. */
static void bad_savings_give_a_geometry(void **state)
{
	static const double wrong[][6] = {
		{0, 0, 0, 0, 0}, {-9, -9, -9, -9, -9}, {90, 50, 20, 9, 1}, {1, 90, 1, 90, 1}};
	struct saving savings[FIT_POINTS_MAX];
	struct page_geometry geometry;
	size_t i, j, count;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		geometry = split_geometry();
		count = savings_of(&geometry, savings);
		for (j = 0; j < count; j++)
			savings[j].latency_ns = savings[j].throughput_ns = wrong[i][j];
		fit__walks(&geometry, savings, count);
		assert_int_equal(page_geometry__check(&geometry, NULL), 0);
		assert_true(geometry.walk_latency_ns[0] >= geometry.levels[1].hit_ns);
		assert_true(geometry.walk_throughput_ns[0] >= 0);
		assert_true(isfinite(geometry.walk_latency_ns[0]));
	}
	geometry = split_geometry();
	fit__walks(&geometry, savings, 0);
	assert_int_equal(page_geometry__check(&geometry, NULL), 0);
}

/* Simulation and formula agree: so what the fit says of savings holds for streams. */
static void formula_is_as_the_simulation(void **state)
{
	enum { COUNT = 400000 };
	struct page_reference *references = malloc(COUNT * sizeof(*references));
	struct page_geometry geometry = split_geometry();
	struct page_sites sites = {.count = 1, .latency_share = {0.3}};
	struct page_mapping mapping = {{0}};
	struct page_result result;
	uint32_t size;
	size_t i;

	(void)state;
	assert_non_null(references);
	geometry.walk_latency_ns[0] = 40;
	geometry.walk_throughput_ns[0] = 3;
	for (i = 0; i < COUNT; i++)
		references[i] = (struct page_reference){dice_roll(&dice, 64 * 1048576), 0, 0};
	for (size = 0; size < 2; size++) {
		mapping.size[0] = (uint8_t)size;
		assert_int_equal(
			page_simulate(&geometry, &sites, &mapping, references, COUNT, &result), 0);
		assert_float_equal(result.time_ns / COUNT /
					   fit__random_ns(&geometry, size, 64 * MIB, 0.3),
				   1, 0.02);
	}
	free(references);
}

/* --- text --- */

static struct page_calibration sample(void)
{
	struct page_calibration c = {
		.geometry = split_geometry(),
		.collapse_ns = {0, 479390.406},
		.copy_ns = {1811.922, 13465.719},
		.ns_per_instruction = 0.106342,
		.supply_bytes = {24156852224, 14118027264},
		.noise = 0.067032,
		.seconds = 6.001,
	};

	c.geometry.walk_latency_ns[0] = 48.815;
	c.geometry.levels[1].group_shift = 3;
	c.geometry.levels[0].pool_count = 2;
	c.geometry.levels[0].pools[0].sizes = 1;
	c.geometry.levels[0].pools[1] = (struct page_pool){2, 32, 4, PAGE_TREE_PLRU};
	return c;
}

static void write_sample(char *text)
{
	struct page_calibration c = sample();

	int length = page_calibration__write(&c, text, TEXT_BYTES);

	assert_int_equal(length, (int)strlen(text));
}

static void text_and_back(void **state)
{
	struct page_calibration c = sample(), back;
	char text[TEXT_BYTES], again[TEXT_BYTES];

	(void)state;
	write_sample(text);
	assert_int_equal(page_calibration__read(&back, text), 0);
	assert_int_equal(page_calibration__write(&back, again, sizeof(again)), (int)strlen(text));
	assert_string_equal(again, text);
	assert_int_equal(back.geometry.level_count, 2);
	assert_memory_equal(back.geometry.shifts, c.geometry.shifts, sizeof(c.geometry.shifts));
	assert_memory_equal(back.geometry.entry_shifts, c.geometry.entry_shifts,
			    sizeof(c.geometry.entry_shifts));
	assert_memory_equal(&back.geometry.levels[0].pools, &c.geometry.levels[0].pools,
			    sizeof(c.geometry.levels[0].pools));
	assert_int_equal(back.geometry.levels[1].group_shift, 3);
	assert_float_equal(back.geometry.levels[1].hidden_ns, 1.5, 1e-9);
	assert_float_equal(back.geometry.walk_latency_ns[0], 48.815, 1e-9);
	assert_float_equal(back.collapse_ns[1], 479390.406, 1e-6);
	assert_float_equal(back.copy_ns[1], 13465.719, 1e-6);
	assert_int_equal(back.supply_bytes[1], 14118027264);
	assert_float_equal(back.ns_per_instruction, 0.106342, 1e-9);
	assert_float_equal(back.noise, 0.067032, 1e-9);
	assert_float_equal(back.seconds, 6.001, 1e-9);
}

static void rooms_too_small_are_refused(void **state)
{
	struct page_calibration c = sample();
	char text[TEXT_BYTES], small[TEXT_BYTES];
	size_t length, i;

	(void)state;
	write_sample(text);
	length = strlen(text);
	for (i = 0; i <= length; i++) {
		memset(small, 'x', sizeof(small));
		assert_int_equal(page_calibration__write(&c, small, i), -ENOSPC);
		assert_int_equal(small[i], 'x');
	}
	assert_int_equal(page_calibration__write(&c, small, length + 1), (int)length);
	c.geometry.size_count = 4;
	assert_int_equal(page_calibration__write(&c, text, sizeof(text)), -EINVAL);
}

static void largest_calibration_fits(void **state)
{
	struct page_calibration c = sample();
	struct page_geometry *g = &c.geometry;
	char text[TEXT_BYTES];
	uint32_t i, j;

	(void)state;
	*g = (struct page_geometry){.size_count = 3,
				    .shifts = {12, 21, 30},
				    .entry_shifts = {12, 21, 30},
				    .level_count = 4};
	for (i = 0; i < 3; i++) {
		g->walk_latency_ns[i] = g->walk_throughput_ns[i] = g->first_touch_ns[i] = 1e300;
		c.collapse_ns[i] = c.copy_ns[i] = 1e300;
		c.supply_bytes[i] = 1ull << 53;
	}
	for (i = 0; i < 4; i++) {
		g->levels[i].group_shift = 9;
		g->levels[i].pool_count = 3;
		g->levels[i].hit_ns = 1e300;
		g->levels[i].hidden_ns = i ? 1e300 : 0;
		for (j = 0; j < 3; j++)
			g->levels[i].pools[j] = (struct page_pool){1u << j, 32768, 32768, PAGE_LRU};
	}
	c.noise = c.seconds = c.ns_per_instruction = 1e300;
	assert_true(page_calibration__write(&c, text, sizeof(text)) > 0);
	assert_int_equal(page_calibration__read(&c, text), 0);
	/* Times that are no numbers or below 0 count as 0. */
	g->walk_latency_ns[0] = -5;
	g->walk_latency_ns[1] = NAN;
	assert_true(page_calibration__write(&c, text, sizeof(text)) > 0);
	assert_int_equal(page_calibration__read(&c, text), 0);
	assert_float_equal(g->walk_latency_ns[0] + g->walk_latency_ns[1], 0, 0);
}

static void damaged_texts_are_refused(void **state)
{
	struct page_calibration c, before;
	char text[TEXT_BYTES], damaged[TEXT_BYTES];
	size_t length, i;
	int byte;

	(void)state;
	write_sample(text);
	length = strlen(text);
	memset(&before, 0x5a, sizeof(before));
	c = before;
	for (i = 0; i < length; i++) {
		/* Cut off. */
		memcpy(damaged, text, i);
		damaged[i] = '\0';
		assert_int_equal(page_calibration__read(&c, damaged), -EBADMSG);
		assert_memory_equal(&c, &before, sizeof(c));
		/* A byte missing: a number may lose a digit. */
		if (text[i] >= '0' && text[i] <= '9')
			continue;
		memcpy(damaged + i, text + i + 1, length - i);
		assert_int_equal(page_calibration__read(&c, damaged), -EBADMSG);
		assert_memory_equal(&c, &before, sizeof(c));
	}
	/* Any byte for any other: nothing worse than another number. */
	for (i = 0; i < length; i++) {
		for (byte = 1; byte < 256; byte++) {
			memcpy(damaged, text, length + 1);
			damaged[i] = (char)byte;
			if (!page_calibration__read(&c, damaged))
				assert_int_equal(page_geometry__check(&c.geometry, NULL), 0);
		}
	}
}

static void wrong_texts_are_refused(void **state)
{
	static const char *const changes[][2] = {
		{"\"page_calibration\":2", "\"page_calibration\":1"},
		{"\"sizes\":2", "\"sizes\":0"},
		{"\"sizes\":2", "\"sizes\":4"},
		{"\"sizes\":2", "\"sizes\":02"},
		{"\"sizes\"", "\"sizes \""},
		{"\"levels\":2", "\"levels\":0"},
		{"\"levels\":2", "\"levels\":3"},
		{"\"levels\":2", "\"levels\":5"},
		{"\"levels\":2", "\"levels\":-1"},
		{"\"levels\":2", "\"levels\":2.0"},
		{"[12,21]", "[21,12]"},
		{"[12,21]", "[12]"},
		{"[12,21]", "[12,21,30]"},
		{"[12,21]", "[12,99999999999999999999999]"},
		{"[0,12]", "[0,11]"},
		{"[1,96,96,0]", "[1,96,95,0]"},
		{"[1,96,96,0]", "[1,98304,96,0]"},
		{"[1,96,96,0]", "[8,96,96,0]"},
		{"[1,96,96,0]", "[1,96,96,2]"},
		{"\"supply_bytes\":[24156852224", "\"supply_bytes\":[9007199254740993"},
		{"}", "} x"},
		{"}", "}}"},
	};
	static const char *const others[] = {
		"", " ", "{}", "null", "[]", "{\"page_calibration\":2", "page_calibration"};
	char text[TEXT_BYTES], changed[TEXT_BYTES + 64];
	struct page_calibration c;
	const char *at;
	size_t i;

	(void)state;
	write_sample(text);
	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		at = strstr(text, changes[i][0]);
		assert_non_null(at);
		snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - text), text,
			 changes[i][1], at + strlen(changes[i][0]));
		if (page_calibration__read(&c, changed) != -EBADMSG)
			fail_msg("accepted: %s", changes[i][1]);
	}
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(page_calibration__read(&c, others[i]), -EBADMSG);
}

static void white_space_is_free(void **state)
{
	char text[TEXT_BYTES], spaced[2 * TEXT_BYTES];
	struct page_calibration c;
	size_t i, n = 0;

	(void)state;
	write_sample(text);
	spaced[n++] = '\n';
	for (i = 0; text[i]; i++) {
		spaced[n++] = text[i];
		if (strchr(",:[]{}", text[i]))
			spaced[n++] = " \t\r\n"[i % 4];
	}
	spaced[n] = '\0';
	assert_int_equal(page_calibration__read(&c, spaced), 0);
}

/* --- this machine --- */

static size_t sentences;

static void count_sentence(const char *sentence, void *arg)
{
	assert_ptr_equal(arg, &sentences);
	assert_true(strlen(sentence) > 0);
	sentences++;
}

static void measures_this_machine(void **state)
{
	struct page_calibration c, back;
	struct pem_error error;
	char text[TEXT_BYTES];
	cpu_set_t before, after;
	uint32_t i;
	int rc;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	rc = page_calibrate(&c, 2, count_sentence, &sentences, &error);
	if (rc == -EAGAIN || rc == -ENOMEM) {
		print_message("%s\n", error.text);
		skip();
	}
	assert_int_equal(rc, 0);
	assert_int_equal(page_geometry__check(&c.geometry, NULL), 0);
	assert_true(sentences > 0);
	assert_int_equal(c.geometry.shifts[0], 12);
	for (i = 0; i < c.geometry.size_count; i++) {
		assert_true(c.geometry.walk_latency_ns[i] >= 0);
		assert_true(c.geometry.walk_throughput_ns[i] >= 0);
		assert_true(c.geometry.first_touch_ns[i] > 0);
		assert_true(c.copy_ns[i] > 0);
		assert_true(c.supply_bytes[0] > 0);
	}
	assert_true(c.ns_per_instruction > 0 && isfinite(c.ns_per_instruction));
	assert_true(c.noise >= 0 && c.seconds > 0);
	assert_true(page_calibration__write(&c, text, sizeof(text)) > 0);
	assert_int_equal(page_calibration__read(&back, text), 0);
	/* The thread may run where it might before. */
	assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
	assert_true(CPU_EQUAL(&before, &after));
}

static void limits_are_checked(void **state)
{
	struct page_calibration c;
	struct pem_error error;

	(void)state;
	assert_int_equal(page_calibrate(&c, 1.9, NULL, NULL, &error), -EINVAL);
	assert_non_null(strstr(error.text, "2 s"));
	assert_int_equal(page_calibrate(&c, NAN, NULL, NULL, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat_curves_have_no_step),
		cmocka_unit_test(two_steps_are_found_in_noise),
		cmocka_unit_test(slopes_begin_where_pages_no_longer_fit),
		cmocka_unit_test(one_step_alone),
		cmocka_unit_test(one_point_is_no_step),
		cmocka_unit_test(walks_are_found_again),
		cmocka_unit_test(kinds_of_walks_are_found_again),
		cmocka_unit_test(bad_savings_give_a_geometry),
		cmocka_unit_test(formula_is_as_the_simulation),
		cmocka_unit_test(text_and_back),
		cmocka_unit_test(rooms_too_small_are_refused),
		cmocka_unit_test(largest_calibration_fits),
		cmocka_unit_test(damaged_texts_are_refused),
		cmocka_unit_test(wrong_texts_are_refused),
		cmocka_unit_test(white_space_is_free),
		cmocka_unit_test(limits_are_checked),
		cmocka_unit_test(measures_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
