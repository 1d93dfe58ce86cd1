// SPDX-License-Identifier: MIT
/*
 * producer_fork.c - what the child of a fork makes of its parent's table of sessions, and a process
 * of a control file that was changed
 *
 * Not here: whole programs that fork as a recorder sees them (process_life.py).
 */
#include "core/core.h"
#include "session_fixture.h"

#include "entry.h"
#include "producer/producer.h"
#include "programs/probe.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static bool nobody_is_dead(void *arg, const char *name)
{
	(void)arg, (void)name;
	return true;
}

/* Entries that can be had; they are kept. */
static int take_all(void)
{
	uint64_t word;
	int count = 0;

	while (pem_entry__take(pem_process__table(), nobody_is_dead, NULL, "", &word) >= 0)
		count++;
	return count;
}

static void child_frees_what_a_consumer_was_taking(void **state)
{
	uint64_t word;
	int cell, status, free_entries;
	pid_t child;

	(void)state;
	pem_notify_probe_tick(1, 1); /* its provider's constructor has made the control file */
	assert_non_null(pem_process.control);
	cell = pem_entry__take(pem_process__table(), nobody_is_dead, NULL, "", &word);
	assert_true(cell >= 0);
	child = fork();
	if (!child)
		_exit(take_all());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	/* The parent's is the consumer's still. */
	free_entries = take_all();
	assert_int_equal(WEXITSTATUS(status), free_entries + 1);
	assert_int_equal(pem_process__table()[cell].word, word);
}

/* A consumer can write to the file. What the process made of it is in its own memory. */
static void entries_that_a_consumer_changed_are_not_followed(void **state)
{
	struct pem_control_file *control, before;
	uint32_t i;

	(void)state;
	pem_notify_probe_tick(1, 1);
	control = pem_process.control;
	assert_non_null(control);
	before = *control;
	for (i = 0; i < PEM_PROVIDERS_MAX; i++)
		control->provider[i].offset = 1ull << 46;
	control->provider_count = UINT32_MAX;
	pem_provider_unregister(&pem_provider_probe);
	assert_int_equal(pem_provider_register(&pem_provider_probe), 0);
	assert_true(pem_provider_probe.registered);
	memcpy(control->provider, before.provider, sizeof(before.provider));
	control->provider_count = before.provider_count;
}

/* The end of an event that a handler interrupted and forked in, what it stores set apart. */
static void end_event(void)
{
	uint64_t record[2] = {0};
	struct pem_packet packet;
	struct pem_cell cell = {0};
	struct pem_writer writer = {.cursor = (uint8_t *)record, .packet = &packet};
	struct pem_cursor cursor = {.thread = pem_thread_current, .writer = &writer, .cell = &cell};

	pem_log_commit(&cursor, 1, sizeof(record));
}

static void child_that_returns_into_an_event_has_the_next_ones_for_itself(void **state)
{
	const struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_session *session = session_open(NULL);
	pid_t child;
	int status;

	(void)state;
	log_to_trace(session, "APP::Probe::Tick", &self);
	pem_notify_probe_tick(1, 1);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!child) {
		end_event();
		pem_notify_probe_tick(2, 1);
		_exit(pem_process.pid == (uint32_t)getpid() ? 3 : 4);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 3);
	pem_session__close(session);
}

/* A context of one process is not the context of its children, from their first event on. */
static void a_child_is_no_part_of_its_parents_context(void **state)
{
	struct pem_session *session = session_open(NULL);
	struct pem_event_set *ticks = events(session, "APP::Probe::Tick");
	struct pem_context self = {.pid = (uint32_t)getpid()};
	struct pem_statistic value = {.size = sizeof(value)};
	struct pem_statistics *own, *all;
	pid_t child;
	int status;

	(void)state;
	own = pem_session__register_statistics(session, ticks, &self, NULL, NULL);
	all = pem_session__register_statistics(session, ticks, NULL, "number", NULL);
	assert_int_equal(pem_statistics__enable(own), 0);
	assert_int_equal(pem_statistics__enable(all), 0);
	assert_true(pem_process__join(session->directory) >= 0);
	pem_notify_probe_tick(0, 1);
	child = fork();
	if (!child) {
		pem_notify_probe_tick(0, 2);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(pem_statistics__read(all, &value, 1), 1);
	assert_int_equal(value.count, 2);
	assert_int_equal(pem_statistics__read(own, &value, 1), 1);
	assert_int_equal(value.count, 1);
	pem_event_set__free(ticks);
	pem_session__close(session);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: the others leave no entry of the table free */
		cmocka_unit_test_setup_teardown(a_child_is_no_part_of_its_parents_context,
						folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(
			child_that_returns_into_an_event_has_the_next_ones_for_itself, folder_make,
			folder_remove),
		cmocka_unit_test_setup_teardown(entries_that_a_consumer_changed_are_not_followed,
						folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(child_frees_what_a_consumer_was_taking, folder_make,
						folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
