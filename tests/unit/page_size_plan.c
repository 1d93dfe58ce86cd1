// SPDX-License-Identifier: MIT
/*
 * page_size_plan.c - sites told apart, texts of directives, and plans of a small profile
 * (agents/page-size/plan/plan.h)
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

/* A heap context: a path of offsets in one object, memory, and references. */
static struct page_profile_site context(const uint64_t *path, uint32_t frames, uint64_t bytes,
					uint64_t references)
{
	struct page_profile_site site = {.site = {.kind = PAGE_SITE_HEAP, .frame_count = frames},
					 .bytes = bytes,
					 .references = references};
	uint32_t i;

	for (i = 0; i < frames; i++)
		site.site.frames[i] = (struct page_frame){7, path[i]};
	return site;
}

#define CONTEXT(bytes, references, ...)                                                            \
	context((const uint64_t[]){__VA_ARGS__},                                                   \
		sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), bytes, references)

static struct page_plan *group(const struct page_profile_site *sites, uint32_t count,
			       uint32_t *index)
{
	struct page_plan *plan = calloc(1, sizeof(*plan));
	uint32_t i;

	assert_non_null(plan);
	for (i = 0; i < count; i++)
		plan->summary.kept += sites[i].references;
	assert_int_equal(plan__group(plan, sites, count, index), 0);
	return plan;
}

static void callers_of_equal_use_are_one_site(void **state)
{
	const struct page_profile_site sites[] = {CONTEXT(8 * MIB, 800, 1, 10),
						  CONTEXT(4 * MIB, 400, 1, 20),
						  CONTEXT(2 * MIB, 210, 1, 30)};
	uint32_t index[3];
	struct page_plan *plan = group(sites, 3, index);

	(void)state;
	assert_int_equal(plan->site_count, 2);
	assert_int_equal(plan->sites[0].site.frame_count, 1);
	assert_int_equal(plan->sites[0].bytes, 14 * MIB);
	assert_true(!index[0] && !index[1] && !index[2]);
	free(plan);
}

static void callers_of_a_wrapper_are_told_apart_by_their_use(void **state)
{
	const struct page_profile_site sites[] = {CONTEXT(8 * MIB, 10, 1, 10),
						  CONTEXT(4 * MIB, 9000, 1, 20)};
	uint32_t index[2];
	struct page_plan *plan = group(sites, 2, index);

	(void)state;
	assert_int_equal(plan->site_count, 3);
	/* The hottest first. */
	assert_int_equal(index[1], 0);
	assert_int_equal(index[0], 1);
	assert_int_equal(plan->sites[0].site.frame_count, 2);
	assert_int_equal(plan->sites[0].site.frames[1].offset, 20);
	free(plan);
}

static void calls_of_all_who_share_a_wrapper_are_known(void **state)
{
	struct page_profile_site sites[] = {CONTEXT(8 * MIB, 10, 1, 10),
					    CONTEXT(4 * MIB, 9000, 1, 20), CONTEXT(100, 0, 1, 30),
					    CONTEXT(MIB, 5000, 2, 10), CONTEXT(MIB, 5000, 1, 10)};
	uint32_t index[5], i;
	struct page_plan *plan;

	(void)state;
	for (i = 0; i < 5; i++)
		sites[i].calls = (uint64_t[]){1, 10, 100, 1000, 10000}[i];
	sites[4].site.kind = PAGE_SITE_MAP;
	plan = group(sites, 5, index);
	assert_int_equal(plan->sites[index[0]].wrapped_calls, 111);
	assert_int_equal(plan->sites[index[1]].wrapped_calls, 111);
	/* One frame tells these. */
	assert_int_equal(plan->sites[index[3]].wrapped_calls, 0);
	assert_int_equal(plan->sites[index[4]].wrapped_calls, 0);
	free(plan);
}

static void frames_that_all_have_tell_nothing_but_are_needed_before_one_that_does(void **state)
{
	const struct page_profile_site sites[] = {CONTEXT(8 * MIB, 10, 1, 5, 10),
						  CONTEXT(4 * MIB, 9000, 1, 5, 20)};
	uint32_t index[2];
	struct page_plan *plan = group(sites, 2, index);

	(void)state;
	assert_int_equal(plan->sites[0].site.frame_count, 3);
	free(plan);
}

