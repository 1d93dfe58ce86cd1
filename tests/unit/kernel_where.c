/* SPDX-License-Identifier: MIT */
/*
 * kernel_where.c - predicates in BPF programs: the kernel takes them for every event, and they
 * judge as everybody does
 */
#include "kernel_fixture.h"
#include "predicate_table.h"

static struct pem_test tests[EVENTS_MAX][PEM_TESTS_MAX];

static void set_predicate(struct subject *s, size_t i, const char *text)
{
	static struct pem_expression expression;
	struct pem_error error = {""};
	int count;

	if (pem_expression__parse(&expression, text, &error))
		fail_msg("%s", error.text);
	count = pem_expression__compile(&expression, s->events[i].event, tests[i], &error);
	if (count < 0)
		fail_msg("%s", error.text);
	s->events[i].tests = tests[i];
	s->events[i].test_count = (uint32_t)count;
}

static uint64_t count_of(struct subject *s, size_t i)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(ops->read_statistic(s->source, i, &value), 0);
	return value.count;
}

/*
 * An event's fields that are numbers, each in a test: '(a > 1 || b > 1) && ...'. Returns how many.
 */
static unsigned text_of_all_fields(const struct pem_event *event, char *text, size_t bytes)
{
	unsigned count = 0;
	size_t used = 0;
	uint16_t i;

	for (i = 0; i < event->field_count && count < 8; i++) {
		if (!pem_type__bytes((enum pem_type)event->fields[i].type))
			continue;
		used += (size_t)snprintf(text + used, bytes - used, "%s%s %s 1",
					 !count      ? "("
					 : count % 2 ? " || "
						     : ") && (",
					 event->fields[i].name, count % 3 ? ">" : "!=");
		count++;
	}
	if (count)
		snprintf(text + used, bytes - used, ")");
	return count;
}

/* The verifier walks the jumps: of all events at once, so many as there is room for tests. */
static void load(struct subject *s)
{
	size_t i;

	open_subject(s, getpid(), 0);
	for (i = 0; i < s->count; i++)
		count_of(s, i);
	close_subject(s);
}

static void every_event_may_have_a_predicate(void **state)
{
	struct subject *s = new_subject();
	struct pem_error reason;
	char text[2048];
	/*
	 * Where each program takes long to verify, some of them: kernel_walk has the kernel take
	 * them all.
	 */
	size_t at, total = 0, step = getenv("PEM_TEST_EMULATED") ? 4 : 1;

	(void)state;
	for (at = 0; at < pem_model__count(model); at += step) {
		const struct pem_event *event = pem_model__event(model, at);

		if (event->source_kind != PEM_SOURCE_TRACEPOINT ||
		    ops->can_deliver(event, &reason) != 1 ||
		    !text_of_all_fields(event, text, sizeof(text)))
			continue;
		add_event(s, event->name, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1), NULL);
		set_predicate(s, s->count - 1, text);
		total++;
		if (s->count < 120)
			continue;
		load(s);
		s = new_subject();
	}
	load(s);
	assert_true(total > 100 / step);
}

/*
 * The table's inputs as system calls that there are not; the tracepoint has their numbers and
 * arguments all the same.
 */
static void system_calls_are_judged_as_the_table_says(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid(), .tid = (uint32_t)getpid()};
	const struct table_input *input;
	struct subject *s;
	uint64_t before;
	size_t p, i;

	(void)state;
	for (p = 0; p < TABLE_COUNT(table_predicates); p++) {
		s = new_subject();
		add_event(s, "OS::Syscall::Enter",
			  PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 1), &self);
		set_predicate(s, 0, table_text(table_predicates[p], "number", "argument0"));
		open_subject(s, 0, 0);
		for (i = 0; i < TABLE_COUNT(table_inputs); i++) {
			input = &table_inputs[i];
			before = count_of(s, 0);
			syscall(input->n, input->a);
			if ((count_of(s, 0) != before) != table_answer(table_predicates[p], input))
				fail_msg("%s of n = %d, a = %llu", table_predicates[p], input->n,
					 (unsigned long long)input->a);
		}
		close_subject(s);
	}
}

static void what_is_rejected_is_neither_logged_nor_produced(void **state)
{
	struct subject *s = new_subject();
	struct pem_balance balance;
	int i;

	(void)state;
	add_event(s, "OS::Syscall::Enter", PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1), NULL);
	set_predicate(s, 0, "number == 100000 && argument0 >= 90");
	open_subject(s, getpid(), 0);
	for (i = 0; i < 100; i++)
		syscall(100000, i);
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_int_equal(seen_of(s, "OS::Syscall::Enter"), 10);
	assert_int_equal(ops->balance(s->source, 0, &balance), 0);
	assert_int_equal(balance.produced, 10);
	close_subject(s);
}

/* A switch that fails its predicate still tells whose the records after it are. */
static void records_keep_their_process_where_switches_are_tested(void **state)
{
	struct subject *s = new_subject();
	int i;

	(void)state;
	add_event(s, "OS::Sched::Switch", PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1), NULL);
	set_predicate(s, 0, "nextPid == 0 && prevTid == 1");
	add_event(s, "OS::Syscall::Enter", PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1), NULL);
	s->seen.target = (uint32_t)getpid();
	open_subject(s, getpid(), 0);
	for (i = 0; i < 50; i++)
		usleep(200);
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_true(seen_of(s, "OS::Syscall::Enter") >= 50);
	assert_int_equal(s->seen.strangers, 0);
	close_subject(s);
}

int main(void)
{
	const struct CMUnitTest all[] = {
		cmocka_unit_test(every_event_may_have_a_predicate),
		cmocka_unit_test(system_calls_are_judged_as_the_table_says),
		cmocka_unit_test(what_is_rejected_is_neither_logged_nor_produced),
		cmocka_unit_test(records_keep_their_process_where_switches_are_tested),
	};
	int usable = load_plugin();

	if (usable <= 0)
		return usable ? 1 : 0;
	return cmocka_run_group_tests(all, NULL, NULL);
}
