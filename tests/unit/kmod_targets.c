/* SPDX-License-Identifier: MIT */
/*
 * kmod_targets.c - whose records the module's are, and of whom it takes any: run in user space, as
 * kmod_probes.c
 */
#include "kmod_fixture.h"

static struct task_struct task(int pid, int tgid, void *signal)
{
	return (struct task_struct){.pid = pid, .tgid = tgid, .signal = signal};
}

/* --- whose records they are --- */

static void raise_switch(struct machine *m, struct task_struct *prev, struct task_struct *next)
{
	((void (*)(void *, bool, struct task_struct *, struct task_struct *))pem_kmod_probes[SWITCH]
		 .probe)(m->data, false, prev, next);
}

/*
 * The ids of the records in the first chunk; "A" for All, "S" for a switch with its thread: "S7A".
 */
static const char *records(const struct machine *m)
{
	static char text[256];
	const struct pem_packet *packet = (const struct pem_packet *)m->pool.ring.chunks;
	uint32_t at = PEM_PACKET_HEADER_BYTES, id, used = 0, end = packet->content_size / 8;

	text[0] = '\0';
	while (at < end) {
		memcpy(&id, m->pool.ring.chunks + at + 4, 4);
		if (id == pem_switch_id) {
			memcpy(&id, m->pool.ring.chunks + at + 20, 4);
			used += (uint32_t)snprintf(text + used, sizeof(text) - used, "S%u", id);
			at += SWITCH_BYTES;
		} else {
			used += (uint32_t)snprintf(text + used, sizeof(text) - used, "A");
			at += 56; /* with two empty strings */
		}
	}
	return text;
}

static void records_of_another_thread_follow_a_switch(void **state)
{
	struct machine *m = make_machine(2);
	struct task_struct one = task(7, 7, &one), other = task(8, 7, &one);
	struct thing empty = {.name = ""};

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	current = &one;
	raise_all(m, &empty, 0, "");
	raise_all(m, &empty, 0, "");
	current = &other;
	raise_all(m, &empty, 0, "");
	assert_string_equal(records(m), "S7AAS8A");
	/* one that is logged says it itself */
	want(m, SWITCH, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	raise_switch(m, &other, &one);
	current = &one;
	raise_all(m, &empty, 0, "");
	assert_string_equal(records(m), "S7AAS8AS7A");
	/* exec gives a thread its leader's number */
	one.pid = 9;
	raise_all(m, &empty, 0, "");
	assert_string_equal(records(m), "S7AAS8AS7AS9A");
	assert_int_equal(m->cpu.writers[0].cells[SWITCH].produced, 4);
	free_machine(m);
}

static void a_lost_switch_is_made_up_for(void **state)
{
	struct machine *m = make_machine(2);
	struct task_struct one = task(7, 7, &one), other = task(8, 8, &other);
	struct thing empty = {.name = ""};

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	want(m, SWITCH, PEM_ACTION(PEM_ACTION_LOG, PEM_NO_FIELD, 0, 0, 1));
	current = &one;
	while (!m->cpu.writers[0].cells[ALL].discarded)
		raise_all(m, &empty, 0, "");
	raise_switch(m, &one, &other);
	assert_int_equal(m->cpu.writers[0].cells[SWITCH].discarded, 1);
	current = &other;
	pem_ring_give_back(&m->pool.ring, 0);
	raise_all(m, &empty, 0, "");
	assert_string_equal(records(m), "S8A");
	free_machine(m);
}

/* --- targets and contexts --- */

static void only_the_targets_events_count(void **state)
{
	struct machine *m = make_machine(2);
	struct task_struct in = task(7, 7, &in), out = task(8, 8, &out);
	const struct pem_cell *cells = m->cpu.writers[0].cells;

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_STAT | PEM_KACTION_TREE, PEM_NO_FIELD, 0, 0, 1));
	want(m, SWITCH, PEM_ACTION(PEM_ACTION_STAT | PEM_KACTION_TREE, PEM_NO_FIELD, 0, 0, 1));
	want(m, BEGINS, PEM_ACTION(PEM_ACTION_STAT | PEM_KACTION_TREE, PEM_NO_FIELD, 0, 0, 1));
	current = &in;
	raise_all(m, &thing, 0, "");
	assert_int_equal(cells[ALL].stat_end, 0);
	assert_true(pem_targets_add(&m->targets, (unsigned long)in.signal));
	raise_all(m, &thing, 0, "");
	assert_int_equal(cells[ALL].stat_end, 1);
	current = &out;
	raise_all(m, &thing, 0, "");
	assert_int_equal(cells[ALL].stat_end, 1);
	/* a switch counts if it leaves the target or comes to it */
	raise_switch(m, &out, &in);
	raise_switch(m, &in, &out);
	raise_switch(m, &out, &out);
	assert_int_equal(cells[SWITCH].stat_end, 2);
	/* what begins here may end anywhere */
	((void (*)(void *, int))pem_kmod_probes[BEGINS].probe)(m->data, 1);
	assert_int_equal(cells[BEGINS].stat_end, 1);
	pem_targets_remove(&m->targets, (unsigned long)in.signal);
	current = &in;
	raise_all(m, &thing, 0, "");
	assert_int_equal(cells[ALL].stat_end, 1);
	free_machine(m);
}