static void little_memory_is_no_site_of_its_own(void **state)
{
	const struct page_profile_site sites[] = {
		CONTEXT(MIB / 4, 10, 1), CONTEXT(MIB / 4 - 1, 9000, 2), CONTEXT(MIB, 0, 3)};
	uint32_t index[3];
	struct page_plan *plan = group(sites, 3, index);

	(void)state;
	assert_int_equal(plan->site_count, 2);
	assert_int_equal(index[0], 0);
	assert_int_equal(index[1], 1);
	assert_int_equal(index[2], 1);
	free(plan);
}

static void kinds_are_not_mixed(void **state)
{
	struct page_profile_site sites[] = {CONTEXT(MIB, 10, 1), CONTEXT(MIB, 10, 1),
					    CONTEXT(MIB, 10, 0), CONTEXT(MIB, 10, 0)};
	uint32_t index[4];
	struct page_plan *plan;

	(void)state;
	sites[1].site.kind = PAGE_SITE_MAP;
	sites[2].site.kind = PAGE_SITE_DATA;
	sites[3].site = (struct page_site){.kind = PAGE_SITE_STACK};
	plan = group(sites, 4, index);
	assert_int_equal(plan->site_count, 5);
	assert_int_equal(plan->sites[index[1]].site.kind, PAGE_SITE_MAP);
	assert_int_equal(plan->sites[index[3]].site.kind, PAGE_SITE_STACK);
	assert_int_equal(plan->sites[index[3]].site.frame_count, 0);
	free(plan);
}

static void more_sites_than_the_model_has_are_one(void **state)
{
	static struct page_profile_site sites[PAGE_SITES_MAX + 9];
	static uint32_t index[PAGE_SITES_MAX + 9];
	struct page_plan *plan;
	uint32_t i, others = 0;

	(void)state;
	for (i = 0; i < PAGE_SITES_MAX + 9; i++)
		sites[i] = CONTEXT(MIB, 100 + i, i);
	plan = group(sites, PAGE_SITES_MAX + 9, index);
	assert_int_equal(plan->site_count, PAGE_SITES_MAX);
	for (i = 0; i < PAGE_SITES_MAX + 9; i++)
		others += index[i] == PAGE_SITES_MAX - 1;
	assert_int_equal(others, 10);
	assert_int_equal(index[PAGE_SITES_MAX + 8], 0);
	assert_int_equal(plan->sites[PAGE_SITES_MAX - 1].bytes, 10 * MIB);
	free(plan);
}

static void texts_of_directives_are_read_back(void **state)
{
	struct plan_directive d = {
		2097152, 12345678, 4194304, 0.25, 0.5, 1.5, .name = "malloc in a.out+0x1 x"};
	struct plan_directive back = {0};
	char text[512];

	(void)state;
	assert_true(plan_directive__write(&d, text, sizeof(text)) > 0);
	assert_int_equal(plan_directive__read(&back, text), 0);
	assert_int_equal(back.page_size, d.page_size);
	assert_int_equal(back.bytes, d.bytes);
	assert_int_equal(back.most, d.most);
	assert_true(back.share == d.share && back.chained == d.chained &&
		    back.saved_ms == d.saved_ms);
	assert_string_equal(back.name, d.name);
	assert_int_equal(back.source, 0);
	d.source = PROFILE_COMPILER;
	assert_true(plan_directive__write(&d, text, sizeof(text)) > 0);
	assert_int_equal(plan_directive__read(&back, text), 0);
	assert_int_equal(back.source, PROFILE_COMPILER);
	assert_string_equal(back.name, d.name);
	assert_int_equal(plan_directive__write(&d, text, 20), -ENOSPC);
}

