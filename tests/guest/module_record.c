/* SPDX-License-Identifier: MIT */
/*
 * module_record.c - pem.ko records what is wanted: every record, whole, in order, of the right
 * thread, and nothing else
 */
#include "module_fixture.h"

#define CALLS 20000

struct seen {
	uint32_t pid[CPUS], tid[CPUS]; /* that the last switch of the CPU went to */
	uint64_t count;
	uint64_t next;
	uint32_t wrong;
};

/* Records of one thread that stays on its CPU, and calls at depth 0: they come in their order. */
static void count_calls(void *arg, unsigned cpu, const struct pem_packet *packet, uint64_t clock,
			uint32_t id, const uint8_t *record)
{
	struct seen *seen = arg;
	uint64_t argument;

	(void)packet;
	(void)clock;
	if (id == id_of(SWITCH)) {
		memcpy(&seen->pid[cpu], record + 16, 4);
		memcpy(&seen->tid[cpu], record + 20, 4);
		return;
	}
	if (id != id_of(ENTER))
		return;
	memcpy(&argument, record + 16, 8);
	if (argument < MARK_BASE || argument >= MARK_BASE + CALLS)
		return;
	if (seen->tid[cpu] != (uint32_t)getpid() || seen->pid[cpu] != (uint32_t)getpid() ||
	    argument - MARK_BASE != seen->next)
		seen->wrong++;
	seen->next = argument - MARK_BASE + 1;
	seen->count++;
}

static struct session *recording(uint32_t flags, uint32_t chunk_bytes, uint32_t chunks,
				 struct seen *seen)
{
	struct session *s = session_open();

	memset(seen, 0, sizeof(*seen));
	s->seen = count_calls;
	s->arg = seen;
	session_setup(s, flags, chunk_bytes, chunks);
	return s;
}

static void make_calls(uint64_t from, uint64_t to)
{
	for (; from < to; from++)
		call(from);
}

static uint64_t produced_of(struct session *s, const char *name)
{
	uint64_t produced, discarded;

	session_counts(s, name, &produced, &discarded);
	return produced;
}

static uint64_t statistic_count(struct session *s, const char *name, struct pem_cell *sum)
{
	uint32_t index = cell_of(s, name), lane;
	uint64_t count = 0;
	struct pem_cell copy = {0};
	struct mapped *m;
	unsigned cpu;

	memset(sum, 0, sizeof(*sum));
	sum->min = ~0ull;
	for (cpu = 0; cpu < CPUS; cpu++) {
		m = session_map(s, cpu);
		for (lane = 1; m && lane < PEM_KMOD_LANES; lane++) {
			assert_true(
				pem_cell_read(&m->ring.cells[lane * m->ring.event_capacity + index],
					      &copy, 1000));
			if (!copy.stat_end)
				continue;
			count += copy.stat_end;
			sum->sum += copy.sum;
			sum->min = copy.min < sum->min ? copy.min : sum->min;
			sum->max = copy.max > sum->max ? copy.max : sum->max;
		}
	}
	return count;
}

