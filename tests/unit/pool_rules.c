// SPDX-License-Identifier: MIT
/*
 * pool_rules.c - which of a session page's rules apply to an event, and the action word that
 * follows
 */
#include "pool.h"

#include <pem/event.h>
#include <pem/gate.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define EVENT 7u

static struct pem_session_page page;
static const struct pem_rule *rules[PEM_EVENT_RULES_MAX];

static void add(uint32_t event_id, uint16_t context, uint32_t cell, uint32_t flags)
{
	page.rules[page.rule_count++] =
		(struct pem_rule){.event_id = event_id,
				  .context = context,
				  .flags = PEM_RULE_OF_CELL(cell),
				  .action = PEM_ACTION(flags, 3, PEM_TYPE_UINT64, 16, 9)};
}

static uint32_t find(uint64_t contexts)
{
	return pem_rule__find(&page, page.rule_count, contexts, EVENT, rules);
}

static int set_up(void **state)
{
	(void)state;
	memset(&page, 0, sizeof(page));
	return 0;
}

static void the_first_of_each_cell_applies(void **state)
{
	(void)state;
	add(EVENT, 1, 0, PEM_ACTION_STAT | PEM_ACTION_CALLBACK);
	add(EVENT, 0, 0, PEM_ACTION_STAT);
	add(EVENT + 1, 0, 1, PEM_ACTION_STAT);
	add(EVENT, 1, 2, PEM_ACTION_LOG);
	add(EVENT, 0, 2, PEM_ACTION_STAT);
	assert_int_equal(find(3), 2);
	assert_ptr_equal(rules[0], &page.rules[0]);
	assert_ptr_equal(rules[1], &page.rules[3]);
	assert_int_equal(find(1), 2);
	assert_ptr_equal(rules[0], &page.rules[1]);
	assert_ptr_equal(rules[1], &page.rules[4]);
	assert_int_equal(find(0), 0);
}

static void a_cell_that_no_lane_has_is_passed_over(void **state)
{
	(void)state;
	add(EVENT, 0, PEM_RULE_CELLS_END, PEM_ACTION_STAT);
	add(EVENT, 0, PEM_FURTHER_CELLS, PEM_ACTION_STAT);
	assert_int_equal(find(1), 1);
	assert_ptr_equal(rules[0], &page.rules[1]);
}

static void a_rule_for_any_event_applies_where_none_names_it(void **state)
{
	(void)state;
	add(PEM_RULE_ANY_EVENT, 0, 0, PEM_ACTION_LOG);
	assert_int_equal(find(1), 1);
	assert_ptr_equal(rules[0], &page.rules[0]);
	add(EVENT, 1, 3, PEM_ACTION_STAT);
	assert_int_equal(find(1), 1);
	assert_ptr_equal(rules[0], &page.rules[0]);
	assert_int_equal(find(3), 1);
	assert_ptr_equal(rules[0], &page.rules[1]);
}

static void what_asks_for_nothing_matters_alone_only(void **state)
{
	(void)state;
	add(PEM_RULE_ANY_EVENT, 0, 0, PEM_ACTION_LOG);
	add(EVENT, 0, 0, 0);
	assert_int_equal(find(1), 1);
	assert_int_equal(pem_rules__action(rules, 1), page.rules[1].action);
	add(EVENT, 0, 1, PEM_ACTION_LOG);
	assert_int_equal(find(1), 1);
	assert_ptr_equal(rules[0], &page.rules[2]);
}

/* Stubs take an action of an event's own cell, or one that uses no cell. */
static void one_rule_needs_no_parts_unless_its_cell_is_a_further_one(void **state)
{
	(void)state;
	add(EVENT, 0, 1, PEM_ACTION_LOG);
	assert_int_equal(find(1), 1);
	assert_int_equal(pem_rules__action(rules, 1), page.rules[0].action);
	page.rules[0].action |= PEM_ACTION_STAT;
	assert_int_equal(PEM_ACTION_FLAGS(pem_rules__action(rules, 1)),
			 PEM_ACTION_MORE | PEM_ACTION_LOG | PEM_ACTION_STAT);
	page.rules[0].flags = 0;
	assert_int_equal(pem_rules__action(rules, 1), page.rules[0].action);
	assert_int_equal(pem_rules__action(rules, 0), 0);
}

/* What is lost of the event is counted, and its consumer woken, by what the word says. */
static void several_rules_say_together_what_is_wanted(void **state)
{
	uint64_t action;

	(void)state;
	add(EVENT, 0, 0, PEM_ACTION_STAT | PEM_ACTION_FILTER | PEM_ACTION_DISTRIBUTION);
	add(EVENT, 0, 1, PEM_ACTION_LOG | PEM_ACTION_WAKE | PEM_ACTION_FILTER);
	add(EVENT, 0, 2, PEM_ACTION_CALLBACK);
	action = pem_rules__action(rules, find(1));
	assert_int_equal(PEM_ACTION_FLAGS(action), PEM_ACTION_MORE | PEM_ACTION_STAT |
							   PEM_ACTION_LOG | PEM_ACTION_WAKE |
							   PEM_ACTION_CALLBACK);
	assert_int_equal(PEM_ACTION_FIELD(action), PEM_NO_FIELD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_first_of_each_cell_applies, set_up),
		cmocka_unit_test_setup(a_cell_that_no_lane_has_is_passed_over, set_up),
		cmocka_unit_test_setup(a_rule_for_any_event_applies_where_none_names_it, set_up),
		cmocka_unit_test_setup(what_asks_for_nothing_matters_alone_only, set_up),
		cmocka_unit_test_setup(one_rule_needs_no_parts_unless_its_cell_is_a_further_one,
				       set_up),
		cmocka_unit_test_setup(several_rules_say_together_what_is_wanted, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
