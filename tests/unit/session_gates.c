// SPDX-License-Identifier: MIT
/*
 * session_gates.c - gates: who may have one, how events open and close them, what they decide
 *
 * Not here: programs of known truth and the kernel's events (tests/e2e/gates.py).
 */
#include "core/core.h"
#include "core/demand.h"
#include "core/gate.h"
#include "statistics/statistics.h"
#include "session_fixture.h"

#include "producer/producer.h"
#include "programs/gated.h"
#include "util.h"

#include <errno.h>

#define STEP "APP::Gated::Step"
#define INSIDE "inside APP::Gated::Span"
#define GATES_SESSION (PEM_SESSIONS_MAX - 1) /* that no session of these tests has */

static struct pem_session *session;

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

/* --- who may have a gate --- */

/* The gate of number n: from one of five events to another one. */
static void name_gate(char text[128], unsigned n)
{
	static const char *const events[] = {"Begin", "End", "Open", "Close", "Step"};

	snprintf(text, 128, "from APP::Gated::%s to APP::Gated::%s", events[n / 4],
		 events[(n / 4 + n % 4 + 1) % 5]);
}

static struct pem_event_set *steps_where(const char *predicate)
{
	struct pem_event_set *set = events(session, STEP);
	struct pem_error error = {""};

	if (pem_event_set__where(set, predicate, &error))
		fail_msg("%s", error.text);
	return set;
}

static struct pem_statistics *steps_counted(const char *predicate, struct pem_error *error)
{
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = steps_where(predicate);
	struct pem_statistics *st =
		pem_session__register_statistics(session, set, &self, NULL, error);

	pem_event_set__free(set);
	return st;
}

static void use_all_gates(unsigned first)
{
	struct pem_error error = {""};
	char text[128];
	unsigned i;

	for (i = first; i < first + PEM_GATES_MAX; i++) {
		name_gate(text, i);
		if (!steps_counted(text, &error))
			fail_msg("gate %u: %s", i - first, error.text);
	}
}

static void unused_predicates_take_no_gate(void **state)
{
	char text[128];
	unsigned i;

	(void)state;
	for (i = 0; i <= PEM_GATES_MAX; i++) {
		name_gate(text, i);
		pem_event_set__free(steps_where(text));
	}
	use_all_gates(10);
}

static void failed_predicates_take_no_gate(void **state)
{
	struct pem_event_set *set = events(session, STEP);
	char text[256], gate[128];
	unsigned i;

	(void)state;
	for (i = 0; i <= PEM_GATES_MAX; i++) {
		name_gate(gate, i);
		snprintf(text, sizeof(text), "%s && inside APP::Gated::Nothing", gate);
		assert_int_equal(pem_event_set__where(set, text, NULL), -EINVAL);
	}
	pem_event_set__free(set);
	use_all_gates(10);
}

static void never(const struct pem_record *record, void *arg)
{
	(void)record;
	(void)arg;
}

static void refused_handles_take_no_gate(void **state)
{
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_error error = {""};
	struct pem_event_set *set;
	char text[128];
	unsigned i;

	(void)state;
	for (i = 0; i <= PEM_GATES_MAX; i++) {
		name_gate(text, i);
		set = steps_where(text);
		assert_null(pem_session__register_async_callback(session, set, &self, never, NULL,
								 NULL, &error));
		assert_non_null(strstr(error.text, "statistics alone"));
		pem_event_set__free(set);
	}
	use_all_gates(10);
}

static void a_ninth_gate_is_refused_and_the_eight_are_shared(void **state)
{
	struct pem_error error = {""};
	char text[128];

	(void)state;
	use_all_gates(0);
	name_gate(text, PEM_GATES_MAX);
	assert_null(steps_counted(text, &error));
	assert_non_null(strstr(error.text, "at most 8"));
	use_all_gates(0);
}

/* --- what events do to them --- */

static void follow(const char *script)
{
	for (; *script; script++) {
		if (*script == 'b')
			pem_notify_gated_begin();
		else if (*script == 'e')
			pem_notify_gated_end();
		else
			pem_notify_gated_step(1);
	}
}

static struct pem_statistic value_of(struct pem_statistics *st)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	return value;
}

/* The session is older than its gates, so this thread's state is unknown at first. */
static void steps_count_by_the_interval(void **state)
{
	struct pem_statistics *inside = steps_counted(INSIDE, NULL);
	struct pem_statistics *outside = steps_counted("!" INSIDE, NULL);

	(void)state;
	assert_int_equal(pem_statistics__enable(inside), 0);
	assert_int_equal(pem_statistics__enable(outside), 0);
	follow("sses" /* unknown */
	       "bsbsses" /* inside */
	       "ess" /* outside */
	       "es" /* nothing is left to end */
	       "bs");
	assert_int_equal(value_of(inside).count, 5);
	assert_int_equal(value_of(outside).count, 3);
	assert_int_equal(value_of(inside).undecided, 3);
	assert_int_equal(value_of(outside).undecided, 3);
}

