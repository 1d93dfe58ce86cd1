/* SPDX-License-Identifier: MIT */
/*
 * kernel_distribution.c - variance, histogram and most frequent values of kernel events: equal to a
 * reference of what was called
 *
 * A system call's first argument is the test's to choose, whatever the call: getppid takes none.
 */
#include "core/core.h"
#include "core/demand.h"
#include "statistics/statistics.h"
#include "kernel_fixture.h"
#include "distribution.h"

#include <sched.h>

#define ALL (PEM_DISTRIBUTION_VARIANCE | PEM_DISTRIBUTION_HISTOGRAM | PEM_DISTRIBUTION_VALUES)
#define VALUES 600

static struct subject *subject_of(const char *name, const char *attribute, uint32_t distribution,
				  uint64_t *action)
{
	const struct pem_context self = {.pid = (uint32_t)getpid(), .tid = (uint32_t)getpid()};
	const struct pem_event *event = pem_model__by_name(model, name);
	int i = pem_event__field(event, attribute);
	struct subject *s = new_subject();

	*action = PEM_ACTION(PEM_ACTION_STAT | PEM_ACTION_DISTRIBUTION, (unsigned)i,
			     event->fields[i].type, event->fields[i].offset, 5);
	add_event(s, name, 0, &self);
	s->events[0].distribution = distribution;
	open_subject(s, 0, 0);
	return s;
}

static void add_part(const struct pem_statistic *part, const struct pem_distribution *distribution,
		     uint32_t cpu, void *arg)
{
	(void)cpu;
	assert_true(part->count > 0);
	if (distribution)
		pem_distribution_total__add(arg, distribution);
}

static struct pem_distribution_total total_of(struct subject *s)
{
	struct pem_distribution_total total = {.missed = 0};

	assert_true(ops->each_statistic(s->source, 0, add_part, &total) >= 0);
	return total;
}

/* Nothing is wanted, and what was kept in the action's epoch still is. */
static void turn_off(struct subject *s, uint64_t action)
{
	assert_int_equal(set_action(s, 0, action & ~0xffull), 0);
}

static void call(struct subject *s, uint64_t action, const uint64_t *values, size_t count)
{
	size_t i;

	assert_int_equal(set_action(s, 0, action), 0);
	for (i = 0; i < count; i++)
		syscall(SYS_getppid, values[i]);
	turn_off(s, action);
}

/* The same values, added by the code of programs. */
static struct pem_distribution_total reference_of(const uint64_t *values, size_t count)
{
	struct pem_distribution_total total = {.missed = 0};
	static struct pem_distribution distribution;
	size_t i;

	pem_distribution_reset(&distribution, 1);
	for (i = 0; i < count; i++) {
		pem_distribution_add_square(&distribution, values[i], 0);
		pem_distribution_add_bucket(&distribution, pem_distribution_bucket(values[i], 0));
		pem_distribution_add_top(&distribution, values[i]);
	}
	pem_distribution_total__add(&total, &distribution);
	return total;
}

/* Of each magnitude, a few of them often. */
static void fill(uint64_t *values)
{
	uint64_t random = 88172645463325252u;
	size_t i;

	for (i = 0; i < VALUES; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		values[i] = i % 3 ? random >> random % 64 : random % 4;
	}
	values[0] = 0;
	values[1] = UINT64_MAX;
	values[2] = 1ull << 63;
}

/* Parts of CPUs are merged in another order than values come. */
static void on_cpu(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one)) {
		print_message("# this process may not run on CPU %d\n", cpu);
		skip();
	}
}

static void any_values_are_kept_as_in_programs(void **state)
{
	struct pem_distribution_total total, reference;
	static uint64_t values[VALUES];
	cpu_set_t before;
	uint64_t action;
	struct subject *s =
		subject_of("OS::Syscall::Enter", "argument0", PEM_DISTRIBUTION(3, ALL, 9), &action);

	(void)state;
	sched_getaffinity(0, sizeof(before), &before);
	on_cpu(0);
	fill(values);
	call(s, action, values, VALUES);
	total = total_of(s);
	reference = reference_of(values, VALUES);
	assert_int_equal(total.sum.end, VALUES);
	assert_memory_equal(total.sum.sum, reference.sum.sum, sizeof(total.sum.sum));
	assert_memory_equal(total.sum.squares, reference.sum.squares, sizeof(total.sum.squares));
	assert_true(pem_distribution__variance(&total.sum) > 0);
	assert_memory_equal(total.sum.bucket, reference.sum.bucket, sizeof(total.sum.bucket));
	assert_int_equal(total.missed, reference.missed);
	for (size_t i = 0; i < PEM_TOP_MERGED; i++) {
		assert_int_equal(total.top[i].value, reference.top[i].value);
		assert_int_equal(total.top[i].count, reference.top[i].count);
		assert_int_equal(total.top[i].error, reference.top[i].error);
	}
	sched_setaffinity(0, sizeof(before), &before);
	close_subject(s);
}