static void texts_that_are_no_directives_are_refused(void **state)
{
	static const char *const texts[] = {
		"",
		"glibc.malloc.hugetlb=1",
		"page_size=2097152 bytes=1 most=0 share=0 chained=0 saved_ms=0",
		"page_size=2097153 bytes=1 most=0 share=0 chained=0 saved_ms=0 name=x",
		"page_size=2048 bytes=1 most=0 share=0 chained=0 saved_ms=0 name=x",
		"page_size=34359738368 bytes=1 most=0 share=0 chained=0 saved_ms=0 name=x",
		"page_size=0 bytes=1 most=0 share=0 chained=0 saved_ms=0 name=x",
		"page_size=4096 bytes=1 most=0 share=nan chained=0 saved_ms=0 name=x",
		"page_size=4096 bytes=1 most=0 share=0 chained=inf saved_ms=0 name=x",
		"page_size=4096 bytes=1 most=0 share=0 chained=0 saved_ms=0 observer=me name=x",
		"page_size=4096 bytes=1 most=0 share=0 chained=0 saved_ms=0 observer= name=x",
		"page_size=4096 bytes=1 most=0 share=0 chained=0 saved_ms=0 observer=hooks",
	};
	struct plan_directive d = {.page_size = 77};
	char text[400];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(plan_directive__read(&d, texts[i]), -EBADMSG);
		assert_int_equal(d.page_size, 77);
	}
	strcpy(text, "page_size=4096 bytes=1 most=0 share=0 chained=0 saved_ms=0 name=");
	memset(text + strlen(text), 'x', PLAN_NAME_BYTES);
	text[64 + PLAN_NAME_BYTES] = '\0';
	assert_int_equal(plan_directive__read(&d, text), -EBADMSG);
	text[strlen(text) - 1] = '\0';
	assert_int_equal(plan_directive__read(&d, text), 0);
}

/* --- plans of a profile --- */

#define REFERENCES 20000u

/* The only site is a heap of 64 MiB, which is used at random. */
struct file {
	struct profile_head head;
	struct profile_chunk site_chunk;
	struct profile_site site;
	struct profile_chunk range_chunk;
	struct profile_range range;
	struct profile_chunk burst_chunk;
	struct profile_burst burst;
	uint64_t references[REFERENCES];
	struct profile_chunk end_chunk;
	struct profile_end end;
};

/* Of this many references of the program one was kept. */
static uint64_t seldom = 1;
static uint64_t instructions_each = 4; /* of the program, for a reference that was kept */

static struct page_profile *make_profile(bool cut)
{
	static struct file f;
	char path[] = "/tmp/pem-plan-XXXXXX";
	struct page_profile *profile;
	struct pem_error error;
	uint64_t dice = 1;
	uint32_t i;
	int fd = mkstemp(path);

	f.head = (struct profile_head){.magic = PROFILE_MAGIC, .source = PROFILE_VALGRIND};
	f.site_chunk = (struct profile_chunk){PROFILE_SITE, sizeof(f.site)};
	f.site.site = (struct page_site){PAGE_SITE_HEAP, 1, {{7, 1}}};
	f.range_chunk = (struct profile_chunk){PROFILE_RANGE, sizeof(f.range)};
	f.range = (struct profile_range){
		.start = 1024 * MIB, .end = 1088 * MIB, .requested = 60 * MIB};
	f.burst_chunk =
		(struct profile_chunk){PROFILE_BURST, sizeof(f.burst) + sizeof(f.references)};
	for (i = 0; i < REFERENCES; i++) {
		dice = dice * UINT64_C(6364136223846793005) + 1442695040888963407u;
		f.references[i] = (f.range.start + (dice >> 32) % (64 * MIB)) | PROFILE_CHAINED;
	}
	f.end_chunk = (struct profile_chunk){PROFILE_END, sizeof(f.end)};
	f.end = (struct profile_end){.references = seldom * REFERENCES,
				     .instructions = seldom * instructions_each * REFERENCES};
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &f, cut ? offsetof(struct file, end_chunk) : sizeof(f)),
			 cut ? offsetof(struct file, end_chunk) : sizeof(f));
	close(fd);
	profile = page_profile__open(path, &error);
	unlink(path);
	assert_non_null(profile);
	return profile;
}