static void every_system_call_is_recorded_once_and_in_order(void **state)
{
	struct seen seen;
	struct session *s = recording(0, 65536, 64, &seen);
	unsigned i;

	(void)state;
	run_on(0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	for (i = 0; i < CALLS; i += 1000) {
		make_calls(i, i + 1000);
		session_drain(s);
	}
	session_finish(s);
	assert_true(produced_of(s, ENTER) >= CALLS);
	assert_int_equal(seen.wrong, 0);
	assert_int_equal(seen.count, CALLS);
	session_close(s);
}

static void two_sessions_record_at_once_and_differ(void **state)
{
	struct seen seen, other_seen;
	struct session *s = recording(0, 65536, 64, &seen),
		       *other = recording(0, 8192, 64, &other_seen);

	(void)state;
	run_on(0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_event(other, EXIT, PEM_ACTION_LOG);
	session_start(s);
	session_start(other);
	make_calls(0, 1000);
	session_finish(s);
	make_calls(1000, 1500);
	session_finish(other);
	assert_int_equal(seen.count, 1000);
	assert_int_equal(other_seen.count, 0);
	assert_int_equal(produced_of(s, EXIT), 0);
	assert_true(produced_of(other, EXIT) >= 1500);
	session_close(s);
	session_close(other);
}

static void events_come_and_go_while_it_runs(void **state)
{
	struct seen seen;
	struct session *s = recording(0, 65536, 64, &seen);

	(void)state;
	run_on(0);
	session_start(s);
	make_calls(0, 100);
	assert_int_equal(produced_of(s, SWITCH), 0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	make_calls(100, 200);
	session_event(s, ENTER, 0);
	make_calls(200, 300);
	session_event(s, ENTER, PEM_ACTION_LOG);
	make_calls(300, 400);
	session_finish(s);
	assert_int_equal(seen.count, 200);
	assert_int_equal(seen.wrong, 2); /* where it begins, and where it goes on */
	session_close(s);
}

static void a_full_pool_discards_and_goes_on_when_chunks_are_freed(void **state)
{
	struct seen seen;
	struct session *s = recording(0, 8192, 8, &seen);
	uint64_t produced, discarded;

	(void)state;
	run_on(0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	make_calls(0, 10000);
	session_counts(s, ENTER, &produced, &discarded);
	assert_true(produced >= 10000 && discarded > 1000);
	session_drain(s);
	make_calls(10000, 10010);
	session_finish(s);
	assert_int_equal(seen.next, 10010);
	session_close(s);
}

static void an_overwrite_pool_keeps_the_newest(void **state)
{
	struct seen seen;
	struct session *s = recording(PEM_KMOD_OVERWRITE, 8192, 8, &seen);
	struct pem_kmod_chunks chunks;
	uint32_t index[8];

	(void)state;
	run_on(0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	make_calls(0, 10000);
	assert_true(session_overwritten(s) > 1000);
	/* a snapshot puts back what it has taken */
	chunks = (struct pem_kmod_chunks){
		.size = sizeof(chunks), .count = 8, .chunks = (uint64_t)(uintptr_t)index};
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
	assert_true(chunks.count >= 4);
	chunks.flags = PEM_KMOD_PUT_BACK;
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), 0);
	make_calls(10000, 10100);
	session_finish(s);
	assert_int_equal(seen.next, 10100);
	assert_true(seen.count > 500);
	session_close(s);
}

static void what_is_put_back_makes_room_where_there_was_none(void **state)
{
	struct seen seen;
	struct session *s = recording(PEM_KMOD_OVERWRITE, 8192, 8, &seen);
	struct pem_kmod_chunks chunks;
	uint64_t discarded, later, produced;
	uint32_t index[8];

	(void)state;
	run_on(0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	make_calls(0, 10000);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	chunks = (struct pem_kmod_chunks){
		.size = sizeof(chunks), .count = 8, .chunks = (uint64_t)(uintptr_t)index};
	assert_int_equal(ask(s, PEM_KMOD_TAKE, &chunks), 0);
	assert_int_equal(chunks.count, 8);
	session_start(s);
	make_calls(0, 100);
	session_counts(s, ENTER, &produced, &discarded);
	assert_true(discarded >= 100);
	chunks.flags = PEM_KMOD_PUT_BACK;
	assert_int_equal(ask(s, PEM_KMOD_FREE, &chunks), 0);
	session_counts(s, ENTER, &produced, &discarded);
	make_calls(100, 200);
	session_counts(s, ENTER, &produced, &later);
	assert_true(later - discarded < 10); /* the call of the ioctl itself, or so */
	session_finish(s);
	assert_int_equal(seen.next, 200);
	session_close(s);
}

static void statistics_are_read_while_they_grow(void **state)
{
	struct seen seen;
	struct session *s = recording(0, 8192, 8, &seen);
	struct pem_kmod_event event = event_of(ENTER, PEM_ACTION_STAT);
	struct pem_cell sum;

	(void)state;
	run_on(0);
	event.action = PEM_ACTION(PEM_ACTION_STAT, 1, PEM_TYPE_UINT64, 16, 1);
	event.pid = (uint32_t)getpid();
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
	session_start(s);
	make_calls(0, 1000);
	assert_true(statistic_count(s, ENTER, &sum) >= 1000);
	make_calls(1000, 2000);
	assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
	assert_true(statistic_count(s, ENTER, &sum) >= 2000);
	assert_true(sum.max >= MARK_BASE + 1999);
	assert_int_equal(session_drain(s), 0);
	session_close(s);
}

static void a_predicate_and_a_process_are_judged_in_the_kernel(void **state)
{
	struct seen seen;
	struct session *s = recording(0, 8192, 64, &seen);
	struct pem_kmod_event event = event_of(ENTER, PEM_ACTION_LOG);
	/* argument0 >= MARK_BASE + 100 && argument0 < MARK_BASE + 300 */
	struct pem_test test = {.mask = ~0ull,
				.lo = MARK_BASE + 100,
				.span = 199,
				.end = 24,
				.on_true = PEM_TEST_PASS,
				.on_false = PEM_TEST_FAIL};

	(void)state;
	run_on(0);
	event.tests = (uint64_t)(uintptr_t)&test;
	event.test_count = 1;
	event.pid = (uint32_t)getpid();
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
	session_start(s);
	make_calls(0, 1000);
	/* and kept, though not looked at */
	event.tests = 1;
	event.pid = 0;
	event.flags = PEM_KMOD_KEEP_TESTS;
	event.action = PEM_ACTION(PEM_ACTION_LOG | PEM_ACTION_STAT, PEM_NO_FIELD, 0, 0, 2);
	assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
	make_calls(250, 1000);
	session_finish(s);
	assert_int_equal(seen.count, 250);
	assert_int_equal(produced_of(s, ENTER), 250);
	session_close(s);
}

static void in_child(void (*work)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		work();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void hundred_calls(void)
{
	make_calls(0, 100);
}

static void child_and_grandchild(void)
{
	make_calls(0, 100);
	in_child(hundred_calls);
}

static void targets_are_followed_over_fork(void **state)
{
	struct pem_cell sum;
	unsigned flags;

	(void)state;
	run_on(0);
	for (flags = PEM_KMOD_TREE; flags <= (PEM_KMOD_TREE | PEM_KMOD_ALONE);
	     flags += PEM_KMOD_ALONE) {
		struct seen seen;
		struct session *s = recording(flags, 8192, 64, &seen);
		struct pem_kmod_event event = event_of(ENTER, PEM_ACTION_STAT);
		struct pem_test test = {.mask = ~0ull,
					.lo = MARK_BASE,
					.span = 99,
					.end = 24,
					.on_true = PEM_TEST_PASS,
					.on_false = PEM_TEST_FAIL};
		struct pem_kmod_target target = {.size = sizeof(target)};
		int gate[2], status;
		char byte = 0;
		pid_t pid;

		event.tests = (uint64_t)(uintptr_t)&test;
		event.test_count = 1;
		assert_int_equal(ask(s, PEM_KMOD_EVENT, &event), 0);
		assert_int_equal(pipe(gate), 0);
		pid = fork();
		if (!pid) {
			if (read(gate[0], &byte, 1) != 1)
				_exit(1);
			child_and_grandchild();
			_exit(0);
		}
		target.pid = (uint32_t)pid;
		assert_int_equal(ask(s, PEM_KMOD_TARGET, &target), 0);
		session_start(s);
		make_calls(0, 100); /* of no target */
		assert_int_equal(write(gate[1], &byte, 1), 1);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(ask(s, PEM_KMOD_STOP, NULL), 0);
		assert_int_equal(statistic_count(s, ENTER, &sum),
				 flags & PEM_KMOD_ALONE ? 100 : 200);
		close(gate[0]);
		close(gate[1]);
		session_close(s);
	}
}

static void poll_tells_of_full_chunks(void **state)
{
	struct seen seen;
	struct session *s = session_open();
	struct pollfd ready;
	int status;
	pid_t pid;

	(void)state;
	memset(&seen, 0, sizeof(seen));
	s->setup = (struct pem_kmod_setup){
		.size = sizeof(s->setup), .chunk_bytes = 8192, .chunk_count = 64, .watermark = 3};
	assert_int_equal(ask(s, PEM_KMOD_SETUP, &s->setup), 0);
	session_event(s, ENTER, PEM_ACTION_LOG);
	session_start(s);
	ready = (struct pollfd){.fd = s->fd, .events = POLLIN};
	assert_int_equal(poll(&ready, 1, 0), 0);
	pid = fork();
	if (!pid) {
		/* the parent sleeps by then; if not, the test passes all the same */
		usleep(100000);
		make_calls(0, 2000);
		_exit(0);
	}
	assert_int_equal(poll(&ready, 1, 20000), 1);
	assert_int_equal(ready.revents, POLLIN);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	session_finish(s);
	session_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_system_call_is_recorded_once_and_in_order),
		cmocka_unit_test(two_sessions_record_at_once_and_differ),
		cmocka_unit_test(events_come_and_go_while_it_runs),
		cmocka_unit_test(a_full_pool_discards_and_goes_on_when_chunks_are_freed),
		cmocka_unit_test(an_overwrite_pool_keeps_the_newest),
		cmocka_unit_test(what_is_put_back_makes_room_where_there_was_none),
		cmocka_unit_test(statistics_are_read_while_they_grow),
		cmocka_unit_test(a_predicate_and_a_process_are_judged_in_the_kernel),
		cmocka_unit_test(targets_are_followed_over_fork),
		cmocka_unit_test(poll_tells_of_full_chunks),
	};

	return needs_module() ? 77 : cmocka_run_group_tests(tests, NULL, NULL);
}
