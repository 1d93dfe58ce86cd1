/* SPDX-License-Identifier: MIT */
/*
 * shared_intervals.c - which end closes which interval
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shared/intervals.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* An event with a number of a role, and a text of a role. */
#define EVENT(id, class, name, meaning, group, scope, number, text)                                \
	"event\t" id "\tAPP::" class "::" name                                                     \
				     "\tAPP\t" class "\t" name "\t1\tinfo\t" meaning "\t" group    \
						     "\t" scope "\tstub\t\t16\t48\t2\t0\t\t\t\n"   \
						     "field\tnumber\tuint32\t-\t10\t" number       \
						     "\t8\t1\t\t-\t0\t\n"                          \
						     "field\ttext\tstring\t-\t10\t" text           \
						     "\t0\t32\t\t-\t0\t\n"
#define PAIR(id, class, group, scope, number, text)                                                \
	EVENT("000001" id "1", class, "Begin", "interval-begin", group, scope, number, text)       \
	EVENT("000001" id "2", class, "End", "interval-end", group, scope, number, text)

/* clang-format off */
static const char text[] = "pem-model\t2\n"
	PAIR("1", "Mark", "APP::Mark", "thread", "-", "name")
	PAIR("2", "Keyed", "APP::Keyed", "thread", "key", "name")
	PAIR("3", "Work", "APP::Work", "thread", "-", "-")
	PAIR("4", "One", "Alone", "-", "-", "-")
	PAIR("5", "Two", "Two", "-", "-", "-")
	PAIR("6", "Rest", "", "-", "-", "-")
	PAIR("7", "Process", "APP::Process", "process", "-", "name")
	EVENT("00000181", "Half", "Begin", "interval-begin", "APP::Half", "thread", "-", "name")
	EVENT("00000182", "Half", "End", "interval-end", "APP::Half", "thread", "-", "-")
	EVENT("00000191", "Late", "Begin", "interval-begin", "APP::Late", "thread", "-", "-")
	EVENT("00000192", "Late", "End", "interval-end", "APP::Late", "thread", "-", "name");
/* clang-format on */

static struct pem_model *model;
static struct pem_intervals *intervals;
static char a, b, c; /* data of intervals: only their addresses matter */

static int set_up(void **state)
{
	struct pem_error error = {""};

	(void)state;
	intervals = pem_intervals__new();
	model = pem_model__new();
	if (pem_model__add_text(model, text, strlen(text), "test", &error) != 18) {
		fprintf(stderr, "%s\n", error.text);
		return -1;
	}
	return intervals ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	pem_intervals__free(intervals);
	pem_model__free(model);
	return 0;
}

static struct pem_record record(const char *class, const char *what, const char *name, uint32_t tid,
				uint32_t number)
{
	static uint8_t data[48] __attribute__((aligned(8)));
	struct pem_record record = {.pid = tid / 10, .tid = tid, .data = data};
	char full[64];

	snprintf(full, sizeof(full), "APP::%s::%s", class, what);
	record.event = pem_model__by_name(model, full);
	assert_non_null(record.event);
	memcpy(data + 8, &number, sizeof(number));
	snprintf((char *)data + 16, 32, "%s", name);
	return record;
}

static void begin(const char *class, const char *name, uint32_t tid, uint32_t number, void *data)
{
	struct pem_record r = record(class, "Begin", name, tid, number);

	assert_null(pem_intervals__begin(intervals, &r, data));
}

static void *end(const char *class, const char *name, uint32_t tid, uint32_t number)
{
	struct pem_record r = record(class, "End", name, tid, number);

	return pem_intervals__end(intervals, &r);
}

static void latest_of_its_name_is_closed(void **state)
{
	(void)state;
	begin("Mark", "x", 11, 0, &a);
	begin("Mark", "x", 11, 0, &b);
	begin("Mark", "y", 11, 0, &c);
	assert_ptr_equal(end("Mark", "x", 11, 0), &b);
	assert_ptr_equal(end("Mark", "x", 11, 0), &a);
	assert_null(end("Mark", "x", 11, 0));
	assert_ptr_equal(end("Mark", "y", 11, 0), &c);
}