static void cpus_add_up(void **state)
{
	const uint64_t values[] = {7, 100, 7, 1ull << 40};
	struct pem_distribution_total total;
	cpu_set_t before;
	uint64_t action;
	struct subject *s = subject_of("OS::Syscall::Enter", "argument0",
				       PEM_DISTRIBUTION(15, ALL, 1), &action);

	(void)state;
	if (sched_getaffinity(0, sizeof(before), &before) || !CPU_ISSET(0, &before) ||
	    !CPU_ISSET(1, &before)) {
		print_message("needs CPUs 0 and 1\n");
		close_subject(s);
		skip();
	}
	on_cpu(0);
	call(s, action, values, 4);
	on_cpu(1);
	call(s, action, values, 2);
	total = total_of(s);
	assert_int_equal(total.sum.end, 6);
	assert_int_equal(total.sum.bucket[3], 3);
	assert_int_equal(total.sum.bucket[7], 2);
	assert_int_equal(total.sum.bucket[41], 1);
	assert_int_equal(total.top[0].value, 7);
	assert_int_equal(total.top[0].count, 3);
	assert_int_equal(total.top[1].value, 100);
	assert_int_equal(total.top[1].count, 2);
	assert_int_equal(total.top[1].error, 0);
	sched_setaffinity(0, sizeof(before), &before);
	close_subject(s);
}

static void negative_numbers_keep_their_sign(void **state)
{
	struct pem_distribution_total total;
	uint64_t action;
	struct subject *s =
		subject_of("OS::Syscall::Exit", "result", PEM_DISTRIBUTION(0, ALL, 2), &action);

	(void)state;
	set_action(s, 0, action);
	syscall(SYS_close, -1);
	syscall(SYS_close, -1);
	syscall(SYS_sched_get_priority_max, SCHED_OTHER); /* 0 */
	turn_off(s, action);
	total = total_of(s);
	assert_int_equal(total.sum.bucket[0], 3);
	assert_int_equal((int64_t)total.sum.sum[0], -2 * EBADF);
	assert_int_equal((int64_t)total.sum.sum[1], -1);
	assert_true(pem_distribution__variance(&total.sum) == EBADF * EBADF * 2 / 9.0);
	assert_int_equal((int64_t)total.top[0].value, -EBADF);
	assert_int_equal(total.top[0].count, 2);
	close_subject(s);
}

static void a_reset_begins_anew(void **state)
{
	const uint64_t values[] = {1, 2, 3}, anew[] = {2, 0, 0};
	uint64_t action, next;
	struct subject *s =
		subject_of("OS::Syscall::Enter", "argument0", PEM_DISTRIBUTION(2, ALL, 3), &action);
	struct pem_distribution_total total;

	(void)state;
	next = action + (1ull << 40);
	call(s, action, values, 3);
	turn_off(s, next);
	assert_int_equal(total_of(s).sum.end, 0);
	call(s, next, anew, 3);
	total = total_of(s);
	assert_int_equal(total.sum.end, 3);
	assert_int_equal(total.sum.bucket[0], 2);
	assert_int_equal(total.sum.bucket[1], 0);
	assert_int_equal(total.sum.bucket[2], 1);
	assert_int_equal(total.top[0].value, 0);
	assert_int_equal(total.top[0].count, 2);
	assert_int_equal(total.top[1].value, 2);
	assert_int_equal(total.top[1].count, 1);
	assert_int_equal(total.top[1].error, 0);
	assert_int_equal(total.top[2].count, 0);
	close_subject(s);
}

