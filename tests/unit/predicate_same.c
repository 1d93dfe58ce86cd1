// SPDX-License-Identifier: MIT
/*
 * predicate_same.c - stubs judge by predicates as the table says, on their own and in the library
 *
 * Not here: BPF programs (kernel_where.c) and the module's probes (kmod_probes.c), which go by the
 * same table.
 */
#include "callbacks/callbacks.h"
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "predicate_table.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/types.h"

static struct pem_session *session;
static uint64_t calls;

static int set_up(void **state)
{
	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	return 0;
}

static int tear_down(void **state)
{
	pem_session__close(session);
	return folder_remove(state);
}

static void integers(const struct table_input *input)
{
	pem_notify_types_integers(0xff, -1, 0xffff, -1, ~0u, -1, input->n, input->a);
}

static struct pem_event_set *integers_where(const char *predicate)
{
	struct pem_event_set *set = events(session, "APP::Types::Integers");
	struct pem_error error = {""};

	if (pem_event_set__where(set, table_text(predicate, "i32", "u64"), &error))
		fail_msg("%s", error.text);
	return set;
}

static struct pem_statistics *counted(const struct pem_event_set *set, uint32_t tid)
{
	struct pem_context here = {0};
	struct pem_statistics *st;

	here.pid = (uint32_t)getpid();
	here.tid = tid;
	st = pem_session__register_statistics(session, set, &here, NULL, NULL);
	assert_non_null(st);
	assert_int_equal(pem_statistics__enable(st), 0);
	return st;
}

static uint64_t count_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	return value.count;
}

static void call(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
	calls++;
}

static void judge_table(uint32_t tid, bool called_back)
{
	struct pem_callback *callback = NULL;
	struct pem_event_set *set;
	struct pem_statistics *st;
	uint64_t before, calls_before;
	bool right;
	size_t p, i;

	for (p = 0; p < TABLE_COUNT(table_predicates); p++) {
		set = integers_where(table_predicates[p]);
		st = counted(set, tid);
		if (called_back) {
			callback = pem_session__register_callback(session, set, NULL, call, NULL,
								  NULL);
			assert_non_null(callback);
			pem_callback__enable(callback);
		}
		for (i = 0; i < TABLE_COUNT(table_inputs); i++) {
			before = count_of(st);
			calls_before = calls;
			integers(&table_inputs[i]);
			right = table_answer(table_predicates[p], &table_inputs[i]);
			if ((count_of(st) != before) != right ||
			    (called_back && (calls != calls_before) != right))
				fail_msg("%s of n = %d, a = %llu", table_predicates[p],
					 table_inputs[i].n, (unsigned long long)table_inputs[i].a);
		}
		pem_event_set__free(set);
		pem_statistics__unregister(st);
		pem_callback__unregister(callback);
		callback = NULL;
	}
}

static void a_stub_judges_as_the_table_says(void **state)
{
	(void)state;
	judge_table(PEM_ANY, false);
}

static void a_stub_judges_for_one_thread_as_the_table_says(void **state)
{
	(void)state;
	judge_table((uint32_t)gettid(), false);
}

/* A callback is the library's to make, which tests a record then. */
static void the_library_judges_as_the_table_says(void **state)
{
	(void)state;
	judge_table(PEM_ANY, true);
}

static void a_stub_judges_floats_as_the_tree_does(void **state)
{
	static const char *const predicates[] = {"f32 < 0.1", "f32 == 0.5 || f64 > 1e300",
						 "f64 != 0 && f32 >= -1", "!(f64 <= 2)", "f32"};
	static const float values[] = {0, -0.0f, 0.1f, 0.5f, -1, 1e30f, __builtin_nanf("")};
	size_t p, i;

	(void)state;
	for (p = 0; p < sizeof(predicates) / sizeof(predicates[0]); p++) {
		struct pem_event_set *set = events(session, "APP::Types::Floats");
		static struct pem_expression expression;
		struct pem_statistics *st;
		struct pem_error error;

		assert_int_equal(pem_event_set__where(set, predicates[p], &error), 0);
		assert_int_equal(pem_expression__parse(&expression, predicates[p], &error), 0);
		st = counted(set, PEM_ANY);
		for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
			struct pem_types_floats_record record = {.f32 = values[i],
								 .f64 = (double)values[i] * 3};
			uint64_t before = count_of(st);

			pem_notify_types_floats(record.f32, record.f64);
			assert_int_equal(count_of(st) - before,
					 reference_passes(&expression, pem_event_set__event(set, 0),
							  (const uint8_t *)&record));
		}
		pem_event_set__free(set);
		pem_statistics__unregister(st);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_stub_judges_as_the_table_says),
		TEST(a_stub_judges_for_one_thread_as_the_table_says),
		TEST(the_library_judges_as_the_table_says),
		TEST(a_stub_judges_floats_as_the_tree_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