static void own_thread_comes_first(void **state)
{
	(void)state;
	begin("Mark", "x", 11, 0, &a);
	begin("Mark", "x", 22, 0, &b);
	begin("Mark", "x", 33, 0, &c);
	assert_ptr_equal(end("Mark", "x", 11, 0), &a);
	assert_ptr_equal(end("Mark", "x", 44, 0), &c); /* of those of others the latest */
	assert_null(end("Mark", "y", 44, 0));
	assert_ptr_equal(end("Mark", "x", 22, 0), &b);
}

static void keys_are_closed_by_their_threads(void **state)
{
	(void)state;
	begin("Keyed", "x", 11, 1, &a);
	begin("Keyed", "x", 11, 2, &b);
	assert_null(end("Keyed", "x", 22, 1));
	assert_ptr_equal(end("Keyed", "x", 11, 1), &a);
	assert_ptr_equal(end("Keyed", "x", 11, 2), &b);
}

static void only_marks_of_threads_end_elsewhere(void **state)
{
	(void)state;
	begin("Process", "x", 11, 0, &a);
	begin("Work", "", 11, 0, &b);
	assert_null(end("Process", "x", 22, 0));
	assert_null(end("Work", "", 22, 0));
	assert_ptr_equal(end("Process", "x", 12, 0), &a); /* another thread of the same */
	assert_ptr_equal(end("Work", "", 11, 0), &b);
}

static void groups_are_kept_apart(void **state)
{
	(void)state;
	begin("One", "", 11, 0, &a); /* without a scope, all keys are 0 */
	begin("Keyed", "x", 11, 0, &b);
	assert_null(end("Two", "", 11, 0));
	assert_null(end("Mark", "x", 11, 0));
	assert_ptr_equal(end("One", "", 11, 0), &a);
}

/* Their ids are alike in the bits by which kinds of events are remembered. */
static void events_are_kept_apart(void **state)
{
	(void)state;
	begin("Mark", "x", 11, 0, &a);
	assert_null(end("Two", "", 11, 0));
	begin("Two", "", 11, 0, &b);
	assert_ptr_equal(end("Mark", "x", 22, 0), &a);
	assert_ptr_equal(end("Two", "", 11, 0), &b);
}

static void ends_need_not_repeat_a_name(void **state)
{
	(void)state;
	begin("Half", "x", 11, 0, &a);
	begin("Half", "y", 11, 0, &b);
	assert_ptr_equal(end("Half", "", 11, 0), &b);
	assert_ptr_equal(end("Half", "", 11, 0), &a);
}

static void begins_need_not_have_a_name(void **state)
{
	(void)state;
	begin("Late", "", 11, 0, &a);
	assert_null(end("Late", "x", 22, 0));
	assert_ptr_equal(end("Late", "x", 11, 0), &a);
}

static void names_come_from_records_or_groups(void **state)
{
	static const struct {
		const char *class, *text, *name;
	} records[] = {{"Mark", "x", "x"},
		       {"Mark", "", "Mark"},
		       {"Work", "x", "Work"},
		       {"One", "", "Alone"},
		       {"Rest", "", "Rest"}};
	struct pem_record r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		r = record(records[i].class, "Begin", records[i].text, 11, 0);
		assert_string_equal(pem_interval__name(&r), records[i].name);
	}
}

static void first_of_too_many_gives_way(void **state)
{
	struct pem_record r;
	unsigned i;

	(void)state;
	begin("Mark", "x", 11, 0, &a);
	for (i = 1; i < PEM_INTERVALS_OPEN_MAX; i++)
		begin("Mark", "y", 11, 0, &b);
	r = record("Mark", "Begin", "z", 11, 0);
	assert_ptr_equal(pem_intervals__begin(intervals, &r, &c), &a);
	assert_null(end("Mark", "x", 11, 0));
	assert_ptr_equal(pem_intervals__take(intervals), &c);
	for (i = 1; i < PEM_INTERVALS_OPEN_MAX; i++)
		assert_ptr_equal(pem_intervals__take(intervals), &b);
	assert_null(pem_intervals__take(intervals));
}