/* A TLB with 64 entries for pages of either size. */
static struct page_calibration machine(void)
{
	return (struct page_calibration){
		.geometry = {.size_count = 2,
			     .shifts = {12, 21},
			     .level_count = 1,
			     .levels = {{.pool_count = 1, .pools = {{3, 64, 64, PAGE_LRU}}}},
			     .walk_latency_ns = {30, 20},
			     .walk_throughput_ns = {10, 5}},
		.ns_per_instruction = 0.3,
		.supply_bytes = {UINT64_C(1) << 34, UINT64_C(1) << 34},
	};
}

static struct page_plan *plan_of(bool cut, const struct page_calibration *calibration,
				 uint64_t budget_bytes)
{
	struct page_plan *plan = calloc(1, sizeof(*plan));
	struct page_profile *profile = make_profile(cut);
	struct pem_error error;

	assert_non_null(plan);
	assert_int_equal(plan__make(plan, profile, calibration, budget_bytes, NULL, NULL, &error),
			 0);
	page_profile__close(profile);
	return plan;
}

static void free_plan(struct page_plan *plan)
{
	plan__free(plan);
	free(plan);
}

static void a_site_that_gains_is_chosen(void **state)
{
	const struct page_calibration calibration = machine();
	struct page_plan *plan = plan_of(false, &calibration, UINT64_MAX);

	(void)state;
	assert_int_equal(plan->site_count, 2);
	assert_int_equal(plan->sites[0].size, 1);
	assert_int_equal(plan->bytes, 60 * MIB);
	/* Each reference waits for a walk of 30 ns, and none does with 32 large pages. */
	assert_float_equal(plan->small_ns, REFERENCES * 30.0, REFERENCES * 0.5);
	assert_float_equal(plan->run_ns, plan->small_ns + 4 * REFERENCES * 0.3, 1);
	assert_float_equal(plan->gain, 100 * 30 / 31.2, 1);
	assert_true(plan->gain_low < plan->gain && plan->gain < plan->gain_high);
	assert_float_equal(plan->small_walks, REFERENCES, REFERENCES / 50.0);
	assert_true(plan->walks < REFERENCES / 50.0);
	assert_int_equal(plan->sites[0].bytes, 60 * MIB);
	free_plan(plan);
	seldom = 8;
	plan = plan_of(false, &calibration, UINT64_MAX);
	seldom = 1;
	assert_float_equal(plan->small_ns, 8 * REFERENCES * 30.0, 8 * REFERENCES * 0.5);
	assert_float_equal(plan->small_walks, 8 * REFERENCES, 8 * REFERENCES / 50.0);
	assert_float_equal(plan->gain, 100 * 30 / 31.2, 1);
	free_plan(plan);
}

static double saved_ns(const struct page_plan *plan, const struct page_mapping *mapping)
{
	double saved, error;

	assert_int_equal(plan__saved(plan, mapping, &saved, &error), 0);
	return saved;
}

static void callers_of_a_wrapper_are_looked_up_once(void **state)
{
	const struct page_calibration calibration = machine();
	struct page_plan *plan = plan_of(false, &calibration, UINT64_MAX);
	const struct page_mapping none = {{0}}, one = {{1}}, both = {{1, 1}};
	double one_ns = saved_ns(plan, &one), both_ns = saved_ns(plan, &both);
	const struct page_site wrapped = {PAGE_SITE_HEAP, 2, {{7, 1}, {7, 2}}};

	(void)state;
	plan->sites[0].site = plan->sites[1].site = wrapped;
	plan->sites[0].wrapped_calls = plan->sites[1].wrapped_calls = 1000;
	assert_float_equal(saved_ns(plan, &none), 0, 1);
	assert_float_equal(saved_ns(plan, &one), one_ns - 21000, 1);
	assert_float_equal(saved_ns(plan, &both), both_ns - 21000, 1);
	/* Another wrapper's are others. */
	plan->sites[1].site.frames[0].offset = 9;
	assert_float_equal(saved_ns(plan, &both), both_ns - 42000, 1);
	free_plan(plan);
}

