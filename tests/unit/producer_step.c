// SPDX-License-Identifier: MIT
/*
 * producer_step.c - what a signal handler does in the middle of an event, at each instruction of it
 *
 * The processor traps after each instruction of a stub (the trap flag of x86-64), and the handler
 * does something at one of them: raises an event, or forks.
 *
 * Not here: forks between events (producer_fork.c).
 */
#include "core/core.h"
#include "producer/producer.h"
#include "programs/alike.h"
#include "programs/probe.h"
#include "session_fixture.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

#define TICK "APP::Probe::Tick"
#define STEPS_MAX 2000L
#define LATER 3 /* events that a child raises after the one that it was forked in */

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

static struct pem_session *session;
static const struct pem_context *here(void)
{
	static struct pem_context context;

	context.pid = (uint32_t)getpid();
	return &context;
}

/* What happens at step number at; is_child: in this process it has happened. */
static long steps, at;
static void (*act)(void);
static bool is_child;

static void on_step(int signal, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)signal, (void)info;
	if (steps++ != at)
		return;
	interrupted->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
	act();
}

/* Set or clear the trap flag, below the red zone. */
#define TRAP_FLAG(operation)                                                                       \
	__asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; " operation                              \
			 ", (%%rsp); popfq; lea 128(%%rsp), %%rsp" ::                              \
				 : "memory", "cc")

/*
 * Raise an event with this value, and act in the middle of it. Returns false if it has no more so
 * many steps.
 */
static bool step_through(long step, uint32_t value)
{
	steps = 0;
	at = step;
	TRAP_FLAG("orq $0x100");
	pem_notify_probe_tick(1, value);
	TRAP_FLAG("andq $~0x100");
	return steps > step;
}

static int set_up(void **state)
{
	struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_NODEFER};

	if (folder_make(state))
		return -1;
	session = session_open(NULL);
	is_child = false;
	return sigaction(SIGTRAP, &action, NULL);
}

static int tear_down(void **state)
{
	signal(SIGTRAP, SIG_DFL);
	pem_session__close(session);
	return folder_remove(state);
}

static struct pem_statistics *count_with(unsigned keep)
{
	struct pem_event_set *set = events(session, TICK);
	struct pem_error error = {""};
	struct pem_statistics *statistics =
		pem_session__register_statistics(session, set, here(), "number", &error);

	assert_non_null(statistics);
	if (keep)
		assert_int_equal(pem_statistics__keep(statistics, keep), 0);
	assert_int_equal(pem_statistics__enable(statistics), 0);
	pem_event_set__free(set);
	return statistics;
}

static struct pem_statistics *count(void)
{
	return count_with(0);
}

static uint64_t counted(struct pem_statistics *statistics)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(pem_statistics__read(statistics, &value, 1), 1);
	pem_statistics__unregister(statistics);
	return value.count;
}

static uint64_t logged(struct pem_log *log)
{
	struct pem_error error = {""};
	struct pem_balance balance;
	uint64_t found;

	if (pem_log__finish(log, &error))
		fail_msg("%s", error.text);
	read_trace(TICK, &found, &balance);
	assert_int_equal(balance.produced, found);
	assert_int_equal(balance.delivered, found);
	return found;
}

/* --- what happens in the middle --- */

static uint64_t nested;

static void raise_event(void)
{
	pem_notify_probe_tick(7, 7);
	nested++;
}

static pid_t (*forks)(void);

