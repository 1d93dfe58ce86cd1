// SPDX-License-Identifier: MIT
/*
 * session_rewording.c - another predicate, or another thread, for events that another process
 * raises
 *
 * Not here: what predicates are true of (session_where.c), changes while threads raise events
 * (session_changes.c).
 */
#include "core/demand.h"
#include "processes/processes.h"
#include "statistics/statistics.h"
#include "async_fixture.h"

static struct pem_statistics *count_where(const char *predicate, const struct pem_context *context)
{
	struct pem_event_set *set = events(session, "APP::Probe::Tick");
	struct pem_statistics *counter;
	struct pem_error error = {""};

	assert_int_equal(pem_event_set__where(set, predicate, &error), 0);
	counter = pem_session__register_statistics(session, set, context, NULL, &error);
	if (!counter)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(counter), 0);
	return counter;
}

static uint64_t counted(struct pem_statistics *counter)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(counter, &value, 1), 1);
	return value.count;
}

static uint64_t count_of(struct raiser *r, const char *predicate, const struct pem_context *context)
{
	struct pem_statistics *counter = count_where(predicate, context);
	uint64_t count;

	raise_ticks(r, 100);
	count = counted(counter);
	pem_statistics__unregister(counter);
	return count;
}

/* What the process has by then is the predicate before: it rejects what the next lets pass. */
static void the_next_predicate_counts(void **state)
{
	struct raiser r = raiser_start(1);

	(void)state;
	pem_session__scan_producers(session);
	assert_int_equal(count_of(&r, "who == 1", NULL), 100);
	assert_int_equal(count_of(&r, "who == 2", NULL), 0);
	assert_int_equal(count_of(&r, "who == 1", NULL), 100);
	raiser_end(&r);
}

static void so_does_the_next_thread(void **state)
{
	struct raiser r = raiser_start(1);
	const struct pem_context other = {.pid = (uint32_t)r.pid, .tid = 1},
				 self = {.pid = (uint32_t)r.pid, .tid = (uint32_t)r.pid};

	(void)state;
	pem_session__scan_producers(session);
	assert_int_equal(count_of(&r, "who == 1", &other), 0);
	assert_int_equal(count_of(&r, "who == 1", &self), 100);
	raiser_end(&r);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, async_set_up, async_tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_next_predicate_counts),
		TEST(so_does_the_next_thread),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
