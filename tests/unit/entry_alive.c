// SPDX-License-Identifier: MIT
/*
 * entry_alive.c - the lock by which producers know that a session has a consumer
 */
#include "session_fixture.h"

#include "entry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>

static void session_lives_while_its_lock_is_held(void **state)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

	(void)state;
	assert_false(pem_alive__check(folder));
	fd = pem_alive__hold(directory);
	assert_true(fd >= 0 && fd != directory);
	assert_true(pem_alive__check(folder));
	pem_alive__release(fd);
	assert_false(pem_alive__check(folder));
	close(directory);
}

static void nobody_is_waited_for_without_end(void **state)
{
	int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int other = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	assert_int_equal(flock(other, LOCK_SH), 0);
	assert_int_equal(pem_alive__hold(directory), -EWOULDBLOCK);
	close(other);
	close(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(session_lives_while_its_lock_is_held, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(nobody_is_waited_for_without_end, folder_make,
						folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