/* Open or close gate 0, a thread's, as an event of an incarnation with this tag does. */
static uint64_t *change_gate(struct pem_thread_full *thread, uint32_t tag, bool opens)
{
	struct pem_gate_use use = {opens ? 1u : 1u << 8, tag};

	assert_true(pem_gates__change(GATES_SESSION, thread, use));
	return &(*thread->gates)[GATES_SESSION][0];
}

static void a_gate_that_does_not_count_is_open_or_closed(void **state)
{
	struct pem_thread_full *thread;

	(void)state;
	pem_notify_gated_step(1);
	thread = pem_thread__get();
	change_gate(thread, 7, true);
	assert_int_equal(*change_gate(thread, 7, true), PEM_GATE_WORD(7, 1));
	assert_int_equal(*change_gate(thread, 7, false), PEM_GATE_WORD(7, 0));
	assert_int_equal(*change_gate(thread, 7, false), PEM_GATE_WORD(7, 0));
	/* An event that came late, of the session before, changes nothing. */
	assert_int_equal(*change_gate(thread, 6, true), PEM_GATE_WORD(7, 0));
	/* One of the next session begins its own state, also by closing. */
	assert_int_equal(*change_gate(thread, 8, false), PEM_GATE_WORD(8, 0));
}

static void a_thread_without_a_structure_can_not_keep_a_gate(void **state)
{
	struct pem_gate_use use = {1, 7};

	(void)state;
	assert_false(pem_gates__change(GATES_SESSION, NULL, use));
}

/* --- what they decide --- */

static void a_word_decides_by_its_tag(void **state)
{
	static const struct {
		uint32_t tag, closed;
		uint64_t word;
		enum pem_gate_verdict inside, outside;
	} cases[] = {
		{5, 0, PEM_GATE_WORD(5, 1), PEM_GATE_PASSES, PEM_GATE_REJECTS},
		{5, 0, PEM_GATE_WORD(5, 3), PEM_GATE_PASSES, PEM_GATE_REJECTS},
		{5, 0, PEM_GATE_WORD(5, 0), PEM_GATE_REJECTS, PEM_GATE_PASSES},
		/* Another session's word: unknown, or closed since the process's start. */
		{5, 0, PEM_GATE_WORD(4, 1), PEM_GATE_UNDECIDED, PEM_GATE_UNDECIDED},
		{5, 2, PEM_GATE_WORD(4, 1), PEM_GATE_REJECTS, PEM_GATE_PASSES},
		{5, 0, 0, PEM_GATE_UNDECIDED, PEM_GATE_UNDECIDED},
		/* Known closed is another gate. */
		{5, 1, 0, PEM_GATE_UNDECIDED, PEM_GATE_UNDECIDED},
		/* No rule has named a gate: a word of no tag means nothing. */
		{0, 0, 0, PEM_GATE_UNDECIDED, PEM_GATE_UNDECIDED},
		{0, 0, PEM_GATE_WORD(0, 1), PEM_GATE_UNDECIDED, PEM_GATE_UNDECIDED},
	};
	size_t i;

	(void)state;
	for (i = 0; i < PEM_ARRAY_SIZE(cases); i++) {
		struct pem_gate_states states = {.tag = cases[i].tag, .closed = cases[i].closed};

		assert_int_equal(pem_gate_judge(&states, PEM_GATES(2, 0), 1, cases[i].word),
				 cases[i].inside);
		assert_int_equal(pem_gate_judge(&states, PEM_GATES(0, 2), 1, cases[i].word),
				 cases[i].outside);
	}
}

static void a_closed_gate_rejects_beside_an_unknown_one(void **state)
{
	struct pem_gate_states *states = &pem_process_gates[GATES_SESSION];
	const struct pem_gate_states before = *states;

	(void)state;
	states->tag = 5;
	states->of_process = 3;
	states->word[0] = PEM_GATE_WORD(5, 1);
	states->word[1] = PEM_GATE_WORD(4, 1);
	assert_int_equal(pem_gates__judge(GATES_SESSION, NULL, PEM_GATES(1, 0)), PEM_GATE_PASSES);
	assert_int_equal(pem_gates__judge(GATES_SESSION, NULL, PEM_GATES(3, 0)),
			 PEM_GATE_UNDECIDED);
	assert_int_equal(pem_gates__judge(GATES_SESSION, NULL, PEM_GATES(2, 1)), PEM_GATE_REJECTS);
	*states = before;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(unused_predicates_take_no_gate, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failed_predicates_take_no_gate, set_up, tear_down),
		cmocka_unit_test_setup_teardown(refused_handles_take_no_gate, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_ninth_gate_is_refused_and_the_eight_are_shared,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(steps_count_by_the_interval, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_gate_that_does_not_count_is_open_or_closed,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_thread_without_a_structure_can_not_keep_a_gate,
						set_up, tear_down),
		cmocka_unit_test(a_word_decides_by_its_tag),
		cmocka_unit_test(a_closed_gate_rejects_beside_an_unknown_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
