/* SPDX-License-Identifier: MIT */
/*
 * kernel_statistics.c - kernel statistics are exact, in their context, and cost nothing when off;
 * what can be had at all
 */
#include "kernel_fixture.h"

#include <sched.h>

/* --- statistics --- */

static struct pem_statistic read_it(struct subject *s)
{
	struct pem_statistic value = {.size = sizeof(value)};

	assert_int_equal(ops->read_statistic(s->source, 0, &value), 0);
	return value;
}

#define ROUNDS 6

/*
 * Exact after a reset: in the second round, or where the kernel took code or stack away meanwhile,
 * in one of the next, the pages touched are the only ones to fault.
 */
static void faults_of_this_thread_are_counted(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid(), .tid = (uint32_t)getpid()};
	const struct pem_event *event = pem_model__by_name(model, "OS::Mem::PageFault");
	int address = pem_event__field(event, "address");
	const struct pem_field *f = &event->fields[address];
	struct subject *s = new_subject();
	struct pem_statistic value = {.size = sizeof(value)};
	uint8_t *all, *at;
	uint32_t round;

	(void)state;
	if (!faults_are_traced()) {
		print_message("# this kernel has no tracepoint of page faults\n");
		skip();
	}
	all = at = mmap(NULL, ROUNDS * PAGES * 4096, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(all != MAP_FAILED);
	madvise(all, ROUNDS * PAGES * 4096, MADV_NOHUGEPAGE);
	add_event(s, "OS::Mem::PageFault", 0, &self);
	open_subject(s, 0, 0);
	for (round = 0; round < ROUNDS && value.count != PAGES; round++) {
		set_action(s, 0,
			   PEM_ACTION(PEM_ACTION_STAT, (unsigned)address, f->type, f->offset,
				      round + 1));
		value = read_it(s);
		assert_true(value.count < PAGES); /* the round before was counted afresh */
		at = all + round * PAGES * 4096;
		touch(at, PAGES);
		value = read_it(s);
		assert_true(value.count >= PAGES);
	}
	assert_int_equal(value.count, PAGES);
	assert_int_equal(value.min, (uintptr_t)at);
	assert_int_equal(value.max, (uintptr_t)at + (PAGES - 1) * 4096);
	assert_int_equal(value.sum, PAGES * ((uint64_t)(uintptr_t)at + (PAGES - 1) * 2048));
	munmap(all, ROUNDS * PAGES * 4096);
	close_subject(s);
}

/* Nothing is wanted, and what was counted in the action's epoch still is. */
static uint64_t off_from(uint64_t action)
{
	return action & ~0xffull;
}

static void disabled_counts_nothing_and_keeps_what_was(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid(), .tid = (uint32_t)getpid()};
	const uint64_t on = PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 1);
	struct subject *s = new_subject();
	uint64_t count;
	int i;

	(void)state;
	add_event(s, "OS::Syscall::Enter", 0, &self);
	open_subject(s, 0, 0);
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	assert_int_equal(read_it(s).count, 0);
	assert_int_equal(set_action(s, 0, on), 0);
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	assert_int_equal(set_action(s, 0, off_from(on)), 0);
	count = read_it(s).count;
	assert_int_equal(count, CALLS);
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	assert_int_equal(read_it(s).count, count);
	/* Reset while disabled: another epoch, in which nothing happened. */
	assert_int_equal(set_action(s, 0, off_from(PEM_ACTION(0, PEM_NO_FIELD, 0, 0, 2))), 0);
	assert_int_equal(read_it(s).count, 0);
	assert_int_equal(set_action(s, 1, on), -EINVAL);
	close_subject(s);
}

static void note_part(const struct pem_statistic *part, const struct pem_distribution *distribution,
		      uint32_t cpu, void *arg)
{
	uint64_t *counts = arg;

	assert_null(distribution);
	assert_true(part->count > 0);
	if (cpu < 2)
		counts[cpu] += part->count;
	counts[2] += part->count;
}