static void each_first_of_too_many_gives_way(void **state)
{
	static char datas[3 * PEM_INTERVALS_OPEN_MAX];
	const size_t count = sizeof(datas);
	struct pem_record r;
	char *oldest;
	size_t i;

	(void)state;
	for (i = 0; i < count; i++) {
		r = record("Mark", "Begin", "x", 11, 0);
		oldest = pem_intervals__begin(intervals, &r, &datas[i]);
		assert_ptr_equal(oldest, i < PEM_INTERVALS_OPEN_MAX
						 ? NULL
						 : &datas[i - PEM_INTERVALS_OPEN_MAX]);
	}
	for (i = count; i-- > count - PEM_INTERVALS_OPEN_MAX;)
		assert_ptr_equal(end("Mark", "x", 11, 0), &datas[i]);
	assert_null(end("Mark", "x", 11, 0));
}

/* --- a plain list that does the same --- */

struct plain {
	const char *class;
	char name;
	uint32_t tid;
	void *data;
};

static struct {
	struct plain open[PEM_INTERVALS_OPEN_MAX];
	size_t count;
} list;

static void *list_remove(size_t at)
{
	void *data = list.open[at].data;

	list.count--;
	memmove(&list.open[at], &list.open[at + 1], (list.count - at) * sizeof(list.open[0]));
	return data;
}

static void *list_begin(struct plain interval)
{
	void *oldest = list.count == PEM_INTERVALS_OPEN_MAX ? list_remove(0) : NULL;

	list.open[list.count++] = interval;
	return oldest;
}

/* End the latest one of its thread, or of any thread. */
static void *list_end(struct plain wanted, bool any_thread)
{
	size_t i;

	for (i = list.count; i-- > 0;) {
		const struct plain *o = &list.open[i];

		if (strcmp(o->class, wanted.class) == 0 && o->name == wanted.name &&
		    (any_thread || o->tid == wanted.tid))
			return list_remove(i);
	}
	return any_thread || strcmp(wanted.class, "Mark") != 0 ? NULL : list_end(wanted, true);
}

static void a_plain_list_does_the_same(void **state)
{
	static const char *const classes[] = {"Mark", "Keyed", "Process"};
	char *data = NULL, name[2] = "";
	struct plain one;
	struct pem_record r;
	uint32_t i, random = 1;

	(void)state;
	for (i = 0; i < 60000; i++) {
		random = random * 1664525u + 1013904223u;
		one = (struct plain){.class = classes[random >> 8 & 1 ? 0 : random % 3],
				     .name = (char)('a' + (random >> 10) % 5),
				     .tid = 10 * (1 + (random >> 16) % 7),
				     .data = ++data};
		name[0] = one.name;
		/* At first there are more begins than ends, until the set is full; then fewer. */
		if ((random >> 24) % 8 < (i < 30000 ? 6u : 3u)) {
			r = record(one.class, "Begin", name, one.tid, 0);
			assert_ptr_equal(pem_intervals__begin(intervals, &r, one.data),
					 list_begin(one));
		} else {
			assert_ptr_equal(end(one.class, name, one.tid, 0), list_end(one, false));
		}
	}
	while (list.count > 0)
		assert_ptr_equal(pem_intervals__take(intervals), list_remove(list.count - 1));
	assert_null(pem_intervals__take(intervals));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(latest_of_its_name_is_closed),
		TEST(own_thread_comes_first),
		TEST(keys_are_closed_by_their_threads),
		TEST(only_marks_of_threads_end_elsewhere),
		TEST(groups_are_kept_apart),
		TEST(events_are_kept_apart),
		TEST(ends_need_not_repeat_a_name),
		TEST(begins_need_not_have_a_name),
		TEST(names_come_from_records_or_groups),
		TEST(first_of_too_many_gives_way),
		TEST(each_first_of_too_many_gives_way),
		TEST(a_plain_list_does_the_same),
	};

	return cmocka_run_group_tests_name("shared_intervals", tests, NULL, NULL);
}