static void targets_without_room_are_counted(void **state)
{
	struct machine *m = make_machine(2);
	unsigned long i, added = 0;

	(void)state;
	for (i = 1; i <= 2 * PEM_TARGET_SETS * PEM_TARGET_WAYS; i++)
		added += pem_targets_add(&m->targets, i << 6);
	assert_int_equal(added + (unsigned)m->targets.lost.counter,
			 2 * PEM_TARGET_SETS * PEM_TARGET_WAYS);
	assert_true(added <= PEM_TARGET_SETS * PEM_TARGET_WAYS);
	assert_true((unsigned)m->targets.lost.counter > 0);
	free_machine(m);
}

static void contexts_are_processes_threads_and_cpus(void **state)
{
	struct machine *m = make_machine(2);
	struct task_struct leader = task(7, 7, &leader), thread = task(8, 7, &leader);
	struct pem_kmod_rule *rule = &m->rule[ALL].head;
	const struct pem_cell *cell = &m->cpu.writers[0].cells[ALL];

	(void)state;
	want(m, ALL, PEM_ACTION(PEM_ACTION_STAT | PEM_ACTION_FILTER, PEM_NO_FIELD, 0, 0, 1));
	current = &thread;
	rule->pid = 7;
	raise_all(m, &thing, 0, "");
	assert_int_equal(cell->stat_end, 1);
	rule->tid = 7;
	raise_all(m, &thing, 0, "");
	assert_int_equal(cell->stat_end, 1);
	current = &leader;
	rule->cpu = 3;
	raise_all(m, &thing, 0, "");
	assert_int_equal(cell->stat_end, 2);
	rule->cpu = 2;
	raise_all(m, &thing, 0, "");
	assert_int_equal(cell->stat_end, 2);
	free_machine(m);
}

static struct machine *interrupted;

static void add_and_raise(void)
{
	assert_true(pem_targets_add(&interrupted->targets, (unsigned long)current->signal));
	raise_all(interrupted, &thing, 0, "");
}

static uint64_t counted(const struct machine *m)
{
	return m->cpu.writers[0].cells[ALL].stat_end + m->cpu.writers[1].cells[ALL].stat_end;
}

static void who_becomes_a_target_in_the_middle_of_an_event_is_one(void **state)
{
	struct task_struct in = task(7, 7, &in);
	struct machine *m;
	uint64_t before;
	unsigned at;

	(void)state;
	for (at = 1;; at++) {
		m = interrupted = make_machine(2);
		want(m, ALL, PEM_ACTION(PEM_ACTION_STAT | PEM_KACTION_TREE, PEM_NO_FIELD, 0, 0, 1));
		current = &in;
		interrupt = add_and_raise;
		interrupt_in = at;
		raise_all(m, &thing, 0, "");
		if (interrupt_in)
			break;
		before = counted(m);
		assert_true(before >= 1);
		raise_all(m, &thing, 0, "");
		assert_int_equal(counted(m), before + 1);
		free_machine(m);
	}
	interrupt_in = 0;
	assert_true(at > 2);
	free_machine(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_another_thread_follow_a_switch),
		cmocka_unit_test(a_lost_switch_is_made_up_for),
		cmocka_unit_test(only_the_targets_events_count),
		cmocka_unit_test(targets_without_room_are_counted),
		cmocka_unit_test(contexts_are_processes_threads_and_cpus),
		cmocka_unit_test(who_becomes_a_target_in_the_middle_of_an_event_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