static void make_child(void)
{
	pid_t child = forks();
	int status;

	if (!child) {
		is_child = true;
		return;
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Act at each instruction of an event in turn. Returns how many events this process began. */
static uint64_t act_at_each(void (*what)(void))
{
	uint64_t begun = 1;
	long step = 0;
	bool goes_on = true;
	unsigned i;

	act = what;
	nested = 0;
	pem_notify_probe_tick(0, 0); /* the first one is another path */
	for (; goes_on && step < STEPS_MAX; step++) {
		goes_on = step_through(step, 1);
		if (is_child) {
			for (i = 0; i < LATER; i++)
				pem_notify_probe_tick(5, 5);
			_exit(0);
		}
		begun++;
	}
	assert_in_range(step, 20, STEPS_MAX - 1);
	return begun;
}

static void an_event_within_another_is_logged_once(void **state)
{
	struct pem_log *log = log_to_trace(session, TICK, here());
	uint64_t begun = act_at_each(raise_event);

	(void)state;
	assert_int_equal(logged(log), begun + nested);
}

static void an_event_within_another_is_counted_once(void **state)
{
	struct pem_statistics *statistics = count();
	uint64_t begun = act_at_each(raise_event);

	(void)state;
	assert_int_equal(counted(statistics), begun + nested);
}

static void an_event_within_another_is_in_the_distribution_once(void **state)
{
	struct pem_statistics *statistics =
		count_with(PEM_STATISTIC_VARIANCE | PEM_STATISTIC_HISTOGRAM | PEM_STATISTIC_TOP);
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	struct pem_top top[3] = {{.size = sizeof(top[0])}};
	uint64_t begun = act_at_each(raise_event);
	double n = (double)(begun + nested), mean;

	(void)state;
	assert_int_equal(pem_statistics__read(statistics, &value, 1), 1);
	assert_int_equal(pem_statistics__histogram(statistics, 0, &histogram), 0);
	assert_int_equal(pem_statistics__top(statistics, 0, top, 3), 3);
	/* The first event had the value 0, the others 1, and those within them 7. */
	assert_int_equal(value.count, begun + nested);
	assert_int_equal(histogram.bucket[0], 1);
	assert_int_equal(histogram.bucket[1], begun - 1);
	assert_int_equal(histogram.bucket[3], nested);
	assert_int_equal(top[0].count + top[1].count + top[2].count, begun + nested);
	mean = (double)(begun - 1 + 7 * nested) / n;
	assert_true(fabs(value.variance - ((double)(begun - 1 + 49 * nested) / n - mean * mean)) <
		    1e-6);
	pem_statistics__unregister(statistics);
}

/* Both events are the least or the greatest so far, and the nested one more so. */
static uint32_t nested_value;

static void raise_value(void)
{
	pem_notify_probe_tick(7, nested_value);
}

static void check_extremes(int direction)
{
	struct pem_statistics *statistics = count();
	struct pem_statistic value = {.size = sizeof(value)};
	uint32_t outer;
	uint64_t sum = 1000000, raised = 1;
	bool goes_on = true;
	long step = 0;

	act = raise_value;
	pem_notify_probe_tick(1, 1000000);
	for (; goes_on && step < STEPS_MAX; step++) {
		outer = 1000000 + (uint32_t)(direction * (2 * step + 1));
		nested_value = outer + (uint32_t)direction;
		goes_on = step_through(step, outer);
		sum += outer + (goes_on ? nested_value : 0);
		raised += 1 + goes_on;
		assert_int_equal(pem_statistics__read(statistics, &value, 1), 1);
		assert_int_equal(value.count, raised);
		assert_int_equal(value.sum, sum);
		assert_int_equal(direction < 0 ? value.min : value.max,
				 goes_on ? nested_value : outer);
	}
	assert_in_range(step, 20, STEPS_MAX - 1);
	pem_statistics__unregister(statistics);
}

static void an_event_within_another_keeps_the_greatest_value_and_the_sum(void **state)
{
	(void)state;
	check_extremes(1);
}

static void an_event_within_another_keeps_the_least_value_and_the_sum(void **state)
{
	(void)state;
	check_extremes(-1);
}

static void an_event_without_a_field_within_another_is_counted_at_once(void **state)
{
	struct pem_event_set *set = events(session, TICK);
	struct pem_statistics *statistics =
		pem_session__register_statistics(session, set, here(), NULL, NULL);
	struct pem_statistic value = {.size = sizeof(value)};
	bool goes_on = true;
	uint64_t raised = 1;
	long step = 0;

	(void)state;
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__enable(statistics), 0);
	act = raise_event;
	pem_notify_probe_tick(1, 1);
	for (; goes_on && step < STEPS_MAX; step++) {
		goes_on = step_through(step, 1);
		raised += 1 + goes_on;
		assert_int_equal(pem_statistics__read(statistics, &value, 1), 1);
		assert_int_equal(value.count, raised);
	}
	assert_in_range(step, 20, STEPS_MAX - 1);
	pem_statistics__unregister(statistics);
}

/* Number0 and Number8 share an entry of what the thread keeps. */
static void raise_number8(void)
{
	pem_notify_alike_number8(1000);
	nested++;
}

static void an_event_within_another_leaves_that_its_distribution(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_event_set *set = events(session, "APP::Alike::*");
	struct pem_statistics *statistics =
		pem_session__register_statistics(session, set, &self, "number", NULL);
	struct pem_statistic value[10] = {{.size = sizeof(value[0])}};
	uint64_t raised = 0;
	bool goes_on = true;
	long step = 0;

	(void)state;
	pem_event_set__free(set);
	assert_int_equal(pem_statistics__keep(statistics, PEM_STATISTIC_HISTOGRAM), 0);
	assert_int_equal(pem_statistics__enable(statistics), 0);
	act = raise_number8;
	nested = 0;
	raise_number8();
	for (; goes_on && step < STEPS_MAX; step++) {
		pem_notify_alike_number0(1); /* kept again */
		steps = 0;
		at = step;
		TRAP_FLAG("orq $0x100");
		pem_notify_alike_number0(1);
		TRAP_FLAG("andq $~0x100");
		goes_on = steps > step;
		raised += 2;
	}
	assert_in_range(step, 20, STEPS_MAX - 1);
	assert_int_equal(pem_statistics__read(statistics, value, 10), 10);
	assert_true(value[0].count == raised && value[0].sum == raised && value[0].max == 1);
	assert_true(value[8].count == nested && value[8].min == 1000);
	pem_statistics__unregister(statistics);
}

static void a_fork_within_an_event_adds_none_to_the_parent_s_log(void **state)
{
	struct pem_log *log = log_to_trace(session, TICK, here());

	(void)state;
	forks = fork;
	assert_int_equal(logged(log), act_at_each(make_child));
}

/* The child finds no coarse clock any more. */
static void a_fork_within_an_event_with_a_coarse_clock_does_no_harm(void **state)
{
	struct pem_session_options options = {.size = sizeof(options), .coarse_clock = 1};
	struct pem_log *log;

	(void)state;
	pem_session__close(session);
	session = session_open(&options);
	log = log_to_trace(session, TICK, here());
	forks = fork;
	assert_int_equal(logged(log), act_at_each(make_child));
}

static void a_fork_within_an_event_adds_none_to_the_parent_s_count(void **state)
{
	struct pem_statistics *statistics = count();

	(void)state;
	forks = fork;
	assert_int_equal(counted(statistics), act_at_each(make_child));
}

/*
 * Of _Fork nobody is told: the child ends the event in its parent's memory, which may be counted
 * there again. Its later events are its own.
 */
static void after_a_bare_fork_within_an_event_later_ones_are_the_child_s(void **state)
{
	struct pem_statistics *statistics = count();
	const struct pem_cell *cell;
	uint64_t begun, found;

	(void)state;
	forks = _Fork;
	begun = act_at_each(make_child);
	cell = &pem_thread_current->writer[0].cells[pem_provider_probe.event_base];
	assert_int_equal(cell->stat_begin, cell->stat_end);
	found = counted(statistics);
	assert_in_range(found, begun, 2 * begun);
}

#define HERE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HERE(an_event_within_another_is_logged_once),
		HERE(an_event_within_another_is_counted_once),
		HERE(an_event_within_another_is_in_the_distribution_once),
		HERE(an_event_within_another_keeps_the_greatest_value_and_the_sum),
		HERE(an_event_within_another_keeps_the_least_value_and_the_sum),
		HERE(an_event_without_a_field_within_another_is_counted_at_once),
		HERE(an_event_within_another_leaves_that_its_distribution),
		HERE(a_fork_within_an_event_adds_none_to_the_parent_s_log),
		HERE(a_fork_within_an_event_with_a_coarse_clock_does_no_harm),
		HERE(a_fork_within_an_event_adds_none_to_the_parent_s_count),
		HERE(after_a_bare_fork_within_an_event_later_ones_are_the_child_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void each_instruction(void **state)
{
	(void)state;
	print_message("instructions are stepped through on x86-64, without sanitizers\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(each_instruction)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