static void neither_budget_nor_supply_is_exceeded(void **state)
{
	struct page_calibration calibration = machine();
	struct page_plan *plan = plan_of(false, &calibration, 59 * MIB);

	(void)state;
	/* Whole pages of 2 MiB, which save their share. */
	assert_int_equal(plan->bytes, 58 * MIB);
	assert_true(plan->sites[0].in_part);
	assert_int_equal(plan->sites[0].large_bytes, 58 * MIB);
	assert_string_equal(plan->sites[0].reason, "chosen in part: the budget has no more");
	assert_float_equal(plan->saved_ns / plan->small_ns, 58.0 / 60, 0.05);
	free_plan(plan);
	plan = plan_of(false, &calibration, 2 * MIB - 1);
	assert_int_equal(plan->bytes, 0);
	assert_string_equal(plan->sites[0].reason,
			    "it needs more than the budget, or than the machine has");
	free_plan(plan);
	calibration.supply_bytes[1] = 31 * MIB;
	plan = plan_of(false, &calibration, UINT64_MAX);
	assert_int_equal(plan->bytes, 30 * MIB);
	free_plan(plan);
}

/* The same machine with pages of 64 KiB, and so many entries. */
static struct page_calibration machine_of_three(uint32_t entries)
{
	struct page_calibration c = machine();

	c.geometry.size_count = 3;
	c.geometry.shifts[1] = 16;
	c.geometry.shifts[2] = 21;
	c.geometry.levels[0].pools[0] = (struct page_pool){7, entries, entries, PAGE_LRU};
	c.geometry.walk_latency_ns[1] = c.geometry.walk_latency_ns[0];
	c.geometry.walk_latency_ns[2] = 20;
	c.geometry.walk_throughput_ns[2] = 5;
	c.supply_bytes[2] = c.supply_bytes[1];
	return c;
}

static void pages_are_as_small_as_will_do(void **state)
{
	struct page_calibration calibration = machine_of_three(1024);
	struct page_plan *plan;

	(void)state;
	/* All pages of 64 KiB fit, and what their first walks cost more is next to nothing. */
	calibration.collapse_ns[2] = 1000;
	plan = plan_of(false, &calibration, UINT64_MAX);
	assert_int_equal(plan->sites[0].size, 1);
	assert_int_equal(plan->bytes, 60 * MIB);
	assert_float_equal(plan->saved_ns / plan->small_ns, 1, 0.1);
	free_plan(plan);
	/* And with these entries 30 of 2 MiB do. */
	calibration = machine_of_three(64);
	plan = plan_of(false, &calibration, UINT64_MAX);
	assert_int_equal(plan->sites[0].size, 2);
	assert_int_equal(plan->sites[0].alone, 2);
	assert_float_equal(plan->saved_ns / plan->small_ns, 1, 0.1);
	free_plan(plan);
}

/* Half of the references miss with pages of 64 KiB; of 2 MiB there are too few to do better. */
static void scarce_pages_leave_those_of_the_next_size(void **state)
{
	struct page_calibration calibration = machine_of_three(512);
	struct page_plan *plan;

	(void)state;
	calibration.supply_bytes[2] = 5 * MIB;
	plan = plan_of(false, &calibration, UINT64_MAX);
	assert_int_equal(plan->sites[0].size, 1);
	assert_false(plan->sites[0].in_part);
	assert_float_equal(plan->saved_ns / plan->small_ns, 0.5, 0.1);
	free_plan(plan);
	/* A few more, and they are worth more, in part. */
	calibration.supply_bytes[2] = 45 * MIB;
	plan = plan_of(false, &calibration, UINT64_MAX);
	assert_int_equal(plan->sites[0].size, 2);
	assert_int_equal(plan->bytes, 44 * MIB);
	free_plan(plan);
}

