// SPDX-License-Identifier: MIT
/*
 * producer_fork.c - what the child of a fork makes of its parent's table of sessions
 *
 * Not here: whole programs that fork as a recorder sees them (process_life.py).
 */
#include "session_fixture.h"

#include "entry.h"
#include "producer/producer.h"
#include "programs/probe.h"

#include <sys/wait.h>

/* Entries that can be had; they are kept. */
static int take_all(void)
{
	uint64_t word;
	int count = 0;

	while (pem_entry__take(pem_process__table(), pem_process.runtime, "", &word) >= 0)
		count++;
	return count;
}

static void child_frees_what_a_consumer_was_taking(void **state)
{
	uint64_t word;
	int slot, status, free_entries;
	pid_t child;

	(void)state;
	pem_notify_probe_tick(1, 1); /* its provider's constructor has made the control file */
	assert_non_null(pem_process.control);
	slot = pem_entry__take(pem_process__table(), pem_process.runtime, "", &word);
	assert_true(slot >= 0);
	child = fork();
	if (!child)
		_exit(take_all());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	/* The parent's is the consumer's still. */
	free_entries = take_all();
	assert_int_equal(WEXITSTATUS(status), free_entries + 1);
	assert_int_equal(pem_process__table()[slot].word, word);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(child_frees_what_a_consumer_was_taking, folder_make,
						folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
