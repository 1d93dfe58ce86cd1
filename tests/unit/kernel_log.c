/* SPDX-License-Identifier: MIT */
/*
 * kernel_log.c - what a program does in the kernel arrives once, in order, or is counted as lost
 */
#include "kernel_fixture.h"

#include <sched.h>

/* --- the target --- */

static uint8_t *pages;

static void calls_pages_and_exec(int go, int say)
{
	char *const argv[] = {"true", NULL};
	int i;

	(void)go;
	(void)say;
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	touch(pages, PAGES);
	if (fork() == 0)
		_exit(0);
	ignore(wait(NULL));
	execv("/bin/true", argv);
}

static void a_child_is_observed_and_nobody_else(void **state)
{
	struct subject *s = new_subject();
	struct child child;
	int i;

	(void)state;
	pages = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_true(pages != MAP_FAILED);
	madvise(pages, PAGES * 4096, MADV_NOHUGEPAGE);
	s->seen.low = (uintptr_t)pages;
	s->seen.high = s->seen.low + PAGES * 4096;
	add_all(s);
	child = make_child(calls_pages_and_exec);
	open_subject(s, child.pid, 0);
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getpgid, 0);
	assert_int_equal(write(child.go, "", 1), 1);
	finish_child(&child);
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getpgid, 0);
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_int_equal(s->seen.of_syscall[SYS_getppid], CALLS);
	assert_int_equal(s->seen.of_syscall[SYS_getpgid], 0);
	assert_int_equal(s->seen.faults, faults_are_traced() ? PAGES : 0);
	assert_int_equal(seen_of(s, "OS::Process::Fork"), 1);
	assert_int_equal(seen_of(s, "OS::Process::Exec"), 1);
	assert_int_equal(seen_of(s, "OS::Process::Exit"), 2);
	assert_string_equal(s->seen.filename, "/bin/true");
	assert_true(seen_of(s, "OS::Sched::Switch") > 0);
	assert_int_equal(check_balance(s), 0);
	munmap(pages, PAGES * 4096);
	close_subject(s);
}

static void calls_only(int go, int say)
{
	int i;

	(void)go;
	(void)say;
	for (i = 0; i < 20 * CALLS; i++)
		syscall(SYS_getppid);
}

static void switches_are_logged_with_any_event(void **state)
{
	struct subject *s = new_subject();
	struct pem_balance balance;
	struct child child;
	cpu_set_t before, one;

	(void)state;
	/*
	 * A child is waited for before it is switched from for the last time, but for one on the
	 * same CPU.
	 */
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET((unsigned)sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	add_event(s, "OS::Syscall::Enter", PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1), NULL);
	child = make_child(calls_only);
	s->seen.target = (uint32_t)child.pid;
	open_subject(s, child.pid, 0);
	assert_int_equal(write(child.go, "", 1), 1);
	finish_child(&child);
	sched_setaffinity(0, sizeof(before), &before);
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_int_equal(s->seen.of_syscall[SYS_getppid], 20 * CALLS);
	assert_int_equal(s->seen.strangers, 0);
	/* the event after the last one asked for: the switches */
	assert_int_equal(ops->balance(s->source, 1, &balance), 0);
	assert_true(balance.produced >= 2);
	assert_int_equal(balance.produced, seen_of(s, "OS::Sched::Switch") + balance.discarded);
	assert_int_equal(ops->balance(s->source, 2, &balance), -EINVAL);
	close_subject(s);
}