/* The site saves 30 ns of each reference. */
static void less_than_a_two_thousandth_of_the_run_is_no_gain(void **state)
{
	const struct page_calibration calibration = machine();
	struct page_plan *plan;

	(void)state;
	instructions_each = 180000; /* of 0.3 ns */
	plan = plan_of(false, &calibration, UINT64_MAX);
	assert_int_equal(plan->sites[0].size, 1);
	assert_string_equal(plan->sites[0].reason, "chosen");
	free_plan(plan);
	/* Nor in part. */
	plan = plan_of(false, &calibration, 30 * MIB);
	assert_int_equal(plan->bytes, 0);
	free_plan(plan);
	instructions_each = 220000;
	plan = plan_of(false, &calibration, UINT64_MAX);
	assert_int_equal(plan->sites[0].size, 0);
	assert_string_equal(plan->sites[0].reason, "nothing to gain");
	free_plan(plan);
	instructions_each = 4;
}

static void without_instructions_a_run_is_longer_than_its_walks(void **state)
{
	const struct page_calibration calibration = machine();
	struct page_plan *plan = plan_of(true, &calibration, UINT64_MAX);

	(void)state;
	assert_true(plan->summary.cut && !plan->summary.instructions);
	assert_true(plan->run_ns >= plan->small_ns + REFERENCES * 0.3);
	free_plan(plan);
}

static void a_model_that_can_not_be_made_is_told(void **state)
{
	struct page_calibration calibration = machine();
	struct page_plan *plan = calloc(1, sizeof(*plan));
	struct page_profile *profile = make_profile(false);
	struct pem_error error = {.text = "nothing was told"};

	(void)state;
	assert_non_null(plan);
	calibration.geometry.level_count = PAGE_LEVELS_MAX + 1;
	assert_int_equal(plan__make(plan, profile, &calibration, 0, NULL, NULL, &error), -EINVAL);
	assert_non_null(strstr(error.text, "calibration"));
	plan__free(plan);
	calibration.geometry.size_count = 1;
	assert_int_equal(plan__make(plan, profile, &calibration, 0, NULL, NULL, &error), -ENODATA);
	assert_non_null(strstr(error.text, "one size"));
	free_plan(plan);
	page_profile__close(profile);
}

static void parameters_are_no_part_of_a_name(void **state)
{
	static const char *const names[][2] = {
		{"malloc", "malloc"},
		{"os::malloc(unsigned long, MEMFLAGS)", "os::malloc"},
		{"Table::grow(void (*)(int)) const", "Table::grow"},
		{"(anonymous namespace)::grow(int)", "(anonymous namespace)::grow"},
		{"run()::{lambda()#1}::operator()() const", "run()::{lambda()#1}::operator()"},
		{"(anonymous)", "(anonymous)"},
		{"odd)", "odd)"},
		{"", ""}};
	char name[64];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		strcpy(name, names[i][0]);
		plan_name__shorten(name);
		assert_string_equal(name, names[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(callers_of_equal_use_are_one_site),
		cmocka_unit_test(callers_of_a_wrapper_are_told_apart_by_their_use),
		cmocka_unit_test(calls_of_all_who_share_a_wrapper_are_known),
		cmocka_unit_test(
			frames_that_all_have_tell_nothing_but_are_needed_before_one_that_does),
		cmocka_unit_test(little_memory_is_no_site_of_its_own),
		cmocka_unit_test(kinds_are_not_mixed),
		cmocka_unit_test(more_sites_than_the_model_has_are_one),
		cmocka_unit_test(texts_of_directives_are_read_back),
		cmocka_unit_test(texts_that_are_no_directives_are_refused),
		cmocka_unit_test(a_site_that_gains_is_chosen),
		cmocka_unit_test(callers_of_a_wrapper_are_looked_up_once),
		cmocka_unit_test(neither_budget_nor_supply_is_exceeded),
		cmocka_unit_test(pages_are_as_small_as_will_do),
		cmocka_unit_test(scarce_pages_leave_those_of_the_next_size),
		cmocka_unit_test(less_than_a_two_thousandth_of_the_run_is_no_gain),
		cmocka_unit_test(without_instructions_a_run_is_longer_than_its_walks),
		cmocka_unit_test(a_model_that_can_not_be_made_is_told),
		cmocka_unit_test(parameters_are_no_part_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