static void only_what_was_asked_for_is_kept(void **state)
{
	const uint64_t values[] = {1, 2, 3};
	uint64_t action;
	struct subject *s = subject_of("OS::Syscall::Enter", "argument0",
				       PEM_DISTRIBUTION(2, PEM_DISTRIBUTION_HISTOGRAM, 3), &action);
	struct pem_distribution_total total;

	(void)state;
	call(s, action, values, 3);
	total = total_of(s);
	assert_int_equal(total.sum.end, 0);
	assert_int_equal(total.sum.bucket[1] + total.sum.bucket[2], 3);
	assert_int_equal(total.top[0].count, 0);
	assert_int_equal(ops->keep(s->source, 0, PEM_DISTRIBUTION(4, PEM_DISTRIBUTION_VALUES, 4)),
			 0);
	call(s, action, values, 2);
	total = total_of(s);
	assert_int_equal(total.sum.bucket[1], 0);
	assert_int_equal(total.top[1].count, 1);
	assert_int_equal(ops->keep(s->source, 1, 0), -EINVAL);
	close_subject(s);
}

/* --- and through a session --- */

static struct pem_session *session;
static char folder[64];

static struct pem_statistics *keeping(const char *pattern, const char *attribute, int *kept)
{
	const struct pem_context self = {.pid = (uint32_t)getpid(), .tid = (uint32_t)getpid()};
	struct pem_error error = {""};
	struct pem_event_set *set = pem_event_set__new(session, &pattern, 1, &error);
	struct pem_statistics *st;

	st = pem_session__register_statistics(session, set, &self, attribute, &error);
	if (!st)
		fail_msg("%s", error.text);
	pem_event_set__free(set);
	*kept = pem_statistics__keep(st, ALL);
	return st;
}

static void a_session_hands_it_out(void **state)
{
	struct pem_histogram histogram = {.size = sizeof(histogram)};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_statistics *st;
	struct pem_top top[2] = {{.size = sizeof(top[0])}};
	int kept, i;

	(void)state;
	st = keeping("OS::Syscall::Enter", "argument0", &kept);
	assert_int_equal(kept, 0);
	assert_int_equal(pem_statistics__enable(st), 0);
	pem_statistics__reset(st);
	for (i = 0; i < 3000; i++)
		syscall(SYS_getppid, i % 3 ? 123456789 : 5000000000);
	pem_statistics__disable(st);
	assert_int_equal(pem_statistics__read(st, &value, 1), 1);
	assert_int_equal(value.unavailable, 0);
	assert_true(value.count >= 3000 && value.variance > 0);
	assert_int_equal(pem_statistics__histogram(st, 0, &histogram), 0);
	assert_int_equal(histogram.bucket[27], 2000);
	assert_int_equal(histogram.bucket[33], 1000);
	assert_int_equal(pem_statistics__top(st, 0, top, 2), 2);
	assert_int_equal(top[0].value, 123456789);
	assert_int_equal(top[0].count, 2000);
	assert_int_equal(top[1].value, 5000000000);
	pem_statistics__unregister(st);
}

static void of_a_counter_nothing_more_is_kept(void **state)
{
	struct pem_statistics *st;
	int kept;

	(void)state;
	st = keeping("HW::Software::ContextSwitches", "value", &kept);
	assert_int_equal(kept, -ENOTSUP);
	pem_statistics__unregister(st);
}

static int set_up(void **state)
{
	const char *build = getenv("B");
	struct pem_error error = {""};
	char path[4096 + 16], *absolute;

	(void)state;
	snprintf(path, sizeof(path), "%s/lib/pem", build ? build : "build");
	absolute = realpath(path, NULL);
	if (!absolute || setenv("PEM_PLUGIN_PATH", absolute, 1))
		return -1;
	free(absolute);
	snprintf(folder, sizeof(folder), "/tmp/pem-wide-XXXXXX");
	if (!mkdtemp(folder) || setenv("PEM_RUNTIME_DIR", folder, 1))
		return -1;
	session = pem_session__open(NULL, &error);
	return session ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	pem_session__close(session);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_values_are_kept_as_in_programs),
		cmocka_unit_test(cpus_add_up),
		cmocka_unit_test(negative_numbers_keep_their_sign),
		cmocka_unit_test(a_reset_begins_anew),
		cmocka_unit_test(only_what_was_asked_for_is_kept),
		cmocka_unit_test_setup_teardown(a_session_hands_it_out, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_a_counter_nothing_more_is_kept, set_up,
						tear_down),
	};
	int rc = load_plugin();

	return rc > 0 ? cmocka_run_group_tests(tests, NULL, NULL) : -rc;
}