static void on_cpu(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
}

static void parts_are_those_of_cpus(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid(), .tid = (uint32_t)getpid()};
	const uint64_t on = PEM_ACTION(PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 1);
	struct subject *s = new_subject();
	uint64_t counts[3] = {0};
	cpu_set_t before;
	int i;

	(void)state;
	if (sched_getaffinity(0, sizeof(before), &before) || !CPU_ISSET(0, &before) ||
	    !CPU_ISSET(1, &before)) {
		print_message("needs CPUs 0 and 1\n");
		close_subject(s);
		skip();
	}
	add_event(s, "OS::Syscall::Enter", 0, &self);
	open_subject(s, 0, 0);
	on_cpu(0);
	assert_int_equal(set_action(s, 0, on), 0);
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	on_cpu(1);
	set_action(s, 0, off_from(on));
	assert_int_equal(ops->each_statistic(s->source, 0, note_part, counts), 1);
	assert_int_equal(counts[0], CALLS + 1); /* and sched_setaffinity */
	set_action(s, 0, on);
	for (i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	set_action(s, 0, off_from(on));
	counts[0] = counts[2] = 0;
	assert_int_equal(ops->each_statistic(s->source, 0, note_part, counts), 2);
	assert_int_equal(counts[1], CALLS);
	assert_int_equal(counts[2], read_it(s).count);
	sched_setaffinity(0, sizeof(before), &before);
	close_subject(s);
}

static void signed_fields_keep_their_order(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid(), .tid = (uint32_t)getpid()};
	const struct pem_event *event = pem_model__by_name(model, "OS::Syscall::Exit");
	int result = pem_event__field(event, "result");
	const uint64_t on = PEM_ACTION(PEM_ACTION_STAT, (unsigned)result, PEM_TYPE_INT64,
				       event->fields[result].offset, 7);
	struct subject *s = new_subject();
	struct pem_statistic value = {.size = sizeof(value)};

	(void)state;
	add_event(s, "OS::Syscall::Exit", 0, &self);
	open_subject(s, 0, 0);
	set_action(s, 0, on);
	syscall(SYS_close, -1);
	syscall(SYS_getpid);
	set_action(s, 0, off_from(on));
	value = read_it(s);
	assert_int_equal(value.count, 2);
	assert_true(value.is_signed);
	assert_int_equal((int64_t)value.min, -EBADF);
	assert_int_equal((int64_t)value.max, getpid());
	assert_int_equal((int64_t)value.sum, getpid() - EBADF);
	close_subject(s);
}

/* --- what can be delivered --- */

static void says_what_can_be_delivered(void **state)
{
	const struct pem_event *event = pem_model__by_name(model, "OS::Syscall::Enter");
	struct pem_event other = *event;
	struct pem_error reason;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(ops->can_deliver(event, &reason), 1);
	other.source_kind = PEM_SOURCE_STUB;
	assert_int_equal(ops->can_deliver(&other, &reason), -ENOENT);
	other = *event;
	other.id ^= 1;
	/* What the module does not list is anybody else's. */
	assert_int_equal(ops->can_deliver(&other, &reason), by_module() ? -ENOENT : 0);
	assert_non_null(strstr(reason.text, by_module() ? "built without it" : "no BPF program"));
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
			_exit(2);
		usleep(by_module() ? 300000 : 0); /* so long it believes what it knows */
		_exit(!ops->can_deliver(event, &reason) &&
				      strstr(reason.text, by_module() ? "group tracing" : "CAP_BPF")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faults_of_this_thread_are_counted),
		cmocka_unit_test(disabled_counts_nothing_and_keeps_what_was),
		cmocka_unit_test(parts_are_those_of_cpus),
		cmocka_unit_test(signed_fields_keep_their_order),
		cmocka_unit_test(says_what_can_be_delivered),
	};
	int rc = load_plugin();

	return rc > 0 ? cmocka_run_group_tests(tests, NULL, NULL) : -rc;
}