/* No switch happens between enabling and the first event: the source must say whose it is. */
static void logging_may_begin_in_the_middle(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct subject *s = new_subject();
	int i;

	(void)state;
	s->seen.target = (uint32_t)getpid();
	add_event(s, "OS::Syscall::Enter", 0, &self);
	open_subject(s, 0, 0);
	for (i = 0; i < 3; i++) {
		syscall(SYS_getppid);
		ops->set_action(s->source, 0, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
		syscall(SYS_getpgid, 0);
		ops->set_action(s->source, 0, 0);
	}
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_int_equal(s->seen.of_syscall[SYS_getppid], 0);
	assert_int_equal(s->seen.of_syscall[SYS_getpgid], 3);
	assert_int_equal(s->seen.strangers, 0);
	assert_int_equal(check_balance(s), 0);
	close_subject(s);
}

/* --- the ring --- */

static void a_full_ring_counts_what_it_discards(void **state)
{
	struct subject *s = new_subject();
	struct child child;

	(void)state;
	add_all(s);
	child = make_child(calls_only);
	open_subject(s, child.pid, 8192);
	assert_int_equal(write(child.go, "", 1), 1);
	finish_child(&child);
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_true(s->seen.of_syscall[SYS_getppid] > 0);
	assert_true(check_balance(s) > 30 * CALLS);
	close_subject(s);
}

#define BURSTS 300
#define BURST 40

static void bursts(int go, int say)
{
	char byte = 0;
	int i, j;

	for (i = 0; i < BURSTS; i++) {
		for (j = 0; j < BURST; j++)
			syscall(SYS_getppid);
		ignore(write(say, &byte, 1));
		ignore(read(go, &byte, 1));
	}
}

static void a_ring_that_wraps_loses_nothing_when_drained(void **state)
{
	struct subject *s = new_subject();
	struct child child;
	char byte;
	int i;

	(void)state;
	add_all(s);
	child = make_child(bursts);
	open_subject(s, child.pid, 8192);
	assert_int_equal(write(child.go, "", 1), 1);
	for (i = 0; i < BURSTS; i++) {
		assert_int_equal(read(child.said, &byte, 1), 1);
		assert_int_equal(ops->drain(s->source, &s->sink, 0), 0);
		assert_int_equal(write(child.go, "", 1), 1);
	}
	finish_child(&child);
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_int_equal(s->seen.of_syscall[SYS_getppid], BURSTS * BURST);
	assert_int_equal(check_balance(s), 0);
	close_subject(s);
}

#define PAUSE_NS 2400000000ull /* more than 2^31 */

static void call_pause_call(int go, int say)
{
	const struct timespec pause = {.tv_sec = PAUSE_NS / 1000000000,
				       .tv_nsec = PAUSE_NS % 1000000000};

	(void)go;
	(void)say;
	syscall(SYS_getppid);
	nanosleep(&pause, NULL);
	syscall(SYS_getppid);
}

/* Nothing is drained until the end: the clock's upper half must come out of the ring. */
static void times_are_exact_across_a_long_pause(void **state)
{
	struct subject *s = new_subject();
	uint64_t before, after;
	struct child child;

	(void)state;
	add_event(s, "OS::Syscall::Enter", PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1), NULL);
	child = make_child(call_pause_call);
	open_subject(s, child.pid, 0);
	before = ticks_now();
	assert_int_equal(write(child.go, "", 1), 1);
	finish_child(&child);
	after = ticks_now();
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_int_equal(s->seen.of_syscall[SYS_getppid], 2);
	assert_true(s->seen.first >= before && s->seen.last <= after);
	assert_true(s->seen.last - s->seen.first >= ticks_of(PAUSE_NS));
	close_subject(s);
}

/*
 * Another source says who runs where: this one logs no switch, and each packet names the thread
 * that it is of.
 */
static void beside_another_source_packets_name_their_thread(void **state)
{
	struct subject *s = new_subject();
	struct pem_balance balance;
	struct child child, other;

	(void)state;
	s->seen.beside = 7;
	add_event(s, "OS::Syscall::Enter", PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1), NULL);
	child = make_child(calls_only);
	other = make_child(calls_only);
	s->seen.target = (uint32_t)child.pid;
	open_subject(s, child.pid, 0);
	assert_int_equal(ops->add_target(s->source, other.pid), 0);
	assert_int_equal(write(child.go, "", 1), 1);
	assert_int_equal(write(other.go, "", 1), 1);
	finish_child(&child);
	finish_child(&other);
	assert_int_equal(ops->drain(s->source, &s->sink, 1), 0);
	assert_int_equal(s->seen.of_syscall[SYS_getppid], 40 * CALLS);
	if (!by_module()) /* whose clocks are the same, so that the other's switches hold for it */
		assert_in_range(s->seen.strangers, 20 * CALLS,
				20 * CALLS + 100); /* the other child's */
	assert_int_equal(seen_of(s, "OS::Sched::Switch"), 0);
	assert_int_equal(check_balance(s), 0);
	assert_int_equal(ops->balance(s->source, 1, &balance), -EINVAL);
	close_subject(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_is_observed_and_nobody_else),
		cmocka_unit_test(switches_are_logged_with_any_event),
		cmocka_unit_test(logging_may_begin_in_the_middle),
		cmocka_unit_test(a_full_ring_counts_what_it_discards),
		cmocka_unit_test(a_ring_that_wraps_loses_nothing_when_drained),
		cmocka_unit_test(times_are_exact_across_a_long_pause),
		cmocka_unit_test(beside_another_source_packets_name_their_thread),
	};
	int rc = load_plugin();

	return rc > 0 ? cmocka_run_group_tests(tests, NULL, NULL) : -rc;
}
